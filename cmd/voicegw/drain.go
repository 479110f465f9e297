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
	"voicegw/gateway"
	"voicegw/internal/textutil"
)

// operatorDrain is the drain that an operator begins while the gateway goes on serving: it
// implements gateway.Drain.
type operatorDrain struct {
	s *server // fixed

	running sync.WaitGroup // a goroutine for each Begin that has begun or shortened the drain

	mu    sync.Mutex // guards the following fields
	until time.Time  // when what is left is ended; zero until the drain begins
	stops []context.CancelFunc
	done  bool // nothing is left, or what is left does not end
}

// Begin implements gateway.Drain.
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
		_ = d.s.tellLeft(d.s.drainAll(ctx)) // it is logged
		d.mu.Lock()
		defer d.mu.Unlock()
		d.done = true
	})
}

// Progress implements gateway.Drain.
func (d *operatorDrain) Progress() gateway.DrainProgress {
	at := d.s.sessions.DrainState()
	d.mu.Lock()
	defer d.mu.Unlock()
	return gateway.DrainProgress{
		Draining: at.Draining, Done: d.done, Until: d.until,
		Sessions: at.Sessions, Away: at.Away, Moved: at.Moved, Carried: at.Carried, Messages: d.s.texts.Answering(),
	}
}

// end stops waiting for what the drain waits for, and returns when it is over. A nil drain was never
// begun.
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

// drainFlags are those of the command drain.
type drainFlags struct {
	operatorFlags
	Timeout time.Duration `help:"When sessions that have not moved are ended; the gateway's drain_timeout without." placeholder:"TIME"`
}

// drainEvery is how often the command asks how far the drain is.
const drainEvery = 500 * time.Millisecond

// Run empties a running gateway, and returns when nothing is left.
func (flags drainFlags) Run(ctx context.Context, p Process, parsed *kong.Context) error {
	if flags.Timeout != 0 && (flags.Timeout < time.Second || flags.Timeout > 24*time.Hour) {
		return usage(fmt.Errorf("--timeout must be between 1s and 24h, and is %s", flags.Timeout))
	}
	return p.ask(ctx, flags.operatorFlags, parsed, func(ctx context.Context, o *operator.Client) error {
		at, err := o.Drain(ctx, flags.Timeout)
		if err != nil {
			return err
		}
		return p.watchDrain(ctx, o, at)
	})
}

// watchDrain shows how far a drain is, until it is done.
func (p Process) watchDrain(ctx context.Context, o *operator.Client, at operator.DrainProgress) error {
	show := newDrainShow(p.Stderr)
	every := time.NewTicker(drainEvery)
	defer every.Stop()
	for !at.Done {
		show.at(at)
		select {
		case <-every.C:
		case <-ctx.Done():
			show.clear()
			return fmt.Errorf("%w; the drain goes on, and voicegw drain shows it again", context.Cause(ctx))
		}
		next, err := o.DrainProgress(ctx)
		if err != nil && ctx.Err() == nil {
			show.clear()
			return fmt.Errorf("the drain has begun, and what became of it is not known (last: %s): %w", at, err)
		} else if err == nil {
			at = next
		}
	}
	show.clear()
	if n := at.Sessions + at.Messages; n > 0 {
		return fmt.Errorf("%s; what is left does not end, and the gateway's log names it", at)
	}
	return p.print(at.String() + "\n")
}

// drainShow shows the progress: as one line that changes on a terminal, and elsewhere as a line for
// each change.
type drainShow struct {
	w    io.Writer
	live *textutil.Status // nil where w is no terminal
	last string
}

func newDrainShow(w io.Writer) *drainShow {
	s := &drainShow{w: w}
	if width, ok := textutil.Width(w); ok {
		s.live = &textutil.Status{W: w, Width: width}
	}
	return s
}

func (s *drainShow) at(p operator.DrainProgress) {
	text := p.String()
	if s.live != nil {
		s.live.Show(fmt.Sprintf("%s, %s to go", text, max(0, time.Until(p.Until)).Round(time.Second)))
		return
	}
	if text != s.last {
		s.last = text
		_, _ = fmt.Fprintln(s.w, text) // a progress that cannot be shown is no failure
	}
}

func (s *drainShow) clear() {
	if s.live != nil {
		s.live.Clear()
	}
}
