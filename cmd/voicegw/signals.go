package main

import (
	"context"
	"errors"
)

// errSignal is the cause of a context that a signal ended.
var errSignal = errors.New("stopped by a signal")

// untilSignal returns a context that ends with the first signal. stop waits for its goroutine.
func (p Process) untilSignal(ctx context.Context) (until context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-p.Signals:
			cancel(errSignal)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil); <-done }
}
