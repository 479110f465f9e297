package nonblock

import (
	"io"
	"net"
	"sync"
	"time"
)

// reader reads a connection that no loop watches. Its goroutine waits in Read and gives the turns. A turn requested by
// nudge gets its own goroutine.
type reader struct {
	// Fixed.
	c      *Conn
	notify func()

	buffer Borrowed // to read into; owned by run

	turns sync.Mutex // held during turns; guards the fields below
	got   []byte     // read from the connection, but not yet by notify
	err   error      // the error that ended the reading
	told  bool       // the last turn has begun

	// Guarded by Conn.mu.
	inTurn bool // a goroutine is giving turns
	nudged bool // another turn is requested
	paused bool // written only within a turn, which may read it without the mutex
}

// run reads until the end of the connection or of reading.
func (r *reader) run() {
	for over := false; !over; {
		n, err := r.c.ReadInto(&r.buffer)
		r.turns.Lock()
		r.want()
		r.got, r.err = r.buffer.Room()[:max(n, 0)], err
		r.give()
		over = r.err != nil || r.told || r.paused
		r.got = nil
		r.turns.Unlock()
		r.buffer.GiveBack()
	}
}

// want requests a turn. It reports whether the caller must give it, because no other goroutine is giving turns.
func (r *reader) want() bool {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	idle := !r.nudged && !r.inTurn
	r.nudged = true
	return idle
}

// give gives the due turns. The caller must hold r.turns.
func (r *reader) give() {
	for r.due() {
		r.notify()
	}
}

func (r *reader) due() bool {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	switch {
	case r.told:
		r.inTurn = false
	case r.c.closed:
		r.told, r.inTurn = true, true
	default:
		r.inTurn = r.nudged || len(r.got) > 0 && !r.paused
	}
	r.nudged = false
	return r.inTurn
}

func (r *reader) nudge() {
	if r.want() {
		go func() {
			r.turns.Lock()
			defer r.turns.Unlock()
			r.give()
		}()
	}
}

func (r *reader) read(p []byte) (int, error) {
	switch {
	case r.told:
		return 0, net.ErrClosed
	case r.paused && r.err != nil:
		return 0, io.ErrUnexpectedEOF
	case len(r.got) > 0 && !r.paused:
		n := copy(p, r.got)
		r.got = r.got[n:]
		return n, nil
	case r.err != nil:
		return 0, r.err
	}
	return 0, ErrWouldBlock
}

// caughtUp implements ear. A goroutine does not know when its data arrived.
func (r *reader) caughtUp() time.Time { return time.Time{} }

// writes implements ear. A goroutine that waits in Read cannot write.
func (r *reader) writes() bool { return false }

func (r *reader) pause() {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	r.paused = true
}

func (r *reader) close() error {
	err := r.c.Conn.Close()
	r.nudge() // Read ends now, or has ended before
	return err
}
