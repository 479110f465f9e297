package openaiwire

import (
	"cmp"
	"encoding/json"
	"time"

	"voicegw/audio"
)

var null = json.RawMessage("null")

// Session is the session object, its keys in the order of the recordings.
type Session struct {
	Type             string          `json:"type"`
	Object           string          `json:"object"`
	ID               string          `json:"id"`
	Model            string          `json:"model"`
	OutputModalities []string        `json:"output_modalities"`
	Instructions     string          `json:"instructions"`
	Tools            []Tool          `json:"tools"`
	ToolChoice       json.RawMessage `json:"tool_choice"`
	MaxOutputTokens  json.RawMessage `json:"max_output_tokens"`
	Tracing          json.RawMessage `json:"tracing"`
	Truncation       json.RawMessage `json:"truncation"`
	Prompt           json.RawMessage `json:"prompt"`
	ExpiresAt        int64           `json:"expires_at"`
	Audio            struct {
		Input struct {
			Format         Format          `json:"format"`
			Transcription  *Transcription  `json:"transcription"`
			NoiseReduction json.RawMessage `json:"noise_reduction"`
			TurnDetection  *TurnDetection  `json:"turn_detection"`
		} `json:"input"`
		Output struct {
			Format Format  `json:"format"`
			Voice  string  `json:"voice"`
			Speed  float64 `json:"speed"`
		} `json:"output"`
	} `json:"audio"`
	Include           json.RawMessage `json:"include"`
	Reasoning         json.RawMessage `json:"reasoning,omitempty"`
	ParallelToolCalls json.RawMessage `json:"parallel_tool_calls,omitempty"`

	Rules *Rules `json:"-"`
	// VoiceFixed means that the assistant has spoken, after which the voice may not change.
	VoiceFixed bool `json:"-"`
}

// Rules are what differs between servers and models. The zero value is useful but for the defaults.
type Rules struct {
	// Instructions, Voice and SilenceMS (of server_vad) are the defaults.
	Instructions string
	Voice        string
	SilenceMS    int
	// AnyTranscription accepts a model of transcription with any name.
	AnyTranscription bool
	// TypeOptional accepts an update without session.type, as several clients send it.
	TypeOptional bool
	// LockInstructions and LockTools ignore changes of the instructions and the prompt, and of the tools. Session.Permit
	// applies this to the settings of a response.
	LockInstructions, LockTools bool
	// CheckTool, if it is not nil, may refuse a declared tool; path is its place.
	CheckTool func(t *Tool, path string) *Error
	// SameModel, if it is not nil, reports whether a client may call the session's model by another name, without effect.
	SameModel func(name string) bool
	// MapVoice, if it is not nil, returns the voice to use for the one that was asked for.
	MapVoice func(name string) string
}

// Format is an audio format. Rate is set only for audio/pcm.
type Format struct {
	Type string `json:"type"`
	Rate int    `json:"rate,omitempty"`
}

// Hz returns the sampling rate.
func (f Format) Hz() int {
	if f.Type == "audio/pcm" {
		return cmp.Or(f.Rate, 24000)
	}
	return 8000
}

// BytesPerMS returns the bytes of a millisecond of audio.
func (f Format) BytesPerMS() int {
	if f.Type == "audio/pcm" {
		return f.Hz() / 1000 * 2
	}
	return 8
}

// Decode returns audio in the format as PCM: data itself, or in scratch. path is the place of data, for the error.
func (f Format) Decode(scratch *[]byte, data []byte, path string) ([]byte, *Error) {
	switch {
	case f.Type == "audio/pcmu":
		*scratch = audio.AppendFromULaw((*scratch)[:0], data)
		return *scratch, nil
	case f.Type == "audio/pcma":
		*scratch = audio.AppendFromALaw((*scratch)[:0], data)
		return *scratch, nil
	case len(data)%audio.BytesPerSample != 0:
		return nil, InvalidAudio(path)
	}
	return data, nil
}

// Encode returns PCM in the format: pcm itself, or in scratch.
func (f Format) Encode(scratch *[]byte, pcm []byte) []byte {
	switch f.Type {
	case "audio/pcmu":
		*scratch = audio.AppendULaw((*scratch)[:0], pcm)
	case "audio/pcma":
		*scratch = audio.AppendALaw((*scratch)[:0], pcm)
	default:
		return pcm
	}
	return *scratch
}

// Transcription is how the user's speech is transcribed.
type Transcription struct {
	Model    string  `json:"model"`
	Language *string `json:"language"`
	Prompt   *string `json:"prompt"`
}

// TurnDetection is server_vad or semantic_vad; each is sent with its own keys.
type TurnDetection struct {
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
func (t TurnDetection) MarshalJSON() ([]byte, error) {
	if t.Type == "semantic_vad" {
		return Object{"type", t.Type, "eagerness", t.Eagerness, "create_response", t.Create,
			"interrupt_response", t.Interrupt}.MarshalJSON()
	}
	return Object{
		"type", t.Type, "threshold", t.Threshold, "prefix_padding_ms", t.PrefixMS, "silence_duration_ms", t.SilenceMS,
		"idle_timeout_ms", t.IdleTimeoutMS, "create_response", t.Create, "interrupt_response", t.Interrupt,
	}.MarshalJSON()
}

// Silence is how many ms a speaker must be silent for the turn to end. For
// semantic_vad a model decides that; here it is a longer or shorter silence.
func (t *TurnDetection) Silence() int {
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

// Detector returns a detector of speech for audio of a sampling rate.
func (t *TurnDetection) Detector(rate int) *audio.Detector {
	o := audio.DetectorOptions{Rate: rate, PrefixMS: t.PrefixMS, SilenceMS: t.Silence(), Threshold: t.Threshold}
	if t.Type == "server_vad" && t.PrefixMS == 0 {
		o.PrefixMS = -1
	}
	return audio.NewDetector(o)
}

// SameEar reports whether the detectors of t and of another are the same.
func (t *TurnDetection) SameEar(other *TurnDetection) bool {
	return t == other || t != nil && other != nil && t.Type == other.Type && t.Threshold == other.Threshold &&
		t.PrefixMS == other.PrefixMS && t.Silence() == other.Silence()
}

// Tool is a declared tool; the echo has the keys in this order.
type Tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description *string         `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	// Raw is a tool of the type mcp, echoed as received.
	Raw json.RawMessage `json:"-"`
}

// MarshalJSON echoes tools of other types as received.
func (t Tool) MarshalJSON() ([]byte, error) {
	if t.Raw != nil {
		return t.Raw, nil
	}
	type plain Tool
	return json.Marshal(plain(t))
}

// NewSession returns a session with the defaults of the rules. model is the name that the client sees.
func NewSession(id, model string, rules *Rules, expires time.Time) *Session {
	s := &Session{
		Type: "realtime", Object: "realtime.session", ID: id, Model: model,
		OutputModalities: []string{"audio"}, Instructions: rules.Instructions, Tools: []Tool{},
		ToolChoice: json.RawMessage(`"auto"`), MaxOutputTokens: json.RawMessage(`"inf"`), Tracing: null,
		Truncation: json.RawMessage(`"auto"`), Prompt: null, ExpiresAt: expires.Unix(), Include: null, Rules: rules,
	}
	in, out := &s.Audio.Input, &s.Audio.Output
	in.Format, in.NoiseReduction, in.TurnDetection = Format{"audio/pcm", 24000}, null, rules.serverVAD()
	out.Format, out.Voice, out.Speed = in.Format, rules.Voice, 1
	return s
}

func (r *Rules) serverVAD() *TurnDetection {
	return &TurnDetection{Type: "server_vad", Threshold: 0.5, PrefixMS: 300, SilenceMS: r.SilenceMS, Create: true, Interrupt: true}
}

// Update returns s with the changes of raw, the session of a session.update, or the first error. Objects are merged
// field by field; s itself is unchanged.
func (s *Session) Update(raw json.RawMessage) (*Session, *Error) {
	if len(raw) == 0 {
		return nil, Missing("session")
	}
	kind := ""
	if s.Rules.TypeOptional {
		kind = s.Type
	}
	if err := readType(&kind, raw, "session", "realtime", "transcription"); err != nil {
		return nil, err
	}
	if kind == "transcription" {
		return nil, transcriptionUpdate()
	}
	changed := *s
	err := changed.fields().Read(raw, "session")
	if err == nil {
		err = changed.CheckTools(changed.Tools, "session.tools")
	}
	if err != nil {
		return nil, err
	}
	if s.Rules.LockInstructions {
		changed.Instructions, changed.Prompt = s.Instructions, s.Prompt
	}
	if s.Rules.LockTools {
		changed.Tools = s.Tools
	}
	return &changed, nil
}

// Permit removes the settings of a response that are locked, and checks its tools.
func (s *Session) Permit(q *ResponseParams) *Error {
	if s.Rules.LockInstructions {
		q.Instructions = nil
	}
	if s.Rules.LockTools {
		q.Tools = nil
	}
	return s.CheckTools(q.Tools, "response.tools")
}

func (s *Session) fields() Fields {
	in, out := &s.Audio.Input, &s.Audio.Output
	return Fields{
		"type":                Ignored,
		"model":               s.sameModel,
		"output_modalities":   modalities(&s.OutputModalities),
		"instructions":        s.instructions,
		"tools":               tools(&s.Tools),
		"tool_choice":         toolChoice(&s.ToolChoice),
		"max_output_tokens":   maxTokens(&s.MaxOutputTokens),
		"tracing":             s.tracing,
		"truncation":          Raw(&s.Truncation),
		"prompt":              Raw(&s.Prompt),
		"include":             Raw(&s.Include),
		"reasoning":           Raw(&s.Reasoning),
		"parallel_tool_calls": Raw(&s.ParallelToolCalls),
		"audio": Fields{
			"input": Fields{
				"format":          formats(&in.Format),
				"transcription":   OrNull(func() { in.Transcription = nil }, s.transcription),
				"noise_reduction": Raw(&in.NoiseReduction),
				"turn_detection":  OrNull(func() { in.TurnDetection = nil }, s.turnDetection),
			}.Read,
			"output": Fields{"format": formats(&out.Format), "voice": s.newVoice, "speed": Decimal(&out.Speed, 0.25, 1.5)}.Read,
		}.Read,
	}
}

// instructions: an empty text restores the default, as recorded.
func (s *Session) instructions(raw json.RawMessage, path string) *Error {
	if err := Text(&s.Instructions)(raw, path); err != nil {
		return err
	}
	s.Instructions = cmp.Or(s.Instructions, s.Rules.Instructions)
	return nil
}

// sameModel accepts no change of the model; the text of the refusal is (own).
func (s *Session) sameModel(raw json.RawMessage, path string) *Error {
	name := s.Model
	if err := Text(&name)(raw, path); err != nil {
		return err
	}
	if name != s.Model && (s.Rules.SameModel == nil || !s.Rules.SameModel(name)) {
		return Invalid("cannot_update_model", path, "Cannot update a session's model. The session uses '%s'.", s.Model)
	}
	return nil
}

// tracing: it cannot change once it is on.
func (s *Session) tracing(raw json.RawMessage, path string) *Error {
	if !isNull(s.Tracing) && string(raw) != string(s.Tracing) {
		return Invalid("cannot_update_tracing", path, "Tracing cannot be modified once it is enabled for a session.")
	}
	s.Tracing = raw
	return nil
}

func (s *Session) newVoice(raw json.RawMessage, path string) *Error {
	name, err := voiceName(raw, path)
	if err != nil {
		return err
	}
	if s.Rules.MapVoice != nil {
		name = s.Rules.MapVoice(name)
	}
	if name != s.Audio.Output.Voice && s.VoiceFixed {
		return Invalid("cannot_update_voice", "session.audio.output.voice",
			"Cannot update a conversation's voice if assistant audio is present.")
	}
	s.Audio.Output.Voice = name
	return nil
}

func voiceName(raw json.RawMessage, path string) (string, *Error) {
	var name string
	if KindOf(raw) == "an object" {
		err := Fields{"id": Text(&name)}.Read(raw, path)
		return name, err
	}
	err := Text(&name)(raw, path)
	return name, err
}

// transcription merges: a missing setting keeps its value.
func (s *Session) transcription(raw json.RawMessage, path string) *Error {
	var t Transcription
	if old := s.Audio.Input.Transcription; old != nil {
		t = *old
	}
	model := Word(&t.Model, TranscriptionModels...)
	if s.Rules.AnyTranscription {
		model = Text(&t.Model)
	}
	err := Fields{
		"model": model, "language": Optional(&t.Language, Text), "prompt": Optional(&t.Prompt, Text),
		"languages": Ignored, "keywords": Ignored, "delay": Ignored,
	}.Read(raw, path)
	if err == nil && t.Model == "" {
		return Missing(path + ".model")
	}
	s.Audio.Input.Transcription = &t
	return err
}

// TranscriptionModels are the models that transcribe the user's speech.
var TranscriptionModels = []string{
	"whisper-1", "gpt-4o-mini-transcribe", "gpt-4o-mini-transcribe-2025-12-15", "gpt-4o-transcribe",
	"gpt-4o-transcribe-diarize", "gpt-realtime-whisper", "gpt-transcribe", "gpt-live-transcribe",
}

// turnDetection merges within a type; another type starts with its defaults.
func (s *Session) turnDetection(raw json.RawMessage, path string) *Error {
	old := s.Audio.Input.TurnDetection
	kind := ""
	if old != nil {
		kind = old.Type
	}
	if err := readType(&kind, raw, path, "server_vad", "semantic_vad"); err != nil {
		return err
	}
	t := TurnDetection{Type: "semantic_vad", Eagerness: "auto", Create: true, Interrupt: true}
	switch {
	case old != nil && old.Type == kind:
		t = *old
	case kind == "server_vad":
		t = *s.Rules.serverVAD()
	}
	f := Fields{"type": Ignored, "create_response": Bool(&t.Create), "interrupt_response": Bool(&t.Interrupt)}
	if kind == "semantic_vad" {
		f["eagerness"] = Word(&t.Eagerness, "low", "medium", "high", "auto")
	} else {
		f["threshold"] = Decimal(&t.Threshold, 0, 1)
		f["prefix_padding_ms"] = Integer(&t.PrefixMS, 0, 60_000)
		f["silence_duration_ms"] = Integer(&t.SilenceMS, 0, 60_000)
		f["idle_timeout_ms"] = Optional(&t.IdleTimeoutMS, func(dst *int) Reader { return Integer(dst, 5_000, 30_000) })
	}
	if err := f.Read(raw, path); err != nil {
		return err
	}
	s.Audio.Input.TurnDetection = &t
	return nil
}

func formats(dst *Format) Reader {
	return func(raw json.RawMessage, path string) *Error {
		var f Format
		if err := (Fields{
			"type": Word(&f.Type, "audio/pcm", "audio/pcmu", "audio/pcma"),
			"rate": Integer(&f.Rate, 8000, 24000),
		}).Read(raw, path); err != nil {
			return err
		}
		given, hz := f.Rate, Format{Type: f.Type}.Hz()
		if f.Rate = 0; f.Type == "audio/pcm" {
			f.Rate = hz
		}
		switch {
		case f.Type == "":
			return Missing(path + ".type")
		case given != 0 && given != hz:
			return OutOfRange(path+".rate", float64(hz), float64(hz), float64(given))
		}
		*dst = f
		return nil
	}
}

// CheckTools returns the error of the first tool that the rules refuse; path is the list's.
func (s *Session) CheckTools(list []Tool, path string) *Error {
	for i := range list {
		if s.Rules.CheckTool == nil {
			break
		}
		if err := s.Rules.CheckTool(&list[i], Path(path, i)); err != nil {
			return err
		}
	}
	return nil
}

func tools(dst *[]Tool) Reader {
	return each(func(raw json.RawMessage, path string) *Error {
		t := Tool{}
		err := readType(&t.Type, raw, path, "function", "mcp")
		switch {
		case err != nil:
		case t.Type == "mcp":
			t.Raw = raw
		default:
			err = Fields{
				"type": Ignored, "name": Text(&t.Name), "parameters": Raw(&t.Parameters), "strict": Ignored,
				"description": Optional(&t.Description, Text),
			}.Read(raw, path)
			err = cmp.Or(err, need(t.Name, path+".name"))
		}
		*dst = append(*dst, t)
		return err
	}, func() { *dst = []Tool{} })
}

func toolChoice(dst *json.RawMessage) Reader {
	return func(raw json.RawMessage, path string) *Error {
		var kind, name string
		read := Word(&kind, "none", "auto", "required")
		if KindOf(raw) == "an object" {
			read = Fields{"type": Word(&kind, "function", "mcp"), "name": Text(&name), "server_label": Ignored}.Read
		}
		err := read(raw, path)
		if err == nil && kind == "function" {
			err = need(name, path+".name")
		}
		*dst = raw
		return err
	}
}

func maxTokens(dst *json.RawMessage) Reader {
	return func(raw json.RawMessage, path string) *Error {
		var inf string
		var n int
		*dst = raw
		if KindOf(raw) == "a string" {
			return Word(&inf, "inf")(raw, path)
		}
		return Integer(&n, 1, 4096)(raw, path)
	}
}
