package session

import (
	"context"
	"errors"
	"slices"
	"time"

	"voicegw/orchestrator"
	"voicegw/store"
)

// giveTime bounds the wait for the store during a handover.
const giveTime = 5 * time.Second

// giveAuditWait bounds the wait for the audit log during a handover, in which the user hears nothing.
const giveAuditWait = time.Second

// maxWaiting bounds the inputs that wait during a handover. The client's excess inputs are dropped; results of calls
// are few and never dropped.
const maxWaiting = 1024

// handover gives the session to another process: the connection to the model is closed, and no step is taken until the
// store has the checkpoint, because it would not contain the step. The session's mu guards it.
type handover struct {
	handle    string               // the provider's resume handle; empty without one
	waiting   []orchestrator.Input // in the order of arrival
	dropped   int
	voiceLost bool // the conversation's lease was lost during the handover
	// away: no model can be reached from here.
	away bool

	// over is closed when the outcome is known.
	over chan struct{}
	left bool // owned by run until over is closed
}

// keep holds an input until the outcome is known.
func (g *handover) keep(in orchestrator.Input) {
	switch in.(type) {
	case orchestrator.Tick:
		return // the clock is set again afterwards
	case orchestrator.OfCall:
	default:
		if len(g.waiting) >= maxWaiting {
			g.dropped++
			return
		}
	}
	g.waiting = append(g.waiting, in)
}

// askToMove asks the session to leave this process, at the latest at by. A session stays if no other process could
// continue it or this process may have lost it.
func (s *session) askToMove(by time.Time) {
	if movable(s.place) && s.place.Sure() {
		s.dispatch(orchestrator.Move{By: by})
	}
}

// beginHandover starts a handover: no steps are taken until its outcome is known. The caller must hold mu.
func (s *session) beginHandover(a orchestrator.Moving) {
	if s.isOver() {
		return
	}
	s.model.handover = &handover{handle: a.Handle, over: make(chan struct{})}
	if s.model.relink == nil {
		s.switchLink(orchestrator.SwitchLink{Reason: orchestrator.LinkMoving, Handle: a.Handle})
	} else {
		s.model.relink.stop() // it is connecting; the handover comes first
	}
}

// run hands the session over and reports whether it left. It has also left if another process took it before the store
// answered. Otherwise it continues here.
func (g *handover) run(s *session) (left bool) {
	defer close(g.over)
	// If this process dies before the audit log has written its queue, the checkpoint has those records.
	s.up.wait()
	s.waitForAudit(giveAuditWait)
	s.mu.Lock()
	c, err := s.checkpoint(g.handle)
	s.mu.Unlock()
	// Not the session's context: the store's answer counts even if the session ends.
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
	s.log().Warn("the handover failed; the session continues here", "error", err)
	s.resumeSteps()
	return false
}

// end ends a session that was handed over. It reports whether the session is also over for all processes: its client
// hung up during the handover, or another cause ended it.
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

// finalCause returns why the session is over. One that ends with its process during a successful handover has moved.
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

func (s *session) resumeSteps() {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.model.handover
	if g == nil {
		return
	}
	s.model.handover = nil
	if g.dropped > 0 {
		s.log().Warn("inputs were dropped during the handover", "dropped", g.dropped)
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

// voiceLost ends a session that may not be the only one of its conversation. During a handover the loss is expected:
// the next node holds the conversation.
func (s *session) voiceLost() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.model.handover != nil {
		s.model.handover.voiceLost = true
		return
	}
	s.end(causeVoiceLost)
}

func (c *Cause) continues() bool { return c == causeMoving || c == causeTaken || c == causeUnreached }

func (c *Cause) movingReason() string {
	switch c {
	case causeTaken:
		return c.Reason
	case causeUnreached:
		return causeUnavailable.Reason
	}
	return "draining"
}
