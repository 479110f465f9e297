package openai

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/realtime"
	"github.com/openai/openai-go/v3/responses"

	"voicegw/internal/openaiwire"
	"voicegw/transport"
)

// dialect describes a service's differences on the Realtime wire; those of its events need no row.
type dialect struct {
	name string
	// is reports whether an address belongs to this service, by its lower-case host and its path.
	is func(host, path string) bool
	// path is the default path of a base URL.
	path string
	// keyHeader carries the key; empty means Authorization, as a bearer token.
	keyHeader string
	// apiVersion is the default of the parameter api-version; empty without that parameter.
	apiVersion string
	// modelParam is the parameter with the model.
	modelParam string
	// ownModel is the service's default model; may be empty.
	ownModel string
	models   []modelRow
	// openai means that the service is OpenAI or a compatible server.
	openai bool
	// session completes the session of session.update; nil means OpenAI's form.
	session func(s *session, setup transport.Setup, o *options)
	// noTruncate means that the service has no conversation.item.truncate.
	noTruncate bool
	// fixedSession: a later session.update with omitted settings might reset them, as that is not documented.
	fixedSession bool
	// local means that the server is one's own: see Local.
	local bool
	// pastText is the content type of an answer in a history; empty means "output_text".
	pastText string
	source   string
}

// dialects are tried in order; the last one matches every address.
var dialects = []dialect{
	{
		name:      "Azure Voice Live",
		is:        func(_, path string) bool { return strings.Contains(path, voiceLivePath) },
		keyHeader: "api-key", apiVersion: "2025-10-01", modelParam: "model", session: betaSession, pastText: "text", fixedSession: true,
		models: voiceLiveRows,
		source: "learn.microsoft.com Voice Live API how-to and pydantic-ai's recorded sessions, read 2026-11-23",
	},
	{
		name: "Azure OpenAI",
		is: func(host, path string) bool {
			return strings.HasSuffix(host, ".openai.azure.com") || strings.HasSuffix(path, "/openai/v1")
		},
		path: "/openai/v1", keyHeader: "api-key", modelParam: "model", models: modelRows,
		source: "openai-node 7.55 and a recorded session, read 2026-11-20",
	},
	{
		name: "xAI", is: func(host, _ string) bool { return host == "api.x.ai" },
		path: "/v1", modelParam: "model", ownModel: "grok-voice-latest", session: xaiSession, noTruncate: true, fixedSession: true,
		models: xaiRows,
		source: "docs.x.ai voice agent guide and pydantic-ai's recorded sessions, read 2026-11-23; truncation is in neither",
	},
	{
		name: "OpenAI and compatible servers", is: func(_, _ string) bool { return true },
		modelParam: "model", ownModel: DefaultModel, models: modelRows, openai: true,
		source: sourceDocs,
	},
}

func dialectOf(setting, host, path string) *dialect {
	if setting == Local {
		return &localDialect
	}
	for i := range dialects {
		if dialects[i].is(strings.ToLower(host), path) {
			return &dialects[i]
		}
	}
	return &dialects[len(dialects)-1]
}

// session is the session of services whose settings are not nested; empty members are left out.
type session struct {
	Modalities    []string `json:"modalities,omitempty"`
	Instructions  string   `json:"instructions,omitempty"`
	Voice         any      `json:"voice,omitempty"`
	InputFormat   string   `json:"input_audio_format,omitempty"`
	OutputFormat  string   `json:"output_audio_format,omitempty"`
	Audio         object   `json:"audio,omitempty"`
	Transcription object   `json:"input_audio_transcription,omitempty"`
	// TurnDetection is nil (null on the wire) for a caller that marks its own turns.
	TurnDetection *detection `json:"turn_detection"`
	Tools         []function `json:"tools,omitempty"`
	ToolChoice    string     `json:"tool_choice,omitempty"`
}

type detection struct {
	Type      string `json:"type"`
	PrefixMS  int    `json:"prefix_padding_ms,omitempty"`
	SilenceMS int    `json:"silence_duration_ms,omitempty"`
	Create    bool   `json:"create_response"`
	Interrupt bool   `json:"interrupt_response"`
}

// function is a tool. Parameters are valid JSON.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Type        string          `json:"type"`
}

// toolList is never nil, because an empty list clears and null keeps.
func toolList(tools []transport.Tool) []function {
	list := make([]function, len(tools))
	for i, t := range tools {
		list[i] = function{t.Name, t.Description, t.Parameters, "function"}
	}
	return list
}

var pcm = object{"format", object{"rate", sampleRate, "type", "audio/pcm"}}

// openaiUpdate encodes today's form of the setup.
func openaiUpdate(event string, setup transport.Setup, o *options) ([]byte, error) {
	pcm := realtime.RealtimeAudioFormatsUnionParam{
		OfAudioPCM: &realtime.RealtimeAudioFormatsAudioPCMParam{Type: "audio/pcm", Rate: sampleRate},
	}
	input := realtime.RealtimeAudioConfigInputParam{Format: pcm, TurnDetection: turnDetection(setup)}
	if o.transcriptionModel != NoTranscription {
		input.Transcription.Model = realtime.AudioTranscriptionModel(o.transcriptionModel)
		if lang, _, _ := strings.Cut(setup.Language, "-"); lang != "" {
			// ISO 639-1, whereas Setup has BCP 47.
			input.Transcription.Language = param.NewOpt(strings.ToLower(lang))
		}
	}
	output := realtime.RealtimeAudioConfigOutputParam{Format: pcm}
	if setup.Voice != "" {
		output.Voice.OfString = param.NewOpt(setup.Voice)
	}
	s := realtime.RealtimeSessionCreateRequestParam{
		OutputModalities: []string{"audio"},
		Audio:            realtime.RealtimeAudioConfigParam{Input: input, Output: output},
		ToolChoice:       realtime.RealtimeToolChoiceConfigUnionParam{OfToolChoiceMode: param.NewOpt(responses.ToolChoiceOptionsAuto)},
	}
	if setup.Instructions != "" { // otherwise the provider's own defaults apply
		s.Instructions = param.NewOpt(setup.Instructions)
	}
	if o.reasoning != "" && rowIn(modelRows, setup.Model, DefaultModel).reasons {
		s.Reasoning.Effort = realtime.RealtimeReasoningEffort(o.reasoning)
	}
	session, err := s.MarshalJSON()
	if err != nil {
		return nil, err
	}
	head := []byte(`{"event_id":"` + event + `","type":"session.update","session":`)
	if len(setup.Tools) == 0 { // a new session has none
		return slices.Concat(head, session, []byte("}")), nil
	}
	// The library would take four times the memory of the tools (openai-go v3.95).
	tools, err := json.Marshal(toolList(setup.Tools))
	return slices.Concat(head, session[:len(session)-1], []byte(`,"tools":`), tools, []byte("}}")), err
}

func turnDetection(setup transport.Setup) realtime.RealtimeAudioInputTurnDetectionUnionParam {
	if setup.ManualActivity {
		off := param.NullStruct[realtime.RealtimeAudioInputTurnDetectionServerVadParam]()
		return realtime.RealtimeAudioInputTurnDetectionUnionParam{OfServerVad: &off}
	}
	vad := realtime.RealtimeAudioInputTurnDetectionServerVadParam{
		CreateResponse: param.NewOpt(true), InterruptResponse: param.NewOpt(true),
	}
	if setup.SilenceMS > 0 {
		vad.SilenceDurationMs = param.NewOpt(int64(setup.SilenceMS))
	}
	if setup.PrefixMS > 0 {
		vad.PrefixPaddingMs = param.NewOpt(int64(setup.PrefixMS))
	}
	return realtime.RealtimeAudioInputTurnDetectionUnionParam{OfServerVad: &vad}
}

// azureVoice matches the names of Azure's own voices: en-US-AvaNeural.
var azureVoice = regexp.MustCompile(`^[a-z]{2,3}-[A-Z]{2}-`)

// betaSession is the form of the Realtime API's beta, which Voice Live still uses.
func betaSession(s *session, setup transport.Setup, o *options) {
	s.Modalities, s.ToolChoice = []string{"text", "audio"}, "auto"
	s.InputFormat, s.OutputFormat = "pcm16", "pcm16"
	switch {
	case azureVoice.MatchString(setup.Voice):
		s.Voice = object{"name", setup.Voice, "type", "azure-standard"}
	case setup.Voice != "":
		s.Voice = object{"name", setup.Voice, "type", "openai"}
	}
	switch model := o.transcriptionModel; {
	case model == NoTranscription:
	case model != DefaultTranscriptionModel:
		s.Transcription = object{"model", model}
	case strings.HasPrefix(setup.Model, "gpt-realtime"):
		s.Transcription = object{"model", "whisper-1"}
	default: // a model that does not hear the audio itself
		s.Transcription = object{"model", "azure-speech"}
	}
}

// xaiSession has OpenAI's audio formats, and the rest not nested. The server transcribes unasked.
func xaiSession(s *session, setup transport.Setup, _ *options) {
	s.Audio = object{"input", pcm, "output", pcm}
	if setup.Voice != "" {
		s.Voice = setup.Voice
	}
}

// update encodes the setup.
func (d *dialect) update(event string, setup transport.Setup, o *options) ([]byte, error) {
	if d.session == nil {
		frame, err := openaiUpdate(event, setup, o)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", errEncode, openaiwire.SessionUpdate, err)
		}
		return frame, nil
	}
	s := session{Instructions: setup.Instructions, Tools: toolList(setup.Tools)}
	if !setup.ManualActivity {
		s.TurnDetection = &detection{"server_vad", max(setup.PrefixMS, 0), max(setup.SilenceMS, 0), true, true}
	}
	d.session(&s, setup, o)
	return encode(event, openaiwire.SessionUpdate, "session", s)
}

// reconfigure encodes other instructions and tools and nothing else: a voice, sent again, would have the update refused
// (cannot_update_voice), and formats would begin anew. Only today's API requires a type.
func (d *dialect) reconfigure(event string, r transport.Reconfigure) ([]byte, error) {
	s := object{"instructions", r.Instructions, "tools", toolList(r.Tools)}
	if d.session == nil {
		s = append(s, "type", "realtime")
	}
	return encode(event, openaiwire.SessionUpdate, "session", s)
}
