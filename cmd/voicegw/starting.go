package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"voicegw/config"
)

// startServer is newServer that a signal can end: a store that does not answer must not delay a
// program that is told to leave. The error then wraps errSignal. After a signal, whatever respects
// its context gets leaveTime to end; another signal ends at once.
func (p Process) startServer(ctx context.Context, cfg *config.Config, acceptDamage string, log programLog) (*server, error) {
	type made struct {
		s   *server
		err error
	}
	// This context outlives the start, because parts opened with it may keep using it.
	opening, cancel := context.WithCancelCause(ctx)
	done := make(chan made, 1) // nobody may be waiting for it
	go func() {
		s, err := p.newServer(opening, cfg, acceptDamage, log)
		done <- made{s, err}
	}()
	select {
	case m := <-done:
		context.AfterFunc(ctx, func() { cancel(nil) })
		return m.s, m.err
	case <-p.Signals:
	}
	cancel(errSignal)
	select {
	case m := <-done:
		if m.err == nil {
			m.err = errors.Join(m.s.listener.Close(), m.s.close(p, p.leaveTime()))
		}
		return nil, errors.Join(fmt.Errorf("%w while it started", errSignal), m.err)
	case <-p.Signals:
	case <-time.After(leaveTime):
		log.logger.Error("something has not ended and is cut off", "part", "the start")
	}
	return nil, fmt.Errorf("%w while it started", errSignal)
}
