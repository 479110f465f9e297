package main

import (
	"context"
	"time"

	"voicegw/internal/process"
)

// serviceManager tells the service manager how the gateway is. A manager that cannot be told is a
// warning: the gateway serves all the same.
type serviceManager struct {
	s       *server
	manager process.ServiceManager
}

func (s *server) serviceManager(p Process) serviceManager {
	manager, err := process.FindServiceManager(p.Environ)
	if err != nil {
		s.logger.Warn("service manager", "error", err)
	}
	return serviceManager{s: s, manager: manager}
}

func (m serviceManager) tell(states ...string) {
	if err := m.manager.Tell(states...); err != nil {
		m.s.logger.Warn("service manager", "error", err)
	}
}

// watchdog tells the manager until ctx ends that the gateway is alive. It asks the sessions each time,
// so a gateway whose sessions are stuck gives no sign of life, and the manager starts it again.
func (m serviceManager) watchdog(ctx context.Context) {
	every := m.manager.WatchdogInterval()
	if every == 0 {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		m.s.sessions.Running() // waits for the lock of all sessions
		m.tell(process.ServiceAlive)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
