package session

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// ending is the end of a session. It takes a tenth of the memory of a context with a child. It may be used
// concurrently.
type ending struct {
	done chan struct{} // closed by end

	ends  sync.Mutex // guards the following fields
	why   *Cause     // nil until the end
	after func()     // called on its own goroutine after done; may be nil

	// blockedUntil is set by a tool that locks the user out.
	blockedUntil atomic.Pointer[time.Time]

	readers  sync.WaitGroup  // links and attachments, until their connections have ended
	visitors sync.WaitGroup  // users of the session; added to only while the roster has the session
	handed   <-chan struct{} // closed after the handback; closeClient sets it for settle
	left     chan struct{}   // closed when nothing of the session is left
}

// end ends the session; the first cause counts.
func (e *ending) end(why *Cause) {
	e.ends.Lock()
	defer e.ends.Unlock()
	if e.why != nil {
		return
	}
	e.why = why
	close(e.done)
	if e.after != nil {
		go e.after()
	}
}

// whenDone calls f on a new goroutine after the end. It may be called once.
func (e *ending) whenDone(f func()) {
	e.ends.Lock()
	defer e.ends.Unlock()
	if e.why != nil {
		go f()
		return
	}
	e.after = f
}

func (e *ending) isOver() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// cause returns why the session ended; nil before that.
func (e *ending) cause() *Cause {
	e.ends.Lock()
	defer e.ends.Unlock()
	return e.why
}

func (e *ending) context() context.Context { return untilOver{e} }

// untilOver implements context.Context.
type untilOver struct{ e *ending }

func (untilOver) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }
func (untilOver) Value(any) any                           { return nil }
func (u untilOver) Done() <-chan struct{}                 { return u.e.done }

func (u untilOver) Err() error {
	if u.e.isOver() {
		return context.Canceled
	}
	return nil
}
