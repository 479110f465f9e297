package openai

import (
	"regexp"
	"strings"
)

// otherModels matches OpenAI's models for other APIs, which the Realtime API refuses
// (developers.openai.com/api/docs/models, read 2026-11-23).
var otherModels = regexp.MustCompile(`^(gpt-[0-9].*|gpt-(live|image|audio).*|o[0-9].*|chatgpt-.*|whisper-.*|tts-.*|text-.*|dall-e-.*)$`)

// own reports whether the service is OpenAI's or the simulator, whose models have known names.
func (t *Transport) own() bool { return t.opts.Simulated || t.ep.url.Hostname() == "api.openai.com" }

// Models implements transport.Transport.
func (t *Transport) Models() []string {
	if !t.own() {
		return nil
	}
	models := []string{DefaultModel}
	for _, row := range modelRows {
		if row.prefix != DefaultModel {
			models = append(models, row.prefix)
		}
	}
	return append(models, "gpt-4o-realtime-preview", "gpt-4o-mini-realtime-preview")
}

// Refuses implements transport.Transport.
func (t *Transport) Refuses(model string) bool {
	model = strings.ToLower(model)
	return t.own() && otherModels.MatchString(model) && !strings.Contains(model, "realtime")
}
