package server

import (
	"context"
	"io"
	"log/slog"
	"sync"

	"voicegw/config"
	"voicegw/internal/mcp"
	"voicegw/registry/spec"
)

// ServeMCP serves the tools to an MCP client until it closes in, or ctx ends.
func (t *Tools) ServeMCP(ctx context.Context, in io.ReadCloser, out io.WriteCloser, from mcp.Caller) error {
	var follows sync.WaitGroup
	defer follows.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	o := t.mcpOptions(t.caps.logger)
	o.Audit, o.Changes = t.audit.Write, true
	served := mcp.New(o)
	follows.Go(func() { t.caps.followTools(ctx, t.cfg, t.tools, served.Refresh) })
	return served.Run(ctx, in, out, from)
}

// mcpOptions returns the options of a server for MCP clients, without its audit log.
func (t *toolset) mcpOptions(logger *slog.Logger) mcp.Options {
	return mcp.Options{
		Executor: t.executor, Rules: toolRules(t.cfg, spec.ModeText), Agent: t.cfg.Agent.Name, Version: t.host.Version,
		Settings: mcpSettings(t.cfg), Tools: t.tools.Snapshot, Live: t.live, Logger: logger,
	}
}

func mcpSettings(cfg *config.Config) mcp.Settings {
	return mcp.Settings{Expose: cfg.MCP.Expose, PerMinute: cfg.MCP.PerMinute,
		Elicit: cfg.MCP.Confirm == config.ConfirmElicitation}
}

// newMCP returns nil unless mcp.serve is set.
func (s *Server) newMCP() *mcp.Server {
	if !s.cfg.MCP.Serve {
		return nil
	}
	o := s.mcpOptions(s.logger)
	o.Audit = s.record
	return mcp.New(o)
}
