package main

import (
	"context"

	"github.com/alecthomas/kong"
)

// consoleFlags are the flags of console.
type consoleFlags struct {
	operatorFlags
}

// console prints a link that opens the console once.
func (p Process) console(ctx context.Context, flags consoleFlags, parsed *kong.Context) int {
	o, exit := p.operator(flags.operatorFlags, parsed)
	if o == nil {
		return exit
	}
	defer o.Close()
	ctx, stop := p.untilSignal(ctx)
	defer stop()
	link, err := o.ConsoleLink(ctx)
	if err != nil {
		p.complain("%v", err)
		return exitFailure
	}
	return p.print(link + "\n")
}
