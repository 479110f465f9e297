package chat

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"voicegw/protocol"
)

// errLeft ends a turn for which no client waits any more.
var errLeft = errors.New("the client has left")

// message is a message that is being answered, or was. It holds its answer so far, for each
// client that asks for it.
type message struct {
	// Fixed after enter.
	id     identity
	before *record       // what an earlier attempt has left in memory; nil without one
	ended  chan struct{} // closed when the answer is complete
	// begin returns the context of the turn, which cancel ends.
	begin  func() context.Context
	cancel context.CancelCauseFunc

	mu       sync.Mutex               // guards the following fields
	log      []protocol.ServerMessage // append-only: clients get copies
	more     chan struct{}            // closed and replaced whenever log grows
	clients  int
	leaving  bool // the last client has left: nobody can join any more
	over     bool
	err      error // replaces all messages
	panicked any   // a panic of the turn, for the clients' goroutines
	rec      *record

	// Written by ended, under the agent's mutex.
	size  int // size of rec, in bytes
	until time.Time
}

// add adds a message to the answer. It may be called concurrently.
func (m *message) add(s protocol.ServerMessage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = append(m.log, s)
	m.wake()
}

// wake tells the clients that the answer has grown. The caller must hold mu.
func (m *message) wake() {
	close(m.more)
	m.more = make(chan struct{})
}

// end marks the answer as complete.
func (m *message) end(rec *record, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over, m.rec, m.err = true, rec, err
	if rec != nil {
		rec.Heard = false // until a client has got all of it
	}
	m.wake()
	close(m.ended)
}

// soFar returns the answer up to now.
func (m *message) soFar() []protocol.ServerMessage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clip(m.log)
}

// watched reports whether a client waits for the answer.
func (m *message) watched() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clients > 0 && !m.leaving
}

// join adds a client; it reports false if that is no longer possible.
func (m *message) join() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over || m.leaving {
		return false
	}
	m.clients++
	return true
}

// leave removes a client whose context is done. If it is the last one, the turn is aborted and
// the client waits for its end.
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

// follow sends the answer, from its beginning, to a client that has joined, and returns at its
// end. A client that leaves returns early unless it is the last one, which waits for running
// calls.
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

// finish records that a client got the whole answer.
func (m *message) finish(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clients--; m.clients <= 0 {
		m.log = nil // only the record is kept
	}
	if m.panicked != nil {
		panic(m.panicked)
	}
	if m.rec != nil && ctx.Err() == nil {
		m.rec.Heard = true
	}
	return m.err
}

// remains returns a copy of the record of a message that is over, or nil if it never began.
func (m *message) remains() *record {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rec == nil {
		return nil
	}
	rec := *m.rec
	return &rec
}
