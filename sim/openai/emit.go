package openai

import (
	"strings"

	"voicegw/internal/openaiwire"
	"voicegw/sim/wire"
)

type object = openaiwire.Object

func (c *conn) tell(name string, values ...any) { c.emit(openaiwire.Event(name, values...)) }

// emit sends events. The faults that are due at them wait for settle, so that the state does not change while they are
// being sent.
func (c *conn) emit(events ...openaiwire.ServerEvent) {
	for _, e := range events {
		if c.azure && strings.HasPrefix(e.Type, "response.content_part.") { // Azure repeats the part
			e = e.With("content", e.Members[len(e.Members)-1])
		}
		if name, ok := c.model.names[e.Type]; ok {
			e.Type = name
		}
		if e.Type == "" {
			continue
		}
		frame, err := e.Encode(c.ids.IDs)
		if err != nil {
			// Every value can be encoded; a client's raw JSON was parsed before.
			c.log.Error("event not sent", "event", e.Type, "error", err)
			continue
		}
		c.sent(e.Type, frame)
	}
}

func (c *conn) sent(event string, frame []byte) {
	c.later.Sent(c.w.Send(event, c.turn, frame))
}

// emitWords sends a delta, padded to a multiple of 16 characters, as recorded.
func (c *conn) emitWords(e openaiwire.ServerEvent, delta string) {
	c.emit(e.With("obfuscation", c.ids.Base62(16-len(delta)%16)))
}

func (c *conn) fail(err *openaiwire.Error, id string) {
	c.stats.Errors.Add(1)
	c.emit(err.Failure(id))
	if c.refused++; c.model.strict && c.refused >= maxRefusals {
		c.w.Close(1008, "too many errors")
	}
}

const expiredText = "Your session hit the maximum duration of 60 minutes."

type refusal struct {
	closeCode int
	err       *openaiwire.Error
}

func (r *refusal) reason() string { return r.err.Type + "." + r.err.Code }

func refuseKey(key string) *refusal {
	if class := wire.ClassifyKey(key); class == wire.KeyInvalid || class == wire.KeyExpired {
		return &refusal{3000, wire.OpenAIKey(key)}
	}
	return nil
}

func refuseModel(name string) *refusal {
	switch {
	case name == "":
		return &refusal{4000, openaiwire.Invalid("missing_model", "model", "Missing required parameter: 'model'.")}
	case strings.HasPrefix(name, "gpt-live-"):
		return &refusal{4000, openaiwire.Invalid("invalid_model", "model", "Model \"%s\" is not supported in realtime mode.", name)}
	}
	return &refusal{4000, openaiwire.Invalid("model_not_found", "model",
		"The model `%s` does not exist or you do not have access to it.", name)}
}
