package chat

import (
	"context"
	"errors"
	"fmt"
)

// errDraining is the cause of a turn's cancellation at shutdown.
var errDraining = errors.New("the gateway is shutting down")

// LeftError is the number of messages still being answered.
type LeftError struct{ Messages int }

// Error returns the number.
func (e *LeftError) Error() string {
	return fmt.Sprintf("%d text messages are still being answered", e.Messages)
}

// Drain refuses new messages with ErrDraining, waits for running turns until ctx ends, and then stops the rest, which
// continue when their messages are sent again. Wait waits for the stopped turns, once the Executor is closed.
func (a *Agent) Drain(ctx context.Context) {
	a.mu.Lock()
	a.draining = true
	a.quiet()
	a.mu.Unlock()
	select {
	case <-a.idle:
		return
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopped = true
	for _, m := range a.messages {
		m.cancel(errDraining)
	}
}

// Wait waits after Drain until no message is being answered. If ctx ends first, it returns a *LeftError.
func (a *Agent) Wait(ctx context.Context) error {
	select {
	case <-a.idle:
		return nil
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.responding == 0 {
		return nil
	}
	return &LeftError{Messages: a.responding}
}

// Answering returns the number of messages being answered.
func (a *Agent) Answering() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.responding
}

// respond counts a call of Respond, which must call over at its end, or returns ErrDraining.
func (a *Agent) respond() (over func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.draining {
		return nil, ErrDraining
	}
	a.responding++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.responding--
		a.quiet()
	}, nil
}

// quiet closes idle when draining has finished. The caller must hold mu.
func (a *Agent) quiet() {
	if a.draining && a.responding == 0 && !closed(a.idle) {
		close(a.idle)
	}
}
