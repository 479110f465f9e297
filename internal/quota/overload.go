package quota

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
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

// Use returns the memory in use after the last collection, and the runtime's limit; zero without one.
func Use() (held, limit uint64) {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}, {Name: "/memory/classes/os-stacks:bytes"},
		{Name: "/memory/classes/metadata/mspan/inuse:bytes"}, {Name: "/memory/classes/metadata/other:bytes"},
		{Name: "/memory/classes/other:bytes"},
	}
	metrics.Read(samples)
	for _, s := range samples {
		if s.Value.Kind() == metrics.KindUint64 {
			held += s.Value.Uint64()
		}
	}
	if most := debug.SetMemoryLimit(-1); most > 0 && most < math.MaxInt64 {
		limit = uint64(most)
	}
	return held, limit
}

// cgroupShare is the runtime's share; the rest is for the kernel's socket buffers and the like.
const cgroupShare = 0.9

// KeepToCgroup sets the memory limit from the cgroup, unless GOMEMLIMIT is set, and returns it, or zero.
func KeepToCgroup() int64 {
	if debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return 0
	}
	for _, path := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		data, err := os.ReadFile(filepath.Clean(path))
		if err != nil {
			continue
		}
		if limit := cgroupLimit(string(data)); limit > 0 {
			debug.SetMemoryLimit(limit)
			return limit
		}
	}
	return 0
}

// cgroupLimit returns the share of the kernel's number (cgroup-v2.rst, memory.max; version 1 writes one near 2^63).
func cgroupLimit(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n <= 0 || n >= 1<<60 {
		return 0
	}
	return int64(float64(n) * cgroupShare)
}
