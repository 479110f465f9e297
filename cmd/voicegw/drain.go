package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"voicegw/client/operator"
	"voicegw/internal/textutil"
	"voicegw/protocol"
)

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
