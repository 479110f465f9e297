package build

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"text/template"

	"voicegw/registry/spec"
)

// templates are the files of new tools.
//
//go:embed template/*/*.tmpl
var templates embed.FS

// New creates a tool in the project dir that builds and runs immediately: the three files, a test, and the generated
// types. It is an example of its category, by default retrieval. It returns the files, relative to the project. The
// error wraps [ErrName], [ErrExists] or [ErrNoTools], or is a file system error.
func New(dir, name string, category spec.Category) ([]string, error) {
	text := checkName(name)
	if text == "" {
		text = spec.Reserved(toolID(name))
	}
	if text != "" {
		return nil, fmt.Errorf("%w: %q %s", ErrName, name, text)
	}
	p, err := open(dir)
	if err != nil {
		return nil, err
	}
	files, err := p.scaffold(name, cmp.Or(category, spec.CategoryRetrieval))
	return files, errors.Join(err, p.root.Close())
}

func (p *project) scaffold(name string, category spec.Category) ([]string, error) {
	if _, err := toolNames(p.root.FS()); err != nil {
		return nil, err
	}
	dir := path.Join(toolsDir, name)
	if err := p.root.Mkdir(dir, 0o755); errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w: %s", ErrExists, dir)
	} else if err != nil {
		return nil, fmt.Errorf("making %s: %w", dir, err)
	}
	all, err := template.ParseFS(templates, path.Join("template", string(category), "*.tmpl"))
	if err != nil {
		return nil, fmt.Errorf("the templates of a tool: %w", err)
	}
	about := struct{ Module, Name, ID, Package string }{p.module, name, toolID(name), packageName(name)}
	var written []string
	put := func(file string, text []byte) error {
		written = append(written, path.Join(dir, file))
		if err := os.WriteFile(filepath.Join(p.dir, toolsDir, name, file), text, 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", path.Join(dir, file), err)
		}
		return nil
	}
	for _, file := range []string{schemaFile, guideFile, handlerFile, "handler_test.go"} {
		var b bytes.Buffer
		if err := all.ExecuteTemplate(&b, file+".tmpl", about); err != nil {
			return written, fmt.Errorf("the template of %s: %w", file, err)
		}
		if err := put(file, b.Bytes()); err != nil {
			return written, err
		}
	}
	t := p.linter.check(p.root.FS(), name)
	if t == nil {
		return written, fmt.Errorf("the new tool is refused by the build: %v", p.findings)
	}
	return written, put(ArgsFile, t.args)
}
