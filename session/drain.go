package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"voicegw/orchestrator"
	"voicegw/orchestrator/execute"
	"voicegw/store"
)

// DrainRemainder is how long Drain waits for ended sessions: last messages take 2 s, tools 5 s, a handback 15 s.
const DrainRemainder = 20 * time.Second

// Phase is the stage of a session's life.
type Phase string

// The phases, in order.
const (
	PhaseAdmitted Phase = "admitted" // the client's connection is being upgraded
	PhaseOpening  Phase = "opening"  // waiting for session.start, or for the model's connection
	PhaseCarried  Phase = "carried"  // a client whose session another node runs
	PhaseRunning  Phase = "running"
	PhaseEnding   Phase = "ending"   // sending the last messages, and closing both connections
	PhaseSettling Phase = "settling" // waiting for its tools and its handback
)

func (a *Admission) setPhase(phase Phase, id string) {
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	a.id, a.phase, a.since = id, phase, time.Now()
}

// Drain refuses new sessions and hands the running ones over to other nodes or the next process, each at a quiet
// moment, spread over the time until ctx is done. Sessions that cannot be handed over are then ended with
// "server_shutdown". Clients may resume during the drain. Drain returns when no session and no tool is left, at the
// latest DrainRemainder after ending them; the error is then that of Left. A second call with a shorter ctx shortens
// the wait.
//
// others are the drains of other users of the Executor: they run at the same time and must return soon after ctx is
// done. The Executor is closed after them.
func (m *Manager) Drain(ctx context.Context, others ...func(context.Context)) error {
	m.Refuse()
	var rest sync.WaitGroup
	for _, drain := range others {
		rest.Go(func() { drain(ctx) })
	}
	m.moveAll(ctx, m.idle)
	select {
	case <-m.idle:
	case <-ctx.Done():
	}
	m.endAll(causeShutdown)
	rest.Wait()
	done := make(chan struct{}) // closed when nothing is left; maybe unread
	go func() {
		defer close(done)
		m.options().Executor.Close() // gives unstoppable tools a little time
		<-m.empty
	}()
	late := time.NewTimer(DrainRemainder)
	defer late.Stop()
	select {
	case <-done:
		return nil
	case <-late.C:
		return m.Left()
	}
}

// Refuse makes the gateway refuse new sessions, as Drain does first.
func (m *Manager) Refuse() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.draining {
		m.draining = true
		m.signalDrained()
	}
}

// Close ends all sessions at once and waits for them, as Drain does. It logs the rest.
func (m *Manager) Close() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := m.Drain(ctx); err != nil {
		m.options().Logger.Error("the sessions were closed", "error", err)
	}
}

// LeftSession is a session that has not ended.
type LeftSession struct {
	ID    string // empty for a session that is only admitted
	Phase Phase
	Since time.Time // when the phase began
}

// LeftError lists sessions and calls that have not ended, at least one.
type LeftError struct {
	Sessions []LeftSession     // in the order in which their phases began
	Tools    []execute.Running // calls, including those of the text agent
}

// Error names a few of them.
func (e *LeftError) Error() string {
	var each []string
	for _, s := range e.Sessions {
		each = append(each, fmt.Sprintf("session %s is %s", cmp.Or(s.ID, "without an id"), s.Phase))
	}
	for _, r := range e.Tools {
		each = append(each, fmt.Sprintf("%s of session %s runs", cmp.Or(r.Tool, "an answer to a question"), r.Session))
	}
	const most = 10
	if more := len(each) - most; more > 0 {
		each = append(each[:most], fmt.Sprintf("and %d more", more))
	}
	return "not everything has ended: " + strings.Join(each, "; ")
}

// Left returns a *LeftError about the unfinished sessions; nil if all have ended.
func (m *Manager) Left() error {
	left := &LeftError{Tools: m.options().Executor.Running()}
	m.mu.Lock()
	for a := range m.admitted {
		left.Sessions = append(left.Sessions, LeftSession{ID: a.id, Phase: a.phase, Since: a.since})
	}
	m.mu.Unlock()
	if len(left.Sessions)+len(left.Tools) == 0 {
		return nil
	}
	slices.SortFunc(left.Sessions, func(a, b LeftSession) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.ID, b.ID))
	})
	return left
}

// When sessions leave a draining process, as parts of the drain's time.
const (
	moveWithin = 2  // the last session is asked to move within half of it
	moveLate   = 10 // every session leaves a tenth before its end
)

// moveAgain is when a session is asked again, in case the store failed; carriedStay how long a carried client may stay.
const (
	moveAgain   = 3 * time.Second
	carriedStay = 5 * time.Second
)

// drainPlan spreads the departures over the drain, because the other nodes must take all of them.
type drainPlan struct {
	m       *Manager
	began   time.Time
	whole   time.Duration
	by      time.Time // when every session leaves
	first   bool      // no plan was made yet
	due     map[*session]time.Time
	carried map[*Admission]time.Time
}

// moveAll moves sessions until idle is closed or ctx is done. Without a deadline nothing moves.
func (m *Manager) moveAll(ctx context.Context, idle <-chan struct{}) {
	until, ok := ctx.Deadline()
	whole := time.Until(until)
	if !ok || whole <= 0 || m.options().Cluster == nil {
		return
	}
	now := time.Now()
	p := &drainPlan{m: m, began: now, whole: whole, by: until.Add(-whole / moveLate), first: true,
		due: map[*session]time.Time{}, carried: map[*Admission]time.Time{}}
	every := time.NewTicker(min(max(whole/200, 10*time.Millisecond), 200*time.Millisecond))
	defer every.Stop()
	for {
		p.plan(time.Now())
		p.move(time.Now())
		select {
		case <-idle:
			return
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

// plan gives new sessions and carried clients a time. The first ones are spread; later ones leave at once.
func (p *drainPlan) plan(now time.Time) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	var fresh []*session
	for _, s := range p.m.roster.all() {
		if _, planned := p.due[s]; !planned {
			fresh = append(fresh, s)
		}
	}
	slices.SortFunc(fresh, func(a, b *session) int {
		return cmp.Or(a.startedAt.Compare(b.startedAt), cmp.Compare(a.id, b.id))
	})
	for i, s := range fresh {
		p.due[s] = p.slot(now, i, len(fresh), 0)
	}
	n := 0
	for a := range p.m.admitted {
		if _, planned := p.carried[a]; a.phase == PhaseCarried && !planned {
			p.carried[a] = p.slot(now, n, p.m.carrying, carriedStay)
			n++
		}
	}
	p.first = false
	for s := range p.due {
		if p.m.roster.get(s.id) != s {
			delete(p.due, s)
		}
	}
	for a := range p.carried {
		if _, there := p.m.admitted[a]; !there {
			delete(p.carried, a)
		}
	}
}

func (p *drainPlan) slot(now time.Time, i, n int, later time.Duration) time.Time {
	if !p.first {
		return now.Add(later)
	}
	return p.began.Add(p.whole / moveWithin * time.Duration(i) / time.Duration(max(n, 1)))
}

func (p *drainPlan) move(now time.Time) {
	for s, at := range p.due {
		if at.After(now) && s.client.attachment() != nil {
			continue
		}
		p.due[s] = now.Add(moveAgain)
		s.askToMove(p.by)
	}
	for a, at := range p.carried {
		if !at.After(now) {
			a.evict(causeShutdown)
		}
	}
}

const giveTime = 5 * time.Second

// giveAuditWait bounds the wait for the audit log during a handover, in which the user hears nothing.
const giveAuditWait = time.Second

// maxWaiting bounds the client's inputs that wait during a handover; results of calls are never dropped.
const maxWaiting = 1024

// handover gives the session to another process. No step is taken until the store has the checkpoint. mu guards it.
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

// A session stays if no other process could continue it, its client cannot follow, or this process may have lost it.
func (s *session) askToMove(by time.Time) {
	if a := s.client.attachment(); a != nil {
		// Clients of other protocols may be unable to follow.
		if c, is := a.conn.(interface{ Follows() bool }); is && !c.Follows() {
			return
		}
	}
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

// run reports whether the session left, also if another process took it before the store answered.
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

// end reports whether the session is also over for all processes, because its client hung up or another cause ended it.
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

// During a handover the loss is expected: the next node holds the conversation.
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
