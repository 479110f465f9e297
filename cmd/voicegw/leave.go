package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"voicegw/client/operator"
	"voicegw/internal/textutil"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/session"
)

// Time limits at shutdown. Regardless of providers, tools, disks and the store, the program ends drain_timeout +
// session.DrainRemainder + closeTime after the first signal; docs/configuration.md promises 35 s after drain_timeout.
const (
	// closeTime is for closing everything after the sessions: the audit takes at most 6 s, the traces 3 s, abandoned
	// tools 2 s, the store 5 s.
	closeTime = 15 * time.Second
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
func (s *server) leave(p Process, served func() error) error {
	s.node.Drain()
	hurried, err := s.drain(p)
	limit := closeTime
	if hurried {
		limit = p.leaveTime()
	}
	return errors.Join(err, s.close(p, limit, part{"the HTTP server", func() error { return errors.Join(s.closeHTTP(), served()) }}))
}

func (p Process) leaveTime() time.Duration { return cmp.Or(p.leaving, leaveTime) }

func (s *server) closeHTTP() error {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	if s.http.Shutdown(ctx) == nil {
		return nil
	}
	return s.http.Close()
}

// drain waits for sessions and text answers for the configured time, or until a second signal (hurried).
func (s *server) drain(p Process) (hurried bool, err error) {
	s.logger.Info("draining", "sessions", s.sessions.Running(), "away", s.sessions.Away(), "timeout_ms", s.cfg.DrainTimeout.Milliseconds())
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.DrainTimeout)
	defer cancel()
	done := make(chan error, 1) // buffered: the receiver may be gone
	go func() { done <- s.drainAll(ctx) }()
	select {
	case err = <-done:
		return false, s.logLeft(err)
	case <-p.Signals:
	}
	s.logger.Warn("second signal: leaving at once", "sessions", s.sessions.Running())
	cancel()
	select {
	case err = <-done:
	case <-time.After(p.leaveTime()):
		err = s.sessions.Left()
	}
	return true, s.logLeft(err)
}

// drainAll drains sessions and text answers. When ctx ends, it stops the rest, which then has session.DrainRemainder
// to save its state.
func (s *server) drainAll(ctx context.Context) error {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.DrainTimeout+session.DrainRemainder)
	defer cancel()
	err := s.sessions.Drain(ctx, s.texts.Drain)
	return errors.Join(err, s.texts.Wait(last))
}

func (s *server) logLeft(err error) error {
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

type part struct {
	name string
	end  func() error
}

func (s *server) parts() []part {
	return []part{
		{"an operator's drain", s.drained.end},
		{"the metrics", s.scrapes.close},
		{"the other gateways", when(s.peers != nil, func() error { return s.peers.close() })},
		{"the jobs", within(jobsTime, s.jobs.Close)},
		{"the simulator", when(s.sim != nil, s.sim.Close)},
		{"the usage", when(s.usage != nil,
			losing("the usage of the last seconds is lost", within(usageTime, s.usage.Close)))},
		{"the phone calls", when(s.phone != nil, within(phoneTime, s.phone.Close))},
		{"the webhooks", within(webhookTime, s.webhooks.Close)},
		{"the authentication", when(s.auth != nil, func() error { s.auth.Get().Close(); return nil })},
		{"the watch for overload", func() error { s.overload.Close(); return nil }},
		{"the audit", closeAudit(s.audit)},
		{"the traces", within(tracesTime, s.traces.Close)},
		{"the tools", when(s.tools != nil, func() error { return waitForTools(s.tools) })},
		{"the sessions' records", when(s.elsewhere != nil, func() error { s.elsewhere.Close(); return nil })},
		{"the node", when(s.node != nil, func() error { s.node.Leave(); return nil })},
		{"the store and what else the tools use", when(s.caps != nil, s.caps.close)},
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
func (s *server) close(p Process, limit time.Duration, first ...part) error {
	return p.end(s.logger, limit, slices.Concat(first, s.parts()))
}

// end ends parts in order. After limit, or at another signal, it stops waiting; the log and the error then name the
// pending part.
func (p Process) end(logger *slog.Logger, limit time.Duration, parts []part) error {
	var at atomic.Pointer[part] // the part that is ending
	done := make(chan error, 1) // buffered: the receiver may be gone
	go func() {
		var err error
		for _, part := range parts {
			at.Store(&part)
			err = errors.Join(err, part.end())
		}
		done <- err
	}()
	late := time.NewTimer(limit)
	defer late.Stop()
	var why string
	select {
	case err := <-done:
		return err
	case <-p.Signals:
		why = "when another signal came"
	case <-late.C:
		why = fmt.Sprintf("within %s", limit)
	}
	name := "closing"
	if part := at.Load(); part != nil {
		name = part.name
	}
	logger.Error("aborting a part that did not end", "part", name)
	return fmt.Errorf("%s did not end %s", name, why)
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
	s *server // fixed

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
	d.s.node.Drain()
	d.running.Go(func() {
		defer stop()
		_ = d.s.logLeft(d.s.drainAll(ctx)) // already logged
		d.mu.Lock()
		defer d.mu.Unlock()
		d.done = true
	})
}

func (d *operatorDrain) Progress() protocol.DrainProgress {
	at := d.s.sessions.DrainState()
	d.mu.Lock()
	defer d.mu.Unlock()
	return protocol.DrainProgress{
		Draining: at.Draining, Done: d.done, Until: d.until,
		Sessions: at.Sessions, Away: at.Away, Moved: at.Moved, Carried: at.Carried, Messages: d.s.texts.Answering(),
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

type drainFlags struct {
	operatorFlags
	Timeout time.Duration `help:"When to end the remaining sessions (default: the gateway's drain_timeout)." placeholder:"TIME"`
}

const drainEvery = 500 * time.Millisecond

func (flags drainFlags) Run(ctx context.Context, p Process, o *operator.Client) error {
	if flags.Timeout != 0 && (flags.Timeout < time.Second || flags.Timeout > 24*time.Hour) {
		return usage(fmt.Errorf("--timeout is %s; use 1s to 24h", flags.Timeout))
	}
	at, err := o.Drain(ctx, flags.Timeout)
	if err != nil {
		return err
	}
	show, remove := drainShow(p.Stderr)
	every := time.NewTicker(drainEvery)
	defer every.Stop()
	for !at.Done {
		show(at)
		select {
		case <-every.C:
		case <-ctx.Done():
			remove()
			return fmt.Errorf("%w; the drain continues; run voicegw drain to watch it", context.Cause(ctx))
		}
		next, err := o.DrainProgress(ctx)
		if err != nil && ctx.Err() == nil {
			remove()
			return fmt.Errorf("lost contact while draining (last progress: %s): %w", at, err)
		} else if err == nil {
			at = next
		}
	}
	remove()
	if n := at.Sessions + at.Messages; n > 0 {
		return fmt.Errorf("%s; the rest does not end; see the gateway's log", at)
	}
	return p.print(at.String() + "\n")
}

// drainShow returns functions that show the progress, on a terminal as one changing line, elsewhere as a line for each
// change, and that remove the changing line.
func drainShow(w io.Writer) (show func(protocol.DrainProgress), remove func()) {
	if width, ok := textutil.Width(w); ok {
		live := &textutil.Status{W: w, Width: width}
		return func(p protocol.DrainProgress) {
			live.Show(fmt.Sprintf("%s, %s left", p, max(0, time.Until(p.Until)).Round(time.Second)))
		}, live.Clear
	}
	last := ""
	return func(p protocol.DrainProgress) {
		if text := p.String(); text != last {
			last = text
			_, _ = fmt.Fprintln(w, text) // failing to show progress is harmless
		}
	}, func() {}
}
