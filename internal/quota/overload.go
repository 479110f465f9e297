package quota

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"
)

// Reason is why nothing new is taken.
type Reason string

// The reasons.
const (
	Memory Reason = "memory"
	Store  Reason = "store"
)

const (
	// every is how often the process is looked at.
	every = time.Second
	// fullShare is the share of the memory at which it runs short, and easyShare the one below which
	// it does not any more: a gateway must not change its mind with each session.
	fullShare, easyShare = 0.85, 0.75
	// storeAway is how long the store must have been away. A leader that changes takes less.
	storeAway = 10 * time.Second
	// askStore bounds one question to the store.
	askStore = 2 * time.Second
)

// OverloadOptions configure a Watch.
type OverloadOptions struct {
	// Memory returns what the process cannot give back and what it may take, in bytes; zero for the
	// second if there is no limit. Nil means [Use].
	Memory func() (held, limit uint64)
	// Store returns nil if the store answers. Nil means that there is no store.
	Store func(ctx context.Context) error
	// Logger gets a line for each change. Nil means no logging.
	Logger *slog.Logger
}

// State is what a Watch has seen last. The zero State is that of a process without trouble.
type State struct {
	// Reason says what the process lacks; empty if it lacks nothing.
	Reason Reason
	// Since is when it began.
	Since time.Time
	// Share is how much of its memory the process holds: 1 is all of it, and 0 is unknown.
	Share float64
}

// Over reports whether nothing new may be taken.
func (s State) Over() bool { return s.Reason != "" }

// Watch looks at the process. Its methods may be used concurrently.
type Watch struct {
	// Fixed after NewOverload.
	opts OverloadOptions
	end  context.CancelFunc
	done sync.WaitGroup

	mu    sync.Mutex // guards the following fields
	state State
	away  time.Time // since when the store has not answered; zero if it does
}

// NewOverload begins to watch. Close must be called.
func NewOverload(o OverloadOptions) *Watch {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Memory == nil {
		o.Memory = Use
	}
	ctx, end := context.WithCancel(context.Background())
	w := &Watch{opts: o, end: end}
	w.done.Go(func() { w.run(ctx) })
	return w
}

// Close ends the watch. It may be called more than once, and on a nil Watch.
func (w *Watch) Close() {
	if w != nil {
		w.end()
		w.done.Wait()
	}
}

// State returns what was seen last; the zero State of a nil Watch.
func (w *Watch) State() State {
	if w == nil {
		return State{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

func (w *Watch) run(ctx context.Context) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		w.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// look looks once.
func (w *Watch) look(ctx context.Context) {
	held, limit := w.opts.Memory()
	var failed error
	if w.opts.Store != nil {
		asking, cancel := context.WithTimeout(ctx, askStore)
		failed = w.opts.Store(asking)
		cancel()
	}
	if ctx.Err() != nil {
		return // the question was cut short
	}
	now := time.Now()
	w.mu.Lock()
	was := w.state
	w.state = w.next(now, held, limit, failed)
	is := w.state
	w.mu.Unlock()
	switch {
	case is.Reason == was.Reason:
	case is.Over():
		w.opts.Logger.Warn("overloaded: no new session is taken", "reason", string(is.Reason), "memory_held", held, "memory_limit", limit, "store_error", failed)
	default:
		w.opts.Logger.Warn("not overloaded any more: sessions are taken again", "reason", string(was.Reason), "overloaded_ms", now.Sub(was.Since).Milliseconds())
	}
}

// next returns the state after a look. The caller must hold mu.
func (w *Watch) next(now time.Time, held, limit uint64, failed error) State {
	next := State{}
	if limit > 0 {
		next.Share = float64(held) / float64(limit)
	}
	switch {
	case failed == nil:
		w.away = time.Time{}
	case w.away.IsZero():
		w.away = now
	}
	full := fullShare
	if w.state.Reason == Memory {
		full = easyShare
	}
	switch {
	case next.Share >= full:
		next.Reason = Memory
	case !w.away.IsZero() && now.Sub(w.away) >= storeAway:
		next.Reason = Store
	default:
		return next
	}
	if next.Since = now; w.state.Reason == next.Reason {
		next.Since = w.state.Since
	}
	return next
}
