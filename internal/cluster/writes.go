package cluster

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"voicegw/store"
)

const (
	// mostWriters is how many records are written at the same time. Each takes the store some ms, and a third of
	// a second when everything is busy: clients that begin or come back wait for theirs. More goroutines would
	// hold memory, and not be faster.
	mostWriters = 64
	// longestPause is how long a writer waits at most before it tries again while the store is away,
	// and how long a failed write says that it is.
	longestPause = 2 * time.Second
)

// writes writes the records of all places, on a few goroutines that run while something is to be written:
// those first that somebody waits for, as a client does for its token, and each of them in the order in which
// they have changed. A place that waits costs a pointer.
type writes struct {
	closing chan struct{} // closed by Close
	once    sync.Once
	running sync.WaitGroup // the writers

	mu      sync.Mutex // guards the following fields
	urgent  fifo       // the places that somebody waits for
	others  fifo
	passed  int // how many of urgent were taken in a row while others waited
	writers int
	failed  time.Time // when a write has not reached the store, and none has since; zero without one
}

var errAway = errors.New("the store was away a moment ago")

// Close waits for the writes to the directory. No session may begin after it. What a store that is
// away has not taken when its time is over is not written.
func (n *Node) Close() {
	n.writes.once.Do(func() { close(n.writes.closing) })
	n.writes.running.Wait()
}

// mostPassed is how many places are taken before one that nobody waits for: these must not wait for ever.
const mostPassed = 3

// fifo holds places in their order; nil without one.
type fifo []*place

func (f *fifo) push(p *place) { *f = append(*f, p) }

// pop takes the oldest; there must be one.
func (f *fifo) pop() *place {
	p := (*f)[0]
	(*f)[0] = nil
	if *f = (*f)[1:]; len(*f) == 0 {
		*f = nil // and what it has grown to
	}
	return p
}

// put adds a place to its queue. The caller must hold mu.
func (w *writes) put(p *place, urgent bool) {
	if urgent {
		w.urgent.push(p)
	} else {
		w.others.push(p)
	}
}

// enqueue has something written for a place that is not in the queue.
func (n *Node) enqueue(p *place, urgent bool) {
	w := &n.writes
	w.mu.Lock()
	defer w.mu.Unlock()
	w.put(p, urgent)
	if w.writers < mostWriters {
		w.writers++
		w.running.Go(n.write)
	}
}

// hurry moves a place to those that somebody waits for, unless it is there or a writer has it.
func (w *writes) hurry(p *place) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.others, p); i >= 0 {
		w.others = slices.Delete(w.others, i, i+1)
		w.urgent.push(p)
	}
}

// dequeue returns the place whose turn it is; nil ends the writer that asks.
func (w *writes) dequeue() *place {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case len(w.urgent) > 0 && (len(w.others) == 0 || w.passed < mostPassed):
		if len(w.others) > 0 {
			w.passed++
		}
		return w.urgent.pop()
	case len(w.others) > 0:
		w.passed = 0
		return w.others.pop()
	}
	w.writers--
	return nil
}

// write is a writer: it writes until nothing is left to write.
func (n *Node) write() {
	pauses := backoff.NewExponentialBackOff()
	pauses.MaxInterval = longestPause
	for {
		p := n.writes.dequeue()
		if p == nil {
			return
		}
		if n.writes.hopeless() {
			continue
		}
		more, err := p.write(context.Background()) // the store bounds each write
		n.saw(err)
		if !more {
			continue
		}
		if !errors.Is(err, store.ErrUnavailable) {
			pauses.Reset()
		} else if !n.writes.pause(pauses.NextBackOff()) {
			continue // it is given up
		}
		n.writes.again(p, p.awaited())
	}
}

// pause waits before a write is tried again. It reports false if the node is closing.
func (w *writes) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-w.closing:
		return false
	}
}

// again puts a place at the end of its queue; the caller is a writer, and goes on.
func (w *writes) again(p *place, urgent bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.put(p, urgent)
}

// saw notes what came of a write. That the store is away is logged once for all sessions.
func (n *Node) saw(err error) {
	if errors.Is(err, errAway) {
		return // nothing was tried
	}
	w := &n.writes
	w.mu.Lock()
	was := !w.failed.IsZero()
	w.failed = time.Time{}
	away := errors.Is(err, store.ErrUnavailable)
	if away {
		w.failed = time.Now()
	}
	w.mu.Unlock()
	switch {
	case away && !was:
		n.o.Logger.Warn("the directory of sessions cannot be written: the clients of those that begin now can come back to this node only", "error", err)
	case was && !away:
		n.o.Logger.Info("the directory of sessions can be written again")
	}
}

// hopeless reports whether the node is closing and the last write has not reached the store: each
// further one would take as long to fail.
func (w *writes) hopeless() bool {
	select {
	case <-w.closing:
	default:
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.failed.IsZero()
}

// away reports whether a write has not reached the store a moment ago.
func (w *writes) away() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.failed.IsZero() && time.Since(w.failed) < longestPause
}
