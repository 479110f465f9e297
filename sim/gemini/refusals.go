package gemini

import "strings"

// A modelRefusal is a valid setting that the named model or version of the API does not accept.
type modelRefusal struct {
	// source is where the refusal was seen or is documented.
	source string
	// refuses reports whether it applies to this setup.
	refuses func(m *setupMessage, h habits, r route) bool
	// reason is the close reason, with code 1007.
	reason string
}

// modelRefusals are tried in this order. If only the refusal is documented and
// not its text, the reason is the provider's general one.
var modelRefusals = []modelRefusal{
	{
		source: "pydantic/pydantic-ai#8394, tried on 2.5, 3.8 and 3.8 extended thinking, v1beta refused and v1alpha accepted; " +
			"googleapis/js-genai#696 and #1953; read 2026-11-23",
		refuses: func(m *setupMessage, _ habits, r route) bool {
			return m.Proactivity != nil && !r.vertex && r.version != "v1alpha"
		},
		reason: `Invalid JSON payload received. Unknown name "proactivity" at 'setup': Cannot find field.`,
	},
	{
		source: "ai.google.dev/gemini-api/docs/models/gemini-3.8-live, \"Migrating from Gemini 3.1 Flash Live\": proactive " +
			"audio is always on and false is an error; read 2026-11-23",
		refuses: func(m *setupMessage, h habits, _ route) bool {
			return h.gen == gen38 && m.Proactivity != nil && m.Proactivity.ProactiveAudio != nil && !*m.Proactivity.ProactiveAudio
		},
		reason: reasonInvalidArgument,
	},
	{
		source: "the same page: affective dialog was removed from the API; googleapis/js-genai#1953 quotes the reason; read 2026-11-23",
		refuses: func(m *setupMessage, h habits, _ route) bool {
			return h.gen == gen38 && m.GenerationConfig.AffectiveDialog != nil
		},
		reason: reasonInvalidArgument,
	},
	{
		source: "the same page: thinking_level is not supported on gemini-3.8-live; ProfSynapse/nexus#389 and vercel/ai#20787 " +
			"report that any thinkingConfig is refused; read 2026-11-23",
		refuses: func(m *setupMessage, h habits, _ route) bool {
			return h.gen == gen38 && !h.extended && m.GenerationConfig.ThinkingConfig != nil
		},
		reason: reasonInvalidArgument,
	},
	{
		source: "ProfSynapse/nexus#389 and vercel/ai#20787, tried on gemini-3.8-live-extended-thinking: it wants a level of " +
			"low, medium or high, or a budget, and not both; read 2026-11-23",
		refuses: func(m *setupMessage, h habits, _ route) bool {
			return h.extended && !thinkingChosen(m)
		},
		reason: reasonInvalidArgument,
	},
}

func thinkingChosen(m *setupMessage) bool {
	t := m.GenerationConfig.ThinkingConfig
	if t == nil {
		return false
	}
	switch strings.ToLower(t.ThinkingLevel) {
	case "low", "medium", "high":
		return t.ThinkingBudget == nil
	case "", "thinking_level_unspecified":
		return t.ThinkingBudget != nil
	}
	return false
}

func refusedByModel(m *setupMessage, h habits, r route) *closeError {
	for _, f := range modelRefusals {
		if f.refuses(m, h, r) {
			return invalid("%s", f.reason)
		}
	}
	return nil
}
