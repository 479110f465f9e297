package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"voicegw/config"
	"voicegw/internal/httptool"
	"voicegw/internal/jstool"
	"voicegw/internal/mcptool"
	"voicegw/internal/strict"
	"voicegw/registry"
	"voicegw/registry/build"
	"voicegw/registry/document"
)

// foreignKinds are the kinds of tools that are not Go code, by the name of the handler's file.
var foreignKinds = []struct {
	file string
	// parse returns the handler, and may complete the entry. state is that of the files in the directory dir.
	parse func(f *foreignReader, t *build.Foreign, dir, state string) (registry.Handler, bool)
}{
	{httptool.FileName, (*foreignReader).http},
	{jstool.FileName, (*foreignReader).js},
}

// foreignReader reads tools and collects problems. hosts runs the tools in JavaScript; nil if they are only checked.
type foreignReader struct {
	hosts    *jstool.Hosts
	problems config.Problems
	warnings []string
}

func (f *foreignReader) report(warning bool, file string, line int, text string) {
	if line > 0 {
		file = fmt.Sprintf("%s:%d", file, line)
	}
	if warning {
		f.warnings = append(f.warnings, file+": "+text)
	} else {
		f.problems.Add(file, "%s", text)
	}
}

func (f *foreignReader) http(t *build.Foreign, _, _ string) (registry.Handler, bool) {
	tool, err := httptool.Parse(t.File, t.Handler, &t.Entry.Spec)
	if err == nil {
		return tool.Handler(), true
	}
	if bad, ok := errors.AsType[*strict.Error](err); ok {
		for _, p := range bad.Problems {
			f.report(false, bad.Name, p.Line, p.Text+".")
		}
	} else {
		f.report(false, t.File, 0, err.Error())
	}
	return registry.Handler{}, false
}

func (f *foreignReader) js(t *build.Foreign, dir, state string) (registry.Handler, bool) {
	tool, problems := jstool.Parse(f.hosts, dir, filepath.Base(filepath.Dir(t.File)), state, &t.Entry.Spec)
	for _, p := range problems {
		f.report(p.Warning, p.File, p.Line, p.Text)
	}
	if tool == nil {
		return registry.Handler{}, false
	}
	t.Entry.Handler = tool.Hash() // with its imports
	return tool.Handler(), true
}

// dirTools reads the tools in the directories of tool_dirs. hosts runs those in JavaScript; nil if they are only
// checked. The error is config.Problems, with the files' names and lines.
func dirTools(hosts *jstool.Hosts, dirs []string) (all registry.Foreign, warnings []string, err error) {
	all.Handlers = map[string]registry.Handler{}
	from := map[string]string{} // the file, by tool
	f := &foreignReader{hosts: hosts}
	var kinds []string
	for _, k := range foreignKinds {
		kinds = append(kinds, k.file)
	}
	for _, dir := range dirs {
		state := jstool.State(dir)
		tools, report, err := build.LintForeign(dir, kinds...)
		if err != nil {
			f.problems.Add("tool_dirs", "%v.", err)
			continue
		}
		for _, found := range report.Findings {
			f.report(found.Severity != build.SeverityError, found.File, found.Line, strings.TrimSpace(found.Path+" "+found.Message))
		}
		for _, t := range tools {
			id := t.Entry.ToolID
			handler, ok := foreignKinds[slices.Index(kinds, t.Kind)].parse(f, &t, dir, state)
			if !ok {
				continue
			}
			if other := from[id]; other != "" {
				f.problems.Add(t.File, "There is another tool %q in %s; rename one.", id, filepath.Dir(other))
				continue
			}
			from[id] = t.File
			all.Entries = append(all.Entries, t.Entry)
			all.Handlers[id] = handler
		}
	}
	return all, f.warnings, f.problems.Err()
}

// toolFiles identifies the state of the files of foreign tools without reading them.
func toolFiles(cfg *config.Config) string {
	var b strings.Builder
	for _, name := range append([]string{cfg.MCP.Lock}, cfg.ToolDirs...) {
		b.WriteString(jstool.State(name))
	}
	return b.String()
}

type toolHostFlags struct{}

// Run runs tools in JavaScript for a gateway, which is the parent process.
func (toolHostFlags) Run(p Process) error { return jstool.Serve(p.Stdin, p.Stdout) }

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
