package gemini

import "strings"

// refusedByModel returns the provider's close for a valid setting that the named model or version of the API does not
// accept, or nil. If only the refusal is documented and not its text, the reason is the provider's general one. Sources,
// read 2026-11-23:
//   - pydantic/pydantic-ai#8394, tried on 2.5, 3.8 and 3.8 extended thinking: v1beta refuses proactivity, v1alpha accepts
//     it; googleapis/js-genai#696 and #1953.
//   - ai.google.dev/gemini-api/docs/models/gemini-3.8-live, "Migrating from Gemini 3.1 Flash Live": proactive audio is
//     always on and false is an error; affective dialog was removed from the API (js-genai#1953 quotes the reason);
//     thinking_level is not supported on gemini-3.8-live (ProfSynapse/nexus#389 and vercel/ai#20787: no thinkingConfig is).
//   - the same reports, tried on gemini-3.8-live-extended-thinking: it wants a level of low, medium or high, or a budget,
//     and not both.
func refusedByModel(m *setupMessage, h habits, r route) *closeError {
	p, g := m.Proactivity, m.GenerationConfig
	quiet := p != nil && p.ProactiveAudio != nil && !*p.ProactiveAudio
	switch {
	case p != nil && !r.vertex && r.version != "v1alpha":
		return invalid(`Invalid JSON payload received. Unknown name "proactivity" at 'setup': Cannot find field.`)
	case h.gen == gen38 && (quiet || g.AffectiveDialog != nil || !h.extended && g.ThinkingConfig != nil):
		return invalid(reasonInvalidArgument)
	case h.extended && !thinkingChosen(m):
		return invalid(reasonInvalidArgument)
	}
	return nil
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
