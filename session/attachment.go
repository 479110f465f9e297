package session

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"voicegw/orchestrator"
	"voicegw/store"
)

// clientSide is the session's state that concerns its client and outlives each connection.
type clientSide struct {
	// attached is nil while the client is absent. It is stored under mu, and a new one also under inbound.
	attached atomic.Pointer[attachment]
	leaving  sync.WaitGroup // goroutines that close or greet a connection; added to under mu until the end
	behind   atomic.Bool    // the client's queue is over its limit; lagged acts on it
	count    int32          // the attachments so far; guarded by mu
	errors   errorGate
	control  *rate.Limiter // of the client's messages; nil before the first; guarded by inbound

	// Guarded by mu.
	tokens tokens
	state  clientState
}

// attachment is one connection of a session's client. A session has at most one at a time, which its field attached
// names; each has a higher gen than the previous one. The session's locks drop all that an older attachment still
// delivers.
type attachment struct {
	// Fixed after attach.
	s    *session
	gen  int // counts the session's attachments from 1
	conn Client

	// Owned by hear.
	over     bool
	heard    bool      // the client has sent a frame
	caughtUp time.Time // the current audio arrived after it; zero if unknown
}

// The connection is not read before start is called. The caller must hold inbound and mu.
func (s *session) attach(c Client) *attachment {
	s.client.count++
	a := &attachment{s: s, gen: int(s.client.count), conn: c}
	s.client.attached.Store(a)
	s.readers.Add(1)
	return a
}

// current is final if false; true is valid while the caller holds mu.
func (a *attachment) current() bool { return a.s.client.attachment() == a }

func (a *attachment) start() { a.conn.Notify(a.hear) }

// hear reads the client's frames; the client's connection calls it.
func (a *attachment) hear() {
	s := a.s
	s.inbound.Lock()
	defer s.inbound.Unlock()
	a.caughtUp = a.conn.CaughtUp()
	for !a.over {
		f, ok, err := a.conn.TryRead()
		switch {
		case err != nil:
			a.over = true
			a.lost(gone(err))
			s.readers.Done()
		case !ok:
			return
		case a.current():
			if !a.heard && s.down.Speaks() {
				a.heard = true
				a.confirmToken()
			}
			a.frame(f, a.caughtUp)
		}
	}
}

// lost ends the session if the cause does not allow it to continue without a client. It ignores an older attachment.
func (a *attachment) lost(cause *Cause) {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	a.lostNow(cause)
}

// lostNow is lost for a caller that holds mu.
func (a *attachment) lostNow(cause *Cause) {
	s := a.s
	switch {
	case !a.current() || s.isOver():
	case s.opts.Policy.ResumeGrace > 0 && (cause == causeGone || cause == causeLeft || cause == causeSlow):
		a.detach(cause)
		s.stepSent(time.Now())
		s.step(orchestrator.ClientLost{}, time.Now())
		s.shown.state(s)
		s.setClock()
	default:
		s.end(cause)
	}
}

// cannotWrite is lost after a failed write. At the session's end, nothing more is written.
func (a *attachment) cannotWrite(err error) {
	if a.s.isOver() || a.s.opts.Policy.ResumeGrace <= 0 {
		a.s.down.Lose()
	}
	a.lost(gone(err))
}

// detach removes the session's attachment and closes its connection. The caller must hold mu.
func (a *attachment) detach(cause *Cause) {
	s := a.s
	s.client.attached.Store(nil)
	s.down.Detach()
	s.admission.vacate()
	s.place.Update(func(r *store.SessionRecord) { r.State = store.SessionDetached })
	if cause == causeSlow {
		s.event(Slow{})
	}
	s.log().Info("client lost", "reason", cause.Reason, "attachment", a.gen)
	s.client.leaving.Go(func() { dismiss(a.conn, cause) })
}

func dismiss(c Client, cause *Cause) {
	abort := time.AfterFunc(closeTimeout, c.Abort)
	defer abort.Stop()
	if cause != causeGone && cause != causeLeft {
		// The client may be gone.
		_ = c.Close(cause.Close, cause.Reason)
	}
	c.Abort()
}

// lagged, called after a step, disconnects a client that has fallen too far behind. The caller must hold mu.
func (c *clientSide) lagged() {
	if !c.behind.Swap(false) {
		return
	}
	if a := c.attachment(); a != nil {
		a.lostNow(causeSlow)
	}
}

// attachment returns the session's attachment; nil while the client is absent.
func (c *clientSide) attachment() *attachment { return c.attached.Load() }

func (a *attachment) confirmToken() {
	s := a.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client.tokens.received() {
		s.place.Update(s.client.tokens.writeTo)
	}
}
