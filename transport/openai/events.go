package openai

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"voicegw/audio"
	"voicegw/transport"
)

// Types that the code refers to by name.
const (
	typeSessionCreated = "session.created"
	typeSessionUpdated = "session.updated"
	typeError          = "error"
	typeItemDone       = "conversation.item.done"
	typeItemCreated    = "conversation.item.created"
)

// parse decodes the readable part of an event; false if it has no type. It rarely logs a field of the wrong JSON type.
func (c *conn) parse(frame []byte) (ev *event, ok bool) {
	ev = new(event)
	misfit, err := decodeEvent(frame, ev)
	switch {
	case err != nil || ev.Type == "":
		c.malformed.Add(1)
		c.log.Debug("event_malformed", "provider", c.info.Provider, "bytes", len(frame))
		return nil, false
	case misfit != "" && handlers[ev.Type] != nil:
		c.t.seldom.Info("event_field_of_another_type", ev.Type+" "+misfit, "provider", c.info.Provider)
	}
	return ev, true
}

// handler handles the events of a connection.
type handler struct{ *conn }

// handlers has every server event of the Realtime API (openai-go v3.95, read 2026-11-20), and the beta names that
// compatible servers still use; nil ignores one. A type that is missing here is counted and skipped.
var handlers = map[string]func(handler, *event){
	typeError:          handler.onError,
	typeSessionUpdated: handler.onSessionUpdated,

	"input_audio_buffer.speech_started": handler.onSpeechStarted,
	"input_audio_buffer.speech_stopped": handler.onSpeechStopped,
	"input_audio_buffer.committed":      handler.onCommitted,

	"conversation.item.truncated":                           handler.onTruncated,
	"conversation.item.input_audio_transcription.delta":     handler.onUserDelta,
	"conversation.item.input_audio_transcription.completed": handler.onUserDone,
	"conversation.item.input_audio_transcription.failed":    handler.onUserFailed,

	"response.created":                       handler.onResponseCreated,
	"response.done":                          handler.onResponseDone,
	"response.output_item.added":             handler.onOutputItemAdded,
	"response.output_item.done":              handler.onOutputItemDone,
	"response.function_call_arguments.done":  handler.onArgumentsDone,
	typeAudioDelta:                           handler.onAudioDelta,
	"response.output_audio.done":             handler.onAudioDone,
	"response.output_audio_transcript.delta": handler.onAssistantDelta,
	"response.output_audio_transcript.done":  handler.onAssistantDone,
	"response.output_text.delta":             handler.onAssistantDelta,
	"response.output_text.done":              handler.onAssistantDone,

	typeAudioDeltaBeta:                handler.onAudioDelta,
	"response.audio.done":             handler.onAudioDone,
	"response.audio_transcript.delta": handler.onAssistantDelta,
	"response.audio_transcript.done":  handler.onAssistantDone,
	"response.text.delta":             handler.onAssistantDelta,
	"response.text.done":              handler.onAssistantDone,

	typeSessionCreated:                     nil, // read while connecting; its content is fixed then
	"input_audio_buffer.cleared":           nil, // confirms our own clear
	"input_audio_buffer.timeout_triggered": nil, // idle_timeout_ms is not asked for
	"rate_limits.updated":                  nil, // a limit that is reached shows as a failed response

	// Other events carry the same, or nothing.
	"conversation.item.added": nil, typeItemCreated: nil, typeItemDone: nil, "response.content_part.added": nil,
	"response.content_part.done": nil, "response.function_call_arguments.delta": nil,
	// Never asked for: items, the segments of speakers, and MCP servers.
	"conversation.item.retrieved": nil, "conversation.item.deleted": nil,
	"conversation.item.input_audio_transcription.segment": nil,
	"mcp_list_tools.in_progress":                          nil, "mcp_list_tools.completed": nil, "mcp_list_tools.failed": nil,
	"response.mcp_call_arguments.delta": nil, "response.mcp_call_arguments.done": nil,
	"response.mcp_call.in_progress": nil, "response.mcp_call.completed": nil, "response.mcp_call.failed": nil,
	// Only over WebRTC and SIP.
	"output_audio_buffer.started": nil, "output_audio_buffer.stopped": nil, "output_audio_buffer.cleared": nil,
	"input_audio_buffer.dtmf_event_received": nil,
	// xAI and the beta: an id, and a sign of life.
	"conversation.created": nil, "ping": nil,
	// LocalAI: classifiers are not asked for, speakers are not told apart, and sounds without speech are not input.
	"localai.classifier.result": nil, "conversation.item.speaker": nil, "conversation.item.sound_detection": nil,
	// Voice Live: the session goes on after a warning. Hosted agents, avatars and the times of words are not asked for.
	"warning": nil, "input_text.delta": nil, "input_text.done": nil, "response.invocation.delta": nil, "response.invocation.done": nil,
	"session.avatar.connecting": nil, "session.avatar.switch_to_speaking": nil, "session.avatar.switch_to_idle": nil,
	"response.video.delta": nil, "response.animation_blendshapes.delta": nil, "response.animation_blendshapes.done": nil,
	"response.animation_viseme.delta": nil, "response.animation_viseme.done": nil,
	"response.audio_timestamp.delta": nil, "response.audio_timestamp.done": nil,
}

// The sequencer absorbs some errors, a fatal one ends the connection, and any other becomes a Problem.
func (c handler) onError(ev *event) {
	e := &ev.Error
	c.mu.Lock()
	send, absorbed := c.seq.refused(e.EventID, e.Code, time.Now())
	c.rearm()
	c.mu.Unlock()
	c.release(send)
	if absorbed {
		c.log.Debug("response_create_waits", "provider", c.info.Provider, "event_id", e.EventID)
		return
	}
	op := opOfError(e, c.truncates.Load() > 0)
	kind, fatal := kindOfError(e, op)
	updating := c.updateRefused(e.EventID)
	switch {
	case op == opTruncate:
		c.truncated()
	case op == opUpdate && !updating && !fatal:
		kind = transport.KindIgnore // nothing waits for this update any more
	}
	err := c.t.reported(cmp.Or(op, "recv"), kind, e)
	switch {
	case fatal:
		c.fatal = err
	case updating:
		c.events.Add(transport.Reconfigured{Err: err})
	default:
		c.events.Add(transport.Problem{Err: err})
	}
}

func (c handler) onSpeechStarted(ev *event) {
	c.events.Add(transport.SpeechStarted{Item: ev.ItemID, AudioMS: c.callerClock(ev.AudioStartMS)})
}

func (c handler) onSpeechStopped(ev *event) {
	c.changed()
	c.events.Add(transport.SpeechStopped{
		Item:    ev.ItemID,
		AudioMS: c.callerClock(ev.AudioEndMS),
		EndMS:   c.callerClock(max(ev.AudioEndMS-c.silenceMS, 0)),
	})
	if c.local { // some servers do not report the commit
		c.committed = true
		c.events.Add(transport.InputCommitted{Item: ev.ItemID})
	}
}

// itemOr makes up for an event without an item: the response's spoken item, or a made-up name.
func (c *conn) itemOr(id, response string) string {
	if id != "" {
		return id
	}
	for _, it := range slices.Backward(c.openAudio) {
		if it.response == response || it.response == "" {
			return it.id
		}
	}
	return "item of " + response
}

func (c *conn) changed() {
	c.mu.Lock()
	c.seq.changed()
	c.mu.Unlock()
}

// callerClock removes the padding that this adapter added from a provider's offset.
func (c *conn) callerClock(ms int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pads.caller(ms)
}

func (c handler) onCommitted(ev *event) {
	c.changed()
	if !c.committed {
		c.events.Add(transport.InputCommitted{Item: ev.ItemID})
	}
	c.committed = false
}

func (c *conn) truncated() {
	if n := c.truncates.Load(); n > 0 {
		c.truncates.CompareAndSwap(n, n-1) // a new one that Send has just counted is not lost
	}
}

func (c handler) onTruncated(ev *event) {
	c.truncated()
	c.events.Add(transport.Truncated{Item: ev.ItemID, AudioMS: ev.AudioEndMS})
}

func (c handler) onUserDelta(ev *event) {
	c.transcribe(ev.ItemID, transport.RoleUser, ev.ContentIndex, ev.Delta, false)
}

// onUserDone emits the final text. Its usage belongs to another model: see the package comment.
func (c handler) onUserDone(ev *event) {
	c.transcribe(ev.ItemID, transport.RoleUser, ev.ContentIndex, ev.Transcript, true)
}

func (c handler) onUserFailed(ev *event) {
	c.events.Add(transport.Transcript{Item: ev.ItemID, Role: transport.RoleUser, Text: c.texts.get(ev.ItemID), Final: true})
	ev.Error.Type = "transcription"
	c.events.Add(transport.TranscriptFailed{Item: ev.ItemID, Err: c.t.reported("recv", transport.KindRefused, &ev.Error)})
}

func (c handler) onAssistantDelta(ev *event) { c.speak(ev, ev.Delta, false) }

func (c handler) onAssistantDone(ev *event) { c.speak(ev, cmp.Or(ev.Transcript, ev.Text), true) }

func (c handler) speak(ev *event, text string, final bool) {
	response := cmp.Or(ev.ResponseID, c.response.answering)
	if !c.response.isMuted(response) {
		c.transcribe(c.itemOr(ev.ItemID, response), transport.RoleAssistant, ev.ContentIndex, text, final)
	}
}

func (c handler) transcribe(item string, role transport.Role, part int64, text string, final bool) {
	whole, ok := c.texts.update(item, part, text, final)
	if !ok {
		c.malformed.Add(1)
		return
	}
	c.events.Add(transport.Transcript{Item: item, Role: role, Text: whole, Final: final})
}

func (c handler) onAudioDelta(ev *event) {
	c.slow.Add(1)
	response := cmp.Or(ev.ResponseID, c.response.answering)
	item := c.itemOr(ev.ItemID, response)
	it := c.items.by[item]
	if it == nil {
		it = c.newSpoken(item, response)
	}
	out, ok := c.speech.decode(it, []byte(ev.Delta))
	if !ok {
		c.malformed.Add(1)
	} else if out != nil {
		c.events.Add(out)
	}
}

func (c handler) onAudioDone(ev *event) {
	if it := c.items.by[c.itemOr(ev.ItemID, cmp.Or(ev.ResponseID, c.response.answering))]; it != nil {
		c.endAudio(it)
	}
}

// The types below have plain fields: one that a server sends as another JSON type keeps its zero value, and the rest is
// used (see decodeEvent). No field may have a type that can fail to decode.

// event has the members of every event.
type event struct {
	Type         string        `json:"type"`
	ResponseID   string        `json:"response_id"`
	ItemID       string        `json:"item_id"`
	ContentIndex int64         `json:"content_index"`
	Delta        string        `json:"delta"`
	Transcript   string        `json:"transcript"`
	Text         string        `json:"text"`
	AudioStartMS int64         `json:"audio_start_ms"`
	AudioEndMS   int64         `json:"audio_end_ms"`
	CallID       string        `json:"call_id"`
	Name         string        `json:"name"`
	Arguments    arguments     `json:"arguments"`
	Item         outputItem    `json:"item"`
	Error        errorValue    `json:"error"`
	Response     responseValue `json:"response"`
	Usage        *usage        `json:"usage"` // xAI sends that of a response next to it
	Session      sessionValue  `json:"session"`
}

// errorValue is the content of an error event. Some servers send only a text.
type errorValue struct {
	Type    string `json:"type"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Param   string `json:"param"`
	EventID string `json:"event_id"`
}

// UnmarshalJSON accepts an object, or a text as the message. It never fails.
func (e *errorValue) UnmarshalJSON(b []byte) error {
	type plain errorValue
	var p plain
	if _, err := decodeEvent(b, &p); err == nil {
		*e = errorValue(p)
	}
	if b[0] == '"' {
		_ = json.Unmarshal(b, &e.Message) // the decoder has checked that it is a valid string
	}
	if e.Code == "" && harmless[e.Type] { // speech-to-speech
		e.Code = e.Type
	}
	if e.Code == "response_in_progress" { // nemotron-voice-agent
		e.Code = codeActiveResponse
	}
	return nil
}

// arguments are a call's arguments as JSON text, taken from a string or from an object.
type arguments string

// UnmarshalJSON accepts both forms, and reads anything else as no arguments. It never fails.
func (a *arguments) UnmarshalJSON(b []byte) error {
	switch b[0] {
	case '{':
		*a = arguments(b)
	case '"':
		_ = json.Unmarshal(b, (*string)(a)) // the decoder has checked that it is a valid string
	}
	return nil
}

// outputItem holds the needed parts of a response's item of any type.
type outputItem struct {
	ID        string    `json:"id"`
	Type      string    `json:"type"`
	Status    string    `json:"status"`
	Name      string    `json:"name"`
	CallID    string    `json:"call_id"`
	Arguments arguments `json:"arguments"`
}

type responseValue struct {
	ID            string        `json:"id"`
	Status        string        `json:"status"`
	StatusDetails statusDetails `json:"status_details"`
	Output        []outputItem  `json:"output"`
	Usage         *usage        `json:"usage"`
	Metadata      struct {
		Label string `json:"voicegw_request"` // labelKey; empty without one of this adapter's
	} `json:"metadata"`
}

// statusDetails is why a response did not complete. xAI sends a useless string (recorded, read 2026-11-23).
type statusDetails struct {
	Reason string     `json:"reason"`
	Error  errorValue `json:"error"`
}

type usage struct {
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	Input        struct {
		modalities
		Image  int64       `json:"image_tokens"`
		Cached int64       `json:"cached_tokens"`
		Of     *modalities `json:"cached_tokens_details"`
	} `json:"input_token_details"`
	Output modalities `json:"output_token_details"`
}

type modalities struct {
	Text  int64 `json:"text_tokens"`
	Audio int64 `json:"audio_tokens"`
}

type sessionValue struct {
	ID        string `json:"id"`
	Model     string `json:"model"`
	ExpiresAt int64  `json:"expires_at"` // s since the epoch
	Audio     struct {
		Input struct {
			TurnDetection turnDetectionValue `json:"turn_detection"`
			Format        audioFormat        `json:"format"`
		} `json:"input"`
		Output struct {
			Format audioFormat `json:"format"`
		} `json:"output"`
	} `json:"audio"`
	// Servers of the beta's form, and xAI's, send it here.
	TurnDetection turnDetectionValue `json:"turn_detection"`
	// The beta's form.
	InputFormat  audioFormat `json:"input_audio_format"`
	OutputFormat audioFormat `json:"output_audio_format"`
}

// audioFormat is an announcement: an object or, in the beta's form, a name; empty without one.
type audioFormat struct {
	Type string      `json:"type"`
	Rate json.Number `json:"rate"`
}

// UnmarshalJSON accepts both forms, and reads any other value as a type that cannot be used. It never fails.
func (f *audioFormat) UnmarshalJSON(b []byte) error {
	type plain audioFormat
	var p plain
	switch {
	case string(b) == "null":
	case json.Unmarshal(b, &p.Type) == nil:
	case json.Unmarshal(b, &p) != nil:
		p.Type = string(b)
	}
	*f = audioFormat(p)
	return nil
}

// pcmTypes are the names of PCM16 in announcements. Those without a rate have sampleRate: the beta's pcm16
// (platform.openai.com/docs/api-reference/realtime-beta-sessions, read 2026-11-29), and names that compatible
// servers use for it.
var pcmTypes = []string{"", "audio/pcm", "pcm16", "pcm24", "pcm"}

func (f audioFormat) hz(standard int) (int, error) {
	if f == (audioFormat{}) {
		return standard, nil
	}
	rate := sampleRate
	var err error
	if f.Rate != "" {
		rate, err = strconv.Atoi(f.Rate.String())
	}
	if err != nil || !slices.Contains(pcmTypes, f.Type) || rate < audio.MinRate || rate > audio.MaxRate {
		return 0, fmt.Errorf("%w: %s at %s Hz; set the server to audio/pcm at %d to %d Hz, best at %d", errFormat,
			strconv.Quote(clip(f.Type, 40)), cmp.Or(clip(f.Rate.String(), 20), "an unknown number of"), audio.MinRate,
			audio.MaxRate, sampleRate)
	}
	return rate, nil
}

type turnDetectionValue struct {
	SilenceMS *int64 `json:"silence_duration_ms"` // nil where the server does not say
}

// misfit names the first field of another JSON type, which keeps its zero value. The error means invalid JSON.
func decodeEvent(frame []byte, into any) (misfit string, err error) {
	err = json.Unmarshal(frame, into)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return wrong.Field, nil
	}
	return "", err
}
