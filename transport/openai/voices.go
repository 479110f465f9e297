package openai

import (
	"cmp"
	"slices"
	"strings"
)

// voices are the built-in voices of the Realtime API (openai-go v3.95, type
// RealtimeAudioConfigOutputVoiceString2, read 2026-11-20), the default one first. A custom
// voice is named by its own id.
var voices = []string{"alloy", "ash", "ballad", "coral", "echo", "sage", "shimmer", "verse", "marin", "cedar"}

// secondVoice is the default of the second generation, according to its session.created.
const secondVoice = "marin"

// Model is the model used for a Setup that names none; empty on Azure, which has no default.
func (t *Transport) Model() string { return t.opts.Model }

// Voices lists the voices that the provider documents for model, the default
// one first; nil if it documents none. An empty model means the default one.
func (t *Transport) Voices(model string) []string {
	model = cmp.Or(model, t.opts.Model)
	row := rowOf(model)
	if !inFamily(model, row.prefix) {
		return nil // rowOf has returned the nearest family
	}
	list := slices.Clone(voices)
	if strings.HasPrefix(row.prefix, "gpt-realtime-2") {
		i := slices.Index(list, secondVoice)
		list = slices.Insert(slices.Delete(list, i, i+1), 0, secondVoice)
	}
	return list
}
