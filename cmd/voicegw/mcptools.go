package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"voicegw/config"
	"voicegw/internal/jstool"
	"voicegw/internal/mcptool"
	"voicegw/registry"
	"voicegw/registry/document"
)

// foreign are the tools that are not part of the program.
type foreign struct {
	registry.Foreign
	mcp      []*mcptool.Tool
	warnings []string
}

// foreignTools reads the tools in the directories of tool_dirs and in the lock file of MCP servers. client makes the calls
// to those servers, and hosts runs tools in JavaScript; both are nil if no tool is called. The error is config.Problems,
// with the files' names and lines.
func foreignTools(dirs []string, m config.MCP, client *mcptool.Client, hosts *jstool.Hosts) (foreign, error) {
	var all foreign
	var err error
	if all.Foreign, all.warnings, err = dirTools(hosts, dirs); err != nil {
		return all, err
	}
	lock, err := readLock(m.Lock)
	if errors.Is(err, fs.ErrNotExist) {
		if len(m.Servers) > 0 {
			all.warnings = append(all.warnings, m.Lock+" does not exist, so no tool of an MCP server is offered; see voicegw mcp add")
		}
		return all, nil
	}
	if err != nil {
		return all, err
	}
	tools, problems := lock.Tools()
	if len(problems) > 0 {
		return all, lockProblems(m.Lock, problems)
	}
	for _, t := range tools {
		if m.Servers[t.Server] == nil {
			continue // warned of below
		}
		all.mcp = append(all.mcp, t)
		all.Entries = append(all.Entries, t.Entry)
		all.Handlers[t.Entry.ToolID] = client.Handler(t)
	}
	for _, name := range slices.Sorted(maps.Keys(lock.Servers)) {
		if m.Servers[name] == nil {
			all.warnings = append(all.warnings, fmt.Sprintf("%s has tools of the server %s, which mcp.servers lacks", m.Lock, name))
		}
	}
	return all, nil
}

// readLock reads the lock file of MCP servers; an empty one for an empty path. The error is one of the file system, or
// config.Problems.
func readLock(path string) (*mcptool.Lock, error) {
	if path == "" {
		return &mcptool.Lock{}, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("mcp.lock: %w", err)
	}
	lock, problems := mcptool.ParseLock(data)
	if len(problems) > 0 {
		return nil, lockProblems(path, problems)
	}
	return lock, nil
}

func lockProblems(path string, found []document.Problem) error {
	var problems config.Problems
	for _, p := range found {
		problems.Add(path, "%s", p)
	}
	return problems.Err()
}

// mcpServers returns the servers of a configuration.
func mcpServers(m config.MCP) map[string]mcptool.Server {
	all := map[string]mcptool.Server{}
	for name, s := range m.Servers {
		all[name] = mcptool.Server{URL: s.URL, Headers: s.Header(), UserHeader: s.UserHeader, Command: s.Command, Env: s.Environment()}
	}
	return all
}
