package openaiwire

import (
	"cmp"
	"encoding/json"
	"math"
)

// ClientEvent is an event of the client, with the values that its type has.
type ClientEvent struct {
	Type string
	// ID is the client's id of the event, which an error about it names; empty without one.
	ID string
	// Session is the object of session.update, for Session.Update.
	Session json.RawMessage
	// Audio is the audio of input_audio_buffer.append in base64, to be decoded once.
	Audio []byte
	// Item is the item of conversation.item.create.
	Item *Item
	// Previous is the item to insert after: nil means the end, "root" the begin.
	Previous *string
	// ItemID is the item to retrieve, delete or truncate.
	ItemID string
	// EndMS is that of conversation.item.truncate, for the first content.
	EndMS int
	// Response are the settings of response.create.
	Response *ResponseParams
	// ResponseID is the response to cancel; empty means the active one.
	ResponseID string
}

// Types of the client's events.
const (
	SessionUpdate  = "session.update"
	SessionClose   = "session.close"
	AudioAppend    = "input_audio_buffer.append"
	AudioCommit    = "input_audio_buffer.commit"
	AudioClear     = "input_audio_buffer.clear"
	ItemCreate     = "conversation.item.create"
	ItemTruncate   = "conversation.item.truncate"
	ItemDelete     = "conversation.item.delete"
	ItemRetrieve   = "conversation.item.retrieve"
	ResponseCreate = "response.create"
	ResponseCancel = "response.cancel"
)

// EventTypes are the types that ParseEvent knows, in the order of the error for an unknown one. They do not change.
var EventTypes = []string{
	SessionUpdate, SessionClose, "transcription_session.update", AudioAppend, AudioCommit, AudioClear,
	ItemCreate, ItemTruncate, ItemDelete, ItemRetrieve, ResponseCreate, ResponseCancel,
}

// ParseEvent reads an event. With an error, its ID is set if it is known. Audio may share memory with data.
func ParseEvent(data []byte) (ClientEvent, *Error) {
	if id, audio, ok := ReadAudio(data, AudioAppend, "audio"); ok {
		return ClientEvent{Type: AudioAppend, ID: id, Audio: audio}, nil
	}
	return parseAny(data)
}

func parseAny(data []byte) (ClientEvent, *Error) {
	var w members
	if err := json.Unmarshal(data, &w); err != nil {
		return ClientEvent{}, NotJSON(data)
	}
	var e ClientEvent
	err := cmp.Or(w.read("event_id", Text(&e.ID)), w.read("type", Text(&e.Type)))
	if err != nil {
		return e, err
	}
	switch e.Type {
	case SessionUpdate:
		e.Session = w["session"]
	case AudioAppend:
		var audio string
		err = cmp.Or(w.must("audio"), w.read("audio", Text(&audio)))
		e.Audio = []byte(audio)
	case ItemCreate:
		if err = w.read("previous_item_id", Optional(&e.Previous, Text)); err == nil {
			e.Item, err = readItem(w["item"], "item")
		}
	case ItemTruncate:
		index := 0
		err = cmp.Or(w.must("item_id"), w.must("audio_end_ms"), w.read("item_id", Text(&e.ItemID)),
			w.read("content_index", Integer(&index, 0, math.MaxInt32)), w.read("audio_end_ms", Integer(&e.EndMS, 0, math.MaxInt32)),
			need(e.ItemID, "item_id"))
		if err == nil && index != 0 {
			err = Invalid("invalid_value", "content_index", "Invalid content index: %d. Only 0 can be truncated.", index)
		}
	case ItemDelete, ItemRetrieve:
		err = cmp.Or(w.read("item_id", Text(&e.ItemID)), need(e.ItemID, "item_id"))
	case ResponseCreate:
		e.Response, err = readParams(w["response"])
	case ResponseCancel:
		err = w.read("response_id", Text(&e.ResponseID))
	case SessionClose, AudioCommit, AudioClear:
	case "transcription_session.update":
		err = transcriptionUpdate()
	case "":
		err = Missing("type")
	default:
		err = BadValue("type", e.Type, EventTypes...)
	}
	return e, err
}

type members map[string]json.RawMessage

// read reads a member that may be missing or null.
func (m members) read(name string, read Reader) *Error {
	if m.must(name) != nil {
		return nil
	}
	return read(m[name], name)
}

func (m members) must(name string) *Error {
	if raw := m[name]; len(raw) == 0 || isNull(raw) {
		return Missing(name)
	}
	return nil
}
