package build

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"voicegw/registry"
	"voicegw/registry/spec"
)

// RegistryFile is the registry's path in the project.
const RegistryFile = "registry/tool_registry.json"

const defaultModule = "voicegw"

// Options configures a build.
type Options struct {
	// Dir is the project, the directory that contains tools. Empty means the working directory.
	Dir string
	// Check writes nothing and reports outdated generated Go files. It ignores the registry file, which isn't
	// committed.
	Check bool
	// Time and Commit are written into the registry, outside its version. Commit may be empty.
	Time   time.Time
	Commit string
}

// Build checks all tools and writes the registry and the generated Go files, unless a finding is an error. Unchanged
// files, and a registry of the same version and commit, aren't written. If Build itself fails, the error is
// [ErrNoTools] or a file system error, and there is no report.
func Build(o Options) (*Report, error) {
	p, err := open(o.Dir)
	if err != nil {
		return nil, err
	}
	report, err := p.build(o)
	return report, errors.Join(err, p.root.Close())
}

// Lint checks the named tools (directory names or ids), or all, and writes nothing. It ignores generated files and
// uses only o's Dir and Provided.
func Lint(o Options, names ...string) (*Report, error) {
	p, err := open(o.Dir)
	if err != nil {
		return nil, err
	}
	defer p.root.Close() //nolint:errcheck // it was only read
	if len(names) == 0 {
		if names, err = toolNames(p.root.FS()); err != nil {
			return nil, err
		}
	}
	for i, name := range names {
		names[i] = strings.ReplaceAll(name, "_", "-")
	}
	p.check(names)
	return p.report(names), nil
}

type project struct {
	linter
	dir  string
	root *os.Root
}

func open(dir string) (*project, error) {
	dir = cmp.Or(dir, ".")
	root, err := openProject(dir)
	if err != nil {
		return nil, err
	}
	p := &project{dir: dir, root: root, linter: linter{module: defaultModule}}
	data, err := fs.ReadFile(root.FS(), "go.mod")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(fmt.Errorf("reading go.mod: %w", err), root.Close())
	}
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "//")
		if f := strings.Fields(line); len(f) == 2 && f[0] == "module" {
			p.module = strings.Trim(f[1], `"`)
			break
		}
	}
	return p, nil
}

func (p *project) check(names []string) []*tool {
	if all, err := toolNames(p.root.FS()); err == nil { // a missing directory is reported elsewhere
		ids := make([]string, len(all))
		for i, name := range all {
			ids[i] = toolID(name)
		}
		p.twins = spec.Lookalikes(ids)
	}
	var tools []*tool
	for _, name := range names {
		if t := p.linter.check(p.root.FS(), name); t != nil {
			tools = append(tools, t)
		}
	}
	p.agree(p.root.FS())
	return tools
}

func (p *project) report(names []string) *Report {
	r := &Report{Tools: []string{}, Findings: p.findings}
	if r.Findings == nil {
		r.Findings = []Finding{}
	}
	for _, name := range names {
		r.Tools = append(r.Tools, toolID(name))
	}
	r.sort()
	return r
}

func (p *project) build(o Options) (*Report, error) {
	names, err := toolNames(p.root.FS())
	if err != nil {
		return nil, err
	}
	tools := p.check(names)
	if p.errors() > 0 {
		return p.report(names), nil
	}
	generated, err := p.generated(names, tools)
	if err != nil {
		return nil, err
	}
	file := registry.File{GitCommit: o.Commit, GeneratedAt: o.Time.UTC().Format("2006-01-02T15:04:05.000Z")}
	for _, t := range tools {
		file.Tools = append(file.Tools, t.entry)
	}
	slices.SortFunc(file.Tools, func(a, b registry.Entry) int { return strings.Compare(a.ToolID, b.ToolID) }) // as in the file
	if file.Version, err = file.ContentVersion(); err != nil {
		return nil, fmt.Errorf("the registry has no version: %w", err)
	}
	if o.Check {
		p.stale(generated)
	}
	r := p.report(names)
	if r.Errors() > 0 {
		return r, nil
	}
	r.Version, r.registry = file.Version, file
	if o.Check {
		return r, nil
	}
	return r, p.write(r, generated, file)
}

type output struct {
	name      string // in the project
	want, now []byte
}

func (p *project) generated(names []string, tools []*tool) ([]output, error) {
	var all []output
	has := map[string]functions{}
	for _, t := range tools {
		has[t.name] = t.has
		all = append(all, output{path.Join(toolsDir, t.name, ArgsFile), t.args, t.current})
	}
	text, err := handlersSource(p.module, names, has)
	if err != nil {
		return nil, err
	}
	handlers := output{name: path.Join(toolsDir, HandlersFile), want: text}
	handlers.now, err = fs.ReadFile(p.root.FS(), handlers.name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading %s: %w", handlers.name, err)
	}
	return append(all, handlers), nil
}

func (p *project) stale(files []output) {
	for _, f := range files {
		if !bytes.Equal(f.want, f.now) {
			p.add(f.name, 0, "", ruleGenerated, "The file is not what the tools make of it. Run make tools, and commit what it writes.")
		}
	}
}

func (p *project) write(r *Report, files []output, file registry.File) error {
	data, err := file.Encode()
	if err != nil {
		return fmt.Errorf("encoding the registry: %w", err)
	}
	old, err := fs.ReadFile(p.root.FS(), RegistryFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading %s: %w", RegistryFile, err)
	}
	var before registry.File
	if json.Unmarshal(old, &before) == nil {
		file.GeneratedAt = before.GeneratedAt // if only that differs, the file doesn't change
		if same, err := file.Encode(); err == nil && bytes.Equal(same, old) {
			data = old
		}
	}
	for _, f := range append(slices.Clone(files), output{RegistryFile, data, old}) {
		if bytes.Equal(f.want, f.now) {
			continue
		}
		if err := replace(filepath.Join(p.dir, filepath.FromSlash(f.name)), f.want); err != nil {
			return err
		}
		r.Written = append(r.Written, f.name)
	}
	return nil
}

// replace writes a file atomically.
func replace(name string, data []byte) error {
	dir := filepath.Dir(name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	f, err := os.CreateTemp(dir, ".zz-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", name, err), os.Remove(f.Name()))
	}
	return nil
}
