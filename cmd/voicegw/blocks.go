package main

import (
	"context"
	"fmt"
	"strings"

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

// blocks runs a command about users who are locked out.
func (p Process) blocks(ctx context.Context, flags blocksFlags, parsed *kong.Context) int {
	name, _, _ := strings.Cut(strings.TrimPrefix(parsed.Command(), "blocks "), " ")
	ctx, stop := p.untilSignal(ctx)
	defer stop()
	switch name {
	case "list":
		return p.blocksList(ctx, flags.List, parsed)
	case "remove":
		return p.blocksRemove(ctx, flags.Remove, parsed)
	default:
		p.complain("the command %s is not wired", parsed.Command())
		return exitFailure
	}
}

func (p Process) blocksList(ctx context.Context, flags blocksListFlags, parsed *kong.Context) int {
	o, code := p.operator(flags.operatorFlags, parsed)
	if o == nil {
		return code
	}
	defer o.Close()
	list, err := o.Blocks(ctx)
	if err != nil {
		p.complain("%v", err)
		return exitFailure
	}
	if flags.JSON {
		return p.printJSON(list)
	}
	return p.print(list.Table(p.Stdout))
}

func (p Process) blocksRemove(ctx context.Context, flags blocksRemoveFlags, parsed *kong.Context) int {
	o, code := p.operator(flags.operatorFlags, parsed)
	if o == nil {
		return code
	}
	defer o.Close()
	if err := o.Unblock(ctx, string(flags.User)); err != nil {
		p.complain("%v", err)
		return exitFailure
	}
	return p.print(fmt.Sprintf("%s may connect again.\n", terminal.Quote(string(flags.User))))
}
