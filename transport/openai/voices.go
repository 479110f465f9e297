package openai

import (
	"slices"
	"strings"
)

// voices are the built-in voices of the Realtime API (openai-go v3.95, type
// RealtimeAudioConfigOutputVoiceString2, read 2026-11-20), the default one first. A custom
// voice has an id of its own.
var voices = []string{"alloy", "ash", "ballad", "coral", "echo", "sage", "shimmer", "verse", "marin", "cedar"}

// secondVoice is the default of the second generation, as its session.created says.
const secondVoice = "marin"

// Model is the model that a Setup without one gets; empty where there is none, on Azure.
func (t *Transport) Model() string { return t.opts.Model }

// Voices lists the voices that the provider's documentation has for model, the default
// one first; nil where it has none. An empty model means the default one.
func (t *Transport) Voices(model string) []string {
	if model == "" {
		model = t.opts.Model
	}
	row := rowOf(model)
	if !inFamily(model, row.prefix) {
		return nil // rowOf has returned the nearest
	}
	list := slices.Clone(voices)
	if strings.HasPrefix(row.prefix, "gpt-realtime-2") {
		i := slices.Index(list, secondVoice)
		list = slices.Insert(slices.Delete(list, i, i+1), 0, secondVoice)
	}
	return list
}
