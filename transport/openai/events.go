package openai

import (
	"cmp"
	"time"

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

// handler handles the events of a connection.
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

// parse decodes as far as possible; false if nothing could be. It rarely logs a field of the wrong JSON type.
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
	c.events.add(transport.InputCommitted{Item: ev.ItemID})
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
