package main

import (
	"context"
	"fmt"

	"github.com/alecthomas/kong"

	"voicegw/client/operator"
	"voicegw/config"
)

// healthFlags are those of the command health: a probe for containers, which have no curl.
type healthFlags struct {
	URL    string   `help:"Address of the gateway; that of the configuration's listen without." placeholder:"URL" name:"url"`
	CA     string   `help:"PEM file with the authorities that may vouch for the gateway's certificate; those of the system without." placeholder:"FILE" name:"ca"`
	Ready  bool     `help:"Ask whether it takes new sessions (/readyz), not only whether it lives."`
	Config string   `help:"YAML file to read listen from (VOICEGW_CONFIG), as serve does." placeholder:"FILE"`
	Set    []string `help:"Any setting of docs/configuration.md; may be given several times." placeholder:"KEY=VALUE" sep:"none"`
}

// Run asks a gateway how it is. The exit code is 0 if it lives or, with Ready, is ready.
func (flags healthFlags) Run(ctx context.Context, p Process, parsed *kong.Context) error {
	source := config.Source{Environ: p.Environ, File: flags.Config, FileFrom: "--config", Client: true}
	cfg, _, err := p.loadFrom(source, flags.Set, parsed)
	if err != nil {
		return usage(err)
	}
	base, trusted, err := gatewayOf(flags.URL, flags.CA, cfg)
	if err != nil {
		return usage(err)
	}
	o := operator.New(base, "", trusted) // anybody may ask
	defer o.Close()
	ctx, stop := p.untilSignal(ctx)
	defer stop()
	health, err := o.Health(ctx, flags.Ready)
	if err != nil {
		return err
	}
	if flags.Ready {
		return p.print(health.Status + "\n")
	}
	return p.print(fmt.Sprintf("%s, sessions: %d\n", health.Status, health.Sessions))
}
