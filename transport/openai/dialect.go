package openai

import (
	"encoding/json"
	"regexp"
	"strings"

	"voicegw/transport"
)

// dialect is how a service speaks the Realtime wire where that differs from OpenAI's. The
// events that it sends need no row: those of all of them are understood.
type dialect struct {
	name string
	// is says whether an address is this service's, by its host in lower case and its path.
	is func(host, path string) bool
	// path is where the service is on a host that a base URL names without a path.
	path string
	// keyHeader is the header that holds the key; empty for Authorization, as a bearer token.
	keyHeader string
	// apiVersion is the value of the parameter api-version, unless the base URL has another;
	// empty for a service that has no such parameter.
	apiVersion string
	// modelParam is the parameter that holds the model.
	modelParam string
	// ownModel is what is asked for where nobody names a model; empty where one must be named.
	ownModel string
	// account says that the service knows the headers of an organization and a project.
	account bool
	// session is what session.update holds; nil for OpenAI's own form.
	session func(setup transport.Setup, o *Options) any
	// noTruncate says that the service has no conversation.item.truncate.
	noTruncate bool
	source     string
}

// dialects are asked in their order; the last one is everybody's.
var dialects = []dialect{
	{
		name:      "Azure Voice Live",
		is:        func(_, path string) bool { return strings.Contains(path, voiceLivePath) },
		keyHeader: "api-key", apiVersion: "2025-10-01", modelParam: "model", session: betaSession,
		source: "learn.microsoft.com Voice Live API how-to and pydantic-ai's recorded sessions, read 2026-11-23",
	},
	{
		name: "Azure OpenAI",
		is: func(host, path string) bool {
			return strings.HasSuffix(host, ".openai.azure.com") || strings.HasSuffix(path, "/openai/v1")
		},
		path: "/openai/v1", keyHeader: "api-key", modelParam: "model",
		source: "openai-node 7.55 and a recorded session, read 2026-11-20",
	},
	{
		name: "xAI", is: func(host, _ string) bool { return host == "api.x.ai" },
		path: "/v1", modelParam: "model", ownModel: "grok-voice-latest", session: xaiSession, noTruncate: true,
		source: "docs.x.ai voice agent guide and pydantic-ai's recorded sessions, read 2026-11-23; truncation is in neither",
	},
	{
		name: "OpenAI and compatible servers", is: func(_, _ string) bool { return true },
		modelParam: "model", ownModel: DefaultModel, account: true,
		source: sourceDocs,
	},
}

// dialectOf returns the row of an address.
func dialectOf(host, path string) *dialect {
	for i := range dialects {
		if dialects[i].is(strings.ToLower(host), path) {
			return &dialects[i]
		}
	}
	return &dialects[len(dialects)-1]
}

// flatSession is the session of the services that have their settings beside each other.
type flatSession struct {
	Modalities    []string `json:"modalities,omitempty"`
	Instructions  string   `json:"instructions,omitempty"`
	Voice         any      `json:"voice,omitempty"`
	InputFormat   string   `json:"input_audio_format,omitempty"`
	OutputFormat  string   `json:"output_audio_format,omitempty"`
	Audio         any      `json:"audio,omitempty"`
	Transcription any      `json:"input_audio_transcription,omitempty"`
	// TurnDetection is nil, and null on the wire, for a caller that frames its turns.
	TurnDetection *flatDetection `json:"turn_detection"`
	Tools         any            `json:"tools,omitempty"`
	ToolChoice    string         `json:"tool_choice,omitempty"`
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
	if !setup.ManualActivity {
		s.TurnDetection = &flatDetection{Type: "server_vad", PrefixMS: max(setup.PrefixMS, 0), SilenceMS: max(setup.SilenceMS, 0), Create: true, Interrupt: true}
	}
	if tools := toolParams(setup.Tools); len(tools) > 0 {
		s.Tools = tools
	}
	return s
}

// azureVoice is the form of the names of Azure's own voices: en-US-AvaNeural.
var azureVoice = regexp.MustCompile(`^[a-z]{2,3}-[A-Z]{2}-`)

// betaSession is the form of the Realtime API's beta, which Voice Live has kept.
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

// xaiSession has the formats of audio where OpenAI has them, and the rest beside each other.
// The server writes down what the user says without being asked.
func xaiSession(setup transport.Setup, _ *Options) any {
	s := newFlatSession(setup)
	format := map[string]any{"format": map[string]any{"type": "audio/pcm", "rate": sampleRate}}
	s.Audio = map[string]any{"input": format, "output": format}
	if setup.Voice != "" {
		s.Voice = setup.Voice
	}
	return s
}

// update encodes the setup as session.update.
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
