package openaiwire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"

	"voicegw/audio"
)

// Object is a JSON object with its keys in this order: a key, its value, the next key and so on.
type Object []any

// MarshalJSON writes the keys in their order.
func (o Object) MarshalJSON() ([]byte, error) { return o.Encode(true) }

// Encode is MarshalJSON; escape is as in json.Encoder.SetEscapeHTML.
func (o Object) Encode(escape bool) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(escape)
	b.WriteByte('{')
	for i := 0; i+1 < len(o); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:", o[i])
		if err := enc.Encode(o[i+1]); err != nil {
			return nil, err
		}
		b.Truncate(b.Len() - 1) // the new line that Encode adds
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// IDs makes ids of letters and digits. They are no secrets.
type IDs struct {
	// IntN returns a random number from 0 to n-1.
	IntN func(n int) int
}

// RandomIDs makes ids that do not repeat. It may be used concurrently.
func RandomIDs() IDs { return IDs{rand.IntN} }

// Append appends n letters and digits to dst.
func (i IDs) Append(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, base62[i.IntN(len(base62))])
	}
	return dst
}

// Base62 returns n letters and digits.
func (i IDs) Base62(n int) string { return string(i.Append(make([]byte, 0, n), n)) }

// Item returns an id for an item.
func (i IDs) Item() string { return "item_" + i.Base62(21) }

// Response returns an id for a response.
func (i IDs) Response() string { return "resp_" + i.Base62(21) }

// Call returns an id for a function call.
func (i IDs) Call() string { return "call_" + i.Base62(16) }

// Session returns an id for a session.
func (i IDs) Session() string { return "sess_" + i.Base62(21) }

// Conversation returns an id for a conversation.
func (i IDs) Conversation() string { return "conv_" + i.Base62(21) }

// ServerEvent is an event of the server without its id.
type ServerEvent struct {
	Type string
	// Members follow type and event_id, in the order of the recordings.
	Members Object
}

// With returns the event with more members.
func (e ServerEvent) With(members ...any) ServerEvent {
	e.Members = append(e.Members[:len(e.Members):len(e.Members)], members...)
	return e
}

// Encode returns the event with a new id. It fails only for a value that is no JSON.
func (e ServerEvent) Encode(ids IDs) ([]byte, error) {
	return append(Object{"type", e.Type, "event_id", "event_" + ids.Base62(21)}, e.Members...).Encode(false)
}

func event(name string, members ...any) ServerEvent { return ServerEvent{name, members} }

// SessionCreated is the first event of a session.
func SessionCreated(s *Session) ServerEvent { return event("session.created", "session", s) }

// SessionUpdated answers session.update.
func SessionUpdated(s *Session) ServerEvent { return event("session.updated", "session", s) }

// SpeechStarted reports the begin of speech; startMS is on the clock of all audio of the session.
func SpeechStarted(startMS int64, itemID string) ServerEvent {
	return event("input_audio_buffer.speech_started", "audio_start_ms", startMS, "item_id", itemID)
}

// SpeechStopped reports the end of speech; endMS is on the clock of all audio of the session.
func SpeechStopped(endMS int64, itemID string) ServerEvent {
	return event("input_audio_buffer.speech_stopped", "audio_end_ms", endMS, "item_id", itemID)
}

// Committed reports that the input buffer became an item. previous is nil for the first item.
func Committed(previous *string, itemID string) ServerEvent {
	return event("input_audio_buffer.committed", "previous_item_id", previous, "item_id", itemID)
}

// Cleared answers input_audio_buffer.clear.
func Cleared() ServerEvent { return event("input_audio_buffer.cleared") }

// TimeoutTriggered reports that the user did not speak for idle_timeout_ms.
func TimeoutTriggered(startMS, endMS int64, itemID string) ServerEvent {
	return event("input_audio_buffer.timeout_triggered", "audio_start_ms", startMS, "audio_end_ms", endMS, "item_id", itemID)
}

// ItemAdded reports a new item. previous is nil for the first item.
func ItemAdded(previous *string, it *Item) ServerEvent {
	return event("conversation.item.added", "previous_item_id", previous, "item", it)
}

// ItemDone reports that an item is complete.
func ItemDone(previous *string, it *Item) ServerEvent {
	return event("conversation.item.done", "previous_item_id", previous, "item", it)
}

// ItemRetrieved answers conversation.item.retrieve. item is an Item, or an object that also has its audio.
func ItemRetrieved(item any) ServerEvent { return event("conversation.item.retrieved", "item", item) }

// ItemDeleted answers conversation.item.delete.
func ItemDeleted(itemID string) ServerEvent {
	return event("conversation.item.deleted", "item_id", itemID)
}

// ItemTruncated answers conversation.item.truncate.
func ItemTruncated(itemID string, endMS int) ServerEvent {
	return event("conversation.item.truncated", "item_id", itemID, "content_index", 0, "audio_end_ms", endMS)
}

// TranscriptionDelta carries words of the user's speech.
func TranscriptionDelta(itemID, delta string) ServerEvent {
	return event("conversation.item.input_audio_transcription.delta", "item_id", itemID, "content_index", 0, "delta", delta)
}

// TranscriptionCompleted carries all words of the user's speech. usage is a DurationUsage or by tokens.
func TranscriptionCompleted(itemID, transcript string, usage Object) ServerEvent {
	return event("conversation.item.input_audio_transcription.completed",
		"item_id", itemID, "content_index", 0, "transcript", transcript, "usage", usage)
}

// TranscriptionFailed reports that the user's speech could not be transcribed.
func TranscriptionFailed(itemID, kind, code, message string) ServerEvent {
	return event("conversation.item.input_audio_transcription.failed", "item_id", itemID, "content_index", 0,
		"error", Object{"type", kind, "code", code, "message", message, "param", nil})
}

// ResponseCreated begins a response.
func ResponseCreated(r *Response) ServerEvent { return event("response.created", "response", r) }

// ResponseDone ends a response.
func ResponseDone(r *Response) ServerEvent { return event("response.done", "response", r) }

// Place is where a part of a response belongs.
type Place struct {
	ResponseID, ItemID string
	Output             int // index of the item in the response
}

func (p Place) event(name string, members ...any) ServerEvent {
	return event(name, "response_id", p.ResponseID, "item_id", p.ItemID, "output_index", p.Output, "content_index", 0).With(members...)
}

// OutputItemAdded reports a new item of a response.
func (p Place) OutputItemAdded(it *Item) ServerEvent {
	return event("response.output_item.added", "response_id", p.ResponseID, "output_index", p.Output, "item", it)
}

// OutputItemDone reports that an item of a response is complete.
func (p Place) OutputItemDone(it *Item) ServerEvent {
	return event("response.output_item.done", "response_id", p.ResponseID, "output_index", p.Output, "item", it)
}

// Part is the content of a content_part event. Its types differ from those of an item's content.
func Part(inText bool, words string) Object {
	if inText {
		return Object{"type", "text", "text", words}
	}
	return Object{"type", "audio", "transcript", words}
}

// PartAdded begins the content of an item.
func (p Place) PartAdded(part Object) ServerEvent {
	return p.event("response.content_part.added", "part", part)
}

// PartDone ends the content of an item.
func (p Place) PartDone(part Object) ServerEvent {
	return p.event("response.content_part.done", "part", part)
}

// TranscriptDelta carries words of the model's speech.
func (p Place) TranscriptDelta(delta string) ServerEvent {
	return p.event("response.output_audio_transcript.delta", "delta", delta)
}

// TranscriptDone carries all words of the model's speech.
func (p Place) TranscriptDone(words string) ServerEvent {
	return p.event("response.output_audio_transcript.done", "transcript", words)
}

// TextDelta carries words of an answer in text.
func (p Place) TextDelta(delta string) ServerEvent {
	return p.event("response.output_text.delta", "delta", delta)
}

// TextDone carries all words of an answer in text.
func (p Place) TextDone(words string) ServerEvent {
	return p.event("response.output_text.done", "text", words)
}

// AudioDelta is the type of the event that AppendAudioDelta writes.
const AudioDelta = "response.output_audio.delta"

// AppendAudioDelta appends an encoded event with audio to dst. It allocates nothing if dst has room. The ids of the
// place must be the server's own, because they are written without escapes.
func (p Place) AppendAudioDelta(dst []byte, ids IDs, data []byte) []byte {
	dst = append(dst, `{"type":"`+AudioDelta+`","event_id":"event_`...)
	dst = ids.Append(dst, 21)
	dst = append(append(dst, `","response_id":"`...), p.ResponseID...)
	dst = append(append(dst, `","item_id":"`...), p.ItemID...)
	dst = strconv.AppendInt(append(dst, `","output_index":`...), int64(p.Output), 10)
	dst = audio.AppendBase64(append(dst, `,"content_index":0,"delta":"`...), data)
	return append(dst, `"}`...)
}

// AudioDone ends the audio of an item.
func (p Place) AudioDone() ServerEvent { return p.event("response.output_audio.done") }

func (p Place) call(name, callID string, members ...any) ServerEvent {
	return event(name, "response_id", p.ResponseID, "item_id", p.ItemID, "output_index", p.Output, "call_id", callID).With(members...)
}

// ArgumentsDelta carries a part of a function call's arguments.
func (p Place) ArgumentsDelta(callID, delta string) ServerEvent {
	return p.call("response.function_call_arguments.delta", callID, "delta", delta)
}

// ArgumentsDone carries all arguments of a function call.
func (p Place) ArgumentsDone(callID, name, arguments string) ServerEvent {
	return p.call("response.function_call_arguments.done", callID, "name", name, "arguments", arguments)
}

// Failure is the event for an error. clientEventID is the id of the client's event that caused it; empty if it had
// none.
func (e *Error) Failure(clientEventID string) ServerEvent {
	return event("error", "error", Object{
		"type", e.Type, "code", e.Code, "message", e.Message, "param", Nullable(e.Param), "event_id", Nullable(clientEventID),
	})
}
