package main

import (
	"context"
	"fmt"

	"github.com/alecthomas/kong"

	"voicegw/client/operator"
	"voicegw/internal/textutil"
)

// jobsFlags are the commands about the long work of a running gateway.
type jobsFlags struct {
	List   jobsListFlags   `cmd:"" help:"List the long work that calls have begun, on all gateways of the store."`
	Cancel jobsCancelFlags `cmd:"" help:"End long work, wherever it is done."`
}

type jobsListFlags struct {
	operatorFlags
	User string `help:"Only the work of this user." placeholder:"NAME"`
	JSON bool   `help:"Write JSON." name:"json"`
}

type jobsCancelFlags struct {
	operatorFlags
	ID string `arg:"" help:"The job, as list tells it."`
}

// Run lists the jobs.
func (flags jobsListFlags) Run(ctx context.Context, p Process, parsed *kong.Context) error {
	return showList(ctx, p, flags.operatorFlags, parsed, flags.JSON, func(o *operator.Client, ctx context.Context) (operator.Jobs, error) {
		return o.Jobs(ctx, flags.User)
	})
}

// Run cancels a job.
func (flags jobsCancelFlags) Run(ctx context.Context, p Process, parsed *kong.Context) error {
	return p.ask(ctx, flags.operatorFlags, parsed, func(ctx context.Context, o *operator.Client) error {
		j, err := o.CancelJob(ctx, flags.ID)
		if err != nil {
			return err
		}
		return p.print(fmt.Sprintf("%s (%s) is cancelled.\n", textutil.Quote(j.ID), textutil.Quote(j.Name)))
	})
}
