package execute

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/quota"
	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/registry"
)

// Executor runs the tools of all conversations of a process. It may be used concurrently.
type Executor struct {
	// Fixed after New.
	opts  Options
	rates quota.Windows[rateKey]
	ctx   func() context.Context // ends every tool
	stop  context.CancelCauseFunc
	idle  chan struct{} // closed by leave or Close, once Close was called and nothing runs

	mu      sync.Mutex // guards the following fields
	closed  bool
	running map[*Running]struct{}
}

// Running is an activity that Close waits for.
type Running struct {
	Session string // the conversation that it belongs to
	// Tool is the tool that is called; empty if an answer is being recorded.
	Tool  string
	Since time.Time
}

// errLeaving stops tools that outlast the process.
var errLeaving = errors.New("the gateway is shutting down")

// New returns an Executor. The caller must close it.
func New(opts Options) *Executor {
	ctx, stop := context.WithCancelCause(context.Background())
	return &Executor{opts: opts.withDefaults(), ctx: func() context.Context { return ctx }, stop: stop, idle: make(chan struct{}), running: make(map[*Running]struct{})}
}

// Running returns the activities that are under way, oldest first.
func (e *Executor) Running() []Running {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]Running, 0, len(e.running))
	for r := range e.running {
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b Running) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Session, b.Session), strings.Compare(a.Tool, b.Tool))
	})
	return all
}

// Close waits up to Options.Grace for everything that runs and for what starts meanwhile; then
// it cancels the rest, and everything that starts later. A ledger or a tool that ignores its
// cancelled context blocks Close for ever; a caller that must exit can ask Running what is left.
// Close may be called more than once.
func (e *Executor) Close() {
	e.mu.Lock()
	if !e.closed {
		e.closed = true
		if len(e.running) == 0 {
			close(e.idle)
		}
	}
	e.mu.Unlock()
	cut := time.AfterFunc(e.opts.Grace, func() { e.stop(errLeaving) })
	defer cut.Stop()
	<-e.idle
	e.stop(errLeaving)
}

// enter counts an activity, unless Close has finished waiting. An activity that starts another
// one must leave after that one has entered: an approval that is being recorded during Close
// still leads to the approved call.
func (e *Executor) enter(session, tool string) (leave func(), ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed && len(e.running) == 0 {
		return func() {}, false
	}
	r := &Running{Session: session, Tool: tool, Since: time.Now()}
	e.running[r] = struct{}{}
	return func() { e.leave(r) }, true
}

func (e *Executor) leave(r *Running) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.running, r)
	if e.closed && len(e.running) == 0 {
		close(e.idle)
	}
}

// Conversation is one conversation as its tools see it, and the receiver of its calls' results.
type Conversation struct {
	// Session describes the conversation; Turn and Now are set for each call.
	Session registry.Session
	// Capabilities are passed to each call; see registry.Options.
	Capabilities []any
	// Unkept means that the gateway does not keep the conversation, so nothing can be reported to it later.
	Unkept bool
	// Trace is the span that the calls belong to, in the contexts of their handlers; zero without one.
	Trace protocol.TraceParent
	// Tell sends the client a message of a running call. It may be called concurrently and must not wait.
	// Nil means that there is no client.
	Tell func(protocol.ServerMessage)
	// Blocked is told that a tool has blocked the user, before the client is. Nil means nobody.
	Blocked func(until time.Time)
	// Audit writes a record beside that of a call, and adds what is known of the conversation. It may be
	// called concurrently and must not wait. Nil discards it.
	Audit func(audit.Record)
	// Describe completes Session with what changes while the conversation lasts, at the begin of each call.
	// It may be called concurrently. Nil means that nothing changes.
	Describe func(*registry.Session)
	// Report receives the result of each Run, Ask and Resolve exactly once, and a calls.Nested for each call that
	// a tool wants to make, on goroutines of the Executor.
	Report func(calls.Input)
	// Progress receives what a call says that it is at, twice a second at most. It may be called concurrently, and
	// must not wait. Nil means that nobody but the client is told.
	Progress func(calls.Progressed)
	// Sure reports whether the conversation is still this process's: otherwise no call that writes
	// begins and no question is asked. It must not wait. Nil means that it always is.
	Sure func() bool
	// Remember makes durable what another process must know of the calls that have begun, so that it
	// recognises one that is repeated there, and audits one that it finds unfinished. It is called before
	// each call that writes, and bounded by ctx; after an error the call does not begin. Nil means that no
	// other process can go on with the conversation.
	Remember func(ctx context.Context) error

	over func() bool // whether the conversation is over; nil means that it is not
}

// Runner runs the calls of one conversation, after Begin. Its methods may be called concurrently and do not
// block, except Wait.
type Runner struct {
	// Fixed after Begin.
	e *Executor
	c *Conversation

	agent atomic.Pointer[string] // who speaks now; nil for c.Session.Agent

	wg sync.WaitGroup // the activities of this conversation

	mu      sync.Mutex                   // guards the following fields
	over    bool                         // the conversation is over
	ctx     func() context.Context       // done when it is over; nil before the first activity that needs it
	end     context.CancelFunc           // nil with ctx
	cancels map[string]*running          // nil before the first call
	asked   map[string]chan calls.Permit // by the name of a call that a tool wants to make; nil before the first
}

// As makes another agent the conversation's: calls that begin from now on are told its name.
func (c *Runner) As(agent string) { c.agent.Store(&agent) }

// now describes the conversation as it is now.
func (c *Runner) now() registry.Session {
	s := c.c.Session
	if now := c.agent.Load(); now != nil {
		s.Agent = *now
	}
	return s
}

// running is a running call and the means to stop it.
type running struct {
	cancel      context.CancelCauseFunc
	cancellable bool
}

// The causes for which a call is stopped.
var (
	errCancelled = errors.New("the call was withdrawn")
	errOver      = errors.New("the conversation is over")
)

// Begin returns the Runner of a conversation. The caller must call End.
func (e *Executor) Begin(c Conversation) *Runner {
	r := new(Runner)
	r.Begin(e, c)
	return r
}

// Begin makes a zero Runner that of a conversation, as [Executor.Begin] does.
func (c *Runner) Begin(e *Executor, of Conversation) {
	of.over = c.isOver
	c.e, c.c = e, &of
}

// lasting returns a context that is done when the conversation is over.
func (c *Runner) lasting() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil {
		ctx, end := context.WithCancel(c.e.ctx())
		c.ctx, c.end = func() context.Context { return ctx }, end
		if c.over {
			end()
		}
	}
	return c.ctx()
}

// isOver reports whether nothing may begin any more: the conversation is over, or the Executor is closed.
func (c *Runner) isOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over || c.e.ctx().Err() != nil
}

// Cancel stops a call, if its tool can be stopped.
func (c *Runner) Cancel(call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.cancels[call]; r != nil && r.cancellable {
		r.cancel(errCancelled)
	}
}

// End ends the conversation: calls that can be stopped are stopped, calls that have not begun do
// not begin, and the others finish. A call that a person approved runs in any case.
func (c *Runner) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true // a call that is about to begin checks it
	if c.end != nil {
		c.end()
	}
	for _, r := range c.cancels {
		if r.cancellable {
			r.cancel(errOver)
		}
	}
}

// Wait returns when no activity of the conversation is left.
func (c *Runner) Wait() { c.wg.Wait() }

// begin runs f on a goroutine that Wait and Close wait for. tool may be empty.
func (c *Runner) begin(tool string, f func()) {
	leave, _ := c.e.enter(c.c.Session.ID, tool) // after Close nobody waits for it, but its context is cancelled
	c.wg.Go(func() {
		defer leave()
		f()
	})
}
