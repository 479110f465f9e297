package quota

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"
)

// Reason is the reason for an overload.
type Reason string

// The reasons.
const (
	Memory Reason = "memory"
	Store  Reason = "store"
)

const (
	every = time.Second
	// Overload begins at fullShare of memory and ends at easyShare; the difference prevents flapping.
	fullShare, easyShare = 0.85, 0.75
	// storeAway is how long the store must be unavailable. A leader election takes less.
	storeAway = 10 * time.Second
	askStore  = 2 * time.Second
)

// OverloadOptions configure a Watch.
type OverloadOptions struct {
	Memory func() (held, limit uint64)
	Store  func(ctx context.Context) error
	Logger *slog.Logger
}

// State is the result of the last check. The zero State means no overload.
type State struct {
	Reason Reason
	Since  time.Time
	Share  float64
}

// Over reports an overload.
func (s State) Over() bool { return s.Reason != "" }

// Watch monitors the process. Its methods may be used concurrently.
type Watch struct {
	opts OverloadOptions
	end  context.CancelFunc
	done sync.WaitGroup

	mu    sync.Mutex // guards the following fields
	state State
	away  time.Time // when the store stopped answering; zero if it answers
}

// NewOverload starts monitoring. The caller must call Close.
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

// Close stops monitoring. It may be called more than once, and on a nil Watch.
func (w *Watch) Close() {
	if w != nil {
		w.end()
		w.done.Wait()
	}
}

// State returns the last result; the zero State for a nil Watch.
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

func (w *Watch) look(ctx context.Context) {
	held, limit := w.opts.Memory()
	var failed error
	if w.opts.Store != nil {
		asking, cancel := context.WithTimeout(ctx, askStore)
		failed = w.opts.Store(asking)
		cancel()
	}
	if ctx.Err() != nil {
		return // interrupted
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
		w.opts.Logger.Warn("overloaded: refusing new sessions", "reason", string(is.Reason), "memory_held", held, "memory_limit",
			limit, "store_error", failed)
	default:
		w.opts.Logger.Warn("overload ended: accepting sessions again", "reason", string(was.Reason), "overloaded_ms",
			now.Sub(was.Since).Milliseconds())
	}
}

// next returns the state after a check. The caller must hold mu.
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
