package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"voicegw/config"
	"voicegw/internal/jstool"
	"voicegw/internal/mcpserve"
	"voicegw/internal/mcptool"
	"voicegw/internal/textutil"
	"voicegw/registry"
	"voicegw/registry/build"
)

// registryData returns tool_registry.json. The error is registry.ErrEmpty if none was built.
func (p Process) registryData() ([]byte, error) {
	if p.Registry != nil {
		return p.Registry()
	}
	return registry.Embedded()
}

func (p Process) loadRegistry(o registry.Options) (*registry.Registry, error) {
	data, err := p.registryData()
	if err != nil {
		return nil, err
	}
	return registry.Load(data, o)
}

// loadTools loads the registry that serve uses. With cfg.Dev, that is the registry of the project in the working
// directory, if there is one. o has the tools' capabilities. client
// connects to the MCP servers, and hosts runs tools in JavaScript; both may be nil.
func (p Process) loadTools(o registry.Options, cfg *config.Config, client *mcptool.Client,
	hosts *jstool.Hosts) (*registry.Registry, *build.Watch, error) {
	o.Settings = toolSettings(cfg)
	others, err := foreignTools(cfg.ToolDirs, cfg.MCP, client, hosts)
	if err != nil {
		return nil, nil, err
	}
	o.Foreign = others.Foreign
	if p.Handlers != nil {
		o.Handlers = p.Handlers
	}
	var reload *build.Watch
	load := func() (*registry.Registry, error) { return p.loadRegistry(o) }
	if cfg.Dev {
		reload = &build.Watch{File: filepath.FromSlash(build.RegistryFile), Logger: o.Logger}
		if data, err := os.ReadFile(reload.File); err == nil {
			reload.Seen = data
			load = func() (*registry.Registry, error) { return registry.Load(data, o) }
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
	}
	tools, err := load()
	if err != nil {
		return nil, nil, err
	}
	tools.Lock()
	client.Use(mcpServers(cfg.MCP), others.mcp)
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
			if why := mcpserve.Unfit(t); why != "" {
				problems.Add("mcp.expose", "The tool %q cannot be offered to MCP clients: %s.", id, why)
			}
		}
	}
	return problems.Err()
}
