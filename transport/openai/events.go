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

// eventRow describes how one type of server event is handled, or why it is ignored.
type eventRow struct {
	// handle handles an event of the row's type. Its error ends the connection.
	handle func(c handler, eventType string, frame []byte) *transport.Error
	name   string // the event's type
	why    string
}

type handler struct{ *conn }

func decode[T any](take func(handler, *T) *transport.Error) eventRow {
	return eventRow{handle: func(c handler, eventType string, frame []byte) *transport.Error {
		var ev T
		if !c.parse(eventType, frame, &ev) {
			return nil
		}
		return take(c, &ev)
	}}
}

// parse decodes the readable part; false if nothing is readable. It rarely logs a field of the wrong JSON type.
func (c *conn) parse(eventType string, frame []byte, into any) bool {
	misfit, err := decodeEvent(frame, into)
	switch {
	case err != nil:
		c.malformed.Add(1)
		c.log.Debug("event_malformed", "provider", c.info.Provider, "bytes", len(frame))
		return false
	case misfit != "":
		c.t.seldom.Info("event_field_of_another_type", eventType+" "+misfit, "provider", c.info.Provider)
	}
	return true
}

func ignore(why string) eventRow { return eventRow{why: why} }

// eventRows lists every server event of the Realtime API (openai-go v3.95, read 2026-11-20), and the beta names that
// compatible servers still use. A type that is missing here is counted and skipped.
var eventRows = named(map[string]eventRow{
	typeError:          decode(handler.onError),
	typeSessionUpdated: decode(handler.onSessionUpdated),

	"input_audio_buffer.speech_started": decode(handler.onSpeechStarted),
	"input_audio_buffer.speech_stopped": decode(handler.onSpeechStopped),
	"input_audio_buffer.committed":      decode(handler.onCommitted),

	"conversation.item.truncated":                           decode(handler.onTruncated),
	"conversation.item.input_audio_transcription.delta":     decode(handler.onUserDelta),
	"conversation.item.input_audio_transcription.completed": decode(handler.onUserDone),
	"conversation.item.input_audio_transcription.failed":    decode(handler.onUserFailed),

	"response.created":                       decode(handler.onResponseCreated),
	"response.done":                          decode(handler.onResponseDone),
	"response.output_item.done":              decode(handler.onOutputItemDone),
	"response.function_call_arguments.done":  decode(handler.onArgumentsDone),
	typeAudioDelta:                           decode(handler.onAudioDelta),
	"response.output_audio.done":             decode(handler.onAudioDone),
	"response.output_audio_transcript.delta": decode(handler.onAssistantDelta),
	"response.output_audio_transcript.done":  decode(handler.onAssistantDone),
	"response.output_text.delta":             decode(handler.onAssistantDelta),
	"response.output_text.done":              decode(handler.onAssistantDone),

	typeAudioDeltaBeta:                decode(handler.onAudioDelta),
	"response.audio.done":             decode(handler.onAudioDone),
	"response.audio_transcript.delta": decode(handler.onAssistantDelta),
	"response.audio_transcript.done":  decode(handler.onAssistantDone),
	"response.text.delta":             decode(handler.onAssistantDelta),
	"response.text.done":              decode(handler.onAssistantDone),

	typeSessionCreated:     ignore("read while connecting; what it says is fixed then"),
	"conversation.created": ignore("beta and xAI; holds only an id"),
	"ping":                 ignore("xAI: a sign of life, which every frame is"),

	"localai.classifier.result":         ignore("LocalAI: not asked for"),
	"conversation.item.speaker":         ignore("LocalAI: speakers are not told apart"),
	"conversation.item.sound_detection": ignore("LocalAI: sounds without speech are no input"),

	"warning":                              ignore("Voice Live: the session goes on"),
	"input_text.delta":                     ignore("Voice Live: hosted agents are not used"),
	"input_text.done":                      ignore("Voice Live: hosted agents are not used"),
	"response.invocation.delta":            ignore("Voice Live: hosted agents are not used"),
	"response.invocation.done":             ignore("Voice Live: hosted agents are not used"),
	"session.avatar.connecting":            ignore("Voice Live: no avatar is asked for"),
	"session.avatar.switch_to_speaking":    ignore("Voice Live: no avatar is asked for"),
	"session.avatar.switch_to_idle":        ignore("Voice Live: no avatar is asked for"),
	"response.video.delta":                 ignore("Voice Live: no avatar is asked for"),
	"response.animation_blendshapes.delta": ignore("Voice Live: no avatar is asked for"),
	"response.animation_blendshapes.done":  ignore("Voice Live: no avatar is asked for"),
	"response.animation_viseme.delta":      ignore("Voice Live: no avatar is asked for"),
	"response.animation_viseme.done":       ignore("Voice Live: no avatar is asked for"),
	"response.audio_timestamp.delta":       ignore("Voice Live: times of words are not asked for"),
	"response.audio_timestamp.done":        ignore("Voice Live: times of words are not asked for"),

	"input_audio_buffer.cleared":             ignore("confirms our own clear"),
	"input_audio_buffer.timeout_triggered":   ignore("idle_timeout_ms is not asked for"),
	"input_audio_buffer.dtmf_event_received": ignore("SIP only"),

	"conversation.item.added":     ignore("the events of its response and of the user's turn carry the same"),
	typeItemCreated:               ignore("beta name of conversation.item.added"),
	typeItemDone:                  ignore("response.output_item.done carries the same"),
	"conversation.item.retrieved": ignore("never asked for"),
	"conversation.item.deleted":   ignore("never asked for"),
	"conversation.item.input_audio_transcription.segment": ignore("speakers are not told apart"),

	"response.output_item.added":             decode(handler.onOutputItemAdded),
	"response.content_part.added":            ignore("empty"),
	"response.content_part.done":             ignore("the transcript's done carries the same"),
	"response.function_call_arguments.delta": ignore("a call is given whole"),

	"rate_limits.updated":         ignore("a limit that is reached shows as a failed response"),
	"output_audio_buffer.started": ignore("WebRTC and SIP only"),
	"output_audio_buffer.stopped": ignore("WebRTC and SIP only"),
	"output_audio_buffer.cleared": ignore("WebRTC and SIP only"),

	"mcp_list_tools.in_progress":        ignore("no MCP server is declared"),
	"mcp_list_tools.completed":          ignore("no MCP server is declared"),
	"mcp_list_tools.failed":             ignore("no MCP server is declared"),
	"response.mcp_call_arguments.delta": ignore("no MCP server is declared"),
	"response.mcp_call_arguments.done":  ignore("no MCP server is declared"),
	"response.mcp_call.in_progress":     ignore("no MCP server is declared"),
	"response.mcp_call.completed":       ignore("no MCP server is declared"),
	"response.mcp_call.failed":          ignore("no MCP server is declared"),
})

func named(rows map[string]eventRow) map[string]eventRow {
	for name, row := range rows {
		row.name = name
		rows[name] = row
	}
	return rows
}

// The sequencer absorbs some errors, a fatal one ends the connection, and any other becomes a Problem.
func (c handler) onError(ev *event) *transport.Error {
	e := &ev.Error
	c.mu.Lock()
	send, absorbed := c.seq.refused(e.EventID, e.Code, time.Now())
	c.rearm()
	c.mu.Unlock()
	c.release(send)
	if absorbed {
		c.log.Debug("response_create_waits", "provider", c.info.Provider, "event_id", e.EventID)
		return nil
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
		return err
	case updating:
		c.events.add(transport.Reconfigured{Err: err})
	default:
		c.events.add(transport.Problem{Err: err})
	}
	return nil
}

func (c handler) onSpeechStarted(ev *event) *transport.Error {
	c.events.add(transport.SpeechStarted{Item: ev.ItemID, AudioMS: c.callerClock(ev.AudioStartMS)})
	return nil
}

func (c handler) onSpeechStopped(ev *event) *transport.Error {
	c.changed()
	c.events.add(transport.SpeechStopped{
		Item:    ev.ItemID,
		AudioMS: c.callerClock(ev.AudioEndMS),
		EndMS:   c.callerClock(max(ev.AudioEndMS-c.silenceMS, 0)),
	})
	if c.local { // some servers do not report the commit
		c.committed = true
		c.events.add(transport.InputCommitted{Item: ev.ItemID})
	}
	return nil
}

// itemOr makes up for an event without an item: the response's spoken item, or a made-up name.
func (c *conn) itemOr(id, response string) string {
	if id != "" {
		return id
	}
	for i := len(c.openAudio) - 1; i >= 0; i-- {
		if it := c.openAudio[i]; it.response == response || it.response == "" {
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

func (c handler) onCommitted(ev *event) *transport.Error {
	c.changed()
	if !c.committed {
		c.events.add(transport.InputCommitted{Item: ev.ItemID})
	}
	c.committed = false
	return nil
}

func (c *conn) truncated() {
	if n := c.truncates.Load(); n > 0 {
		c.truncates.CompareAndSwap(n, n-1) // a new one that Send has just counted is not lost
	}
}

func (c handler) onTruncated(ev *event) *transport.Error {
	c.truncated()
	c.events.add(transport.Truncated{Item: ev.ItemID, AudioMS: ev.AudioEndMS})
	return nil
}

func (c handler) onUserDelta(ev *event) *transport.Error {
	c.transcribe(ev.ItemID, transport.RoleUser, ev.ContentIndex, ev.Delta, false)
	return nil
}

// onUserDone emits the final text. Its usage belongs to another model: see the package comment.
func (c handler) onUserDone(ev *event) *transport.Error {
	c.transcribe(ev.ItemID, transport.RoleUser, ev.ContentIndex, ev.Transcript, true)
	return nil
}

func (c handler) onUserFailed(ev *event) *transport.Error {
	c.events.add(transport.Transcript{Item: ev.ItemID, Role: transport.RoleUser, Text: c.texts.get(ev.ItemID), Final: true})
	c.events.add(transport.TranscriptFailed{Item: ev.ItemID, Err: c.t.fault("recv", transport.KindRefused, ev.Error.Code,
		c.t.providerText("transcription", ev.Error.Message, ev.Error.Param))})
	return nil
}

func (c handler) onAssistantDelta(ev *event) *transport.Error {
	c.speak(ev.ResponseID, ev.ItemID, ev.ContentIndex, ev.Delta, false)
	return nil
}

func (c handler) onAssistantDone(ev *event) *transport.Error {
	c.speak(ev.ResponseID, ev.ItemID, ev.ContentIndex, cmp.Or(ev.Transcript, ev.Text), true)
	return nil
}

func (c handler) speak(response, item string, part int64, text string, final bool) {
	response = cmp.Or(response, c.response.answering)
	if !c.response.isMuted(response) {
		c.transcribe(c.itemOr(item, response), transport.RoleAssistant, part, text, final)
	}
}

func (c handler) transcribe(item string, role transport.Role, part int64, text string, final bool) {
	whole, ok := c.texts.update(item, part, text, final)
	if !ok {
		c.malformed.Add(1)
		return
	}
	c.events.add(transport.Transcript{Item: item, Role: role, Text: whole, Final: final})
}

func (c handler) onAudioDelta(ev *event) *transport.Error {
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
		return nil
	}
	if out != nil {
		c.events.add(out)
	}
	return nil
}

func (c handler) onAudioDone(ev *event) *transport.Error {
	if it := c.items.by[c.itemOr(ev.ItemID, cmp.Or(ev.ResponseID, c.response.answering))]; it != nil {
		c.endAudio(it)
	}
	return nil
}

// The types below have plain fields: one that a server sends as another JSON type keeps its zero value, and the rest is
// used (see decodeEvent). No field may have a type that can fail to decode.

// event is every event except those that carry a whole response.
type event struct {
	ResponseID   string     `json:"response_id"`
	ItemID       string     `json:"item_id"`
	ContentIndex int64      `json:"content_index"`
	Delta        string     `json:"delta"`
	Transcript   string     `json:"transcript"`
	Text         string     `json:"text"`
	AudioStartMS int64      `json:"audio_start_ms"`
	AudioEndMS   int64      `json:"audio_end_ms"`
	CallID       string     `json:"call_id"`
	Name         string     `json:"name"`
	Arguments    arguments  `json:"arguments"`
	Item         outputItem `json:"item"`
	Error        errorValue `json:"error"`
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

type responseEvent struct {
	Response struct {
		ID            string          `json:"id"`
		Status        string          `json:"status"`
		StatusDetails statusDetails   `json:"status_details"`
		Output        []outputItem    `json:"output"`
		Usage         *usage          `json:"usage"`
		Metadata      json.RawMessage `json:"metadata"`
	} `json:"response"`
	// xAI sends the usage next to the response.
	Usage *usage `json:"usage"`
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

type sessionEvent struct {
	shown   []byte // the whole event, of a local server
	Session struct {
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
	} `json:"session"`
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
