package main

import (
	"context"

	"github.com/alecthomas/kong"
)

// consoleFlags are the flags of console.
type consoleFlags struct {
	operatorFlags
}

// Run prints a link that opens the console once.
func (flags consoleFlags) Run(ctx context.Context, p Process, parsed *kong.Context) error {
	o, err := p.operator(flags.operatorFlags, parsed)
	if err != nil {
		return err
	}
	defer o.Close()
	ctx, stop := p.untilSignal(ctx)
	defer stop()
	link, err := o.ConsoleLink(ctx)
	if err != nil {
		return err
	}
	return p.print(link + "\n")
}
