package execute

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"voicegw/orchestrator/calls"
	"voicegw/registry"
)

// Executor runs the tools of all conversations of a process. It may be used by any
// number of goroutines.
type Executor struct {
	// Fixed after New.
	opts Options
	ctx  func() context.Context // ends every tool
	stop context.CancelCauseFunc
	idle chan struct{} // closed by enter's leave or Close, when Close was called and nothing runs

	mu      sync.Mutex // guards the following fields
	closed  bool
	running map[*Running]struct{}
}

// Running is something that runs and that Close waits for.
type Running struct {
	Session string // the conversation that it runs for
	// Tool is the tool whose call it is; empty for an answer that is being recorded.
	Tool  string
	Since time.Time
}

// errLeaving ends tools that outlast the process.
var errLeaving = errors.New("the gateway is shutting down")

// New returns an Executor. Close it.
func New(opts Options) *Executor {
	ctx, stop := context.WithCancelCause(context.Background())
	return &Executor{opts: opts.withDefaults(), ctx: func() context.Context { return ctx }, stop: stop, idle: make(chan struct{}), running: make(map[*Running]struct{})}
}

// Running returns what runs, the oldest first.
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

// Close waits for what runs, and for what begins meanwhile, for as long as Options.Grace;
// then it ends the rest, and everything that is begun later. A ledger or a tool that does
// not heed the end of its context holds Close for ever; who must leave asks Running. It may
// be called more than once.
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

// enter counts something that runs, unless Close does not wait for anything any more.
// What begins something else is to leave after it: an approval that is being recorded
// while everything ends still leads to what was approved.
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

// Conversation is one conversation, as its tools see it, and what is told of its calls.
type Conversation struct {
	// Session describes the conversation; Turn and Now are set for each call.
	Session registry.Session
	// Capabilities are what each call brings along, see registry.Options.
	Capabilities []any
	// Report is told what came of each Run, Ask and Resolve, exactly once, from goroutines
	// of the Executor.
	Report func(calls.Input)
}

// Calls runs the calls of one conversation. Its methods may be called by any goroutine
// and do not block, but for Wait.
type Calls struct {
	// Fixed after Begin.
	e    *Executor
	c    Conversation
	over func() context.Context // done when the conversation is over
	end  context.CancelFunc

	wg sync.WaitGroup // what runs of this conversation

	mu      sync.Mutex // guards the following field
	cancels map[string]*running
}

// running is how to stop a call.
type running struct {
	cancel      context.CancelCauseFunc
	cancellable bool
}

// What stops a call.
var (
	errCancelled = errors.New("the call was withdrawn")
	errOver      = errors.New("the conversation is over")
)

// Begin returns the Calls of a conversation. End them.
func (e *Executor) Begin(c Conversation) *Calls {
	over, end := context.WithCancel(e.ctx())
	return &Calls{
		e: e, c: c, over: func() context.Context { return over }, end: end,
		cancels: make(map[string]*running),
	}
}

// Cancel stops a call that its tool lets be stopped.
func (c *Calls) Cancel(call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.cancels[call]; r != nil && r.cancellable {
		r.cancel(errCancelled)
	}
}

// End says that the conversation is over: what can be stopped is stopped, what has not
// begun does not begin, and the rest finishes.
func (c *Calls) End() {
	c.end() // first: what is about to begin looks whether it still may
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.cancels {
		if r.cancellable {
			r.cancel(errOver)
		}
	}
}

// Wait returns when nothing of the conversation runs any more.
func (c *Calls) Wait() { c.wg.Wait() }

// begin runs f for a tool, which may be empty, on a goroutine that Wait and Close wait for.
func (c *Calls) begin(tool string, f func()) {
	leave, _ := c.e.enter(c.c.Session.ID, tool) // after Close it is not waited for: what it waits for ends soon
	c.wg.Go(func() {
		defer leave()
		f()
	})
}
