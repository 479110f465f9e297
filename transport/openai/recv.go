package openai

import (
	"context"
	"encoding/json"
	"errors"

	"voicegw/transport"
)

// maxUnknownLogged bounds the log lines about event types that are not known.
const maxUnknownLogged = 32

// Recv implements transport.Conn.
func (c *conn) Recv(ctx context.Context) (transport.Event, error) {
	if ev := c.nextPending(); ev != nil {
		return ev, nil
	}
	stop := c.watchUse(ctx, "recv")
	ev, err := c.receive()
	stop()
	if err != nil {
		c.end(err)
		return nil, c.ended()
	}
	return ev, nil
}

// receive reads frames until one of them gives an event.
func (c *conn) receive() (transport.Event, *transport.Error) {
	for {
		c.signs.Add(1)
		frame, err := c.readFrame()
		c.signs.Add(1)
		if err != nil {
			return nil, c.readError("recv", err)
		}
		ev, s, v := c.fastAudio(frame)
		if v == scanAudio {
			if ev == nil {
				continue
			}
			return ev, nil
		}
		if final := c.dispatch(frame, &s, v); final != nil {
			return nil, final
		}
		if ev := c.nextPending(); ev != nil {
			return ev, nil
		}
	}
}

// dispatch gives the frame to what its type's row says.
func (c *conn) dispatch(frame []byte, s *scanned, v verdict) *transport.Error {
	var row eventRow
	var known bool
	if v == scanOther {
		row, known = eventRows[string(s.eventType)]
	} else {
		row, known = eventRows[c.slowType(frame)]
	}
	if row.handle == nil {
		c.skip(frame, known)
		return nil
	}
	err := row.handle(c, frame)
	if err == nil {
		return nil
	}
	var final *transport.Error
	if errors.As(err, &final) {
		return final
	}
	c.malformed.Add(1)
	c.log.Debug("event_malformed", "provider", c.info.Provider, "bytes", len(frame))
	return nil
}

// skip counts a frame that nothing is done about.
func (c *conn) skip(frame []byte, known bool) {
	if known {
		if !json.Valid(frame) {
			c.malformed.Add(1)
		}
		return
	}
	eventType := c.slowType(frame)
	if eventType == "" {
		c.malformed.Add(1)
		return
	}
	c.unknowns.Add(1)
	c.logUnknown(eventType)
}

// logUnknown says once that a type is not known.
func (c *conn) logUnknown(eventType string) {
	if _, again := c.unknown[eventType]; again || len(c.unknown) >= maxUnknownLogged {
		return
	}
	if c.unknown == nil {
		c.unknown = make(map[string]struct{})
	}
	c.unknown[eventType] = struct{}{}
	c.log.Warn("event_unknown", "provider", c.info.Provider, "type", clip(eventType, 80))
}

// typeOf returns the type of a frame; empty if it has none.
func (c *conn) typeOf(frame []byte) string {
	if s, v := scanFrame(frame); v != scanUnsure {
		return string(s.eventType)
	}
	return c.slowType(frame)
}

// slowType is typeOf by encoding/json; empty for a frame that it refuses.
func (c *conn) slowType(frame []byte) string {
	var ev struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(frame, &ev) != nil {
		return ""
	}
	return ev.Type
}

// give queues an event for Recv. One frame gives few.
func (c *conn) give(ev transport.Event) { c.pending = append(c.pending, ev) }

// nextPending returns the next queued event, or nil.
func (c *conn) nextPending() transport.Event {
	if c.given == len(c.pending) {
		if c.given > 0 {
			clear(c.pending)
			c.pending, c.given = c.pending[:0], 0
		}
		return nil
	}
	ev := c.pending[c.given]
	c.given++
	return ev
}

// release writes a response.create that the sequencer let out while Recv had the
// floor. A failure is not returned: the same socket fails the next read, which also
// knows what the provider said before it closed.
func (c *conn) release(send *create) {
	if err := c.writeCreate(send); err != nil {
		c.log.Debug("response_create_lost", "provider", c.info.Provider, "error", err)
	}
}
