package server

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"voicegw/config"
	"voicegw/internal/logging"
	"voicegw/internal/process"
	"voicegw/internal/textutil"
)

// Options are those of Start.
type Options struct {
	Config *config.Config
	Log    logging.Log
	// Read reads the configuration again, for a reload, and returns its warnings.
	Read func() (*config.Config, []string, error)
	// AcceptDamage is the code of the damage to accept, or empty.
	AcceptDamage string
	// DebugListen is the address for profiles, which CheckDebugListen has accepted, or empty.
	DebugListen string
}

// Start makes the parts of a gateway and opens its listener. The error wraps config.Problems for a problem of the
// configuration, ErrSimFiles for one of the simulator's files, and ErrSignal if a signal ended the start, because an
// unavailable store must not delay a shutdown. After a signal the start has two seconds to end; another signal ends it at
// once.
func Start(ctx context.Context, h Host, o Options) (*Server, error) {
	h.tune()
	type made struct {
		s   *Server
		err error
	}
	// Parts may keep using this context after the start.
	opening, cancel := context.WithCancelCause(ctx)
	done := make(chan made, 1) // buffered: the receiver may be gone
	go func() {
		s, err := newServer(opening, h, o)
		done <- made{s, err}
	}()
	select {
	case m := <-done:
		context.AfterFunc(ctx, func() { cancel(nil) })
		return m.s, m.err
	case <-h.Signals:
	}
	cancel(ErrSignal)
	select {
	case m := <-done:
		if m.err == nil {
			m.err = errors.Join(m.s.listener.Close(), m.s.close(h.leaveTime()))
		}
		return nil, errors.Join(fmt.Errorf("%w while it started", ErrSignal), m.err)
	case <-h.Signals:
	case <-time.After(leaveTime):
		o.Log.Error("aborting a part that did not end", "part", "the start")
	}
	return nil, fmt.Errorf("%w while it started", ErrSignal)
}

// tune sets the processors and the garbage collector for relaying, unless the environment sets them.
func (h Host) tune() {
	if n := schedulers(runtime.GOMAXPROCS(0), h.Variable("GOMAXPROCS")); n > 0 {
		runtime.GOMAXPROCS(n)
	}
	if h.Variable("GOGC") == "" {
		debug.SetGCPercent(50) // a relayed frame makes no garbage, so less memory costs little
	}
}

// schedulers returns the GOMAXPROCS to set on a machine with n processors; 0 means no change. With a single
// processor, Go releases and reacquires it at each wait of a loop (package nonblock), which costs a quarter more CPU
// than two. An environment variable has priority.
func schedulers(n int, env string) int {
	if n == 1 && env == "" {
		return 2
	}
	return 0
}

// Run serves until ctx ends, a signal comes or the listener fails, and then ends everything.
func (s *Server) Run(ctx context.Context) error {
	s.greet()
	// From the serving goroutine to this one; never closed.
	failed := make(chan error, 1)
	var serving sync.WaitGroup
	serving.Go(func() {
		failed <- s.http.Serve(s.clients())
	})
	watching, unwatch := context.WithCancel(ctx)
	defer unwatch()
	if s.devTools != nil {
		serving.Go(func() { s.devTools.Run(watching) })
	}
	if s.certs != nil {
		serving.Go(func() { s.certs.Run(watching) })
	}
	if s.peers != nil {
		s.peers.open(s)
		serving.Go(func() { s.peers.check(watching, s) })
	}
	services := s.cfg.Services()
	warnOfLag(s.logger, s.checks, s.sessions.Providers(), s.models.transports)
	warnOfEnds(s.logger, modelsInUse(s.cfg, s.sessions.Providers(), s.sim), time.Now())
	s.logger.Info("serving", "addr", s.listener.Addr().String(), "version", s.host.Version,
		"provider", services[0].Name, "simulated", services[0].Simulated, "tools_version", s.tools.Snapshot().Version(),
		"data_dir", s.dataDir)
	if _, greeted := textutil.Width(s.host.Stderr); services[0].Simulated && !greeted {
		s.logger.Warn(simNotice(s.cfg))
	}
	serving.Go(func() { s.watchdog(watching) })
	asked, unask := s.host.reloads()
	defer unask()
	serving.Go(func() { s.reloader.run(watching, asked) })
	serving.Go(func() { s.sessions.EndLost(watching) })
	serving.Go(func() { s.reloader.watchKeyFiles(watching) })
	s.tell(process.ServiceReady)

	var err error
	select {
	case <-ctx.Done():
	case <-s.host.Signals:
	case err = <-failed:
		err = fmt.Errorf("the server stopped: %w", err)
	}
	s.tell(process.ServiceStopping)
	err = errors.Join(err, s.leave(func() error {
		unwatch()
		serving.Wait()
		return s.debug.close()
	}))
	s.logger.Info("stopped")
	return err
}

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
