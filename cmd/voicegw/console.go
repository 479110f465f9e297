package main

import (
	"context"

	"github.com/alecthomas/kong"

	"voicegw/client/operator"
)

// consoleFlags are the flags of console.
type consoleFlags struct {
	operatorFlags
}

// Run prints a link that opens the console once.
func (flags consoleFlags) Run(ctx context.Context, p Process, parsed *kong.Context) error {
	return p.ask(ctx, flags.operatorFlags, parsed, func(ctx context.Context, o *operator.Client) error {
		link, err := o.ConsoleLink(ctx)
		if err != nil {
			return err
		}
		return p.print(link + "\n")
	})
}
