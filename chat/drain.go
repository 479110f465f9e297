package chat

import (
	"context"
	"errors"
	"fmt"
)

// errDraining ends a turn that has not ended when the process must.
var errDraining = errors.New("the gateway is shutting down")

// LeftError says how many messages are still being answered.
type LeftError struct{ Messages int }

// Error says it in words.
func (e *LeftError) Error() string { return fmt.Sprintf("%d text messages have not ended", e.Messages) }

// Drain refuses new messages from now on with ErrDraining, lets those that are being answered go on
// until ctx ends, and then stops the rest: each ends with an error and a Done, and what was said is
// kept in its conversation, so that it goes on when the message is sent again. Drain does not wait
// for the stopped ones; Wait does, once the Executor is closed, which ends their tools.
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

// Wait waits until Drain was called and no message is being answered any more, or until ctx ends;
// then the error is a *LeftError.
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

// Answering returns how many messages are being answered.
func (a *Agent) Answering() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.responding
}

// respond counts a call of Respond; over must be called at its end. ErrDraining: it must not begin.
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

// quiet closes idle if nothing is being answered any more. The caller must hold mu.
func (a *Agent) quiet() {
	if a.draining && a.responding == 0 && !closed(a.idle) {
		close(a.idle)
	}
}
