package chat

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"voicegw/protocol"
)

// errLeft is the cause of a turn's cancellation when no client waits for it.
var errLeft = errors.New("the client has left")

// message is a message being answered, or answered recently. It keeps its answer for each client that asks for it.
type message struct {
	// Fixed after enter.
	id     identity
	before *record       // left in memory by an earlier attempt; nil without one
	ended  chan struct{} // closed when the answer is complete
	// begin returns the context of the turn, which cancel ends.
	begin  func() context.Context
	cancel context.CancelCauseFunc

	mu       sync.Mutex               // guards the fields below
	log      []protocol.ServerMessage // append-only: clients get copies
	more     chan struct{}            // closed and replaced whenever log grows
	clients  int
	leaving  bool // the last client has left; no client can join
	over     bool
	err      error // replaces all messages
	panicked any   // a panic of the turn, for the clients' goroutines
	rec      *record

	// Set by ended, guarded by Agent.mu.
	size  int // of rec, in bytes
	until time.Time
}

func (m *message) add(s protocol.ServerMessage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = append(m.log, s)
	m.wake()
}

// wake notifies the clients that the answer has grown. The caller must hold mu.
func (m *message) wake() {
	close(m.more)
	m.more = make(chan struct{})
}

func (m *message) end(rec *record, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over, m.rec, m.err = true, rec, err
	if rec != nil {
		rec.Heard = false // set when a client has got all of it
	}
	m.wake()
	close(m.ended)
}

func (m *message) soFar() []protocol.ServerMessage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clip(m.log)
}

func (m *message) watched() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clients > 0 && !m.leaving
}

// join adds a client; false if the message is over or being aborted.
func (m *message) join() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over || m.leaving {
		return false
	}
	m.clients++
	return true
}

// leave removes a client whose context is done. The last client aborts the turn and then waits for its end.
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

// follow sends a client that has joined the whole answer. Only the last client to leave waits for running calls.
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

func (m *message) finish(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clients--; m.clients <= 0 {
		m.log = nil // rec is enough from now on
	}
	if m.panicked != nil {
		panic(m.panicked)
	}
	if m.rec != nil && ctx.Err() == nil {
		m.rec.Heard = true
	}
	return m.err
}

// remains returns a copy of the record of an answered message, or nil if the turn never began.
func (m *message) remains() *record {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rec == nil {
		return nil
	}
	rec := *m.rec
	return &rec
}
