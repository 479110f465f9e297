package main

import (
	"context"
	"fmt"

	"voicegw/internal/terminal"

	"github.com/alecthomas/kong"
)

// blocksFlags are the commands about users who are locked out.
type blocksFlags struct {
	List   blocksListFlags   `cmd:"" help:"List the users whom a running gateway locks out, and until when."`
	Remove blocksRemoveFlags `cmd:"" help:"Let a user in again."`
}

type blocksListFlags struct {
	operatorFlags
	JSON bool `help:"Write JSON." name:"json"`
}

type blocksRemoveFlags struct {
	operatorFlags
	User userIdentity `arg:"" help:"The user, as list tells it."`
}

// Run lists the users who are locked out.
func (flags blocksListFlags) Run(ctx context.Context, p Process, parsed *kong.Context) error {
	o, err := p.operator(flags.operatorFlags, parsed)
	if err != nil {
		return err
	}
	defer o.Close()
	ctx, stop := p.untilSignal(ctx)
	defer stop()
	list, err := o.Blocks(ctx)
	if err != nil {
		return err
	}
	if flags.JSON {
		return p.printJSON(list)
	}
	return p.print(list.Table(p.Stdout))
}

// Run lets a user in again.
func (flags blocksRemoveFlags) Run(ctx context.Context, p Process, parsed *kong.Context) error {
	o, err := p.operator(flags.operatorFlags, parsed)
	if err != nil {
		return err
	}
	defer o.Close()
	ctx, stop := p.untilSignal(ctx)
	defer stop()
	if err := o.Unblock(ctx, string(flags.User)); err != nil {
		return err
	}
	return p.print(fmt.Sprintf("%s may connect again.\n", terminal.Quote(string(flags.User))))
}
