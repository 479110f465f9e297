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
	// mostWriters is the number of concurrent writes. Each takes a few ms, or a third of a second under load, while new
	// and resuming clients wait. More goroutines would only cost memory.
	mostWriters = 64
	// longestPause is the longest pause between retries while the store is unavailable, and how long a failed write
	// marks the store as unavailable.
	longestPause = 2 * time.Second
)

// writes writes the records of all places on a few goroutines that run only while there is work: first the records that
// callers wait for, such as a client for its token; within each queue in order of change. A queued place costs one
// pointer.
type writes struct {
	closing chan struct{} // closed by Close
	once    sync.Once
	running sync.WaitGroup // the writers

	mu      sync.Mutex // guards the following fields
	urgent  fifo       // places that callers wait for
	others  fifo
	passed  int // how many urgent places in a row were preferred
	writers int
	failed  time.Time // time of a failed write with no success since; zero without one
}

var errAway = errors.New("the store was unavailable a moment ago")

// Close waits for the pending writes. No session may start after it. If the store is unavailable too long, the rest
// isn't written.
func (n *Node) Close() {
	n.writes.once.Do(func() { close(n.writes.closing) })
	n.writes.running.Wait()
}

// mostPassed is the number of urgent places preferred before another one, which must not starve.
const mostPassed = 3

type fifo []*place

func (f *fifo) push(p *place) { *f = append(*f, p) }

func (f *fifo) pop() *place {
	p := (*f)[0]
	(*f)[0] = nil
	if *f = (*f)[1:]; len(*f) == 0 {
		*f = nil // frees the array
	}
	return p
}

func (w *writes) put(p *place, urgent bool) {
	if urgent {
		w.urgent.push(p)
	} else {
		w.others.push(p)
	}
}

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

func (w *writes) hurry(p *place) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.others, p); i >= 0 {
		w.others = slices.Delete(w.others, i, i+1)
		w.urgent.push(p)
	}
}

// dequeue returns the next place; nil ends the calling writer.
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

// write is a writer: it runs until the queues are empty.
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
			continue // abandoned
		}
		n.writes.again(p, p.awaited())
	}
}

// pause waits before a retry. It returns false if the node is closing.
func (w *writes) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-w.closing:
		return false
	}
}

// again queues a place at the end; the caller is a writer and continues.
func (w *writes) again(p *place, urgent bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.put(p, urgent)
}

// saw records the result of a write. It logs a store failure once for all sessions.
func (n *Node) saw(err error) {
	if errors.Is(err, errAway) {
		return // no attempt was made
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
		n.o.Logger.Warn("cannot write the session directory: clients of new sessions can resume on this gateway only", "error", err)
	case was && !away:
		n.o.Logger.Info("session directory writable again")
	}
}

// hopeless reports whether the node is closing and the last write failed, so that further writes would only time out.
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

func (w *writes) away() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.failed.IsZero() && time.Since(w.failed) < longestPause
}
