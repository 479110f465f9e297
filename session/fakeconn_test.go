package session

import (
	"cmp"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"voicegw/transport"
)

// fakeConn is one connection of a [fakeModel]: a [transport.Conn] for the code under test, the provider's side for the
// test. The methods of the provider's side may be called concurrently.
type fakeConn struct {
	// Fixed after Connect.
	fake   *fakeModel
	setup  transport.Setup
	info   transport.Info
	closed chan struct{} // closed by Close, or when a context in use ends
	// wakeRecv and wakeNext hold one token each, from the goroutine that adds to a queue: one
	// for the goroutine that calls the function given to Notify, one for the test. Never closed.
	wakeRecv chan struct{}
	wakeNext chan struct{}

	leaves atomic.Pointer[bag] // for the next connection; nil for nothing

	// sending is held during a Send: a second Send at the same time breaks the
	// contract and panics.
	sending sync.Mutex

	// turn is held while the function given to Notify runs. A Recv outside it panics.
	turn sync.Mutex

	// Owned by the turn: the audio that Recv returns, overwritten by the next Recv.
	audio transport.AudioOut

	mu      sync.Mutex // guards the following fields
	events  []any      // transport.Event values, and at most one error at the end
	sent    []transport.Command
	read    int // number of commands that Next and NextControl have returned or skipped
	sendErr error
	stalled chan struct{}
	stats   transport.Stats
}

// CarryOver implements transport.Carrier.
func (c *fakeConn) CarryOver() transport.Carried {
	if left := c.leaves.Load(); left != nil {
		return left
	}
	return nil
}

func newFakeConn(f *fakeModel, setup transport.Setup) *fakeConn {
	info := f.Info
	info.Provider, info.Model, info.Capabilities = f.Name(), cmp.Or(setup.Model, info.Model), f.caps
	info.InputRate = cmp.Or(info.InputRate, 16000)
	info.OutputRate = cmp.Or(info.OutputRate, 24000)
	return &fakeConn{
		fake: f, setup: setup, info: info,
		closed:   make(chan struct{}),
		wakeRecv: make(chan struct{}, 1),
		wakeNext: make(chan struct{}, 1),
	}
}

// Info implements [transport.Conn].
func (c *fakeConn) Info() transport.Info { return c.info }

// Stats implements [transport.Conn]; see SetStats.
func (c *fakeConn) Stats() transport.Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Send implements [transport.Conn]. It records the command (audio as a copy) unless
// Send is made to stall or fail. Two Sends at once panic.
func (c *fakeConn) Send(ctx context.Context, cmd transport.Command) error {
	if !c.sending.TryLock() {
		panic("session: two goroutines in Send of one connection")
	}
	defer c.sending.Unlock()
	if err := c.mayGo(ctx, "send"); err != nil {
		return err
	}
	c.mu.Lock()
	stalled := c.stalled
	c.mu.Unlock()
	if stalled != nil {
		select {
		case <-stalled:
		case <-c.closed:
			return c.gone("send")
		case <-ctx.Done():
			return c.cancelled(ctx, "send")
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sendErr != nil {
		return c.sendErr
	}
	if in, ok := cmd.(*transport.AudioIn); ok {
		cmd = &transport.AudioIn{PCM: append([]byte(nil), in.PCM...)}
	}
	c.sent = append(c.sent, cmd)
	wakeUp(c.wakeNext)
	return nil
}

// Notify implements [transport.Conn]. The goroutine that calls f ends after Close.
func (c *fakeConn) Notify(f func()) {
	turn := func() {
		c.turn.Lock()
		defer c.turn.Unlock()
		f()
	}
	go func() {
		for turn(); ; turn() {
			select {
			case <-c.wakeRecv:
			case <-c.closed:
				turn()
				return
			}
		}
	}()
}

// Recv implements [transport.Conn]. It returns the emitted events in order, then nil. It
// overwrites the AudioOut that it returned before, to expose a caller that keeps one. It
// panics outside the function given to Notify.
func (c *fakeConn) Recv() (transport.Event, error) {
	if c.turn.TryLock() {
		panic("session: Recv is called outside of the function of Notify")
	}
	for i := range c.audio.PCM {
		c.audio.PCM[i] = 0xA5
	}
	if c.isClosed() {
		return nil, c.gone("recv")
	}
	return c.pop()
}

// pop returns the next event, if any. An error stays in the queue, because it is final.
func (c *fakeConn) pop() (transport.Event, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.events) == 0 {
		return nil, nil
	}
	switch ev := c.events[0].(type) {
	case error:
		return nil, ev
	case *transport.AudioOut:
		c.events = c.events[1:]
		c.audio.Item, c.audio.Rate = ev.Item, ev.Rate
		c.audio.PCM = append(c.audio.PCM[:0], ev.PCM...)
		return &c.audio, nil
	default:
		c.events = c.events[1:]
		return ev.(transport.Event), nil
	}
}

func (c *fakeConn) mayGo(ctx context.Context, op string) error {
	if c.isClosed() {
		return c.gone(op)
	}
	if ctx.Err() != nil {
		return c.cancelled(ctx, op)
	}
	return nil
}

func (c *fakeConn) gone(op string) error {
	return c.fake.fail(op, transport.KindClosed, net.ErrClosed)
}

// cancelled ends the connection, as the contract demands when a context in use ends.
func (c *fakeConn) cancelled(ctx context.Context, op string) error {
	_ = c.Close()
	return c.fake.fail(op, transport.KindClosed, context.Cause(ctx))
}

// Close implements [transport.Conn].
func (c *fakeConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.closed:
	default:
		close(c.closed)
	}
	return nil
}

// Ready implements [transport.Conn]. It returns false while StallSend is in effect.
func (c *fakeConn) Ready() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stalled == nil
}

func (c *fakeConn) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// Setup returns the Setup with which the connection was opened.
func (c *fakeConn) Setup() transport.Setup { return c.setup }

// Emit makes Recv return events, after those emitted before. The audio of an
// AudioOut is copied. It never blocks.
func (c *fakeConn) Emit(events ...transport.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ev := range events {
		if out, ok := ev.(*transport.AudioOut); ok {
			ev = &transport.AudioOut{Item: out.Item, PCM: append([]byte(nil), out.PCM...), Rate: out.Rate}
		}
		c.events = append(c.events, ev)
	}
	wakeUp(c.wakeRecv)
}

// EmitAudio emits one piece of speech.
func (c *fakeConn) EmitAudio(item string, pcm []byte) {
	c.Emit(&transport.AudioOut{Item: item, PCM: pcm})
}

// FailRecv makes Recv return err permanently, after the events emitted so far; Send
// fails with err at once. Adapters return a [*transport.Error]; see [scriptedError].
func (c *fakeConn) FailRecv(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, err)
	c.sendErr = err
	wakeUp(c.wakeRecv)
}

// FailSend makes every later Send return err and does not affect Recv.
func (c *fakeConn) FailSend(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sendErr = err
}

// StallSend makes Send block, as if the provider had stopped reading, until release
// is called, the connection is closed or the Send's context ends.
func (c *fakeConn) StallSend() (release func()) {
	stalled := make(chan struct{})
	c.mu.Lock()
	c.stalled = stalled
	c.mu.Unlock()
	return sync.OnceFunc(func() {
		c.mu.Lock()
		if c.stalled == stalled {
			c.stalled = nil
		}
		c.mu.Unlock()
		close(stalled)
	})
}

// SetStats sets the result of Stats.
func (c *fakeConn) SetStats(s transport.Stats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats = s
}

// Pending returns the number of emitted events that Recv has not returned yet.
func (c *fakeConn) Pending() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.events)
}

// Commands returns every command sent so far, in order, audio as copies.
func (c *fakeConn) Commands() []transport.Command {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]transport.Command(nil), c.sent...)
}

// Audio returns all the user's audio sent so far, concatenated.
func (c *fakeConn) Audio() []byte {
	var pcm []byte
	for _, cmd := range c.Commands() {
		if in, ok := cmd.(*transport.AudioIn); ok {
			pcm = append(pcm, in.PCM...)
		}
	}
	return pcm
}

// Next waits for the next command that neither Next nor NextControl has returned or
// skipped, and fails the test if none comes.
func (c *fakeConn) Next(t testing.TB) transport.Command {
	t.Helper()
	return c.next(t, func(transport.Command) bool { return true })
}

// NextControl is like Next for commands other than audio: it skips AudioIn.
func (c *fakeConn) NextControl(t testing.TB) transport.Command {
	t.Helper()
	return c.next(t, func(cmd transport.Command) bool {
		_, audio := cmd.(*transport.AudioIn)
		return !audio
	})
}

func (c *fakeConn) next(t testing.TB, want func(transport.Command) bool) transport.Command {
	t.Helper()
	timeout := time.NewTimer(fakePatience)
	defer timeout.Stop()
	for {
		c.mu.Lock()
		for c.read < len(c.sent) {
			cmd := c.sent[c.read]
			c.read++
			if want(cmd) {
				c.mu.Unlock()
				return cmd
			}
		}
		c.mu.Unlock()
		select {
		case <-c.wakeNext:
		case <-timeout.C:
			t.Fatal("session: no further command was sent")
		}
	}
}

// WaitClosed waits until the code under test has closed the connection, and fails
// the test if it does not.
func (c *fakeConn) WaitClosed(t testing.TB) {
	t.Helper()
	timeout := time.NewTimer(fakePatience)
	defer timeout.Stop()
	select {
	case <-c.closed:
	case <-timeout.C:
		t.Fatal("session: the connection was not closed")
	}
}

// wakeUp puts a token into ch unless it holds one already.
func wakeUp(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
