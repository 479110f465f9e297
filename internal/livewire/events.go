package livewire

import (
	"encoding/json"
	"fmt"
	"strconv"

	"voicegw/audio"
	"voicegw/internal/openaiwire"
)

// Types of the client's events.
const (
	Start              = "session.start"
	Update             = "session.update"
	AudioAppend        = "session.input_audio.append"
	Mute               = "session.input_audio.mute"
	Unmute             = "session.input_audio.unmute"
	InstructionsAppend = "session.instructions.append"
	ThinkingAppend     = "session.thinking.append"
	CommentaryAppend   = "session.commentary.append"
	FixturePlay        = "session.output_audio.fixture.play"
	Close              = "session.close"
)

// Types of the server's events.
const (
	Started              = "session.started"
	Updated              = "session.updated"
	Muted                = "session.input_audio.muted"
	Unmuted              = "session.input_audio.unmuted"
	InstructionsAppended = "session.instructions.appended"
	ThinkingAppended     = "session.thinking.appended"
	CommentaryAppended   = "session.commentary.appended"
	AudioDelta           = "session.output_audio.delta"
	InputTranscript      = "session.input_transcript.delta"
	OutputTranscript     = "session.output_transcript.delta"
	DelegationCreated    = "session.delegation.created"
	FixturePlaying       = "session.output_audio.fixture.playing"
	FixturePlayed        = "session.output_audio.fixture.played"
	UsageUpdated         = "session.usage.updated"
	Closed               = "session.closed"
	Failed               = "error"
	Info                 = "info"
)

// clientTypes are the client's events in the order of the error for an unknown one. The last of them need a delegation to
// Responses or Decisions.
var clientTypes = []string{
	Start, Update, AudioAppend, Mute, Unmute, InstructionsAppend, ThinkingAppend, CommentaryAppend, FixturePlay, Close,
	"response.item.create", "response.create", "decision.create", "decision.item.create", "decision.item.delete",
}

// ClientEvent is an event of the client, with the values that its type has.
type ClientEvent struct {
	Type    string
	ID      string          // the client's id of the event, which the answer repeats as client_event_id; empty without one
	Session json.RawMessage // of session.start and session.update, for ParseStart and Session.Update
	Audio   []byte          // of session.input_audio.append or a fixture, in base64
	// Content is the text of an append, Delegation the delegation that it is about; empty means null.
	Content, Delegation string
}

// AppendType returns the type of the event that acknowledges an append: session.thinking.appended for
// session.thinking.append.
func AppendType(kind string) string { return kind + "ed" }

// Encode returns the event of a client.
func (e ClientEvent) Encode() ([]byte, error) {
	o := openaiwire.Object{"type", e.Type}
	if e.ID != "" {
		o = append(o, "event_id", e.ID)
	}
	switch e.Type {
	case Start, Update:
		o = append(o, "session", e.Session)
	case AudioAppend, FixturePlay:
		o = append(o, "audio", string(e.Audio))
	case InstructionsAppend, ThinkingAppend, CommentaryAppend:
		o = append(o, "content", e.Content, "delegation_id", openaiwire.Nullable(e.Delegation))
	}
	return o.Encode(false)
}

// AppendAudio appends an encoded session.input_audio.append to dst. It allocates nothing if dst has room.
func AppendAudio(dst, data []byte) []byte {
	return append(audio.AppendBase64(append(dst, `{"type":"`+AudioAppend+`","audio":"`...), data), `"}`...)
}

// ParseClientEvent reads an event strictly: an unknown member is an error, as is an append with more tokens than
// allowed. With an error, Type and ID are set if they are known. Audio may share memory with data.
func ParseClientEvent(data []byte) (ClientEvent, *openaiwire.Error) {
	e := ClientEvent{Type: AudioAppend}
	var ok bool
	if e.ID, e.Audio, ok = openaiwire.ReadAudio(data, AudioAppend, "audio"); ok {
		return e, nil
	}
	var head struct {
		Type string  `json:"type"`
		ID   *string `json:"event_id"`
	}
	if json.Unmarshal(data, &head) != nil {
		return ClientEvent{}, openaiwire.NotJSON(data)
	}
	e = ClientEvent{Type: head.Type}
	if head.ID != nil {
		e.ID = *head.ID
	}
	return e, e.read(data)
}

func (e *ClientEvent) read(data []byte) *openaiwire.Error {
	var sound, content *string
	delegated := false
	f := openaiwire.Fields{"type": openaiwire.Ignored, "event_id": openaiwire.Ignored}
	switch e.Type {
	case Start, Update:
		f["session"] = openaiwire.Raw(&e.Session)
	case AudioAppend, FixturePlay:
		f["audio"] = openaiwire.Optional(&sound, openaiwire.Text)
	case InstructionsAppend, ThinkingAppend, CommentaryAppend:
		f["content"] = openaiwire.Optional(&content, openaiwire.Text)
		f["delegation_id"] = func(raw json.RawMessage, path string) *openaiwire.Error {
			delegated = true
			return openaiwire.OrNull(func() {}, openaiwire.Text(&e.Delegation))(raw, path)
		}
	case Mute, Unmute, Close:
	case "":
		return openaiwire.Missing("type")
	default:
		return refuseType(e.Type)
	}
	if err := f.Read(data, ""); err != nil {
		return err
	}
	switch {
	case f["session"] != nil && e.Session == nil:
		return openaiwire.Missing("session")
	case f["audio"] != nil && sound == nil:
		return openaiwire.Missing("audio")
	case f["content"] != nil && content == nil:
		return openaiwire.Missing("content")
	case f["content"] != nil && !delegated:
		return openaiwire.Missing("delegation_id")
	case sound != nil:
		e.Audio = []byte(*sound)
	case content != nil:
		if e.Content = *content; Tokens(e.Content) > MaxAppendTokens {
			return openaiwire.Invalid(CodeInvalidValue, "content", "Context append text must not exceed %d tokens.", MaxAppendTokens)
		}
	}
	return nil
}

// refuseType answers an event that a client delegation does not have, or that nothing has.
func refuseType(kind string) *openaiwire.Error {
	switch kind {
	case "response.item.create", "response.create":
		return openaiwire.Invalid(CodeInvalidValue, "type", "'%s' requires Responses delegation.", kind)
	case "decision.create", "decision.item.create", "decision.item.delete":
		return openaiwire.Invalid(CodeInvalidValue, "type", "'%s' requires Decisions.", kind)
	}
	return openaiwire.BadValue("type", kind, clientTypes...)
}

// ServerEvent is an event of the server, with the values that its type has. An event of an unknown type has only Type and
// ID.
type ServerEvent struct {
	Type     string `json:"type"`
	ID       string `json:"event_id"`        // empty for audio
	ClientID string `json:"client_event_id"` // the event that this one answers; empty without one
	// Delta is the words of a transcript. Sound is the audio in base64; it may share memory with the frame.
	Delta string `json:"delta"`
	Sound []byte `json:"-"`
	// StartMS and EndMS are a place on the timeline, in ms from the begin of the session.
	StartMS    int64 `json:"start_ms"`
	EndMS      int64 `json:"end_ms"`
	OffsetMS   int64 `json:"offset_ms"` // the place of a delegation
	Delegation struct {
		ID     string `json:"id"`
		Target string `json:"target"`
	} `json:"delegation"`
	Session *Session `json:"session"`
	Reason  string   `json:"reason"` // of session.closed
	Usage   struct {
		Seconds float64 `json:"seconds"` // since the begin of the session
	} `json:"usage"`
	Context *struct {
		Ratio float64 `json:"usage_ratio"`
	} `json:"context_window"`
	Error *Failure `json:"error"`
}

// Failure is the content of an error event.
type Failure struct {
	Type     string `json:"type"`
	Code     string `json:"code"`
	Message  string `json:"message"`
	Param    string `json:"param"`
	ClientID string `json:"client_event_id"`
}

// serverTypes are the types of events whose members ParseServerEvent reads.
var serverTypes = map[string]bool{
	Started: true, Updated: true, Muted: true, Unmuted: true, InstructionsAppended: true, ThinkingAppended: true,
	CommentaryAppended: true, AudioDelta: true, InputTranscript: true, OutputTranscript: true, DelegationCreated: true,
	FixturePlaying: true, FixturePlayed: true, UsageUpdated: true, Closed: true, Failed: true, Info: true,
}

// Known reports whether this package knows a type of the server's events.
func Known(kind string) bool { return serverTypes[kind] }

// ParseServerEvent reads an event as its client: unknown types and members are accepted. The error is for a frame that
// is not an event, or one of a known type with a value of the wrong kind.
func ParseServerEvent(data []byte) (ServerEvent, error) {
	if id, sound, ok := openaiwire.ReadAudio(data, AudioDelta, "delta"); ok {
		return ServerEvent{Type: AudioDelta, ID: id, Sound: sound}, nil
	}
	var e ServerEvent
	err := json.Unmarshal(data, &e)
	switch {
	case err != nil && e.Type == "":
		return e, fmt.Errorf("livewire: the frame is not an event: %w", err)
	case !Known(e.Type):
		return ServerEvent{Type: e.Type, ID: e.ID}, nil
	case err != nil:
		return e, fmt.Errorf("livewire: the event %s: %w", e.Type, err)
	case e.Type == AudioDelta:
		e.Sound, e.Delta = []byte(e.Delta), ""
	}
	return e, nil
}

// Reply returns an event of the server that answers a client's event with that id, which may be empty.
func Reply(kind, clientID string, members ...any) openaiwire.ServerEvent {
	e := openaiwire.ServerEvent{Type: kind, Members: members}
	if clientID != "" {
		e = e.With("client_event_id", clientID)
	}
	return e
}

// Fail is the event for an error; clientID is the id of the client's event that caused it, which may be empty.
func Fail(err *openaiwire.Error, clientID string) openaiwire.ServerEvent {
	o := openaiwire.Object{"type", err.Type, "code", err.Code, "message", err.Message}
	if err.Param != "" {
		o = append(o, "param", err.Param)
	}
	if clientID != "" {
		o = append(o, "client_event_id", clientID)
	}
	return Reply(Failed, clientID, "error", o)
}

// Delegate announces a delegation to the client at a place on the timeline.
func Delegate(id string, offsetMS int64) openaiwire.ServerEvent {
	return Reply(DelegationCreated, "", "offset_ms", offsetMS,
		"delegation", openaiwire.Object{"id", id, "type", "delegation", "target", DelegateToClient})
}

// Usage reports the seconds of the timeline, and how much of the context window is in use.
func Usage(seconds, ratio float64) openaiwire.ServerEvent {
	return Reply(UsageUpdated, "", "usage", openaiwire.Object{"seconds", seconds}, "context_window",
		openaiwire.Object{"usage_ratio", ratio})
}

// End is the last event of a session. clientID is the id of a session.close; empty without one.
func End(reason string, s *Session, seconds float64, clientID string) openaiwire.ServerEvent {
	return Reply(Closed, clientID, "reason", reason, "session", s, "usage", openaiwire.Object{"seconds", seconds})
}

// AppendAudioDelta appends an encoded session.output_audio.delta to dst; a startMS below 0 omits the place, as the
// provider does, and Azure does not. It allocates nothing if dst has room.
func AppendAudioDelta(dst, data []byte, startMS int64) []byte {
	dst = audio.AppendBase64(append(dst, `{"type":"`+AudioDelta+`","delta":"`...), data)
	dst = append(dst, '"')
	if startMS >= 0 {
		dst = strconv.AppendInt(append(dst, `,"start_ms":`...), startMS, 10)
		dst = strconv.AppendInt(append(dst, `,"end_ms":`...), startMS+FrameMS, 10)
	}
	return append(dst, '}')
}
