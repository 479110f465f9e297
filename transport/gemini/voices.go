package gemini

import (
	"slices"
	"strings"
)

// liveVoices are the prebuilt voices of the Live API, the default one first
// (docs.cloud.google.com, Live API, "Configure language and voice", and
// ai.google.dev/gemini-api/docs/speech-generation, read 2026-11-20).
var liveVoices = []string{
	"Puck", "Zephyr", "Charon", "Kore", "Fenrir", "Leda", "Orus", "Aoede", "Callirrhoe", "Autonoe", "Enceladus", "Iapetus",
	"Umbriel", "Algieba", "Despina", "Erinome", "Algenib", "Rasalgethi", "Laomedeia", "Achernar", "Alnilam", "Schedar",
	"Gacrux", "Pulcherrima", "Achird", "Zubenelgenubi", "Vindemiatrix", "Sadachbia", "Sadaltager", "Sulafat",
}

// cascadeVoices are the voices of older models that do not generate speech themselves
// (ai.google.dev Live API guide, read 2026-11-20).
var cascadeVoices = []string{"Puck", "Charon", "Kore", "Fenrir", "Aoede", "Leda", "Orus", "Zephyr"}

// Model is the model used for a Setup that names none, as in Info.
func (t *Transport) Model() string { return t.opts.modelOr("") }

// Voices lists the voices that the provider documents for model, the default
// one first; nil if it documents none. An empty model means the default one.
func (t *Transport) Voices(model string) []string {
	model = t.opts.modelOr(model)
	switch {
	case !strings.Contains(strings.ToLower(model), "gemini"):
		return nil
	case rowFor(model, t.opts.vertex).family == flash25.family:
		return slices.Clone(cascadeVoices)
	default:
		return slices.Clone(liveVoices)
	}
}
