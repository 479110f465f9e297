package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kong"

	"voicegw/config"
	"voicegw/gateway"
	"voicegw/session"
	"voicegw/web"
)

// The waits of the HTTP server.
const (
	headerTime = 10 * time.Second // for a request's header
	idleTime   = 2 * time.Minute  // for the next request on a connection
	// leaveTime is what a second signal leaves for saying goodbye.
	leaveTime = 2 * time.Second
)

// serve runs the gateway until a signal ends it.
func (p Process) serve(ctx context.Context, flags serveFlags, parsed *kong.Context) int {
	cfg, warnings, err := p.load(flags, parsed)
	if err != nil {
		p.complainAll(err)
		return exitUsage
	}
	logger := newLogger(p.Stderr, cfg.Log.Level, cfg.Log.Format)
	for _, w := range warnings {
		logger.Warn("configuration", "warning", w)
	}
	s, err := newServer(ctx, cfg, logger)
	if err != nil {
		p.complain("%v", err)
		if errors.Is(err, errSimFiles) {
			return exitUsage
		}
		return exitFailure
	}
	p.greet(s)
	if err := s.run(ctx, p); err != nil {
		p.complain("%v", err)
		return exitFailure
	}
	return exitOK
}

// server is the running gateway.
type server struct {
	// Fixed after newServer.
	cfg      *config.Config
	logger   *slog.Logger
	listener net.Listener
	http     *http.Server
	sessions *session.Manager
	sim      *simulator // nil if no provider is simulated
}

// newServer puts the gateway together and takes its address. The error wraps
// errSimFiles where a file of the simulator is wrong.
func newServer(ctx context.Context, cfg *config.Config, logger *slog.Logger) (*server, error) {
	s := &server{cfg: cfg, logger: logger}
	var err error
	if s.sim, err = simulatorFor(ctx, cfg, logger); err != nil {
		return nil, err
	}
	transports, err := newTransports(cfg, s.sim, logger)
	if err != nil {
		return nil, errors.Join(err, s.sim.close())
	}
	s.sessions, err = session.NewManager(sessionOptions(cfg, transports, logger))
	if err != nil {
		return nil, errors.Join(err, s.sim.close())
	}
	// The address is taken last: who can connect is served.
	s.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot serve on %s: %w; choose another address with --listen", cfg.Listen, err), s.sim.close())
	}
	s.http = &http.Server{
		Handler: gateway.New(gateway.Options{
			Sessions: s.sessions, Page: web.Handler(), Origins: cfg.Origins, Version: versionOf(), Logger: logger,
			MaxMessageBytes: cfg.Limits.MessageBytes,
		}),
		ConnContext:       gateway.ConnContext,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	return s, nil
}

// run serves until ctx ends, a signal comes or the listener fails, and leaves
// nothing behind.
func (s *server) run(ctx context.Context, p Process) error {
	// From the serving goroutine to this one; nobody closes it.
	failed := make(chan error, 1)
	var serving sync.WaitGroup
	serving.Go(func() { failed <- s.http.Serve(gateway.Listen(s.listener)) })
	services := s.cfg.Services()
	s.logger.Info("serving", "addr", s.listener.Addr().String(), "version", versionOf(),
		"provider", services[0].Name, "simulated", services[0].Simulated)
	if _, greeted := terminal(p.Stderr); services[0].Simulated && !greeted {
		s.logger.Warn(simNotice(s.cfg))
	}

	var err error
	select {
	case <-ctx.Done():
	case <-p.Signals:
	case err = <-failed:
		err = fmt.Errorf("the server has stopped: %w", err)
	}
	err = errors.Join(err, s.drain(p))
	err = errors.Join(err, s.http.Close())
	serving.Wait()
	err = errors.Join(err, s.sim.close())
	s.logger.Info("stopped")
	return err
}

// drain lets running sessions go on for the time that the configuration gives
// them, or until a second signal comes.
func (s *server) drain(p Process) error {
	s.logger.Info("draining", "sessions", s.sessions.Running(), "timeout_ms", s.cfg.DrainTimeout.Milliseconds())
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.DrainTimeout)
	defer cancel()
	done := make(chan struct{}) // closed when no session is left
	go func() {
		defer close(done)
		s.sessions.Drain(ctx)
	}()
	select {
	case <-done:
		return nil
	case <-p.Signals:
	}
	s.logger.Warn("second signal: leaving at once", "sessions", s.sessions.Running())
	cancel()
	select {
	case <-done:
		return nil
	case <-time.After(leaveTime):
		return fmt.Errorf("%d sessions were cut off", s.sessions.Running())
	}
}

// greet tells a person at a terminal what to do next. Elsewhere the log tells it.
func (p Process) greet(s *server) {
	if _, ok := terminal(p.Stderr); !ok {
		return
	}
	_, _ = fmt.Fprint(p.Stderr, greeting(s.cfg, s.listener.Addr()))
}

func greeting(cfg *config.Config, addr net.Addr) string {
	var b strings.Builder
	host := reachable(addr)
	fmt.Fprintf(&b, "\n  voicegw %s\n\n", versionOf())
	fmt.Fprintf(&b, "  Talk to it       http://%s/\n", host)
	fmt.Fprintf(&b, "  or from a shell  voicegw talk --url ws://%s/v1/voice --text \"Hello\"\n", host)
	services := cfg.Services()
	names := make([]string, len(services))
	for i, s := range services {
		names[i] = s.Name
	}
	fmt.Fprintf(&b, "  Provider         %s\n", strings.Join(names, "; on request "))
	if services[0].Simulated {
		fmt.Fprintf(&b, "  Simulated        %s\n", simNotice(cfg))
	}
	return b.String() + "\n"
}

// simNotice says in one line why nobody real answers.
func simNotice(cfg *config.Config) string {
	if cfg.Sim.Use == config.UseAlways {
		return "sim.use is always, so the simulator in this process answers, whatever keys are set"
	}
	return "no provider has a key, so the simulator in this process answers; set GEMINI_API_KEY or OPENAI_API_KEY for a real one"
}

// reachable is the address as one types it: a wildcard becomes this machine.
func reachable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String()
	}
	return fmt.Sprintf("localhost:%d", tcp.Port)
}
