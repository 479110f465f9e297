package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"voicegw/config"
	"voicegw/internal/process"
)

func (s *server) findServiceManager(p Process) {
	var err error
	if s.manager, err = process.FindServiceManager(p.environment()); err != nil {
		s.logger.Warn("service manager", "error", err)
	}
}

// tell reports the gateway's state to the service manager. A failure is only a warning.
func (s *server) tell(state string) {
	if err := s.manager.Tell(state); err != nil {
		s.logger.Warn("service manager", "error", err)
	}
}

// watchdog sends signs of life until ctx ends. It checks the sessions each time, so that the manager restarts a
// gateway with stuck sessions.
func (s *server) watchdog(ctx context.Context) {
	every := s.manager.WatchdogInterval()
	if every == 0 {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		s.sessions.Running() // waits for the lock of all sessions
		s.tell(process.ServiceAlive)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// startServer is newServer, but a signal can end it, because an unavailable store must not delay a shutdown. The
// error then wraps errSignal. After a signal, the start has leaveTime to end; another signal ends it at once.
func (p Process) startServer(ctx context.Context, cfg *config.Config, acceptDamage string, log programLog) (*server, error) {
	type made struct {
		s   *server
		err error
	}
	// Parts may keep using this context after the start.
	opening, cancel := context.WithCancelCause(ctx)
	done := make(chan made, 1) // buffered: the receiver may be gone
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
		log.logger.Error("aborting a part that did not end", "part", "the start")
	}
	return nil, fmt.Errorf("%w while it started", errSignal)
}
