package gemini

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/genai"

	"voicegw/transport"
)

// functionDeclaration is genai.FunctionDeclaration with an unchanged schema: the SDK's Schema would silently drop
// unknown members.
type functionDeclaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Behavior    genai.Behavior  `json:"behavior,omitempty"`
}

type functionTool struct {
	FunctionDeclarations []functionDeclaration `json:"functionDeclarations"`
}

// setupMessage is the first message: genai.LiveClientSetup with our own type for the tools.
type setupMessage struct {
	Setup struct {
		genai.LiveClientSetup
		Tools []functionTool `json:"tools,omitempty"`
	} `json:"setup"`
}

// setupFrame builds the first message (ai.google.dev/api/live#setup).
func (t *Transport) setupFrame(model string, r *row, setup transport.Setup) ([]byte, error) {
	var m setupMessage
	m.Setup.Model = t.opts.resource(model)
	thinking, err := r.thinkingConfig(t.opts.Thinking)
	if err != nil {
		return nil, err
	}
	m.Setup.GenerationConfig = &genai.GenerationConfig{
		ThinkingConfig:     thinking,
		ResponseModalities: []genai.Modality{genai.ModalityAudio},
		SpeechConfig:       speechConfig(setup.Voice, t.opts.Voice, setup.Language),
	}
	if setup.Instructions != "" {
		m.Setup.SystemInstruction = genai.NewContentFromText(setup.Instructions, genai.RoleUser)
	}
	tools, err := declareTools(r, setup.Tools)
	if err != nil {
		return nil, err
	}
	m.Setup.Tools = tools
	m.Setup.RealtimeInputConfig = inputConfig(setup)
	m.Setup.InputAudioTranscription = &genai.AudioTranscriptionConfig{}
	m.Setup.OutputAudioTranscription = &genai.AudioTranscriptionConfig{}
	if r.caps.Resume {
		m.Setup.SessionResumption = &genai.SessionResumptionConfig{Handle: setup.ResumeHandle}
	}
	if r.historyInSetup && len(pastOf(r, setup)) > 0 {
		m.Setup.HistoryConfig = &genai.HistoryConfig{InitialHistoryInClientContent: true}
	}
	// Without compression an audio session ends after 15 minutes.
	m.Setup.ContextWindowCompression = &genai.ContextWindowCompressionConfig{SlidingWindow: &genai.SlidingWindow{}}
	return json.Marshal(&m)
}

func speechConfig(voice, standard, language string) *genai.SpeechConfig {
	voice = cmp.Or(voice, standard)
	if voice == "" && language == "" {
		return nil
	}
	c := &genai.SpeechConfig{LanguageCode: language}
	if voice != "" {
		c.VoiceConfig = &genai.VoiceConfig{PrebuiltVoiceConfig: &genai.PrebuiltVoiceConfig{VoiceName: voice}}
	}
	return c
}

func inputConfig(setup transport.Setup) *genai.RealtimeInputConfig {
	vad := &genai.AutomaticActivityDetection{}
	switch {
	case setup.ManualActivity:
		vad.Disabled = true
	case setup.SilenceMS <= 0 && setup.PrefixMS <= 0:
		return nil
	default:
		vad.SilenceDurationMs = positive(setup.SilenceMS)
		vad.PrefixPaddingMs = positive(setup.PrefixMS)
	}
	return &genai.RealtimeInputConfig{AutomaticActivityDetection: vad}
}

// positive returns ms, or nil for the provider's default.
func positive(ms int) *int32 {
	if ms <= 0 {
		return nil
	}
	v := int32(min(ms, 1<<30))
	return &v
}

var errToolName = errors.New("a tool has no name")

// declareTools declares every tool, with its behaviour if the model knows that field:
// the default changed between generations.
func declareTools(r *row, tools []transport.Tool) ([]functionTool, error) {
	if len(tools) == 0 {
		return nil, nil
	}
	list := make([]functionDeclaration, 0, len(tools))
	for _, tool := range tools {
		if tool.Name == "" {
			return nil, errToolName
		}
		if len(tool.Parameters) > 0 && !json.Valid(tool.Parameters) {
			return nil, fmt.Errorf("the parameters of tool %q are invalid JSON", tool.Name)
		}
		d := functionDeclaration{Name: tool.Name, Description: tool.Description, Parameters: tool.Parameters}
		if r.behavior {
			d.Behavior = genai.BehaviorBlocking
			if tool.NonBlocking || r.caps.Tools == transport.ToolsAsync {
				d.Behavior = genai.BehaviorNonBlocking
			}
		}
		list = append(list, d)
	}
	return []functionTool{{FunctionDeclarations: list}}, nil
}

func asyncTools(r *row, tools []transport.Tool) map[string]bool {
	var async map[string]bool // nil for most: it is kept as long as the connection
	for _, tool := range tools {
		if r.caps.Tools == transport.ToolsAsync || r.behavior && tool.NonBlocking {
			if async == nil {
				async = map[string]bool{}
			}
			async[tool.Name] = true
		}
	}
	return async
}
