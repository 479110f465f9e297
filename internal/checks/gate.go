package checks

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Listener gets the released events of a Gate, in order and one at a time. It must not call the Gate, except for Interrupt.
type Listener[T any] interface {
	Release(Released[T])
	Stopped(Stop)
	// Unmatched reports whether all of an item's words so far claim, after a byte, an action that no tool has done.
	// Everything before the words was released.
	Unmatched(item, text string, from int) bool
}

// Gate checks the output of one model. Its methods may be called concurrently.
type Gate[T any] struct {
	// Fixed after NewGate.
	set   *Set
	about Text
	to    Listener[T]
	spawn func(func())
	life  func() context.Context
	end   context.CancelFunc
	timer *time.Timer

	answers     atomic.Int64 // answers that have begun
	interrupted atomic.Int64 // the latest of them that was interrupted, plus 1; zero without one

	mu     sync.Mutex // guards the following fields
	line   line[T]
	closed bool
	idle   chan struct{} // closed when nothing waits
}

// NewGate returns a gate. about names the conversation to remote checks. patient means that nothing is released before
// its verdict, whatever the hold-back. spawn starts the goroutines of remote checks; they end soon after Close.
func NewGate[T any](set *Set, about Text, patient bool, to Listener[T], spawn func(func())) *Gate[T] {
	ctx, end := context.WithCancel(context.Background())
	g := &Gate[T]{set: set, about: about, to: to, spawn: spawn, life: func() context.Context { return ctx }, end: end,
		line: newLine[T](set, patient)}
	g.timer = time.AfterFunc(time.Hour, func() { g.do(func(time.Time) {}) })
	g.timer.Stop()
	return g
}

// Words takes all of an item's words so far.
func (g *Gate[T]) Words(item, text string, final bool, v T) {
	g.do(func(at time.Time) { g.line.words(at, item, text, final, v) })
}

// Audio takes a piece of an item's sound of a length.
func (g *Gate[T]) Audio(item string, took time.Duration, v T) {
	g.do(func(at time.Time) { g.line.audio(at, item, took, v) })
}

// Other takes another event, which must not overtake earlier ones. begins means that it begins an answer.
func (g *Gate[T]) Other(begins bool, v T) {
	if begins {
		g.answers.Add(1)
	}
	g.do(func(at time.Time) { g.line.other(at, begins, v) })
}

// Interrupt drops the waiting sound of all answers that have begun, because the user has interrupted. It never blocks.
func (g *Gate[T]) Interrupt() {
	g.interrupted.Store(g.answers.Load() + 1)
	g.timer.Reset(0)
}

// Close drops everything that waits. Nothing is released afterwards.
func (g *Gate[T]) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.end()
	g.timer.Stop()
	g.line.entries = nil
	g.settled()
}

// Wait waits until nothing waits for a check, or for the end of ctx.
func (g *Gate[T]) Wait(ctx context.Context) error {
	g.mu.Lock()
	if len(g.line.entries) == 0 {
		g.mu.Unlock()
		return nil
	}
	if g.idle == nil {
		g.idle = make(chan struct{})
	}
	idle := g.idle
	g.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// settled wakes Wait. The caller must hold mu.
func (g *Gate[T]) settled() {
	if g.idle != nil && len(g.line.entries) == 0 {
		close(g.idle)
		g.idle = nil
	}
}

func (g *Gate[T]) do(step func(at time.Time)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return
	}
	now := time.Now()
	g.cut()
	step(now)
	g.line.pump(now)
	g.deliver(now)
}

func (g *Gate[T]) cut() {
	if n := g.interrupted.Swap(0); n > 0 {
		g.line.interrupt(int(n - 1))
	}
}

// deliver carries out the results of a step. The caller must hold mu.
func (g *Gate[T]) deliver(now time.Time) {
	l := &g.line
	for g.release(); l.claim != nil; g.release() {
		a := l.claim
		l.claim = nil
		l.compared(a, g.to.Unmatched(a.of.id, a.text, a.from))
		g.cut()
		l.pump(now)
	}
	for _, a := range l.asked {
		g.spawn(func() { g.run(a) })
	}
	l.asked = nil
	g.settled()
	if at := l.wakeAt(); at.IsZero() {
		g.timer.Stop()
	} else {
		g.timer.Reset(time.Until(at))
	}
	if g.interrupted.Load() > 0 {
		g.timer.Reset(0)
	}
}

func (g *Gate[T]) release() {
	l := &g.line
	for _, r := range l.out {
		if r.stop != nil {
			r.stop.Rule.count(r.stop.Why)
			g.to.Stopped(*r.stop)
		} else {
			g.to.Release(r)
		}
	}
	clear(l.out)
	l.out = l.out[:0]
}

var errBusy = errors.New("too many requests of this check are under way")

func (g *Gate[T]) run(a *ask[T]) {
	pass, err := g.request(a)
	if err != nil && g.life().Err() == nil {
		g.set.seldom.Info("a check of the assistant's words failed", a.rule.Name+": "+err.Error(), "check",
			a.rule.Name, "blocks", a.rule.Block)
	}
	switch {
	case g.life().Err() != nil:
	case err != nil && !a.rule.Block: // a blocking one is counted when it stops the answer
		a.rule.count(Failed)
	case err == nil && pass:
		a.rule.count(passed)
	}
	g.do(func(time.Time) { g.line.verdict(a, pass, err != nil) })
}

func (g *Gate[T]) request(a *ask[T]) (bool, error) {
	select {
	case a.rule.slots <- struct{}{}:
		defer func() { <-a.rule.slots }()
	default:
		return false, errBusy
	}
	ctx, cancel := context.WithTimeout(g.life(), a.rule.Timeout)
	defer cancel()
	t := g.about
	t.Text, t.New = a.text, a.text[a.from:]
	return a.rule.Remote.Check(ctx, t)
}
