package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/alecthomas/kong"

	"voicegw/client/operator"
	"voicegw/internal/textutil"
	"voicegw/protocol"
)

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

func (flags drainFlags) Run(ctx context.Context, p Process, parsed *kong.Context) error {
	if flags.Timeout != 0 && (flags.Timeout < time.Second || flags.Timeout > 24*time.Hour) {
		return usage(fmt.Errorf("--timeout is %s; use 1s to 24h", flags.Timeout))
	}
	return p.ask(ctx, flags.operatorFlags, parsed, func(ctx context.Context, o *operator.Client) error {
		at, err := o.Drain(ctx, flags.Timeout)
		if err != nil {
			return err
		}
		return p.watchDrain(ctx, o, at)
	})
}

func (p Process) watchDrain(ctx context.Context, o *operator.Client, at protocol.DrainProgress) error {
	show := newDrainShow(p.Stderr)
	every := time.NewTicker(drainEvery)
	defer every.Stop()
	for !at.Done {
		show.at(at)
		select {
		case <-every.C:
		case <-ctx.Done():
			show.clear()
			return fmt.Errorf("%w; the drain continues; run voicegw drain to watch it", context.Cause(ctx))
		}
		next, err := o.DrainProgress(ctx)
		if err != nil && ctx.Err() == nil {
			show.clear()
			return fmt.Errorf("lost contact while draining (last progress: %s): %w", at, err)
		} else if err == nil {
			at = next
		}
	}
	show.clear()
	if n := at.Sessions + at.Messages; n > 0 {
		return fmt.Errorf("%s; the rest does not end; see the gateway's log", at)
	}
	return p.print(at.String() + "\n")
}

// drainShow shows the progress: on a terminal as one changing line, elsewhere as a line for each change.
type drainShow struct {
	w    io.Writer
	live *textutil.Status // nil if w isn't a terminal
	last string
}

func newDrainShow(w io.Writer) *drainShow {
	s := &drainShow{w: w}
	if width, ok := textutil.Width(w); ok {
		s.live = &textutil.Status{W: w, Width: width}
	}
	return s
}

func (s *drainShow) at(p protocol.DrainProgress) {
	text := p.String()
	if s.live != nil {
		s.live.Show(fmt.Sprintf("%s, %s left", text, max(0, time.Until(p.Until)).Round(time.Second)))
		return
	}
	if text != s.last {
		s.last = text
		_, _ = fmt.Fprintln(s.w, text) // failing to show progress is harmless
	}
}

func (s *drainShow) clear() {
	if s.live != nil {
		s.live.Clear()
	}
}
