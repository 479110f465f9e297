package openai

import (
	"bytes"
	"context"
	"encoding/json"

	"voicegw/internal/nonblock"
	"voicegw/transport"
)

// maxEvents bounds what one frame may give: it is dealt with at one go.
const maxEvents = 256

// responsePrefix begins the types of the events of a response.
var responsePrefix = []byte("response.")

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
		if ev, final := c.take(frame); ev != nil || final != nil {
			return ev, final
		}
	}
}

// take returns the first event that a frame gives; nil if it gives none.
func (c *conn) take(frame []byte) (transport.Event, *transport.Error) {
	ev, s, v := c.fastAudio(frame)
	if v == scanAudio {
		return ev, nil
	}
	if final := c.dispatch(frame, &s, v); final != nil {
		return nil, final
	}
	if len(c.pending)-c.given > maxEvents {
		return nil, c.fault("recv", transport.KindRetry, "too_many_events", errCrammed)
	}
	return c.nextPending(), nil
}

// Notify implements transport.Watched.
func (c *conn) Notify(loop *nonblock.Loop, f func()) bool {
	c.notified.Store(true)
	if !c.ws.Notify(loop, f) {
		c.notified.Store(false)
		return false
	}
	c.signs.Add(1) // from now on there is always somebody at the socket
	return true
}

// TryRecv implements transport.Watched.
func (c *conn) TryRecv() (transport.Event, error) {
	for {
		if ev := c.nextPending(); ev != nil {
			return ev, nil
		}
		c.releaseFrame()
		_, frame, ok, err := c.ws.TryRead()
		var final *transport.Error
		var ev transport.Event
		switch {
		case err != nil:
			final = c.readError("recv", err)
		case !ok:
			return nil, nil
		default:
			c.signs.Add(2)
			ev, final = c.take(frame)
		}
		if final != nil {
			c.end(final)
			return nil, c.ended()
		}
		if ev != nil {
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
	if v == scanOther && bytes.HasPrefix(s.eventType, responsePrefix) {
		c.progress.Add(1)
	}
	if row.handle == nil {
		c.skip(frame, known)
		return nil
	}
	return row.handle(c, row.name, frame)
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
// floor; nil is nothing.
func (c *conn) release(send *create) {
	if send != nil {
		c.aside(func() ([]byte, error) { return createFrame(send) })
	}
}

// aside writes a frame while Recv has the floor. A failure is not returned: the same
// socket fails the next read, which also knows what the provider said before it closed.
func (c *conn) aside(frame func() ([]byte, error)) {
	if !c.notified.Load() {
		c.releaseNow(frame)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == nil {
		c.later.Go(func() { c.releaseNow(frame) })
	}
}

func (c *conn) releaseNow(frame func() ([]byte, error)) {
	if err := c.writeFrame(frame()); err != nil {
		c.log.Debug("frame_lost", "provider", c.info.Provider, "error", err)
	}
}
