package session

import (
	"context"
	"errors"
	"slices"
	"time"

	"voicegw/orchestrator"
	"voicegw/store"
)

// giveTime bounds how long a session waits for the store when it is given up.
const giveTime = 5 * time.Second

// giveAuditWait is how long a session that is given up waits for the audit log. Its user hears nothing meanwhile.
const giveAuditWait = time.Second

// mostWaiting bounds the inputs that wait while a session is given up. Beyond it, what the client
// does is dropped; results of calls never are, and a session has few.
const maxWaiting = 1024

// giving is a session on its way out of this process: its connection to the model is closed, and
// until the store has it no step is taken, because the checkpoint would not know of it. It is
// guarded by the session's mu.
type handover struct {
	handle    string               // the provider's, to resume the conversation with; empty without one
	waiting   []orchestrator.Input // in the order in which they came
	dropped   int
	voiceLost bool // the lease of the conversation was lost meanwhile
	// away means that the session leaves because no model can be reached from here.
	away bool

	// over is closed when it is known whether the session has left.
	over chan struct{}
	left bool // owned by give until over is closed
}

// hold keeps an input until it is known whether the session stays.
func (g *handover) keep(in orchestrator.Input) {
	switch in.(type) {
	case orchestrator.Tick:
		return // the session's clock is set again afterwards
	case orchestrator.OfCall:
	default:
		if len(g.waiting) >= maxWaiting {
			g.dropped++
			return
		}
	}
	g.waiting = append(g.waiting, in)
}

// askToMove asks the session to leave this process, by that time in any case. A session that no
// other process could go on with stays, and so does one that this process may have lost.
func (s *session) askToMove(by time.Time) {
	if movable(s.place) && s.place.Sure() {
		s.dispatch(orchestrator.Move{By: by})
	}
}

// moveOut begins to give the session up: no more steps until it is known whether it has left. The
// caller must hold mu.
func (s *session) beginHandover(a orchestrator.Moving) {
	if s.isOver() {
		return // it has left, or ends
	}
	s.model.handover = &handover{handle: a.Handle, over: make(chan struct{})}
	if s.model.relink == nil {
		s.switchLink(orchestrator.SwitchLink{Reason: orchestrator.LinkMoving, Handle: a.Handle})
	} else {
		s.model.relink.stop() // it is on the way to another connection, and gives the session up instead
	}
}

// give gives the session up, and reports whether it has left: also if another process has it already, which has
// read that it was given up before the store has told this one. Otherwise it goes on here.
func (g *handover) run(s *session) (left bool) {
	defer close(g.over)
	// This process may die before the audit log has written what it still queues; the checkpoint holds those records.
	s.up.wait()
	s.waitForAudit(giveAuditWait)
	s.mu.Lock()
	c, err := s.checkpoint(g.handle)
	s.mu.Unlock()
	// Not the session's context: a session that ends meanwhile has been given up or has not.
	ctx, cancel := context.WithTimeout(context.Background(), giveTime)
	defer cancel()
	if err == nil {
		s.saver.Flush(ctx, s.part())
		err = s.place.Give(ctx, c)
	}
	if err == nil || errors.Is(err, store.ErrFenced) {
		g.left = true
		if g.end(s) {
			s.place.End()
		}
		return true
	}
	s.log().Warn("the session could not be given to another gateway and goes on here", "error", err)
	s.resumeSteps()
	return false
}

// end ends a session that was given up. It reports whether the session is over for good: its client
// has hung up meanwhile, or something else has ended it.
func (g *handover) end(s *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	hungUp := func(in orchestrator.Input) bool {
		_, is := in.(orchestrator.HungUp)
		return is
	}
	if slices.ContainsFunc(g.waiting, hungUp) {
		s.end(causeHungUp)
	}
	if g.away {
		s.end(causeUnreached)
	}
	s.end(causeMoving)
	cause := s.cause()
	return !cause.continues() && cause != causeShutdown
}

// whyEnded returns why the session is over. One that ends with its process while it is given up has
// moved if it was taken.
func (s *session) finalCause() *Cause {
	cause := s.cause()
	g := locked(s, s.model.currentHandover)
	if g == nil {
		return cause
	}
	<-g.over
	if g.left && cause == causeShutdown {
		return causeMoving
	}
	return cause
}

// goOn takes the steps that have waited while the session was given up.
func (s *session) resumeSteps() {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.model.handover
	if g == nil {
		return
	}
	s.model.handover = nil
	if g.dropped > 0 {
		s.log().Warn("the client did too much while the session was given up", "dropped", g.dropped)
	}
	if g.voiceLost {
		s.end(causeVoiceLost)
	}
	for _, in := range g.waiting {
		s.step(in, time.Now())
	}
	s.shown.state(s)
	s.client.lagged()
	s.setClock()
}

// voiceLost ends a session that may no longer be the only one of its conversation. While the session
// is being given up, that is expected: the node that takes it holds the conversation.
func (s *session) voiceLost() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.model.handover != nil {
		s.model.handover.voiceLost = true
		return
	}
	s.end(causeVoiceLost)
}

// moved reports whether the session is over because another process goes on with it, or may.
func (c *Cause) continues() bool { return c == causeMoving || c == causeTaken || c == causeUnreached }

// whyMoves returns what a client is told of why its session leaves this process.
func (c *Cause) movingReason() string {
	switch c {
	case causeTaken:
		return c.Reason
	case causeUnreached:
		return causeUnavailable.Reason
	}
	return "draining"
}
