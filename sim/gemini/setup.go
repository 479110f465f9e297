package gemini

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"voicegw/sim/scenario"
)

// config is a validated setup. Only contextUpdate changes it.
type config struct {
	*setupMessage
	habits habits
	// text makes the model write instead of speak.
	text         bool
	voiceName    string
	instructions string
	tools        []scenario.Tool
	behaviors    map[string]string // by tool name
	thoughts     bool
	// seeding: the first clientContent is history and is not answered.
	seeding      bool
	noInterrupts bool
}

// voices are the prebuilt voices (https://ai.google.dev/gemini-api/docs/speech-generation,
// "Voice options", read 2026-11-20), in lower case.
var voices = map[string]bool{
	"zephyr": true, "puck": true, "charon": true, "kore": true, "fenrir": true, "leda": true,
	"orus": true, "aoede": true, "callirrhoe": true, "autonoe": true, "enceladus": true,
	"iapetus": true, "umbriel": true, "algieba": true, "despina": true, "erinome": true,
	"algenib": true, "rasalgethi": true, "laomedeia": true, "achernar": true, "alnilam": true,
	"schedar": true, "gacrux": true, "pulcherrima": true, "achird": true,
	"zubenelgenubi": true, "vindemiatrix": true, "sadachbia": true, "sadaltager": true, "sulafat": true,
}

func configure(m *setupMessage, r route) (config, *closeError) {
	h, err := lookupModel(m.Model, r)
	if err != nil {
		return config{}, err
	}
	c := config{
		setupMessage: m, habits: h, instructions: m.SystemInstruction.text(),
		noInterrupts: m.RealtimeInputConfig.ActivityHandling == "NO_INTERRUPTION",
		seeding:      m.HistoryConfig != nil && m.HistoryConfig.InitialHistoryInClientContent,
	}
	if err := cmp.Or(
		refusedByModel(m, h, r), c.modality(m), c.voice(m), checkRealtime(m.RealtimeInputConfig), checkResumption(m, r),
		c.setTools(m.Tools, "setup.tools"),
	); err != nil {
		return config{}, err
	}
	c.thoughts = c.thinks(m)
	return c, nil
}

// thinks reports whether thoughts are shown. Recorded sessions of the native audio
// models of 2.5 have them if they declare no tools, whether requested or not.
func (c *config) thinks(m *setupMessage) bool {
	t := m.GenerationConfig.ThinkingConfig
	switch {
	case !c.habits.thoughts || (t != nil && t.ThinkingBudget != nil && *t.ThinkingBudget == 0):
		return false
	case t != nil && t.IncludeThoughts != nil:
		return *t.IncludeThoughts
	}
	return len(c.tools) == 0
}

func (c *config) modality(m *setupMessage) *closeError {
	modalities := m.GenerationConfig.ResponseModalities
	switch {
	case len(modalities) == 0:
		return nil
	case len(modalities) > 1:
		return invalid(reasonInvalidArgument)
	}
	switch strings.ToUpper(modalities[0]) {
	case "AUDIO", "MODALITY_UNSPECIFIED":
		return nil
	case "TEXT":
		if !c.habits.textOutput {
			return invalid(reasonVoices)
		}
		c.text = true
		return nil
	}
	return invalid("Invalid value at 'setup.generation_config.response_modalities[0]' "+
		"(type.googleapis.com/google.ai.generativelanguage.v1beta.GenerationConfig.Modality), %q", modalities[0])
}

func (c *config) voice(m *setupMessage) *closeError {
	s := m.GenerationConfig.SpeechConfig
	if s == nil {
		return nil
	}
	c.voiceName = s.VoiceConfig.PrebuiltVoiceConfig.VoiceName
	if c.voiceName != "" && !voices[strings.ToLower(c.voiceName)] {
		return invalid("No matching speaker voice found")
	}
	return nil
}

func checkRealtime(r realtimeConfig) *closeError {
	enums := []struct {
		path, typ, val string
		known          []string
	}{
		{"automatic_activity_detection.start_of_speech_sensitivity", "StartSensitivity", r.Detection.StartSensitivity,
			[]string{"START_SENSITIVITY_UNSPECIFIED", "START_SENSITIVITY_HIGH", "START_SENSITIVITY_LOW"}},
		{"automatic_activity_detection.end_of_speech_sensitivity", "EndSensitivity", r.Detection.EndSensitivity,
			[]string{"END_SENSITIVITY_UNSPECIFIED", "END_SENSITIVITY_HIGH", "END_SENSITIVITY_LOW"}},
		{"activity_handling", "ActivityHandling", r.ActivityHandling,
			[]string{"ACTIVITY_HANDLING_UNSPECIFIED", "START_OF_ACTIVITY_INTERRUPTS", "NO_INTERRUPTION"}},
		{"turn_coverage", "TurnCoverage", r.TurnCoverage,
			[]string{"TURN_COVERAGE_UNSPECIFIED", "TURN_INCLUDES_ONLY_ACTIVITY", "TURN_INCLUDES_ALL_INPUT",
				"TURN_INCLUDES_AUDIO_ACTIVITY_AND_ALL_VIDEO"}},
	}
	for _, e := range enums {
		if e.val != "" && !slices.Contains(e.known, e.val) {
			return invalid("Invalid value at 'setup.realtime_input_config.%s' "+
				"(type.googleapis.com/google.ai.generativelanguage.v1beta.RealtimeInputConfig.%s), %q", e.path, e.typ, e.val)
		}
	}
	const longest = 60_000
	for _, ms := range []*int64{r.Detection.PrefixPaddingMS, r.Detection.SilenceDurationMS} {
		if ms != nil && (*ms < 0 || *ms > longest) {
			return invalid(reasonInvalidArgument)
		}
	}
	return nil
}

func checkResumption(m *setupMessage, r route) *closeError {
	if m.ExplicitVADSignal && !r.vertex {
		return invalid(`Invalid JSON payload received. Unknown name "explicitVadSignal" at 'setup': Cannot find field.`)
	}
	if s := m.SessionResumption; s != nil && s.Transparent && !r.vertex {
		return invalid(`Invalid JSON payload received. Unknown name "transparent" at 'setup.session_resumption': Cannot find field.`)
	}
	return nil
}

func (c *config) setTools(groups []toolGroup, path string) *closeError {
	tools, err := checkTools(groups, path, c.habits)
	if err != nil {
		return err
	}
	c.tools, c.behaviors = nil, make(map[string]string)
	for _, d := range tools {
		t := scenario.Tool{Name: d.Name, Description: d.Description, Parameters: d.Parameters}
		// Live accepts parametersJsonSchema but then shows the model a tool without
		// parameters (livekit/agents#3135, #5450).
		if len(t.Parameters) == 0 {
			t.Parameters = json.RawMessage(`{"type":"OBJECT"}`)
		}
		c.tools = append(c.tools, t)
		c.behaviors[d.Name] = d.Behavior
	}
	return nil
}

func (c *config) async(tool string) bool { return c.habits.async(c.behaviors[tool]) }

// handle is the resumption handle; empty in a new session.
func (m *setupMessage) handle() string {
	if m.SessionResumption == nil {
		return ""
	}
	return m.SessionResumption.Handle
}
