package main

import (
	"context"

	"github.com/alecthomas/kong"

	"voicegw/client/operator"
	"voicegw/config"
)

// operatorFlags are the flags of commands that ask a running gateway.
type operatorFlags struct {
	URL     string   `help:"Address of the gateway; that of the configuration's listen without." placeholder:"URL" name:"url"`
	APIKey  string   `key:"api_key" help:"The gateway's api_key. Others on this machine can see a flag: better leave it to VOICEGW_API_KEY or the configuration." placeholder:"KEY" name:"api-key"`
	CA      string   `help:"PEM file with the authorities that may vouch for the gateway's certificate; those of the system without." placeholder:"FILE" name:"ca"`
	DataDir string   `key:"data_dir" help:"The gateway's data folder, in which the key is that it has made itself." placeholder:"DIR"`
	Config  string   `help:"YAML file to read the configuration from (VOICEGW_CONFIG), as serve does." placeholder:"FILE"`
	Set     []string `help:"Any setting of docs/configuration.md; may be given several times." placeholder:"KEY=VALUE" sep:"none"`
}

// operator returns a client for the running gateway.
func (p Process) operator(flags operatorFlags, parsed *kong.Context) (*operator.Client, error) {
	source := config.Source{Environ: p.Environ, File: flags.Config, FileFrom: "--config", Client: true}
	cfg, _, err := p.loadFrom(source, flags.Set, parsed)
	if err != nil {
		return nil, usage(err)
	}
	base, trusted, err := gatewayOf(flags.URL, flags.CA, cfg)
	if err != nil {
		return nil, usage(err)
	}
	key := cfg.APIKey.Reveal()
	if key == "" {
		if key, err = p.localKey(base, cfg); err != nil {
			return nil, err
		}
	}
	return operator.New(base, key, trusted), nil
}

// ask calls question with a client for the running gateway. A signal ends it.
func (p Process) ask(ctx context.Context, flags operatorFlags, parsed *kong.Context, question func(context.Context, *operator.Client) error) error {
	o, err := p.operator(flags, parsed)
	if err != nil {
		return err
	}
	defer o.Close()
	ctx, stop := p.untilSignal(ctx)
	defer stop()
	return question(ctx, o)
}

// showList asks the running gateway for a list and prints it as JSON or as a table.
func showList[T interface{ Table(file any) string }](ctx context.Context, p Process, flags operatorFlags, parsed *kong.Context, asJSON bool, question func(*operator.Client, context.Context) (T, error)) error {
	return p.ask(ctx, flags, parsed, func(ctx context.Context, o *operator.Client) error {
		answer, err := question(o, ctx)
		switch {
		case err != nil:
			return err
		case asJSON:
			return p.printJSON(answer)
		}
		return p.print(answer.Table(p.Stdout))
	})
}
