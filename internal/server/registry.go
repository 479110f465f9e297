package server

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"voicegw/config"
	"voicegw/internal/agent"
	"voicegw/internal/mcp"
	"voicegw/internal/textutil"
	"voicegw/registry"
	"voicegw/registry/build"
)

// loadTools loads the registry that serve uses. With cfg.Dev, that is the registry of the project in the working
// directory, if there is one. o has the tools' capabilities. caps is nil if no tool is called.
func (h Host) loadTools(o registry.Options, cfg *config.Config, caps *capabilities) (*registry.Registry, *build.Watch, error) {
	o.Settings = toolSettings(cfg)
	others, err := foreignTools(cfg.ToolDirs, cfg.MCP)
	if err != nil {
		return nil, nil, err
	}
	o.Foreign = others.with(caps)
	if h.Handlers != nil {
		o.Handlers = h.Handlers
	}
	var reload *build.Watch
	data, err := h.registryData()
	if cfg.Dev {
		reload = &build.Watch{File: filepath.FromSlash(build.RegistryFile), Logger: o.Logger}
		switch seen, missing := os.ReadFile(reload.File); {
		case missing == nil:
			reload.Seen, data, err = seen, seen, nil
		case !errors.Is(missing, fs.ErrNotExist):
			return nil, nil, missing
		}
	}
	if err != nil {
		return nil, nil, err
	}
	tools, err := registry.Load(data, o)
	if err != nil {
		return nil, nil, err
	}
	tools.Lock()
	if caps != nil {
		caps.mcp.Use(MCPServers(cfg.MCP), others.mcp)
	}
	logForeign(o.Logger, others.warnings)
	if reload != nil {
		reload.Tools = tools
	}
	return tools, reload, nil
}

// idleFeatures returns the features that no tool uses.
func idleFeatures(entries []string, tools *registry.Snapshot) []string {
	return slices.DeleteFunc(slices.Clone(entries), func(entry string) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(entry, "!"), "@")
		return slices.ContainsFunc(tools.All(), func(t *registry.Tool) bool {
			return t.Availability != nil && slices.Contains(t.Availability.Features, name)
		})
	})
}

// checkTools checks that all tools that the configuration names exist, and that those for MCP clients can be offered.
// more are tools in addition to those of the snapshot. The error is config.Problems.
func checkTools(cfg *config.Config, tools *registry.Snapshot, more ...registry.Entry) error {
	var problems config.Problems
	all := tools.All()
	for _, e := range more {
		all = append(all, &registry.Tool{Entry: e})
	}
	find := func(where, id string) *registry.Tool {
		if i := slices.IndexFunc(all, func(t *registry.Tool) bool { return t.ToolID == id }); i >= 0 {
			return all[i]
		}
		if t, ok := tools.Tool(id); ok || slices.Contains(tools.Off(), id) {
			return t
		}
		var known []string
		for _, t := range all {
			known = append(known, t.ToolID)
		}
		hint := ""
		if meant := textutil.Nearest(id, known); meant != "" {
			hint = " Did you mean " + meant + "?"
		}
		problems.Add(where, "No tool %q.%s See voicegw tools list.", id, hint)
		return nil
	}
	for _, id := range cfg.Confirmation.Require {
		find("confirmation.require", id)
	}
	for _, id := range cfg.MCP.Expose {
		if t := find("mcp.expose", id); t != nil {
			if why := mcp.Unfit(t); why != "" {
				problems.Add("mcp.expose", "The tool %q cannot be offered to MCP clients: %s.", id, why)
			}
		}
	}
	return problems.Err()
}

func toolSettings(cfg *config.Config) map[string]registry.ToolSettings {
	all := map[string]registry.ToolSettings{}
	for id, t := range cfg.Tools {
		all[id] = registry.ToolSettings{Off: !t.Enabled, Share: t.Share, Values: t.Values()}
	}
	if !cfg.Agents.Tools {
		for _, id := range agent.Tools() {
			of := all[id]
			of.Off = true
			all[id] = of
		}
	}
	return all
}

// switchedOff returns the tools that the operator disabled, without the tools for agents, which are off by default.
func switchedOff(cfg *config.Config, off []string, unset []registry.Unset) []string {
	return slices.DeleteFunc(slices.Clone(off), func(id string) bool {
		return !cfg.Agents.Tools && slices.Contains(agent.Tools(), id) ||
			slices.ContainsFunc(unset, func(u registry.Unset) bool { return u.Tool == id })
	})
}

func (s *Server) logToolSettings(cfg *config.Config) {
	tools := s.tools.Snapshot()
	if off := switchedOff(cfg, tools.Off(), tools.Unset()); len(off) > 0 {
		s.logger.Info("tools are disabled (tools.<id>.enabled)", "tools", strings.Join(off, ", "))
	}
	for _, unset := range tools.Unset() {
		s.logger.Error("a tool is off because it lacks a setting", "tool", unset.Tool, "fix", unset.String())
	}
}

// configureTools reads the foreign tools again. take gives them and the settings of all tools to new conversations.
func (c *capabilities) configureTools(cfg *config.Config, tools *registry.Registry) (take func(), err error) {
	others, err := foreignTools(cfg.ToolDirs, cfg.MCP)
	if err != nil {
		return nil, err
	}
	if err := checkTools(cfg, tools.Snapshot(), others.entries...); err != nil {
		return nil, err
	}
	swap, err := tools.Configure(toolSettings(cfg), others.with(c))
	if err != nil {
		return nil, config.Problems{{Where: "tools", Message: err.Error()}}
	}
	return func() {
		swap()
		c.mcp.Use(MCPServers(cfg.MCP), others.mcp)
		logForeign(c.logger, others.warnings)
	}, nil
}

// toolLook is the interval of checks for changed files of foreign tools.
const toolLook = 2 * time.Second

// lookAtTools loads foreign tools whose files are in another state than files, and then calls took. If anything is wrong
// with them, it changes nothing and logs the problems once.
func (c *capabilities) lookAtTools(cfg *config.Config, tools *registry.Registry, files *string, took func()) {
	now := toolFiles(cfg.ToolDirs, cfg.MCP)
	if now == *files {
		return
	}
	*files = now
	take, err := c.configureTools(cfg, tools)
	if err != nil {
		c.logger.Error("the changed tools cannot be used; the tools stay as they are", "error", err)
		return
	}
	take()
	took()
	c.logger.Info("tools loaded again; running sessions keep theirs", "tools_version", tools.Snapshot().Version())
}

// followTools looks at the files of foreign tools until ctx ends.
func (c *capabilities) followTools(ctx context.Context, cfg *config.Config, tools *registry.Registry, took func()) {
	files := toolFiles(cfg.ToolDirs, cfg.MCP)
	for looks := time.NewTicker(toolLook); ; {
		select {
		case <-looks.C:
			c.lookAtTools(cfg, tools, &files, took)
		case <-ctx.Done():
			looks.Stop()
			return
		}
	}
}

func logForeign(logger *slog.Logger, warnings []string) {
	for _, w := range warnings {
		logger.Warn("tools", "warning", w)
	}
}
