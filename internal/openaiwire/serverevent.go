package openaiwire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

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

// IDs makes ids of letters and digits. They are not secrets.
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

// New returns an id of a kind, such as item_ and 21 letters and digits; of a call 16.
func (i IDs) New(kind string) string {
	if kind == "call" {
		return "call_" + i.Base62(16)
	}
	return kind + "_" + i.Base62(21)
}

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

// Encode returns the event with a new id. It fails only for a value that is not JSON.
func (e ServerEvent) Encode(ids IDs) ([]byte, error) {
	return append(Object{"type", e.Type, "event_id", ids.New("event")}, e.Members...).Encode(false)
}

// AudioDelta is the type of the event that AppendAudioDelta writes.
const AudioDelta = "response.output_audio.delta"

// place are the members that say where an event of a response belongs.
const place = "response_id item_id output_index content_index "

// serverEvents are the events with their members after type and event_id, in the order of the recordings.
//
// previous_item_id is null for the first item. audio_start_ms and audio_end_ms of the input are on the clock of all audio
// of the session.
var serverEvents = map[string]string{
	"session.created":                        "session",
	"session.updated":                        "session",
	"conversation.created":                   "conversation",
	"input_audio_buffer.speech_started":      "audio_start_ms item_id",
	"input_audio_buffer.speech_stopped":      "audio_end_ms item_id",
	"input_audio_buffer.committed":           "previous_item_id item_id",
	"input_audio_buffer.cleared":             "",
	"input_audio_buffer.timeout_triggered":   "audio_start_ms audio_end_ms item_id",
	"conversation.item.added":                "previous_item_id item",
	"conversation.item.done":                 "previous_item_id item",
	"conversation.item.retrieved":            "item",
	"conversation.item.deleted":              "item_id",
	"conversation.item.truncated":            "item_id content_index audio_end_ms",
	inputTranscription + "delta":             "item_id content_index delta",
	inputTranscription + "completed":         "item_id content_index transcript usage",
	inputTranscription + "failed":            "item_id content_index error",
	"response.created":                       "response",
	"response.done":                          "response",
	"response.output_item.added":             "response_id output_index item",
	"response.output_item.done":              "response_id output_index item",
	"response.content_part.added":            place + "part",
	"response.content_part.done":             place + "part",
	"response.output_text.delta":             place + "delta",
	"response.output_text.done":              place + "text",
	AudioDelta:                               place + "delta",
	"response.output_audio.done":             place,
	"response.output_audio_transcript.delta": place + "delta",
	"response.output_audio_transcript.done":  place + "transcript",
	"response.function_call_arguments.delta": "response_id item_id output_index call_id delta",
	"response.function_call_arguments.done":  "response_id item_id output_index call_id name arguments",
	"response.mcp_call_arguments.done":       "response_id item_id output_index arguments",
	"response.mcp_call.in_progress":          "item_id output_index",
	"response.mcp_call.completed":            "item_id output_index",
	"response.mcp_call.failed":               "item_id output_index",
	"rate_limits.updated":                    "rate_limits",
	"error":                                  "error",
}

const inputTranscription = "conversation.item.input_audio_transcription."

// Event returns an event with the values of its members, in their order. content_index is always 0 and not among them.
func Event(name string, values ...any) ServerEvent { return Place{}.event(name, nil, values) }

// Place is where a part of a response belongs.
type Place struct {
	ResponseID, ItemID string
	Output             int // index of the item in the response
}

// Event is Event for an event of the response, whose place is not among the values.
func (p Place) Event(name string, values ...any) ServerEvent {
	return p.event(name, map[string]any{"response_id": p.ResponseID, "item_id": p.ItemID, "output_index": p.Output}, values)
}

func (p Place) event(name string, known map[string]any, values []any) ServerEvent {
	e := ServerEvent{Type: name}
	for key := range strings.FieldsSeq(serverEvents[name]) {
		value, has := known[key]
		switch {
		case has:
		case key == "content_index":
			value = 0
		default:
			value, values = values[0], values[1:]
		}
		e.Members = append(e.Members, key, value)
	}
	return e
}

// Part is the content of a content_part event. Its types differ from those of an item's content.
func Part(inText bool, words string) Object {
	if inText {
		return Object{"type", "text", "text", words}
	}
	return Object{"type", "audio", "transcript", words}
}

// WordsDelta carries words of an answer in text or speech.
func (p Place) WordsDelta(inText bool, delta string) ServerEvent {
	if inText {
		return p.Event("response.output_text.delta", delta)
	}
	return p.Event("response.output_audio_transcript.delta", delta)
}

// CloseMessage gives an item of an answer its words, and returns the events that end its content.
func (p Place) CloseMessage(it *Item, inText bool, words string) []ServerEvent {
	done := p.Event("response.content_part.done", Part(inText, words))
	if inText {
		it.Content = []Content{{Type: "output_text", Text: words}}
		return []ServerEvent{p.Event("response.output_text.done", words), done}
	}
	it.Content = []Content{{Type: "output_audio", Transcript: &words}}
	return []ServerEvent{p.Event("response.output_audio.done"), p.Event("response.output_audio_transcript.done", words), done}
}

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

// TranscriptionFailed reports that the user's speech could not be transcribed.
func TranscriptionFailed(itemID, code, message string) ServerEvent {
	return Event(inputTranscription+"failed", itemID, Object{"type", "server_error", "code", code, "message", message, "param", nil})
}

// Failure is the event for an error. clientEventID is the id of the client's event that caused it; empty if it had
// none.
func (e *Error) Failure(clientEventID string) ServerEvent {
	return Event("error", Object{
		"type", e.Type, "code", e.Code, "message", e.Message, "param", Nullable(e.Param), "event_id", Nullable(clientEventID),
	})
}
