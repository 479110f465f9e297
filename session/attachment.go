package session

import "time"

// attachment is one client's connection of a session. A session has at most one at a time, which
// its field attached names; each has a higher gen than the one before. What an older attachment
// still says, and what its connection still reports, is dropped under the session's locks, so that
// no connection speaks for the one after it.
type attachment struct {
	// Fixed after attach.
	s    *session
	gen  int // counts the session's attachments from 1
	conn Client

	// Owned by hear.
	over     bool
	caughtUp time.Time // the audio read now arrived after it; zero if not known
}

// attach makes c the session's client. Its connection is not heard before start is called.
func (s *session) attach(c Client) *attachment {
	s.inbound.Lock()
	defer s.inbound.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attachments++
	a := &attachment{s: s, gen: s.attachments, conn: c}
	s.attached.Store(a)
	return a
}

// current reports whether a is the session's attachment. The answer holds for as long as the
// caller holds inbound or mu.
func (a *attachment) current() bool { return a.s.attached.Load() == a }

// start lets the connection call hear from now on. The caller must have counted it in readers.
func (a *attachment) start() { a.conn.Notify(a.hear) }

// hear is the pump from the client to the uplink; the client's connection calls it.
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
			s.clientFrame(f, a.caughtUp)
		}
	}
}

// lost ends the session because its client's connection cannot be used any more; an older
// attachment ends nothing.
func (a *attachment) lost(cause *Cause) {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	if a.current() {
		a.s.end(cause)
	}
}
