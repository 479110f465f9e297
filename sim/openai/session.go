package openai

import (
	"cmp"
	"encoding/json"
	"time"

	"voicegw/sim/rest"
	"voicegw/sim/wire"
)

// sessionLife is the maximum age of a session: 60 min, unless the options say otherwise.
func sessionLife(o wire.Options) time.Duration {
	if o.ConnectionLife > 0 {
		return o.ConnectionLife
	}
	return 60 * time.Minute
}

var null = json.RawMessage("null")

// session is the session object, its keys in the order of the recordings.
type session struct {
	Type              string          `json:"type"`
	Object            string          `json:"object"`
	ID                string          `json:"id"`
	Model             string          `json:"model"`
	OutputModalities  []string        `json:"output_modalities"`
	Instructions      string          `json:"instructions"`
	Tools             []tool          `json:"tools"`
	ToolChoice        json.RawMessage `json:"tool_choice"`
	MaxOutputTokens   json.RawMessage `json:"max_output_tokens"`
	Tracing           json.RawMessage `json:"tracing"`
	Truncation        json.RawMessage `json:"truncation"`
	Prompt            json.RawMessage `json:"prompt"`
	ExpiresAt         int64           `json:"expires_at"`
	Audio             sessionAudio    `json:"audio"`
	Include           json.RawMessage `json:"include"`
	Reasoning         json.RawMessage `json:"reasoning,omitempty"`
	ParallelToolCalls json.RawMessage `json:"parallel_tool_calls,omitempty"`

	model  model
	azure  bool
	spoken bool // there is audio of the assistant, after which the voice may not change
}

type sessionAudio struct {
	Input struct {
		Format         format          `json:"format"`
		Transcription  *transcription  `json:"transcription"`
		NoiseReduction json.RawMessage `json:"noise_reduction"`
		TurnDetection  *turnDetection  `json:"turn_detection"`
	} `json:"input"`
	Output sessionOutput `json:"output"`
}

type sessionOutput struct {
	Format format  `json:"format"`
	Voice  string  `json:"voice"`
	Speed  float64 `json:"speed"`
}

// format is an audio format. Rate is set only for audio/pcm.
type format struct {
	Type string `json:"type"`
	Rate int    `json:"rate,omitempty"`
}

func (f format) hz() int {
	if f.Type == "audio/pcm" {
		return 24000
	}
	return 8000
}

func (f format) bytesPerMS() int {
	if f.Type == "audio/pcm" {
		return 48
	}
	return 8
}

type transcription struct {
	Model    string  `json:"model"`
	Language *string `json:"language"`
	Prompt   *string `json:"prompt"`
}

// turnDetection is server_vad or semantic_vad; each is sent with its own keys.
type turnDetection struct {
	Type          string
	Threshold     float64
	PrefixMS      int
	SilenceMS     int
	IdleTimeoutMS *int
	Eagerness     string
	Create        bool
	Interrupt     bool
}

// MarshalJSON writes the keys of the type, in the order of the recordings.
func (t turnDetection) MarshalJSON() ([]byte, error) {
	if t.Type == "semantic_vad" {
		return object{"type", t.Type, "eagerness", t.Eagerness, "create_response", t.Create,
			"interrupt_response", t.Interrupt}.MarshalJSON()
	}
	return object{
		"type", t.Type, "threshold", t.Threshold, "prefix_padding_ms", t.PrefixMS, "silence_duration_ms", t.SilenceMS,
		"idle_timeout_ms", t.IdleTimeoutMS, "create_response", t.Create, "interrupt_response", t.Interrupt,
	}.MarshalJSON()
}

// silenceMS is how long a speaker must be silent for the turn to end. For
// semantic_vad a model decides that; here it is a longer or shorter silence.
func (t *turnDetection) silenceMS() int {
	if t.Type == "server_vad" {
		return t.SilenceMS
	}
	switch t.Eagerness {
	case "low":
		return 1200
	case "high":
		return 400
	}
	return 700
}

// tool is a declared tool; the echo has the keys in this order.
type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description *string         `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	// raw is a tool of the type mcp, echoed as received.
	raw json.RawMessage
}

// MarshalJSON echoes tools of other types as received.
func (t tool) MarshalJSON() ([]byte, error) {
	if t.raw != nil {
		return t.raw, nil
	}
	type plain tool
	return json.Marshal(plain(t))
}

// defaultInstructions are those of a new session. The provider has a longer text of its own.
const defaultInstructions = "You are a friendly voice assistant. This session is simulated: nothing you say comes from a model."

func newSession(id, name string, m model, azure bool, expires time.Time) *session {
	s := &session{
		Type: "realtime", Object: "realtime.session", ID: id, Model: name,
		OutputModalities: []string{"audio"}, Instructions: defaultInstructions, Tools: []tool{},
		ToolChoice: json.RawMessage(`"auto"`), MaxOutputTokens: json.RawMessage(`"inf"`), Tracing: null,
		Truncation: json.RawMessage(`"auto"`), Prompt: null, ExpiresAt: expires.Unix(), Include: null,
		model: m, azure: azure,
	}
	s.Audio.Input.Format = format{"audio/pcm", 24000}
	s.Audio.Input.NoiseReduction = null
	s.Audio.Input.TurnDetection = defaultServerVAD(m)
	s.Audio.Output = sessionOutput{Format: format{"audio/pcm", 24000}, Voice: m.voice, Speed: 1}
	return s
}

func defaultServerVAD(m model) *turnDetection {
	return &turnDetection{Type: "server_vad", Threshold: 0.5, PrefixMS: 300, SilenceMS: m.silenceMS, Create: true, Interrupt: true}
}

// update returns s with the changes of raw, or the first error; s itself is unchanged.
func (s *session) update(raw json.RawMessage) (*session, *rest.Error) {
	if len(raw) == 0 {
		return nil, rest.Missing("session")
	}
	var kind string
	if err := readType(&kind, raw, "session", "realtime", "transcription"); err != nil {
		return nil, err
	}
	if kind == "transcription" {
		return nil, transcriptionUpdate()
	}
	changed := *s
	if err := changed.fields().apply(raw, "session"); err != nil {
		return nil, err
	}
	return &changed, nil
}

func (s *session) fields() fields {
	in, out := &s.Audio.Input, &s.Audio.Output
	return fields{
		"type":                ignored,
		"model":               s.sameModel,
		"output_modalities":   modalities(&s.OutputModalities),
		"instructions":        s.instructions,
		"tools":               tools(&s.Tools),
		"tool_choice":         toolChoice(&s.ToolChoice),
		"max_output_tokens":   maxTokens(&s.MaxOutputTokens),
		"tracing":             s.tracing,
		"truncation":          asIs(&s.Truncation),
		"prompt":              asIs(&s.Prompt),
		"include":             asIs(&s.Include),
		"reasoning":           asIs(&s.Reasoning),
		"parallel_tool_calls": asIs(&s.ParallelToolCalls),
		"audio": fields{
			"input": fields{
				"format":          formats(&in.Format),
				"transcription":   orNull(func() { in.Transcription = nil }, s.transcription),
				"noise_reduction": asIs(&in.NoiseReduction),
				"turn_detection":  orNull(func() { in.TurnDetection = nil }, s.turnDetection),
			}.apply,
			"output": fields{"format": formats(&out.Format), "voice": s.newVoice, "speed": decimal(&out.Speed, 0.25, 1.5)}.apply,
		}.apply,
	}
}

// instructions: an empty text restores the default, as recorded.
func (s *session) instructions(raw json.RawMessage, path string) *rest.Error {
	if err := text(&s.Instructions)(raw, path); err != nil {
		return err
	}
	s.Instructions = cmp.Or(s.Instructions, defaultInstructions)
	return nil
}

// sameModel accepts only the same model; the text of the refusal is (own).
func (s *session) sameModel(raw json.RawMessage, path string) *rest.Error {
	name := s.Model
	if err := text(&name)(raw, path); err != nil {
		return err
	}
	if name != s.Model {
		return rest.Invalid("cannot_update_model", path, "Cannot update a session's model. The session uses '%s'.", s.Model)
	}
	return nil
}

// tracing: it cannot change once it is on.
func (s *session) tracing(raw json.RawMessage, path string) *rest.Error {
	if !isNull(s.Tracing) && string(raw) != string(s.Tracing) {
		return rest.Invalid("cannot_update_tracing", path, "Tracing cannot be modified once it is enabled for a session.")
	}
	s.Tracing = raw
	return nil
}

func (s *session) newVoice(raw json.RawMessage, path string) *rest.Error {
	name, err := voiceName(raw, path)
	if err != nil {
		return err
	}
	if name != s.Audio.Output.Voice && s.spoken {
		return rest.Invalid("cannot_update_voice", "session.audio.output.voice",
			"Cannot update a conversation's voice if assistant audio is present.")
	}
	s.Audio.Output.Voice = name
	return nil
}

func voiceName(raw json.RawMessage, path string) (string, *rest.Error) {
	var name string
	if kindOf(raw) == "an object" {
		err := fields{"id": text(&name)}.apply(raw, path)
		return name, err
	}
	err := text(&name)(raw, path)
	return name, err
}

// transcription merges: a missing setting keeps its value.
func (s *session) transcription(raw json.RawMessage, path string) *rest.Error {
	var t transcription
	if old := s.Audio.Input.Transcription; old != nil {
		t = *old
	}
	model := word(&t.Model, transcriptionModels...)
	if s.azure { // the name of a deployment can be anything
		model = text(&t.Model)
	}
	err := fields{
		"model": model, "language": optional(&t.Language, text), "prompt": optional(&t.Prompt, text),
		"languages": ignored, "keywords": ignored, "delay": ignored,
	}.apply(raw, path)
	if err == nil && t.Model == "" {
		return rest.Missing(path + ".model")
	}
	s.Audio.Input.Transcription = &t
	return err
}

var transcriptionModels = []string{
	"whisper-1", "gpt-4o-mini-transcribe", "gpt-4o-mini-transcribe-2025-12-15", "gpt-4o-transcribe",
	"gpt-4o-transcribe-diarize", "gpt-realtime-whisper", "gpt-transcribe", "gpt-live-transcribe",
}

// turnDetection merges within a type; another type starts with its defaults.
func (s *session) turnDetection(raw json.RawMessage, path string) *rest.Error {
	old := s.Audio.Input.TurnDetection
	kind := ""
	if old != nil {
		kind = old.Type
	}
	if err := readType(&kind, raw, path, "server_vad", "semantic_vad"); err != nil {
		return err
	}
	t := turnDetection{Type: "semantic_vad", Eagerness: "auto", Create: true, Interrupt: true}
	switch {
	case old != nil && old.Type == kind:
		t = *old
	case kind == "server_vad":
		t = *defaultServerVAD(s.model)
	}
	f := fields{"type": ignored, "create_response": truth(&t.Create), "interrupt_response": truth(&t.Interrupt)}
	if kind == "semantic_vad" {
		f["eagerness"] = word(&t.Eagerness, "low", "medium", "high", "auto")
	} else {
		f["threshold"] = decimal(&t.Threshold, 0, 1)
		f["prefix_padding_ms"] = integer(&t.PrefixMS, 0, 60_000)
		f["silence_duration_ms"] = integer(&t.SilenceMS, 0, 60_000)
		f["idle_timeout_ms"] = optional(&t.IdleTimeoutMS, func(dst *int) reader { return integer(dst, 5_000, 30_000) })
	}
	if err := f.apply(raw, path); err != nil {
		return err
	}
	s.Audio.Input.TurnDetection = &t
	return nil
}

func formats(dst *format) reader {
	return func(raw json.RawMessage, path string) *rest.Error {
		var f format
		if err := (fields{
			"type": word(&f.Type, "audio/pcm", "audio/pcmu", "audio/pcma"),
			"rate": integer(&f.Rate, 24000, 24000),
		}).apply(raw, path); err != nil {
			return err
		}
		switch f.Type {
		case "":
			return rest.Missing(path + ".type")
		case "audio/pcm":
			f.Rate = 24000
		default:
			f.Rate = 0
		}
		*dst = f
		return nil
	}
}

func tools(dst *[]tool) reader {
	return func(raw json.RawMessage, path string) *rest.Error {
		list, err := array(raw, path)
		if err != nil {
			return err
		}
		out := []tool{}
		for i, e := range list {
			t, err := readTool(e, index(path, i))
			if err != nil {
				return err
			}
			out = append(out, t)
		}
		*dst = out
		return nil
	}
}

func readTool(raw json.RawMessage, path string) (tool, *rest.Error) {
	t := tool{}
	err := readType(&t.Type, raw, path, "function", "mcp")
	if err != nil {
		return tool{}, err
	}
	if t.Type == "mcp" {
		t.raw = raw
		return t, nil
	}
	err = fields{
		"type": ignored, "name": text(&t.Name), "parameters": asIs(&t.Parameters), "strict": ignored,
		"description": optional(&t.Description, text),
	}.apply(raw, path)
	if err == nil && t.Name == "" {
		err = rest.Missing(path + ".name")
	}
	return t, err
}

func toolChoice(dst *json.RawMessage) reader {
	return func(raw json.RawMessage, path string) *rest.Error {
		if kindOf(raw) == "an object" {
			var kind, name string
			if err := (fields{"type": word(&kind, "function", "mcp"), "name": text(&name), "server_label": ignored}).apply(
				raw, path); err != nil {
				return err
			}
			if kind == "function" && name == "" {
				return rest.Missing(path + ".name")
			}
			*dst = raw
			return nil
		}
		var s string
		if err := word(&s, "none", "auto", "required")(raw, path); err != nil {
			return err
		}
		*dst = raw
		return nil
	}
}

func maxTokens(dst *json.RawMessage) reader {
	return func(raw json.RawMessage, path string) *rest.Error {
		if kindOf(raw) == "a string" {
			var s string
			if err := word(&s, "inf")(raw, path); err != nil {
				return err
			}
		} else {
			var n int
			if err := integer(&n, 1, 4096)(raw, path); err != nil {
				return err
			}
		}
		*dst = raw
		return nil
	}
}
