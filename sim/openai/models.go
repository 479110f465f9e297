package openai

import "strings"

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

// models are those the simulator knows, by the beginning of their names (dated
// snapshots follow their model). gpt-realtime, -2.1 and -2.1-mini as recorded, the rest by analogy:
// -mini and -1.5 like gpt-realtime, all of the second generation like -2.1.
var models = []struct {
	name string
	model
}{
	{"gpt-realtime-2", model{voice: "marin", silenceMS: 500, phases: true}},
	{"gpt-realtime-1.5", model{voice: "alloy", silenceMS: 200, spaced: true}},
	{"gpt-realtime-mini", model{voice: "alloy", silenceMS: 200, spaced: true}},
	{"gpt-realtime", model{voice: "alloy", silenceMS: 200, spaced: true}},
	{"gpt-4o-realtime-preview", model{voice: "alloy", silenceMS: 200, spaced: true}},
	{"gpt-4o-mini-realtime-preview", model{voice: "alloy", silenceMS: 200, spaced: true}},
}

// findModel is the model of that name. A name is known when it is one of the
// table, or begins with one followed by a version (-2.1, -mini, a date).
func findModel(name string) (model, bool) {
	for _, m := range models {
		rest, ok := strings.CutPrefix(name, m.name)
		if ok && (rest == "" || known(rest)) {
			return m.model, true
		}
	}
	return model{}, false
}

// known says that what follows a model's name is a version: .1, -mini, -2025-08-28.
func known(rest string) bool {
	rest = strings.TrimLeft(rest, ".0123456789")
	rest = strings.TrimPrefix(rest, "-mini")
	return strings.Trim(rest, "-0123456789") == ""
}
