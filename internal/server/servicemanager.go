package server

import (
	"context"
	"time"

	"voicegw/internal/process"
)

func (s *Server) findServiceManager() {
	var err error
	if s.manager, err = process.FindServiceManager(s.host.Variable); err != nil {
		s.logger.Warn("service manager", "error", err)
	}
}

// tell reports the gateway's state to the service manager. A failure is only a warning.
func (s *Server) tell(state string) {
	if err := s.manager.Tell(state); err != nil {
		s.logger.Warn("service manager", "error", err)
	}
}

// watchdog sends signs of life until ctx ends. It checks the sessions each time, so that the manager restarts a
// gateway with stuck sessions.
func (s *Server) watchdog(ctx context.Context) {
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
