package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"voicegw/config"
	"voicegw/internal/httptool"
	"voicegw/internal/strict"
	"voicegw/registry"
	"voicegw/registry/build"
)

// dirTools reads the tools in the directories of tool_dirs. The error is config.Problems, with the files' names and
// lines.
func dirTools(dirs []string) (all registry.Foreign, warnings []string, err error) {
	all.Handlers = map[string]registry.Handler{}
	from := map[string]string{} // the file, by tool
	var problems config.Problems
	for _, dir := range dirs {
		tools, report, err := build.LintForeign(dir, httptool.FileName)
		if err != nil {
			problems.Add("tool_dirs", "%v.", err)
			continue
		}
		for _, f := range report.Findings {
			where := f.File
			if f.Line > 0 {
				where = fmt.Sprintf("%s:%d", where, f.Line)
			}
			if f.Severity == build.SeverityError {
				problems.Add(where, "%s", strings.TrimSpace(f.Path+" "+f.Message))
			} else {
				warnings = append(warnings, where+": "+f.Message)
			}
		}
		for _, t := range tools {
			id := t.Entry.ToolID
			tool, err := httptool.Parse(t.File, t.Handler, &t.Entry.Spec)
			if bad, ok := errors.AsType[*strict.Error](err); ok {
				for _, p := range bad.Problems {
					problems.Add(fmt.Sprintf("%s:%d", bad.Name, p.Line), "%s.", p.Text)
				}
				continue
			} else if err != nil {
				return all, warnings, err
			}
			if other := from[id]; other != "" {
				problems.Add(t.File, "There is another tool %q in %s; rename one.", id, filepath.Dir(other))
				continue
			}
			from[id] = t.File
			all.Entries = append(all.Entries, t.Entry)
			all.Handlers[id] = tool.Handler()
		}
	}
	return all, warnings, problems.Err()
}

// toolFiles identifies the state of the files of foreign tools without reading them.
func toolFiles(cfg *config.Config) string {
	var b strings.Builder
	files := []string{cfg.MCP.Lock}
	for _, dir := range cfg.ToolDirs {
		in, _ := filepath.Glob(filepath.Join(dir, "*", "*")) // reading the tools reports a bad name
		files = append(files, in...)
	}
	for _, name := range files {
		if info, err := os.Stat(name); err == nil {
			fmt.Fprintf(&b, "%s %d %d\n", name, info.Size(), info.ModTime().UnixNano())
		}
	}
	return b.String()
}
