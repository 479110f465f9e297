package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"

	"github.com/alecthomas/kong"

	"voicegw/client/operator"
	"voicegw/config"
	"voicegw/internal/agent"
	"voicegw/internal/textutil"
	"voicegw/internal/user"
)

type operatorFlags struct {
	URL     string `help:"Address of the gateway (default: listen of the configuration)." placeholder:"URL" name:"url"`
	APIKey  string `key:"api_key" help:"The gateway's api_key; prefer VOICEGW_API_KEY, because other users see flags." placeholder:"KEY"`
	CA      string `help:"PEM file with authorities for the gateway's certificate (default: system's)." placeholder:"FILE" name:"ca"`
	DataDir string `key:"data_dir" help:"The gateway's data folder, to read the key that it generated." placeholder:"DIR"`
	configFlags
}

// gateway returns the configuration, the address and the trust of the gateway of a command.
func (p Process) gateway(address, ca string, flags configFlags, parsed *kong.Context) (cfg *config.Config, base string,
	trusted *tls.Config, err error) {
	if cfg, _, err = p.load(flags, true, parsed); err == nil {
		base, err = operator.BaseURL(address, cfg.TLS.Scheme(), cfg.Listen)
	}
	if err == nil {
		trusted, err = trust(ca)
	}
	if err == nil && address == "" {
		trusted, err = localTrust(cfg, trusted)
	}
	if err != nil {
		return nil, "", nil, usage(err)
	}
	return cfg, base, trusted, nil
}

// ProvideClient returns a client of the running gateway; kong calls it for each Run that has one as a parameter.
func (flags operatorFlags) ProvideClient(ctx context.Context, p Process, parsed *kong.Context) (*operator.Client, error) {
	cfg, base, trusted, err := p.gateway(flags.URL, flags.CA, flags.configFlags, parsed)
	if err != nil {
		return nil, err
	}
	key := cfg.APIKey.Reveal()
	if key == "" {
		if key, err = p.localKey(base, cfg); err != nil {
			return nil, err
		}
	}
	o := operator.New(base, key, trusted)
	context.AfterFunc(ctx, o.Close)
	return o, nil
}

type listFlags struct {
	operatorFlags
	JSON bool `help:"Write JSON." name:"json"`
}

func (p Process) showList(list interface{ Table(file any) string }, asJSON bool, err error) error {
	switch {
	case err != nil:
		return err
	case asJSON:
		return p.printJSON(list)
	}
	return p.print(list.Table(p.Stdout))
}

type blocksFlags struct {
	List   blocksListFlags   `cmd:"" help:"List the users that a running gateway blocks."`
	Remove blocksRemoveFlags `cmd:"" help:"Unblock a user."`
}

type blocksListFlags struct{ listFlags }

type blocksRemoveFlags struct {
	operatorFlags
	User userIdentity `arg:"" help:"The user's name."`
}

func (flags blocksListFlags) Run(ctx context.Context, p Process, o *operator.Client) error {
	blocks, err := o.Blocks(ctx)
	return p.showList(blocks, flags.JSON, err)
}

func (flags blocksRemoveFlags) Run(ctx context.Context, p Process, o *operator.Client) error {
	if err := o.Unblock(ctx, string(flags.User)); err != nil {
		return err
	}
	return p.print(textutil.Quote(string(flags.User)) + " may connect again.\n")
}

type consoleFlags struct{ operatorFlags }

func (consoleFlags) Run(ctx context.Context, p Process, o *operator.Client) error {
	link, err := o.ConsoleLink(ctx)
	if err != nil {
		return err
	}
	return p.print(link + "\n")
}

type jobsFlags struct {
	List   jobsListFlags   `cmd:"" help:"List background jobs on all gateways that share the store."`
	Cancel jobsCancelFlags `cmd:"" help:"Cancel a job on any gateway."`
}

type jobsListFlags struct {
	operatorFlags
	User string `help:"Only jobs of this user." placeholder:"NAME"`
	JSON bool   `help:"Write JSON." name:"json"`
}

type jobsCancelFlags struct {
	operatorFlags
	ID string `arg:"" help:"The job's id."`
}

func (flags jobsListFlags) Run(ctx context.Context, p Process, o *operator.Client) error {
	jobs, err := o.Jobs(ctx, flags.User)
	return p.showList(jobs, flags.JSON, err)
}

func (flags jobsCancelFlags) Run(ctx context.Context, p Process, o *operator.Client) error {
	j, err := o.CancelJob(ctx, flags.ID)
	if err != nil {
		return err
	}
	return p.print(fmt.Sprintf("%s (%s) is cancelled.\n", textutil.Quote(j.ID), textutil.Quote(j.Name)))
}

// healthFlags are the flags of health, a probe for containers without curl.
type healthFlags struct {
	URL   string `help:"Address of the gateway (default: listen of the configuration)." placeholder:"URL" name:"url"`
	CA    string `help:"PEM file with authorities for the gateway's certificate (default: system's)." placeholder:"FILE" name:"ca"`
	Ready bool   `help:"Check whether it accepts new sessions (/readyz), not only whether it is alive."`
	configFlags
}

// Run checks a gateway. The exit code is 0 if it is alive or, with Ready, ready.
func (flags healthFlags) Run(ctx context.Context, p Process, parsed *kong.Context) error {
	_, base, trusted, err := p.gateway(flags.URL, flags.CA, flags.configFlags, parsed)
	if err != nil {
		return err
	}
	o := operator.New(base, "", trusted) // needs no key
	defer o.Close()
	health, err := o.Health(ctx, flags.Ready)
	if err != nil {
		return err
	}
	if flags.Ready {
		return p.print(health.Status + "\n")
	}
	return p.print(fmt.Sprintf("%s, sessions: %d\n", health.Status, health.Sessions))
}

type userName string

// UnmarshalText parses a name as the gateway's endpoints do.
func (n *userName) UnmarshalText(text []byte) error {
	who, err := user.Parse(string(text))
	*n = userName(who.String())
	return err
}

// userIdentity is a flag with a user's identity; the user may have no name.
type userIdentity string

// UnmarshalText parses an identity as the gateway shows it.
func (i *userIdentity) UnmarshalText(text []byte) error {
	who, err := user.Stored(string(text))
	*i = userIdentity(who.String())
	return err
}

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

func (flags agentsListFlags) Run(ctx context.Context, p Process, o *operator.Client) error {
	agents, err := o.Agents(ctx)
	return p.showList(agents, flags.JSON, err)
}

func (flags agentsShowFlags) Run(ctx context.Context, p Process, o *operator.Client) error {
	a, err := o.Agent(ctx, flags.ID)
	if err != nil {
		return err
	}
	return p.printJSON(a)
}

func (flags agentsDeleteFlags) Run(ctx context.Context, p Process, o *operator.Client) error {
	if err := o.DeleteAgent(ctx, flags.ID); err != nil {
		return err
	}
	return p.print(textutil.Quote(flags.ID) + " is deleted.\n")
}

// Run applies the documents in order, and continues after an invalid one.
func (flags agentsApplyFlags) Run(ctx context.Context, p Process, o *operator.Client) error {
	var failed error
	for _, file := range flags.File {
		failed = errors.Join(failed, p.applyAgent(ctx, o, file))
	}
	return failed
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
