package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"voicegw/orchestrator/execute"
)

// DrainRemainder is how long Drain waits for sessions that it has ended. They need less: the last messages to a client
// 2 s, tools the Executor's grace of 5 s, a handback 15 s.
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
	m.mu.Lock()
	if !m.draining {
		m.draining = true
		m.signalDrained()
	}
	m.mu.Unlock()
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

// Left returns a *LeftError about what has not ended; nil if everything has.
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
