package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/alecthomas/kong"

	"voicegw/client/operator"
	"voicegw/internal/agent"
	"voicegw/internal/textutil"
)

type agentsFlags struct {
	List   agentsListFlags   `cmd:"" help:"List the agents of a running gateway and their sources."`
	Show   agentsShowFlags   `cmd:"" help:"Show one agent with its document."`
	Apply  agentsApplyFlags  `cmd:"" help:"Apply agents from files to all gateways that share the store."`
	Delete agentsDeleteFlags `cmd:"" help:"Delete an agent, or only the edits of one that comes from a file."`
}

type agentsListFlags struct{ listFlags }

// agentFlags are the flags of commands for one agent.
type agentFlags struct {
	operatorFlags
	ID string `arg:"" help:"The agent's id."`
}

type agentsShowFlags struct{ agentFlags }

type agentsDeleteFlags struct{ agentFlags }

type agentsApplyFlags struct {
	operatorFlags
	File []string `arg:"" help:"YAML documents." type:"existingfile"`
}

func (flags agentsListFlags) Run(ctx context.Context, p Process, parsed *kong.Context) error {
	return showList(ctx, p, flags.operatorFlags, parsed, flags.JSON, (*operator.Client).Agents)
}

func (flags agentsShowFlags) Run(ctx context.Context, p Process, parsed *kong.Context) error {
	return p.ask(ctx, flags.operatorFlags, parsed, func(ctx context.Context, o *operator.Client) error {
		a, err := o.Agent(ctx, flags.ID)
		if err != nil {
			return err
		}
		return p.printJSON(a)
	})
}

// Run applies the documents in order, and continues after an invalid one.
func (flags agentsApplyFlags) Run(ctx context.Context, p Process, parsed *kong.Context) error {
	return p.ask(ctx, flags.operatorFlags, parsed, func(ctx context.Context, o *operator.Client) error {
		var failed error
		for _, file := range flags.File {
			if err := p.applyAgent(ctx, o, file); err != nil {
				failed = errors.Join(failed, err)
			}
		}
		return failed
	})
}

func (p Process) applyAgent(ctx context.Context, o *operator.Client, file string) error {
	document, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	d := agent.Read(file, document)
	id := d.Agent().ID
	if id == "" {
		_, err := d.Check(agent.World{})
		return fmt.Errorf("cannot apply %s:\n%w", file, err)
	}
	a, created, err := o.ApplyAgent(ctx, file, id, document)
	if err != nil {
		return err
	}
	what := "changed"
	if created {
		what = "created"
	}
	for _, w := range a.Warnings {
		p.complain("warning: %s: %s", file, textutil.Quote(w))
	}
	return p.print(fmt.Sprintf("%s is %s: version %s\n", textutil.Quote(id), what, textutil.Quote(a.Version)))
}

func (flags agentsDeleteFlags) Run(ctx context.Context, p Process, parsed *kong.Context) error {
	return p.ask(ctx, flags.operatorFlags, parsed, func(ctx context.Context, o *operator.Client) error {
		if err := o.DeleteAgent(ctx, flags.ID); err != nil {
			return err
		}
		return p.print(textutil.Quote(flags.ID) + " is deleted.\n")
	})
}
