package openai

import (
	"bytes"
	"encoding/json"
	"sync/atomic"
	"voicegw/transport"
)

// maxEvents bounds the events of one frame, since they are handled all at once.
const maxEvents = 256

// responsePrefix is the prefix of the types of a response's events.
var responsePrefix = []byte("response.")

// maxUnknownLogged bounds the log lines about unknown event types.
const maxUnknownLogged = 32

// take returns the first event from a frame; nil for a frame without an event.
func (c *conn) take(frame []byte) (transport.Event, *transport.Error) {
	ev, s, v := c.fastAudio(frame)
	if v == scanAudio {
		return ev, nil
	}
	if final := c.dispatch(frame, &s, v); final != nil {
		return nil, final
	}
	if c.events.len() > maxEvents {
		return nil, c.t.fault("recv", transport.KindRetry, "too_many_events", errCrammed)
	}
	return c.events.next(), nil
}

// Notify implements transport.Conn.
func (c *conn) Notify(f func()) {
	c.keepalive.notified.Store(true)
	c.ws.Notify(f)
}

// Recv implements transport.Conn.
func (c *conn) Recv() (transport.Event, error) {
	for {
		if ev := c.events.next(); ev != nil {
			return ev, nil
		}
		c.speech.release()
		_, frame, ok, err := c.ws.TryRead()
		var final *transport.Error
		var ev transport.Event
		switch {
		case err != nil:
			final = c.readError("recv", err)
		case !ok:
			return nil, nil
		default:
			c.keepalive.signs.Add(1)
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

func (c *conn) dispatch(frame []byte, s *scanned, v verdict) *transport.Error {
	var row eventRow
	var known bool
	if v == scanOther {
		row, known = eventRows[string(s.eventType)]
	} else {
		row, known = eventRows[slowType(frame)]
	}
	if v == scanOther && bytes.HasPrefix(s.eventType, responsePrefix) {
		c.progress.Add(1)
	}
	if row.handle == nil {
		c.skip(frame, known)
		return nil
	}
	return row.handle(handler{c}, row.name, frame)
}

func (c *conn) skip(frame []byte, known bool) {
	if known {
		if !json.Valid(frame) {
			c.malformed.Add(1)
		}
		return
	}
	eventType := slowType(frame)
	if eventType == "" {
		c.malformed.Add(1)
		return
	}
	c.unknowns.Add(1)
	c.logUnknown(eventType)
}

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
func typeOf(frame []byte) string {
	if s, v := scanFrame(frame); v != scanUnsure {
		return string(s.eventType)
	}
	return slowType(frame)
}

// slowType is typeOf with encoding/json; empty for a frame that it refuses.
func slowType(frame []byte) string {
	var ev struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(frame, &ev) != nil {
		return ""
	}
	return ev.Type
}

// release sends a response.create that the sequencer returned; it ignores nil.
func (c *conn) release(send *create) {
	if send != nil {
		c.aside(func() ([]byte, error) { return createFrame(send) })
	}
}

// aside writes a frame on a separate goroutine, which Close waits for, because a turn must not
// wait for the network. Nothing is written once the connection has ended.
func (c *conn) aside(frame func() ([]byte, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == nil {
		c.writeAside(frame)
	}
}

// writeAside is aside for a caller that holds mu, on a connection that has not ended. A failure is not returned: the
// next read of the same socket fails too, and also knows the provider's last words before it closed.
func (c *conn) writeAside(frame func() ([]byte, error)) {
	c.later.Go(func() {
		if err := c.writeFrame(frame()); err != nil {
			c.log.Debug("frame_lost", "provider", c.info.Provider, "error", err)
		}
	})
}

// counters count the unusual frames.
type counters struct{ malformed, unknowns, slow atomic.Int64 }

// Stats implements transport.Conn.
func (c *counters) Stats() transport.Stats {
	return transport.Stats{
		UnknownEvents: c.unknowns.Load(), MalformedEvents: c.malformed.Load(), SlowPath: c.slow.Load(),
	}
}

// eventQueue holds the events of a frame until Recv returns them. One frame produces few.
type eventQueue struct {
	pending []transport.Event
	given   int // number of pending that were returned
}

func (q *eventQueue) len() int { return len(q.pending) - q.given }

func (q *eventQueue) add(ev transport.Event) { q.pending = append(q.pending, ev) }

// next returns the next event, or nil.
func (q *eventQueue) next() transport.Event {
	if q.given == len(q.pending) {
		if q.given > 0 {
			clear(q.pending)
			q.pending, q.given = q.pending[:0], 0
		}
		return nil
	}
	ev := q.pending[q.given]
	q.given++
	return ev
}
