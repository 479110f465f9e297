package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"voicegw/config"
	"voicegw/internal/httptool"
	"voicegw/internal/jstool"
	"voicegw/internal/strict"
	"voicegw/registry"
	"voicegw/registry/build"
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
