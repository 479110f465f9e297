package build

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"voicegw/registry"
	"voicegw/registry/spec"
)

// Foreign is a tool whose handler is not Go code.
type Foreign struct {
	Entry   registry.Entry
	File    string // the handler's path
	Handler []byte
}

// LintForeign checks the tools in a directory, whose handlers are files with that name. It returns those without
// errors. The error is one of the file system.
func LintForeign(dir, handler string) ([]Foreign, *Report, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the directory of tools: %w", err)
	}
	names, err := namesIn(root.FS(), ".")
	if err != nil {
		return nil, nil, errors.Join(err, root.Close())
	}
	p := &project{dir: dir, root: root, linter: linter{base: ".", foreign: handler}}
	ids := make([]string, len(names))
	for i, name := range names {
		ids[i] = toolID(name)
	}
	p.twins = spec.Lookalikes(ids)
	var all []Foreign
	for _, name := range names {
		if t := p.linter.check(root.FS(), name); t != nil {
			all = append(all, Foreign{t.entry, filepath.Join(dir, name, handler), t.current})
		}
	}
	p.agree(root.FS())
	report := p.report(names)
	for i := range report.Findings {
		report.Findings[i].File = filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(report.Findings[i].File, "./")))
	}
	return all, report, root.Close()
}
