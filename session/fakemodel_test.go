package session

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"voicegw/transport"
)

// fakePatience is how long the helpers that take a testing.TB wait before they fail the
// test. Inside a synctest bubble this is fake time and passes only when every
// goroutine is blocked.
const fakePatience = 3 * time.Minute

// fakeModel is a scripted [transport.Transport]. Make one with [newFakeModel]. Its methods may be
// called concurrently.
type fakeModel struct {
	// Provider is the result of Name; empty means "fake". Set it before the first
	// Connect.
	Provider string

	// Info is what connections return, with Provider, the Model of the setup and Capabilities filled
	// in; zero rates mean 16000 Hz in and 24000 Hz out. Set it before the first Connect.
	Info transport.Info

	// Fixed after New.
	caps transport.Capabilities

	mu       sync.Mutex // guards the following fields
	refuse   []error    // answers to the next Connects; nil accepts
	stalled  chan struct{}
	setups   []transport.Setup
	conns    []*fakeConn
	taken    int           // connections that Accept has returned
	changed  chan struct{} // closed and replaced when conns grows
	attempts int
}

// newFakeModel returns a fake in which every model has the capabilities caps.
func newFakeModel(caps transport.Capabilities) *fakeModel {
	return &fakeModel{caps: caps, changed: make(chan struct{})}
}

// Name implements [transport.Transport].
func (f *fakeModel) Name() string {
	if f.Provider == "" {
		return "fake"
	}
	return f.Provider
}

// Model implements [transport.Transport].
func (f *fakeModel) Model() string { return "" }

// Voices implements [transport.Transport].
func (f *fakeModel) Voices(string) []string { return nil }
func (f *fakeModel) Models() []string       { return nil }
func (f *fakeModel) Refuses(string) bool    { return false }

// Capabilities implements [transport.Transport].
func (f *fakeModel) Capabilities(string) transport.Capabilities { return f.caps }

// Connect implements [transport.Transport]. It opens a connection at once unless
// Refuse or StallConnect changed that.
func (f *fakeModel) Connect(ctx context.Context, setup transport.Setup) (transport.Conn, error) {
	f.mu.Lock()
	f.attempts++
	f.setups = append(f.setups, setup)
	stalled := f.stalled
	f.mu.Unlock()
	if stalled != nil {
		select {
		case <-stalled:
		case <-ctx.Done():
			return nil, f.fail("dial", transport.KindTimeout, context.Cause(ctx))
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, f.fail("dial", transport.KindTimeout, context.Cause(ctx))
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.refuse) > 0 {
		err := f.refuse[0]
		f.refuse = f.refuse[1:]
		return nil, err
	}
	c := newFakeConn(f, setup)
	f.conns = append(f.conns, c)
	close(f.changed)
	f.changed = make(chan struct{})
	return c, nil
}

func (f *fakeModel) fail(op string, kind transport.Kind, err error) *transport.Error {
	return &transport.Error{Provider: f.Name(), Op: op, Kind: kind, Err: err}
}

// Refuse makes the next Connects fail with err, as many as times says, after those that
// earlier calls of Refuse made fail. Adapters return a [*transport.Error]; see [scriptedError].
func (f *fakeModel) Refuse(times int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range times {
		f.refuse = append(f.refuse, err)
	}
}

// Relent makes Connect refuse nothing more.
func (f *fakeModel) Relent() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = nil
}

// StallConnect makes Connect wait until release is called or its context ends.
func (f *fakeModel) StallConnect() (release func()) {
	stalled := make(chan struct{})
	f.mu.Lock()
	f.stalled = stalled
	f.mu.Unlock()
	return sync.OnceFunc(func() {
		f.mu.Lock()
		if f.stalled == stalled {
			f.stalled = nil
		}
		f.mu.Unlock()
		close(stalled)
	})
}

// Accept waits for the next connection that has not been accepted yet, in the order
// in which they were opened, and fails the test if none comes.
func (f *fakeModel) Accept(t testing.TB) *fakeConn {
	t.Helper()
	timeout := time.NewTimer(fakePatience)
	defer timeout.Stop()
	for {
		f.mu.Lock()
		if f.taken < len(f.conns) {
			c := f.conns[f.taken]
			f.taken++
			f.mu.Unlock()
			return c
		}
		changed := f.changed
		f.mu.Unlock()
		select {
		case <-changed:
		case <-timeout.C:
			t.Fatal("session: no connection was opened")
		}
	}
}

// Waiting returns the next connection that has not been accepted yet, and accepts it; nil without one.
func (f *fakeModel) Waiting() *fakeConn {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.taken == len(f.conns) {
		return nil
	}
	f.taken++
	return f.conns[f.taken-1]
}

// Setups returns the Setup of every Connect so far, including refused ones.
func (f *fakeModel) Setups() []transport.Setup {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]transport.Setup(nil), f.setups...)
}

// Attempts returns how often Connect was called.
func (f *fakeModel) Attempts() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.attempts
}

// Open returns the number of connections that are open now.
func (f *fakeModel) Open() int {
	f.mu.Lock()
	conns := append([]*fakeConn(nil), f.conns...)
	f.mu.Unlock()
	n := 0
	for _, c := range conns {
		if !c.isClosed() {
			n++
		}
	}
	return n
}

// errScripted is the cause inside the errors that scriptedError makes.
var errScripted = errors.New("scripted failure")

// scriptedError returns an error as an adapter would return it, with the kind by which
// the caller decides.
func scriptedError(op string, kind transport.Kind) *transport.Error {
	return &transport.Error{Provider: "fake", Op: op, Kind: kind, Code: "scripted", Err: errScripted}
}
