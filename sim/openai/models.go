package openai

import "regexp"

// model is what differs between the models, as recorded.
type model struct {
	voice     string
	silenceMS int
	// phases: items carry "phase", a line is spoken before a call, items
	// interleave, rate_limits.updated follows response.done, and a session without
	// tools counts reasoning_tokens.
	phases bool
	// spaced: arguments of calls are written with spaces and new lines.
	spaced bool
}

// models are the models that the simulator knows (https://developers.openai.com/api/docs/models,
// read 2026-11-23). gpt-realtime, -2.1 and -2.1-mini are as recorded, the rest by
// analogy: -mini and -1.5 like gpt-realtime, all of the second generation like -2.1.
var models = map[string]model{
	"gpt-realtime-2.1":             {voice: "marin", silenceMS: 500, phases: true},
	"gpt-realtime-2.1-mini":        {voice: "marin", silenceMS: 500, phases: true},
	"gpt-realtime-2":               {voice: "marin", silenceMS: 500, phases: true},
	"gpt-realtime-1.5":             {voice: "alloy", silenceMS: 200, spaced: true},
	"gpt-realtime":                 {voice: "alloy", silenceMS: 200, spaced: true},
	"gpt-realtime-mini":            {voice: "alloy", silenceMS: 200, spaced: true},
	"gpt-4o-realtime-preview":      {voice: "alloy", silenceMS: 200, spaced: true},
	"gpt-4o-mini-realtime-preview": {voice: "alloy", silenceMS: 200, spaced: true},
}

// snapshot matches the end of a dated release's name.
var snapshot = regexp.MustCompile(`-20[0-9]{2}-[0-9]{2}-[0-9]{2}$`)

// findModel returns the model of that name, which may be a dated snapshot.
func findModel(name string) (model, bool) {
	m, ok := models[snapshot.ReplaceAllString(name, "")]
	return m, ok
}
