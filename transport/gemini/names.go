package gemini

import (
	"regexp"
	"slices"
	"strings"
)

// liveModels are the models that the Live API serves, the default one first (ai.google.dev/gemini-api/docs/models and
// Vertex AI's list, read 2026-11-23; the older ones from recordings).
var liveModels = []string{
	defaultModel, "gemini-3.8-live-extended-thinking", "gemini-3.1-flash-live-preview", "gemini-2.5-flash-native-audio",
	"gemini-2.5-flash-preview-native-audio", "gemini-2.5-flash-exp-native-audio", "gemini-live-2.5-flash", "gemini-2.5-flash-live",
	"gemini-2.0-flash-live", "gemini-2.0-flash-exp",
}

// otherModels matches Gemini models for other APIs, which the Live API refuses with "is not supported for
// bidiGenerateContent" (ai.google.dev/gemini-api/docs/models, read 2026-11-23).
var otherModels = regexp.MustCompile(`^gemini-(embedding.*|[0-9.]+-(pro|flash|flash-lite)(-[0-9]{3}|-latest|-preview(-[0-9-]+)?|-image.*|-(preview-)?tts.*)?)$`)

// Models implements [transport.Transport].
func (t *Transport) Models() []string {
	if !t.opts.google {
		return nil
	}
	return slices.Clone(liveModels)
}

// Refuses implements [transport.Transport].
func (t *Transport) Refuses(model string) bool {
	return t.opts.google && otherModels.MatchString(strings.ToLower(model[strings.LastIndexByte(model, '/')+1:]))
}
