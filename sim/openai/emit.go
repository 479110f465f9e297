package openai

import (
	"strings"

	"voicegw/audio"
	"voicegw/sim/rest"
	"voicegw/sim/wire"
)

type object = wire.Object

// emit sends an event with the keys and values that follow type and event_id, in the order of the recordings. The
// faults that are due at it wait for settle, so that the state does not change while it is being sent.
func (c *conn) emit(event string, members ...any) {
	frame, err := append(object{"type", event, "event_id", "event_" + c.ids.Base62(21)}, members...).Encode(false)
	if err != nil {
		// Every value can be encoded; a client's raw JSON was parsed before.
		c.log.Error("event not sent", "event", event, "error", err)
		return
	}
	c.due = append(c.due, c.w.Send(event, c.turn, frame)...)
}

func (c *conn) emitItem(event string, previous *string, it *item) {
	c.emit("conversation.item."+event, "previous_item_id", previous, "item", it)
}

func (c *conn) emitAudio(at object, data []byte) {
	const event = "response.output_audio.delta"
	head, err := append(object{"type", event, "event_id", "event_" + c.ids.Base62(21)}, at...).Encode(false)
	if err != nil { // strings and numbers only
		return
	}
	frame := make([]byte, 0, len(head)+len(data)*4/3+32)
	frame = append(frame, head[:len(head)-1]...)
	frame = append(frame, `,"delta":"`...)
	frame = audio.AppendBase64(frame, data)
	frame = append(frame, `"}`...)
	c.due = append(c.due, c.w.Send(event, c.turn, frame)...)
}

// errorObject has its keys in the order of the recordings.
type errorObject struct {
	Type    string `json:"type"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Param   any    `json:"param"`
	EventID any    `json:"event_id"`
}

func (c *conn) fail(err *rest.Error, id string) {
	c.stats.Errors.Add(1)
	c.emit("error", "error", errorObject{err.Type, err.Code, err.Message, rest.Nullable(err.Param), rest.Nullable(id)})
}

// obfuscation pads a delta to a multiple of 16 characters, as recorded.
func obfuscation(ids *wire.IDs, delta string) string {
	return ids.Base62(16 - len(delta)%16)
}

// Texts below that appear in recordings and reports are the provider's, word for word;
// those marked (own) are written in its style.

// outOfRange is (own).
func outOfRange(param string, lo, hi, got float64) *rest.Error {
	return rest.Invalid("invalid_value", param, "Invalid value for '%s': expected a value between %g and %g, but got %g instead.",
		param, lo, hi, got)
}

func commitEmpty(ms float64) *rest.Error {
	return rest.Invalid("input_audio_buffer_commit_empty", "",
		"Error committing input audio buffer: buffer too small. Expected at least 100ms of audio, but buffer only has %.2fms of audio.", ms)
}

func activeResponse(id string) *rest.Error {
	return rest.Invalid("conversation_already_has_active_response", "",
		"Conversation already has an active response in progress: %s. Wait until the response is finished before creating a new one.", id)
}

func transcriptionUpdate() *rest.Error {
	return rest.Invalid("invalid_value", "session.type",
		"Passing a transcription session update event to a realtime session is not allowed.")
}

const expiredText = "Your session hit the maximum duration of 60 minutes."

// noSuchItem is (own).
func noSuchItem(param, id string) *rest.Error {
	return rest.Invalid("item_not_found", param, "Item with item_id '%s' not found in the conversation.", id)
}

type refusal struct {
	closeCode int
	err       *rest.Error
}

func (r *refusal) reason() string { return r.err.Type + "." + r.err.Code }

func refuseKey(key string) *refusal {
	if class := wire.ClassifyKey(key); class == wire.KeyInvalid || class == wire.KeyExpired {
		return &refusal{3000, rest.OpenAIKey(key)}
	}
	return nil
}

func refuseModel(name string) *refusal {
	switch {
	case name == "":
		return &refusal{4000, rest.Invalid("missing_model", "model", "Missing required parameter: 'model'.")}
	case strings.HasPrefix(name, "gpt-live-"):
		return &refusal{4000, rest.Invalid("invalid_model", "model", "Model \"%s\" is not supported in realtime mode.", name)}
	}
	return &refusal{4000, rest.Invalid("model_not_found", "model", "The model `%s` does not exist or you do not have access to it.", name)}
}
