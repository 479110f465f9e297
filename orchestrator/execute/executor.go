// Package execute carries out the decisions of package calls: it runs tools in parallel, reserves each side effect in
// the ledger before it runs, and records questions and their answers. Voice and text use the same Executor.
package execute

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"voicegw/config/setting"
	"voicegw/internal/audit"
	"voicegw/internal/quota"
	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/store"
)

// Executor runs the tools of a process. It is safe for concurrent use.
type Executor struct {
	// Never change after New.
	opts  Options
	rates quota.Windows[rateKey]
	ctx   func() context.Context // cancels every tool
	stop  context.CancelCauseFunc
	idle  chan struct{} // closed by leave or Close, once Close was called and nothing runs

	mu      sync.Mutex // guards the following fields
	closed  bool
	running map[*Running]struct{}
}

// Running is an activity that Close waits for.
type Running struct {
	// Session is the ID of its conversation.
	Session string // the conversation that it belongs to
	Tool    string // empty while an answer is being recorded
	Since   time.Time
}

var errLeaving = errors.New("the gateway is shutting down")

// New returns an Executor. The caller must call Close.
func New(opts Options) *Executor {
	ctx, stop := context.WithCancelCause(context.Background())
	return &Executor{opts: opts.withDefaults(), ctx: func() context.Context { return ctx }, stop: stop,
		idle: make(chan struct{}), running: make(map[*Running]struct{})}
}

// Running returns the current activities, oldest first.
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

// Close waits up to Options.Grace for all activities and then cancels them. A ledger or tool that ignores cancellation
// blocks it; Running lists them. Close may be called more than once.
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

// enter counts an activity, unless Close has finished waiting. One that starts another leaves after that has entered.
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

// Conversation describes a conversation to its tools and receives the results of its calls. Functions may be called
// concurrently and must not block, unless they say otherwise.
type Conversation struct {
	// Turn and Now of Session are set for each call.
	Session      registry.Session
	Channel      string // as in the audit; may be empty
	Capabilities []any  // passed to each call; see registry.Options
	// Ephemeral means that the gateway does not store the conversation, so nothing can be reported to it later.
	Ephemeral bool
	Trace     protocol.TraceParent         // the parent span of the calls; may be zero
	Tell      func(protocol.ServerMessage) // sends the client a message of a running call; nil without a client
	// Blocked is called when a tool blocks the user, before the client learns of it; may be nil.
	Blocked  func(until time.Time)
	Audit    func(audit.Record)      // writes an additional record of a call; nil discards it
	Describe func(*registry.Session) // updates Session at the start of each call; may be nil
	// Report receives the result of each Run, Ask and Resolve exactly once, and a calls.Nested for each call by a
	// tool. It runs on goroutines of the Executor.
	Report   func(calls.Input)
	Progress func(calls.Progressed) // receives a call's progress, at most twice a second; may be nil
	Owned    func() bool            // whether this process may still write and ask for the conversation; nil means always
	// Checkpoint stores the calls that have begun, so that another process recognises their repetitions and audits
	// unfinished ones. It runs before each writing call, may block and is bounded by ctx; after an error the call
	// does not begin. Nil means that no other process can continue the conversation.
	Checkpoint func(ctx context.Context) error

	over func() bool // nil means that the conversation is not over
}

// Runner runs the calls of one conversation. It is safe for concurrent use; only Wait blocks.
type Runner struct {
	// Never change after Begin.
	e *Executor
	c *Conversation

	agent atomic.Pointer[string] // the current agent; nil means c.Session.Agent

	wg sync.WaitGroup // the activities of this conversation

	mu      sync.Mutex                   // guards the following fields
	over    bool                         // the conversation is over
	ctx     func() context.Context       // ends with the conversation; nil until needed
	end     context.CancelFunc           // nil with ctx
	cancels map[string]*running          // nil before the first call
	asked   map[string]chan calls.Permit // by the name of a nested call; nil before the first
}

// SetAgent sets the agent of later calls.
func (c *Runner) SetAgent(agent string) { c.agent.Store(&agent) }

func (c *Runner) now() registry.Session {
	s := c.c.Session
	if now := c.agent.Load(); now != nil {
		s.Agent = *now
	}
	return s
}

type running struct {
	cancel      context.CancelCauseFunc
	cancellable bool
}

// Causes of a stopped call.
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

// Begin prepares a zero Runner, like [Executor.Begin].
func (c *Runner) Begin(e *Executor, of Conversation) {
	of.over = c.isOver
	c.e, c.c = e, &of
}

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

// isOver reports whether no call may begin: the conversation is over, or the Executor is closed.
func (c *Runner) isOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over || c.e.ctx().Err() != nil
}

// Cancel stops a call if its tool can be stopped.
func (c *Runner) Cancel(call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.cancels[call]; r != nil && r.cancellable {
		r.cancel(errCancelled)
	}
}

// End stops the calls that can be stopped or have not begun; the others finish. Approved calls run in any case.
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

// Wait waits until no activity of the conversation is left.
func (c *Runner) Wait() { c.wg.Wait() }

// begin runs f on a goroutine that Wait and Close wait for. tool may be empty.
func (c *Runner) begin(tool string, f func()) {
	leave, _ := c.e.enter(c.c.Session.ID, tool) // after Close its context is cancelled
	c.wg.Go(func() {
		defer leave()
		f()
	})
}

// Ledger records side effects before they run; *store.Ledger implements it.
type Ledger interface {
	Reserve(ctx context.Context, r store.Reservation) (e store.Entry, fresh bool, err error)
	Finish(ctx context.Context, e store.Entry, envelope json.RawMessage) error
	Release(ctx context.Context, e store.Entry) error
}

// Confirmations stores questions to the user; *store.Confirmations implements it.
type Confirmations interface {
	Create(ctx context.Context, c store.Confirmation) error
	Named(ctx context.Context, name string) (store.Confirmation, error)
	Resolve(ctx context.Context, token, session string, approved bool, now time.Time) (store.Confirmation, error)
	ResolveNamed(ctx context.Context, name, session string, approved bool, now time.Time) (store.Confirmation, error)
	Settle(ctx context.Context, conversation, session, reference string) error
}

// Options configure an Executor. Zero fields are usable.
type Options struct {
	Ledger Ledger // prevents repeated side effects. If it is nil, writing tools are refused.
	// If Confirmations is nil, no question can be asked.
	Confirmations Confirmations
	// If Jobs is nil, calls that start jobs are refused.
	Jobs   Jobs
	Life   time.Duration // how long a question can be answered. Zero means setting.QuestionLife.
	Grace  time.Duration // how long Close waits for running tools; zero means 5 s
	Logger *slog.Logger  // may be nil
}

func (o Options) withDefaults() Options {
	o.Life = cmp.Or(o.Life, setting.QuestionLife)
	o.Grace = cmp.Or(o.Grace, 5*time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
