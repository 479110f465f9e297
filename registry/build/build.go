// Package build is for authors of tools: it checks the directories in tools/, generates registry/tool_registry.json
// and the Go code that binds the handlers, and creates new tools.
//
// A tool is a directory tools/<dash-name>/ with schema.json, guide.md and handler.go. [Build] reports all problems as
// [Finding]s with file, line, JSON path and a link into docs/tools-reference.md. Without errors it writes the
// registry, an Args struct for each tool (zz_args.go), and the table of handlers (tools/zz_tools.go). [New] creates a
// tool from a template.
//
// It reads only regular files in the tool directories and go.mod: it follows no symbolic links and no references of
// schemas, and runs no programs. It doesn't import the tools, so it works even if they don't compile.
package build

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
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

// Lint checks the named tools (directory names or ids), or all, and writes nothing. It ignores generated files, and of o
// all but Dir.
func Lint(o Options, names ...string) (*Report, error) {
	p, err := open(o.Dir)
	if err != nil {
		return nil, err
	}
	defer p.root.Close() //nolint:errcheck // it was only read
	if len(names) == 0 {
		if names, err = p.names(p.root.FS()); err != nil {
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

// open opens a project or, with the names of handlers that are not Go code, a directory of tools.
func open(dir string, foreign ...string) (*project, error) {
	dir, what := cmp.Or(dir, "."), "project"
	if foreign != nil {
		what = "directory of tools"
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the %s: %w", what, err)
	}
	p := &project{dir: dir, root: root, linter: linter{base: toolsDir, module: defaultModule, foreign: foreign}}
	if foreign != nil {
		p.base = "."
		return p, nil
	}
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
	if all, err := p.names(p.root.FS()); err == nil { // a missing directory is reported elsewhere
		p.twins = spec.Lookalikes(toolIDs(all))
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
	r := &Report{Tools: toolIDs(names), Findings: append([]Finding{}, p.findings...)}
	r.sort()
	return r
}

func (p *project) build(o Options) (*Report, error) {
	names, err := p.names(p.root.FS())
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
			p.add(f.name, 0, "", ruleGenerated, "The file is out of date. Run make tools, and commit the result.")
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
		if err := Replace(filepath.Join(p.dir, filepath.FromSlash(f.name)), f.want); err != nil {
			return err
		}
		r.Written = append(r.Written, f.name)
	}
	return nil
}

// Replace writes a file atomically. It makes the directory if it is missing.
func Replace(name string, data []byte) error {
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

var (
	// ErrNoTools is returned by [Build] and [Lint] if there is no tools directory.
	ErrNoTools = errors.New("there is no tools directory here")
	// ErrName is returned by [New] for a name that no tool can have.
	ErrName = errors.New("a tool cannot have this name")
	// ErrExists is returned by [New] for a tool that already exists.
	ErrExists = errors.New("the tool already exists")
)

// ToolDir splits the path of a tool's directory, PROJECT/tools/NAME.
func ToolDir(dir string) (project, name string, err error) {
	whole, err := filepath.Abs(dir)
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", dir, err)
	}
	parent := filepath.Dir(whole)
	if filepath.Base(parent) != "tools" {
		return "", "", fmt.Errorf("%s is not a tool: a tool is a directory of tools/", dir)
	}
	return filepath.Dir(parent), filepath.Base(whole), nil
}

// NextSteps lists the files that New has written, and the author's next steps. dir is the directory of tools with foreign
// handlers; otherwise it is empty.
func NextSteps(dir, name string, category spec.Category, files []string) string {
	var b strings.Builder
	for _, f := range files {
		b.WriteString(f + "\n")
	}
	args := `{"query": "tea"}`
	if category == spec.CategoryAction || category == spec.CategoryUtility {
		args = `{"text": "tea"}`
	}
	id := strings.ReplaceAll(name, "-", "_")
	if dir != "" {
		fmt.Fprintf(&b, "\nNow fill them in, and then:\n  voicegw tools lint --tool-dirs %[1]s\n"+
			"  voicegw tools call %s '%s' --set tool_dirs=%[1]s\n", dir, id, args)
		return b.String()
	}
	fmt.Fprintf(&b, "\nNow fill them in, and then:\n  make tools\n  ./bin/voicegw tools call %s '%s'\nSee %s.\n", id, args, Tutorial)
	return b.String()
}

// TimeOf returns the time of a build: epoch, the value of SOURCE_DATE_EPOCH for reproducible builds
// (reproducible-builds.org/specs/source-date-epoch), or now if it is empty.
func TimeOf(epoch string) (time.Time, error) {
	if epoch == "" {
		return time.Now(), nil
	}
	s, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil || s < 0 {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q and must be seconds since 1970", epoch)
	}
	return time.Unix(s, 0), nil
}

// CommitOf returns the last commit that changed the project's tools; may be empty. Other commits don't change the
// registry, so nothing is recompiled.
func CommitOf(ctx context.Context, dir string) string {
	out, err := exec.CommandContext(ctx, "git", "-C", dir, "log", "-1", "--format=%H", "--", toolsDir).Output()
	if err != nil {
		return "" // no git, no work tree, no commit
	}
	return strings.TrimSpace(string(out))
}
