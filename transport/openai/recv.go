package openai

import (
	"bytes"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

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

// aside writes on a separate goroutine, which Close waits for: a turn must not wait for the network.
func (c *conn) aside(frame func() ([]byte, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == nil {
		c.writeAside(frame)
	}
}

// The caller must hold mu. A failure is not returned: the next read fails too, and knows the provider's last words.
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

// keepalive sends pings and ends the connection if nothing arrives for pongTimeout. Before Notify no goroutine reads,
// so silence means nothing. It is a timer rather than a goroutine, because there are many silent connections.
type keepalive struct {
	c        *conn        // never changes after start
	signs    atomic.Int64 // frames and pongs
	notified atomic.Bool  // Notify was called: incoming frames are read

	mu    sync.Mutex // guards the following fields; held while a turn runs
	timer *time.Timer
	heard int64     // signs at its last change
	at    time.Time // time of that change
}

func (k *keepalive) start(c *conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.c = c
	k.heard, k.at = k.signs.Load(), time.Now()
	k.timer = time.AfterFunc(pingInterval, k.turn)
}

// stop waits for a running turn. The connection must have ended, or more turns follow.
func (k *keepalive) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.timer != nil {
		k.timer.Stop()
	}
}

// turn pings, or ends a silent connection. A late pong counts: pongs 8 to 30 s late were measured with other providers.
func (k *keepalive) turn() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.c.ended() != nil {
		return
	}
	signs := k.signs.Load()
	if signs != k.heard || !k.notified.Load() {
		k.heard, k.at = signs, time.Now()
	}
	if time.Since(k.at) >= pongTimeout {
		k.c.end(k.c.t.fault("recv", transport.KindRetry, "keepalive", errSilentPeer))
		return
	}
	// signs shows whether an answer comes; the result of this ping does not matter.
	_ = k.c.ws.Ping()
	k.timer.Reset(pingInterval)
}
