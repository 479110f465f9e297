package server

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"voicegw/config"
	"voicegw/internal/httptool"
	"voicegw/internal/jstool"
	"voicegw/internal/mcp"
	"voicegw/internal/strict"
	"voicegw/registry"
	"voicegw/registry/build"
	"voicegw/registry/document"
)

// foreignReader reads tools and collects problems.
type foreignReader struct {
	problems config.Problems
	warnings []string
}

func (f *foreignReader) report(warning bool, file string, line int, text string) {
	file = atLine(file, line)
	if warning {
		f.warnings = append(f.warnings, file+": "+text)
	} else {
		f.problems.Add(file, "%s", text)
	}
}

func atLine(file string, line int) string {
	if line > 0 {
		return fmt.Sprintf("%s:%d", file, line)
	}
	return file
}

// addStrict adds the problems of a document.
func addStrict(problems *config.Problems, file string, of *strict.Error) {
	for _, p := range of.Problems {
		problems.Add(atLine(file, p.Line), "%s.", p.Text)
	}
}

// http returns a tool's handler, nil with problems.
func (f *foreignReader) http(t *build.Foreign, _ string) handlerOf {
	tool, err := httptool.Parse(t.File, t.Handler, &t.Entry.Spec)
	if err == nil {
		return func(*capabilities) registry.Handler { return tool.Handler() }
	}
	if bad, ok := errors.AsType[*strict.Error](err); ok {
		addStrict(&f.problems, bad.Name, bad)
	} else {
		f.report(false, t.File, 0, err.Error())
	}
	return nil
}

// js returns a tool's handler, nil with problems, and adds the hash of its code to the entry.
func (f *foreignReader) js(t *build.Foreign, dir string) handlerOf {
	tool, problems := jstool.Parse(dir, filepath.Base(filepath.Dir(t.File)), &t.Entry.Spec)
	for _, p := range problems {
		f.report(p.Warning, p.File, p.Line, p.Text)
	}
	if tool == nil {
		return nil
	}
	t.Entry.Handler = tool.Hash() // with its imports
	return func(c *capabilities) registry.Handler { return c.hosts.Handler(tool) }
}

// dirTools reads the tools in the directories of tool_dirs. The error is config.Problems, with the files' names and
// lines.
func dirTools(dirs []string) (all foreign, err error) {
	all.handlers = map[string]handlerOf{}
	from := map[string]string{} // the file, by tool
	f := &foreignReader{}
	parse := map[string]func(t *build.Foreign, dir string) handlerOf{httptool.FileName: f.http, jstool.FileName: f.js}
	for _, dir := range dirs {
		tools, report, err := build.LintForeign(dir, httptool.FileName, jstool.FileName)
		if err != nil {
			f.problems.Add("tool_dirs", "%v.", err)
			continue
		}
		for _, found := range report.Findings {
			f.report(found.Severity != build.SeverityError, found.File, found.Line, strings.TrimSpace(found.Path+" "+found.Message))
		}
		for _, t := range tools {
			id := t.Entry.ToolID
			handler := parse[t.Kind](&t, dir)
			if handler == nil {
				continue
			}
			if other := from[id]; other != "" {
				f.problems.Add(t.File, "There is another tool %q in %s; rename one.", id, filepath.Dir(other))
				continue
			}
			from[id] = t.File
			all.entries = append(all.entries, t.Entry)
			all.handlers[id] = handler
		}
	}
	all.warnings = f.warnings
	return all, f.problems.Err()
}

// CheckToolDirs reads the tools in the directories of tool_dirs and returns their number and warnings. The error is
// config.Problems, with the files' names and lines.
func CheckToolDirs(dirs []string) (tools int, warnings []string, err error) {
	all, err := dirTools(dirs)
	return len(all.entries), all.warnings, err
}

// ForeignTools returns the tools in the directories of tool_dirs and in the lock file of MCP servers. The error is
// config.Problems, with the files' names and lines.
func ForeignTools(dirs []string, m config.MCP) ([]registry.Entry, error) {
	all, err := foreignTools(dirs, m)
	return all.entries, err
}

// toolFiles identifies the state of the files of foreign tools without reading them. It includes files that handlers
// share, but of packages only that npm has changed them.
func toolFiles(dirs []string, m config.MCP) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q %q\n", dirs, slices.Sorted(maps.Keys(m.Servers)))
	for _, root := range append([]string{m.Lock}, dirs...) {
		_ = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error { // reading the tools reports errors
			switch {
			case err != nil:
				return nil
			case d.IsDir() && name != root && strings.HasPrefix(d.Name(), "."):
				return filepath.SkipDir
			case d.IsDir() && d.Name() != "node_modules":
				return nil
			case d.IsDir():
				name, err = filepath.Join(name, ".package-lock.json"), filepath.SkipDir
			}
			if info, missing := os.Stat(name); missing == nil {
				fmt.Fprintf(&b, "%s %d %d\n", name, info.Size(), info.ModTime().UnixNano())
			}
			return err
		})
	}
	return b.String()
}

// foreign are the tools that are not part of the program.
type foreign struct {
	entries  []registry.Entry
	handlers map[string]handlerOf // for each entry
	mcp      []*mcp.Tool
	warnings []string
}

// handlerOf returns a tool's handler. Without hosts and connections to servers, calls of some handlers fail.
type handlerOf func(*capabilities) registry.Handler

// with returns the tools with their handlers. caps is nil if no tool is called.
func (f foreign) with(caps *capabilities) registry.Foreign {
	if caps == nil {
		caps = &capabilities{}
	}
	all := registry.Foreign{Entries: f.entries, Handlers: map[string]registry.Handler{}}
	for id, handler := range f.handlers {
		all.Handlers[id] = handler(caps)
	}
	return all
}

// lastForeign are the tools that foreignTools has read last, and the state of their files: a start, and each reload, needs
// them to check the configuration and then to load the registry.
var lastForeign struct {
	sync.Mutex
	files string
	foreign
}

func foreignTools(dirs []string, m config.MCP) (foreign, error) {
	lastForeign.Lock()
	defer lastForeign.Unlock()
	files := toolFiles(dirs, m)
	if files == lastForeign.files {
		return lastForeign.foreign, nil
	}
	all, err := readForeign(dirs, m)
	if err == nil {
		lastForeign.files, lastForeign.foreign = files, all
	}
	return all, err
}

func readForeign(dirs []string, m config.MCP) (foreign, error) {
	all, err := dirTools(dirs)
	if err != nil {
		return all, err
	}
	lock, err := ReadLock(m.Lock)
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
		return all, LockProblems(m.Lock, problems)
	}
	for _, t := range tools {
		if m.Servers[t.Server] == nil {
			continue // warned of below
		}
		all.mcp = append(all.mcp, t)
		all.entries = append(all.entries, t.Entry)
		all.handlers[t.Entry.ToolID] = func(c *capabilities) registry.Handler { return c.mcp.Handler(t) }
	}
	for _, name := range slices.Sorted(maps.Keys(lock.Servers)) {
		if m.Servers[name] == nil {
			all.warnings = append(all.warnings, fmt.Sprintf("%s has tools of the server %s, which mcp.servers lacks", m.Lock, name))
		}
	}
	return all, nil
}

// ReadLock reads the lock file of MCP servers; an empty one for an empty path. The error is one of the file system, or
// config.Problems.
func ReadLock(path string) (*mcp.Lock, error) {
	if path == "" {
		return &mcp.Lock{}, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("mcp.lock: %w", err)
	}
	lock, problems := mcp.ParseLock(data)
	if len(problems) > 0 {
		return nil, LockProblems(path, problems)
	}
	return lock, nil
}

// LockProblems returns the problems of a lock file as config.Problems.
func LockProblems(path string, found []document.Problem) error {
	var problems config.Problems
	for _, p := range found {
		problems.Add(path, "%s", p)
	}
	return problems.Err()
}

// MCPServers returns the servers of a configuration.
func MCPServers(m config.MCP) map[string]mcp.Remote {
	all := map[string]mcp.Remote{}
	for name, s := range m.Servers {
		all[name] = mcp.Remote{URL: s.URL, Headers: s.Header(), UserHeader: s.UserHeader, Command: s.Command, Env: s.Environment()}
	}
	return all
}
