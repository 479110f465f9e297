package openai

import (
	"voicegw/audio"
	"voicegw/sim/rest"
	"voicegw/sim/wire"
)

type object = wire.Object

// emit sends an event with the keys and values that follow type and event_id, in the order of the recordings. The
// faults that are due at it wait for settle, so that the state does not change while it is being sent.
func (c *conn) emit(event string, members ...any) {
	frame, err := append(object{"type", event, "event_id", c.eventID()}, members...).Encode(false)
	if err != nil {
		// Every value can be encoded; a client's raw JSON was parsed before.
		c.log.Error("event not sent", "event", event, "error", err)
		return
	}
	c.due = append(c.due, c.w.Send(event, c.turn, frame)...)
}

func (c *conn) eventID() string { return "event_" + c.ids.Base62(21) }

func (c *conn) emitItem(event string, previous *string, it *item) {
	c.emit("conversation.item."+event, "previous_item_id", previous, "item", it)
}

func (c *conn) emitAudio(at object, data []byte) {
	const event = "response.output_audio.delta"
	head, err := append(object{"type", event, "event_id", c.eventID()}, at...).Encode(false)
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

// fail sends an error event. id is the client event that caused it; empty if no event did.
func (c *conn) fail(err *rest.Error, id string) {
	c.stats.Errors.Add(1)
	c.emit("error", "error", errorObject{err.Type, err.Code, err.Message, rest.Nullable(err.Param), rest.Nullable(id)})
}

// obfuscation pads a delta to a multiple of 16 characters, as recorded.
func (c *conn) obfuscation(delta string) string {
	return c.ids.Base62(16 - len(delta)%16)
}
