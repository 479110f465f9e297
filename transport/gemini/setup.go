package gemini

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coder/websocket"
	"google.golang.org/genai"

	"voicegw/transport"
)

// functionDeclaration keeps the schema: the SDK's Schema would silently drop unknown members.
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
	if r.translates {
		return t.translationFrame(model, setup)
	}
	var m setupMessage
	m.Setup.Model = t.opts.resource(model)
	thinking, err := r.thinkingConfig(t.opts.thinking)
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

// translationFrame is the first message to a translation model, which accepts nothing else
// (ai.google.dev/gemini-api/docs/live-api/live-translate, read 2026-11-30).
func (t *Transport) translationFrame(model string, setup transport.Setup) ([]byte, error) {
	if t.opts.translateTo == "" {
		return nil, fmt.Errorf("%w: TranslateTo is missing: set the language that %s translates to, such as es", ErrOptions, model)
	}
	if setup.Instructions != "" || len(setup.Tools) > 0 {
		t.log.Info("translation_without_agent", "provider", t.opts.Name, "model", model,
			"reason", "a translation model takes no instructions and no tools")
	}
	var m setupMessage
	m.Setup.Model = t.opts.resource(model)
	m.Setup.GenerationConfig = &genai.GenerationConfig{
		ResponseModalities: []genai.Modality{genai.ModalityAudio},
		TranslationConfig:  &genai.TranslationConfig{TargetLanguageCode: t.opts.translateTo, EchoTargetLanguage: &t.opts.translateEcho},
	}
	m.Setup.InputAudioTranscription = &genai.AudioTranscriptionConfig{}
	m.Setup.OutputAudioTranscription = &genai.AudioTranscriptionConfig{}
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
	case setup.SilenceMS <= 0:
		return nil
	default:
		// prefixPaddingMs is not Setup.PrefixMS but how long speech must last to count: short words would not.
		ms := int32(min(setup.SilenceMS, 1<<30))
		vad.SilenceDurationMs = &ms
	}
	return &genai.RealtimeInputConfig{AutomaticActivityDetection: vad}
}

var errToolName = errors.New("a tool has no name")

// A tool's behaviour is declared where the model knows the field: the default changed between generations.
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

// contextUpdate is genai.LiveClientContextUpdate with our own type for the tools. The wrapper
// distinguishes tools that are cleared, {}, from tools that stay (genai v1.77.0, types.go).
type contextUpdate struct {
	SystemInstruction *genai.Content `json:"systemInstruction"`
	Tools             updatedTools   `json:"tools"`
}

type updatedTools struct {
	Tools []functionTool `json:"tools,omitempty"`
}

// appendUpdate appends a contextUpdate, which the service handles in order with the other input
// and does not confirm (doc comment of LiveClientContextUpdate; "Update system instructions and
// tools during a session with Gemini 3.8 Live", read 2026-11-24).
func (c *conn) appendUpdate(dst []byte, r transport.Reconfigure) ([]byte, error) {
	tools, err := declareTools(c.row, r.Tools)
	if err != nil {
		return dst, err
	}
	said := &genai.Content{} // no instructions
	if r.Instructions != "" {
		said = genai.NewContentFromText(r.Instructions, genai.RoleUser)
	}
	return appendJSON(dst, "contextUpdate", contextUpdate{SystemInstruction: said, Tools: updatedTools{tools}})
}

// reconfigured confirms at once, because later commands follow. A call made before keeps the behaviour of its tool.
func (c *conn) reconfigured(r transport.Reconfigure) {
	if c.row.caps.Reconfigure != transport.ReconfigureLive {
		return
	}
	declared := asyncTools(c.row, r.Tools)
	async := maps.Clone(declared)
	for name := range c.declared {
		if !slices.ContainsFunc(r.Tools, func(t transport.Tool) bool { return t.Name == name }) {
			if async == nil {
				async = make(map[string]bool)
			}
			async[name] = true
		}
	}
	c.declared = declared
	c.async.Store(&async)
	c.updates.Add(1)
	c.ws.Nudge()
}

func (c *conn) confirm() {
	for range c.updates.Swap(0) {
		c.dialog.Add(transport.Reconfigured{})
	}
}

func (c *conn) appendItem(dst []byte, item transport.Past) ([]byte, error) {
	var content clientContent
	content.addPast(item)
	for _, turn := range content.Turns {
		if held, err := c.hold(turn, false); held || err != nil {
			return dst, err
		}
	}
	return appendJSON(dst, "clientContent", content)
}

// maxPastTool bounds the line about one tool call in a history, in bytes.
const maxPastTool = 2 << 10

// historyFrame encodes the setup's history as one clientContent; nil without a history. A call becomes a line of
// text, because no report says that a history may hold function calls. The caller's instruction comes last, which
// also gives 2.5 the user turn that it needs at the end.
//
// A model with the history in its setup waits for its end: turnComplete does not ask it to answer (doc comment of
// HistoryConfig in genai v1.77.0). For any other model turnComplete would be a question.
func historyFrame(r *row, setup transport.Setup) ([]byte, error) {
	past := pastOf(r, setup)
	if len(past) == 0 {
		return nil, nil
	}
	content := clientContent{TurnComplete: r.historyInSetup}
	for _, p := range past {
		content.addPast(p)
	}
	return appendJSON(nil, "clientContent", content)
}

// pastOf returns the history for the model; nil if it resumes a conversation.
func pastOf(r *row, setup transport.Setup) []transport.Past {
	switch past := setup.History; {
	case r.translates:
		return nil
	case setup.ResumeHandle != "" && r.caps.Resume:
		return nil
	case setup.Reanchor != "":
		return append(past[:len(past):len(past)], transport.PastNote{Text: setup.Reanchor})
	default:
		return past
	}
}

func (c *clientContent) addPast(p transport.Past) {
	switch p := p.(type) {
	case transport.PastUser:
		c.add("user", p.Text)
	case transport.PastNote:
		c.add("user", p.Text)
	case transport.PastAssistant:
		c.add("model", p.Text)
	case transport.PastTool:
		c.add("user", pastTool(p))
	}
}

func (c *clientContent) add(role, text string) {
	if n := len(c.Turns); n > 0 && c.Turns[n-1].Role == role {
		c.Turns[n-1].Parts = append(c.Turns[n-1].Parts, textPart{text})
		return
	}
	c.Turns = append(c.Turns, textTurn{Role: role, Parts: []textPart{{text}}})
}

func pastTool(p transport.PastTool) string {
	outcome := ""
	if !p.OK {
		outcome = " failed"
	}
	line := "[tool " + p.Name + " " + string(p.Args) + outcome + " -> " + string(p.Output)
	if len(line) >= maxPastTool {
		cut := maxPastTool - len("…]")
		for cut > 0 && !utf8.RuneStart(line[cut]) {
			cut--
		}
		line = line[:cut] + "…"
	}
	return strings.ToValidUTF8(line, "") + "]"
}

// remember sends the history. The provider does not confirm it, but it reads in order.
func (c *conn) remember(ctx context.Context, history []byte) error {
	if history == nil {
		return nil
	}
	defer c.closeWith(ctx)()
	if err := c.ws.Write(websocket.MessageText, history); err != nil {
		return c.readError(ctx, transport.OpHistory, err)
	}
	return nil
}
