package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"voicegw/internal/process"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/session"
)

// Time limits at shutdown. Regardless of providers, tools, disks and the store, the program ends drain_timeout +
// session.DrainRemainder + CloseTime after the first signal; docs/configuration.md promises 35 s after drain_timeout.
const (
	// CloseTime is for closing everything after the sessions: the audit takes at most 6 s, the traces 3 s, abandoned
	// tools 2 s, the store 5 s.
	CloseTime = 15 * time.Second
	// leaveTime applies after a second signal, once to the sessions and once to the rest.
	leaveTime = 2 * time.Second
	// answerTime limits the delivery of the last bytes of HTTP responses.
	answerTime = time.Second

	auditTime   = 5 * time.Second
	usageTime   = 5 * time.Second
	jobsTime    = 3 * time.Second
	phoneTime   = 3 * time.Second // the carriers' answers
	webhookTime = 3 * time.Second
	toolTime    = 2 * time.Second
	tracesTime  = 2 * time.Second
)

// leave ends everything: the sessions within the configured time, then served, then the rest. The error names the
// part that didn't end in time.
func (s *Server) leave(served func() error) error {
	s.refuse()
	hurried, err := s.drain()
	limit := CloseTime
	if hurried {
		limit = s.host.leaveTime()
	}
	return errors.Join(err, s.close(limit, process.Part{Name: "the HTTP server", End: func() error {
		return errors.Join(s.closeHTTP(), served())
	}}))
}

// refuse makes the gateway refuse sessions and messages, so that it is draining when the log or an answer says so.
func (s *Server) refuse() {
	s.node.Drain()
	s.sessions.Refuse()
	s.texts.Refuse()
}

func (h Host) leaveTime() time.Duration { return cmp.Or(h.LeaveTime, leaveTime) }

func (s *Server) closeHTTP() error {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	if s.http.Shutdown(ctx) == nil {
		return nil
	}
	return s.http.Close()
}

// drain waits for sessions and text answers for the configured time, or until a second signal (hurried).
func (s *Server) drain() (hurried bool, err error) {
	s.logger.Info("draining", "sessions", s.sessions.Running(), "away", s.sessions.Away(), "timeout_ms", s.cfg.DrainTimeout.Milliseconds())
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.DrainTimeout)
	defer cancel()
	done := make(chan error, 1) // buffered: the receiver may be gone
	go func() { done <- s.drainAll(ctx) }()
	select {
	case err = <-done:
		return false, s.logLeft(err)
	case <-s.host.Signals:
	}
	s.logger.Warn("second signal: leaving at once", "sessions", s.sessions.Running())
	cancel()
	select {
	case err = <-done:
	case <-time.After(s.host.leaveTime()):
		err = s.sessions.Left()
	}
	return true, s.logLeft(err)
}

// drainAll drains sessions and text answers. When ctx ends, it stops the rest, which then has session.DrainRemainder
// to save its state.
func (s *Server) drainAll(ctx context.Context) error {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.DrainTimeout+session.DrainRemainder)
	defer cancel()
	err := s.sessions.Drain(ctx, s.texts.Drain)
	return errors.Join(err, s.texts.Wait(last))
}

func (s *Server) logLeft(err error) error {
	var left *session.LeftError
	if !errors.As(err, &left) {
		return err
	}
	for _, l := range left.Sessions {
		s.logger.Error("aborting a session that did not end", "session_id", l.ID, "phase", string(l.Phase),
			"phase_ms", time.Since(l.Since).Milliseconds())
	}
	for _, l := range left.Tools {
		s.logger.Error("aborting a tool call that did not end", "session_id", l.Session, "tool", l.Tool,
			"running_ms", time.Since(l.Since).Milliseconds())
	}
	return err
}

func (s *Server) parts() []process.Part {
	return []process.Part{
		{Name: "an operator's drain", End: s.drained.end},
		{Name: "the metrics", End: s.scrapes.close},
		{Name: "the other gateways", End: when(s.peers != nil, func() error { return s.peers.close() })},
		{Name: "the jobs", End: within(jobsTime, s.jobs.Close)},
		{Name: "the simulator", End: when(s.sim != nil, s.sim.Close)},
		{Name: "the usage", End: when(s.usage != nil,
			losing("the usage of the last seconds is lost", within(usageTime, s.usage.Close)))},
		{Name: "the phone calls", End: when(s.phone != nil, within(phoneTime, s.phone.Close))},
		{Name: "the webhooks", End: within(webhookTime, s.webhooks.Close)},
		{Name: "the authentication", End: when(s.auth != nil, func() error { s.auth.Get().Close(); return nil })},
		{Name: "the watch for overload", End: func() error { s.overload.Close(); return nil }},
		{Name: "the audit", End: closeAudit(s.audit)},
		{Name: "the traces", End: within(tracesTime, s.traces.Close)},
		{Name: "the tools", End: when(s.tools != nil, func() error { return waitForTools(s.tools) })},
		{Name: "the sessions' records", End: when(s.elsewhere != nil, func() error { s.elsewhere.Close(); return nil })},
		{Name: "the node", End: when(s.node != nil, func() error { s.node.Leave(); return nil })},
		{Name: "the store and what else the tools use", End: when(s.caps != nil, s.caps.close)},
	}
}

func when(exists bool, end func() error) func() error {
	if exists {
		return end
	}
	return func() error { return nil }
}

// losing adds the consequence to an error of end.
func losing(consequence string, end func() error) func() error {
	return func() error {
		err := end()
		if err != nil {
			err = errors.Join(errors.New(consequence), err)
		}
		return err
	}
}

// close ends the parts in first, and then everything that open has made.
func (s *Server) close(limit time.Duration, first ...process.Part) error {
	return process.End(s.host.Signals, s.logger, limit, slices.Concat(first, s.parts())...)
}

func within(limit time.Duration, end func(context.Context) error) func() error {
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		return end(ctx)
	}
}

func waitForTools(tools *registry.Registry) error {
	if within(toolTime, tools.Wait)() == nil {
		return nil
	}
	var names []string
	for name, stats := range tools.Stats() {
		if stats.Running > 0 {
			names = append(names, fmt.Sprintf("%s (%d)", name, stats.Running))
		}
	}
	slices.Sort(names)
	return fmt.Errorf("tools are still running: %s", strings.Join(names, ", "))
}

// operatorDrain is a drain that an operator starts. It implements gateway.Drain.
type operatorDrain struct {
	s *Server // fixed

	running sync.WaitGroup // one goroutine for each Begin that started or shortened the drain

	mu    sync.Mutex // guards the fields below
	until time.Time  // when the rest is ended; zero before the drain
	stops []context.CancelFunc
	done  bool // the drain is over, or the rest doesn't end
}

func (d *operatorDrain) Begin(limit time.Duration) {
	limit = cmp.Or(limit, d.s.cfg.DrainTimeout)
	until := time.Now().Add(limit)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.until.IsZero() && !until.Before(d.until) {
		return
	}
	d.until = until
	ctx, stop := context.WithDeadline(context.Background(), until)
	d.stops = append(d.stops, stop)
	d.s.refuse()
	d.running.Go(func() {
		defer stop()
		_ = d.s.logLeft(d.s.drainAll(ctx)) // already logged
		d.mu.Lock()
		defer d.mu.Unlock()
		d.done = true
	})
}

func (d *operatorDrain) Progress() protocol.DrainProgress {
	at := d.s.sessions.Census()
	d.mu.Lock()
	defer d.mu.Unlock()
	return protocol.DrainProgress{
		Draining: at.Draining, Done: d.done, Until: d.until,
		Sessions: at.Sessions, Away: d.s.sessions.Away(), Moved: at.Moved, Carried: at.Carried, Messages: d.s.texts.Answering(),
	}
}

// end stops the drain's wait and returns when it is over. d may be nil.
func (d *operatorDrain) end() error {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	for _, stop := range d.stops {
		stop()
	}
	d.mu.Unlock()
	d.running.Wait()
	return nil
}
