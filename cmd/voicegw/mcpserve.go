package main

import (
	"context"
	"io"

	"github.com/alecthomas/kong"

	"voicegw/config"
	"voicegw/internal/mcpserve"
	"voicegw/internal/user"
	"voicegw/orchestrator/execute"
)

type mcpServeFlags struct {
	User     userName `help:"User of the calls." default:"local" placeholder:"ID"`
	Scope    []string `help:"Scope of the user; may be given several times." placeholder:"SCOPE"`
	Store    bool     `help:"Use the store and audit log of serve (stop a gateway with the same data_dir first)."`
	Config   string   `help:"YAML file to read the configuration from (VOICEGW_CONFIG), as serve does." placeholder:"FILE"`
	Set      []string `help:"Any setting of docs/configuration.md; may be given several times." placeholder:"KEY=VALUE" sep:"none"`
	LogLevel string   `help:"Minimum log level: debug, info, warn or error." default:"warn" enum:"debug,info,warn,error"`
}

// Run serves until the client closes standard input.
func (flags mcpServeFlags) Run(ctx context.Context, p Process, parsed *kong.Context) error {
	if err := checkScopes(flags.Scope); err != nil {
		return usage(err)
	}
	who, err := user.Parse(string(flags.User))
	if err != nil {
		return usage(err)
	}
	cfg, _, err := p.load(serveFlags{Config: flags.Config, Set: flags.Set}, parsed)
	if err != nil {
		return usage(err)
	}
	logger := newLog(p.Stderr, flags.LogLevel, "auto", cfg.Secrets()...).logger
	return p.withTools(ctx, cfg, flags.Store, logger, func(b *toolBench) error {
		ctx, stop := p.untilSignal(ctx)
		defer stop()
		o := mcpOptions(cfg, b.executor)
		o.Tools, o.Live, o.Audit, o.Logger = b.tools.Snapshot, b.live, b.audit, logger
		from := mcpserve.Caller{User: who, Vouched: true, Scopes: flags.Scope}
		return mcpserve.New(o).Run(ctx, io.NopCloser(p.Stdin), unclosed{p.Stdout}, from)
	})
}

// unclosed is a writer that its user cannot close.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

func mcpOptions(cfg *config.Config, executor *execute.Executor) mcpserve.Options {
	return mcpserve.Options{
		Executor: executor, Rules: textRules(cfg), Agent: cfg.Agent.Name, Version: versionOf(), Settings: mcpSettings(cfg),
	}
}

func mcpSettings(cfg *config.Config) mcpserve.Settings {
	return mcpserve.Settings{Expose: cfg.MCP.Expose, PerMinute: cfg.MCP.PerMinute,
		Elicit: cfg.MCP.Confirm == config.ConfirmElicitation}
}

// newMCP returns nil unless mcp.serve is set.
func (s *server) newMCP(executor *execute.Executor) *mcpserve.Server {
	if !s.cfg.MCP.Serve {
		return nil
	}
	o := mcpOptions(s.cfg, executor)
	o.Tools, o.Live, o.Audit, o.Logger = s.tools.Snapshot, s.live, s.record, s.logger
	return mcpserve.New(o)
}
