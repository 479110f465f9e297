package build

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"voicegw/registry"
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
	p, err := open(dir, kinds...)
	if err != nil {
		return nil, nil, err
	}
	names, err := p.names(p.root.FS())
	if err != nil {
		return nil, nil, errors.Join(err, p.root.Close())
	}
	var all []Foreign
	for _, t := range p.check(names) {
		all = append(all, Foreign{t.entry, t.kind, filepath.Join(dir, t.name, t.kind), t.current})
	}
	report := p.report(names)
	for i := range report.Findings {
		report.Findings[i].File = filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(report.Findings[i].File, "./")))
	}
	return all, report, p.root.Close()
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
		l.add(dir, 0, "", ruleFiles, "There are %s, but a tool has only one handler; remove the other.", strings.Join(has, " and "))
	}
	return ""
}
