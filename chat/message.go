package chat

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"voicegw/protocol"
)

// errLeft ends a turn that nobody waits for any more.
var errLeft = errors.New("the client has left")

// message is a message that is being answered, or was: what its answer consists of so far,
// for each client that asks for it.
type message struct {
	// Fixed after enter.
	id     identity
	before *record       // what an earlier try has left in memory; nil if there was none
	ended  chan struct{} // closed when nothing follows any more
	// begin gives the context of the turn, of which cancel is the end.
	begin  func() context.Context
	cancel context.CancelCauseFunc

	mu       sync.Mutex               // guards the following fields
	log      []protocol.ServerMessage // never changed, only added to: clients get copies
	more     chan struct{}            // closed and made anew with each addition
	clients  int
	leaving  bool // the last client has left: nobody joins any more
	over     bool
	err      error // instead of all messages
	panicked any   // the turn's, for the clients' goroutines
	rec      *record

	// Written by ended, under the agent's mutex.
	size  int // of rec, in bytes
	until time.Time
}

// add adds a message to the answer. It may be called by any goroutine.
func (m *message) add(s protocol.ServerMessage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = append(m.log, s)
	m.wake()
}

// wake tells the clients that there is more; mu is held.
func (m *message) wake() {
	close(m.more)
	m.more = make(chan struct{})
}

// end says that nothing follows any more.
func (m *message) end(rec *record, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over, m.rec, m.err = true, rec, err
	if rec != nil {
		rec.Heard = false // until a client has had all of it
	}
	m.wake()
	close(m.ended)
}

// soFar is the answer up to now.
func (m *message) soFar() []protocol.ServerMessage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clip(m.log)
}

// watched says whether a client waits for the answer.
func (m *message) watched() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clients > 0 && !m.leaving
}

// join counts a client in, if it still can be.
func (m *message) join() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over || m.leaving {
		return false
	}
	m.clients++
	return true
}

// leave counts out a client whose context is done, unless it is the last: then the turn is
// broken off, and the client waits for its end.
func (m *message) leave() (last bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over || m.clients == 1 {
		m.leaving = true
		m.cancel(errLeft)
		return true
	}
	m.clients--
	return false
}

// follow gives a client that has joined the answer from its beginning, and returns at its end:
// for one that leaves, only where it is the last, as what still runs is waited for.
func (m *message) follow(ctx context.Context, emit Emit) error {
	gone := ctx.Done()
	for told := 0; ; {
		m.mu.Lock()
		batch, over, more := m.log[told:], m.over, m.more
		m.mu.Unlock()
		for _, s := range batch {
			emit(protocol.Clone(s))
		}
		told += len(batch)
		switch {
		case len(batch) > 0:
		case over:
			return m.finish(ctx)
		default:
			select {
			case <-more:
			case <-gone:
				if gone = nil; !m.leave() {
					return nil
				}
			}
		}
	}
}

// finish notes that a client was sent all of the answer.
func (m *message) finish(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clients--; m.clients <= 0 {
		m.log = nil // what is kept is the record
	}
	if m.panicked != nil {
		panic(m.panicked)
	}
	if m.rec != nil && ctx.Err() == nil {
		m.rec.Heard = true
	}
	return m.err
}

// remains is a copy of what is left of a message that is over, or nil if it never began.
func (m *message) remains() *record {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rec == nil {
		return nil
	}
	rec := *m.rec
	return &rec
}
