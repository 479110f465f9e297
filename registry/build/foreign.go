package build

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"voicegw/registry"
	"voicegw/registry/spec"
)

// Foreign is a tool whose handler is not Go code.
type Foreign struct {
	Entry   registry.Entry
	Kind    string // the name of the handler's file
	File    string // its path
	Handler []byte
}

// LintForeign checks the tools in a directory. Each has one handler, with one of the names kinds. It returns those without
// errors. The error is one of the file system.
func LintForeign(dir string, kinds ...string) ([]Foreign, *Report, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the directory of tools: %w", err)
	}
	names, err := namesIn(root.FS(), ".")
	if err != nil {
		return nil, nil, errors.Join(err, root.Close())
	}
	p := &project{dir: dir, root: root, linter: linter{base: ".", foreign: kinds}}
	ids := make([]string, len(names))
	for i, name := range names {
		ids[i] = toolID(name)
	}
	p.twins = spec.Lookalikes(ids)
	var all []Foreign
	for _, name := range names {
		if t := p.linter.check(root.FS(), name); t != nil {
			all = append(all, Foreign{t.entry, t.kind, filepath.Join(dir, name, t.kind), t.current})
		}
	}
	p.agree(root.FS())
	report := p.report(names)
	for i := range report.Findings {
		report.Findings[i].File = filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(report.Findings[i].File, "./")))
	}
	return all, report, root.Close()
}

// kind finds the file with the handler of a tool that is not Go code; empty if there are several, or none.
func (l *linter) kind(root fs.FS, dir string) string {
	var has []string
	for _, name := range l.foreign {
		if _, err := fs.Lstat(root, path.Join(dir, name)); err == nil {
			has = append(has, name)
		}
	}
	switch len(has) {
	case 1:
		return has[0]
	case 0:
		l.add(dir, 0, "", ruleFiles, "The handler is missing. A tool has schema.json, guide.md and %s.", strings.Join(l.foreign, " or "))
	default:
		l.add(dir, 0, "", ruleFiles, "There are %s, and a tool has one handler; remove the other.", strings.Join(has, " and "))
	}
	return ""
}
