package main

import (
	"context"
	"fmt"

	"github.com/alecthomas/kong"

	"voicegw/client/operator"
	"voicegw/internal/textutil"
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
	return showList(ctx, p, flags.operatorFlags, parsed, flags.JSON, (*operator.Client).Blocks)
}

// Run lets a user in again.
func (flags blocksRemoveFlags) Run(ctx context.Context, p Process, parsed *kong.Context) error {
	return p.ask(ctx, flags.operatorFlags, parsed, func(ctx context.Context, o *operator.Client) error {
		if err := o.Unblock(ctx, string(flags.User)); err != nil {
			return err
		}
		return p.print(fmt.Sprintf("%s may connect again.\n", textutil.Quote(string(flags.User))))
	})
}
