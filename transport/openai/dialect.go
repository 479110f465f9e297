package openai

import (
	"encoding/json"
	"regexp"
	"strings"

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
	// session builds the session of session.update; nil means OpenAI's form.
	session func(setup transport.Setup, o *Options) any
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

// flatSession is the session of services whose settings are not nested.
type flatSession struct {
	Modalities    []string `json:"modalities,omitempty"`
	Instructions  string   `json:"instructions,omitempty"`
	Voice         any      `json:"voice,omitempty"`
	InputFormat   string   `json:"input_audio_format,omitempty"`
	OutputFormat  string   `json:"output_audio_format,omitempty"`
	Audio         any      `json:"audio,omitempty"`
	Transcription any      `json:"input_audio_transcription,omitempty"`
	// TurnDetection is nil (null on the wire) for a caller that marks its own turns.
	TurnDetection *flatDetection  `json:"turn_detection"`
	Tools         json.RawMessage `json:"tools,omitempty"`
	ToolChoice    string          `json:"tool_choice,omitempty"`
}

type flatDetection struct {
	Type      string `json:"type"`
	PrefixMS  int    `json:"prefix_padding_ms,omitempty"`
	SilenceMS int    `json:"silence_duration_ms,omitempty"`
	Create    bool   `json:"create_response"`
	Interrupt bool   `json:"interrupt_response"`
}

func newFlatSession(setup transport.Setup) flatSession {
	s := flatSession{Instructions: setup.Instructions}
	if len(setup.Tools) > 0 {
		s.Tools = toolList(setup.Tools)
	}
	if !setup.ManualActivity {
		s.TurnDetection = &flatDetection{Type: "server_vad", PrefixMS: max(setup.PrefixMS, 0),
			SilenceMS: max(setup.SilenceMS, 0), Create: true, Interrupt: true}
	}
	return s
}

// azureVoice matches the names of Azure's own voices: en-US-AvaNeural.
var azureVoice = regexp.MustCompile(`^[a-z]{2,3}-[A-Z]{2}-`)

// betaSession is the form of the Realtime API's beta, which Voice Live still uses.
func betaSession(setup transport.Setup, o *Options) any {
	s := newFlatSession(setup)
	s.Modalities, s.ToolChoice = []string{"text", "audio"}, "auto"
	s.InputFormat, s.OutputFormat = "pcm16", "pcm16"
	switch {
	case azureVoice.MatchString(setup.Voice):
		s.Voice = map[string]string{"type": "azure-standard", "name": setup.Voice}
	case setup.Voice != "":
		s.Voice = map[string]string{"type": "openai", "name": setup.Voice}
	}
	switch model := o.TranscriptionModel; {
	case model == NoTranscription:
	case model != DefaultTranscriptionModel:
		s.Transcription = map[string]string{"model": model}
	case strings.HasPrefix(setup.Model, "gpt-realtime"):
		s.Transcription = map[string]string{"model": "whisper-1"}
	default: // a model that does not hear the audio itself
		s.Transcription = map[string]string{"model": "azure-speech"}
	}
	return s
}

// xaiSession has OpenAI's audio formats, and the rest not nested. The server transcribes unasked.
func xaiSession(setup transport.Setup, _ *Options) any {
	s := newFlatSession(setup)
	format := map[string]any{"format": map[string]any{"type": "audio/pcm", "rate": sampleRate}}
	s.Audio = map[string]any{"input": format, "output": format}
	if setup.Voice != "" {
		s.Voice = setup.Voice
	}
	return s
}

func (d *dialect) update(event string, setup transport.Setup, o *Options) ([]byte, error) {
	if d.session == nil {
		return sessionUpdate(event, setup, o)
	}
	return json.Marshal(struct {
		EventID string `json:"event_id"`
		Type    string `json:"type"`
		Session any    `json:"session"`
	}{event, "session.update", d.session(setup, o)})
}
