package build

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"voicegw/registry"
)

// newProject returns a project with the named tools, as New writes them, with the placeholders filled in.
func newProject(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, toolsDir), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		files, err := New(dir, name, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text := read(t, dir, file)
			if err := os.WriteFile(filepath.Join(dir, file), []byte(strings.ReplaceAll(text, "TODO: ", "")), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

func mustBuild(t *testing.T, o Options) *Report {
	t.Helper()
	report, err := Build(o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// change replaces text in a file of a project.
func change(t *testing.T, dir, name, old, replacement string) {
	t.Helper()
	name = filepath.Join(dir, filepath.FromSlash(name))
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), old) {
		t.Fatalf("%s does not hold %q", name, old)
	}
	if err := os.WriteFile(name, []byte(strings.ReplaceAll(string(data), old, replacement)), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestProjectIsBuilt is for CI: the tools of this project are valid, and the generated files are committed.
func TestProjectIsBuilt(t *testing.T) {
	report := mustBuild(t, Options{Dir: "../..", Check: true})
	for _, f := range report.Findings {
		if f.Severity == SeverityError {
			t.Errorf("%s:%d: %s %s", f.File, f.Line, f.Path, f.Message)
		}
	}
}

func TestSameContentSameBytes(t *testing.T) {
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	first := newProject(t, "kb-search", "alpha", "weather-lookup")
	second := newProject(t, "weather-lookup", "kb-search", "alpha")
	a := mustBuild(t, Options{Dir: first, Time: now, Commit: "c1"})
	b := mustBuild(t, Options{Dir: second, Time: now, Commit: "c1"})
	if a.Version != b.Version || a.Version == "" || !slices.Equal(a.Tools, []string{"alpha", "kb_search", "weather_lookup"}) {
		t.Errorf("versions %q and %q, tools %v", a.Version, b.Version, a.Tools)
	}
	for _, name := range []string{RegistryFile, "tools/" + HandlersFile, "tools/alpha/" + ArgsFile} {
		if diff := cmp.Diff(read(t, first, name), read(t, second, name)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	var file registry.File
	if err := json.Unmarshal([]byte(read(t, first, RegistryFile)), &file); err != nil {
		t.Fatal(err)
	}
	if file.GeneratedAt != "2026-11-20T10:00:00.000Z" || file.GitCommit != "c1" || file.Version != a.Version || len(file.Tools) != 3 {
		t.Errorf("the registry says %+v", file)
	}
	later := mustBuild(t, Options{Dir: second, Time: now.Add(time.Hour), Commit: "c2"})
	if later.Version != a.Version || !slices.Equal(later.Written, []string{RegistryFile}) {
		t.Errorf("another commit: version %s, written %v", later.Version, later.Written)
	}
	change(t, second, "tools/alpha/guide.md", "red bicycles", "blue bicycles")
	if other := mustBuild(t, Options{Dir: second}); other.Version == a.Version {
		t.Error("another guide has the same version")
	}
	before := mustBuild(t, Options{Dir: second}).Version
	change(t, second, "tools/alpha/handler.go", "There was no time left", "No time was left")
	if other := mustBuild(t, Options{Dir: second}); other.Version == before {
		t.Error("another handler has the same version")
	}
	before = mustBuild(t, Options{Dir: second}).Version
	change(t, second, "tools/alpha/handler_test.go", "TestFinds", "TestFindsIt")
	if other := mustBuild(t, Options{Dir: second}); other.Version != before {
		t.Error("another test has another version")
	}
}

func TestNothingChangedNothingWritten(t *testing.T) {
	dir := newProject(t, "alpha")
	first := mustBuild(t, Options{Dir: dir, Time: time.Unix(1, 0), Commit: "c"})
	if want := []string{"tools/zz_tools.go", RegistryFile}; !slices.Equal(first.Written, want) {
		t.Errorf("written %v, want %v", first.Written, want)
	}
	if again := mustBuild(t, Options{Dir: dir, Time: time.Unix(2, 0), Commit: "c"}); len(again.Written) > 0 {
		t.Errorf("written again: %v", again.Written)
	}
	// A registry that was changed by hand is rewritten, whatever version it names.
	change(t, dir, RegistryFile, "What to look for.", "What to find.")
	if rewritten := mustBuild(t, Options{Dir: dir, Time: time.Unix(2, 0), Commit: "c"}); !slices.Equal(rewritten.Written, []string{RegistryFile}) {
		t.Errorf("written %v", rewritten.Written)
	}
}

func TestRegistryLoads(t *testing.T) {
	dir := newProject(t, "alpha", "weather-lookup")
	report := mustBuild(t, Options{Dir: dir})
	handler := registry.Bind[json.RawMessage, struct{}](nil)
	_, err := registry.Load([]byte(read(t, dir, RegistryFile)), registry.Options{Handlers: map[string]registry.Handler{"alpha": handler, "weather_lookup": handler}})
	var le *registry.LoadError
	if errors.As(err, &le) {
		for _, p := range le.Problems {
			if !strings.Contains(p.Message, "andler") { // there is no handler to bind
				t.Errorf("%s", p)
			}
		}
	}
	if report.Version == "" {
		t.Error("no version")
	}
}

func TestCheckFindsStaleFiles(t *testing.T) {
	dir := newProject(t, "alpha")
	stale := func() []string {
		t.Helper()
		report := mustBuild(t, Options{Dir: dir, Check: true})
		var files []string
		for _, f := range report.Findings {
			if f.Rule != ruleGenerated || !strings.Contains(f.Message, "make tools") {
				t.Errorf("%+v", f)
			}
			files = append(files, f.File)
		}
		if (report.Version == "") != (len(files) > 0) || len(report.Written) > 0 {
			t.Errorf("stale %v, version %q, written %v", files, report.Version, report.Written)
		}
		return files
	}
	if got := stale(); !slices.Equal(got, []string{"tools/zz_tools.go"}) {
		t.Errorf("a new tool: %v", got)
	}
	mustBuild(t, Options{Dir: dir})
	if got := stale(); len(got) > 0 {
		t.Errorf("after a build: %v", got)
	}
	change(t, dir, "tools/alpha/schema.json", `"maximum": 10`, `"maximum": 20`)
	if got := stale(); !slices.Equal(got, []string{"tools/alpha/zz_args.go"}) {
		t.Errorf("another schema: %v", got)
	}
	mustBuild(t, Options{Dir: dir})
	if err := os.RemoveAll(filepath.Join(dir, "tools", "alpha")); err != nil {
		t.Fatal(err)
	}
	if got := stale(); !slices.Equal(got, []string{"tools/zz_tools.go"}) {
		t.Errorf("one tool less: %v", got)
	}
}

func TestErrorsKeepTheFiles(t *testing.T) {
	dir := newProject(t, "alpha", "beta")
	mustBuild(t, Options{Dir: dir})
	before := read(t, dir, RegistryFile)
	change(t, dir, "tools/alpha/schema.json", `"maximum": 10`, `"maximum": 20`)
	change(t, dir, "tools/beta/guide.md", "## Examples", "## Example")
	report := mustBuild(t, Options{Dir: dir})
	if report.Errors() == 0 || len(report.Written) > 0 || read(t, dir, RegistryFile) != before {
		t.Errorf("%+v", report)
	}
	if strings.Contains(read(t, dir, "tools/alpha/zz_args.go"), "1 to 20.") {
		t.Error("a file was generated anyway")
	}
}

func TestWarnings(t *testing.T) {
	dir := newProject(t, "alpha")
	change(t, dir, "tools/alpha/schema.json", `"category": "retrieval"`, `"category": "action"`)
	change(t, dir, "tools/alpha/schema.json", `"read_only"`, `"writes"`)
	change(t, dir, "tools/alpha/guide.md", "only this line is in the model's prompt.", "only this line\nstands in its prompt.")
	change(t, dir, "tools/alpha/guide.md", "- `limit`: how many", "- How many")
	report := mustBuild(t, Options{Dir: dir})
	var got []string
	for _, f := range report.Findings {
		if f.Severity != SeverityWarning || f.Line == 0 {
			t.Errorf("%+v", f)
		}
		got = append(got, f.Rule)
	}
	if want := []string{ruleSummary, ruleGuide, ruleWrites}; !slices.Equal(got, want) || report.Version == "" {
		t.Errorf("warnings %v, want %v; version %q", got, want, report.Version)
	}
	change(t, dir, "tools/alpha/schema.json", `"requiresConfirmation": false`, `"requiresConfirmation": true`)
	if report := mustBuild(t, Options{Dir: dir}); strings.Contains(findingLines(report), ruleWrites) {
		t.Error("a warning about an action that needs an approval")
	}
}

// TestSizes are the broken tools that are too large for the corpus.
func TestSizes(t *testing.T) {
	for name, text := range map[string]string{
		schemaFile:  `{"toolId": "` + strings.Repeat("a", maxSchema) + `"}`,
		guideFile:   "# alpha\n\n" + strings.Repeat("x", maxGuide),
		handlerFile: "package alpha\n//" + strings.Repeat("x", maxHandler),
	} {
		t.Run(name, func(t *testing.T) {
			dir := newProject(t, "alpha")
			if err := os.WriteFile(filepath.Join(dir, "tools", "alpha", name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			if lines := findingLines(mustBuild(t, Options{Dir: dir})); !strings.Contains(lines, "tools/alpha/"+name+":0 #the-files : The file cannot be used: it has ") {
				t.Errorf("found\n%s", lines)
			}
		})
	}
	t.Run("not UTF-8", func(t *testing.T) {
		dir := newProject(t, "alpha")
		change(t, dir, "tools/alpha/guide.md", "red bicycles", "red \xff bicycles")
		if lines := findingLines(mustBuild(t, Options{Dir: dir})); !strings.Contains(lines, "guide.md:15 #the-files : The file is not UTF-8") {
			t.Errorf("found\n%s", lines)
		}
	})
	t.Run("control character", func(t *testing.T) {
		dir := newProject(t, "alpha")
		change(t, dir, "tools/alpha/guide.md", "red bicycles", "red \x00 bicycles")
		if lines := findingLines(mustBuild(t, Options{Dir: dir})); !strings.Contains(lines, "guide.md:15 #the-files : The line has the control character U+0000") {
			t.Errorf("found\n%s", lines)
		}
	})
	t.Run("references that multiply", func(t *testing.T) {
		defs := `"$defs": {"d0": {"type": "object", "properties": {"x": {"type": "string"}}, "additionalProperties": false}`
		for i := range 40 {
			ref := fmt.Sprintf(`{"$ref": "#/$defs/d%d"}`, i)
			defs += fmt.Sprintf(`, "d%d": {"type": "object", "properties": {"a": %s, "b": %s}, "additionalProperties": false}`, i+1, ref, ref)
		}
		schema := `{"type": "object", "properties": {"a": {"$ref": "#/$defs/d40"}}, "additionalProperties": false, ` + defs + `}}`
		if _, err := argsOf("alpha", []byte(schema)); err == nil {
			t.Error("the types are not refused")
		}
		dir := newProject(t, "alpha")
		change(t, dir, "tools/alpha/schema.json", `"additionalProperties": false`, `"additionalProperties": false, `+defs+`}`)
		change(t, dir, "tools/alpha/schema.json", `"query": {`, `"tree": {"$ref": "#/$defs/d40"}, "query": {`)
		if mustBuild(t, Options{Dir: dir}).Errors() == 0 {
			t.Error("not refused")
		}
	})
	t.Run("many parameters", func(t *testing.T) {
		dir := newProject(t, "alpha")
		many := strings.Builder{}
		for i := range 3000 {
			many.WriteString(`"p` + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + `": {"type": "string"}, `)
		}
		change(t, dir, "tools/alpha/schema.json", `"properties": {`, `"properties": {`+many.String())
		if mustBuild(t, Options{Dir: dir}).Errors() == 0 {
			t.Error("not refused")
		}
	})
}

// TestNothingElseIsRead has references and links to files that must not be opened.
func TestNothingElseIsRead(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte(`{"type": "string"}`))
	}))
	defer server.Close()
	secret := filepath.Join(t.TempDir(), "secret.json")
	if err := os.WriteFile(secret, []byte(`{"type": "string", "description": "hush-4711"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, ref := range map[string]string{
		"http": server.URL + "/schema.json", "file": "file://" + secret, "path": secret, "up": "../../secret.json", "anchor": server.URL + "#a",
	} {
		t.Run(name, func(t *testing.T) {
			dir := newProject(t, "alpha")
			change(t, dir, "tools/alpha/schema.json", `"type": "string",`, `"$ref": "`+ref+`",`)
			lines := findingLines(mustBuild(t, Options{Dir: dir}))
			if !strings.Contains(lines, "/parameters/properties/query/$ref") || strings.Contains(lines, "hush") {
				t.Errorf("found\n%s", lines)
			}
		})
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("the server was asked %d times", n)
	}
	t.Run("directory", func(t *testing.T) {
		dir, other := newProject(t), newProject(t, "alpha")
		if err := os.Symlink(filepath.Join(other, "tools", "alpha"), filepath.Join(dir, "tools", "alpha")); err != nil {
			t.Fatal(err)
		}
		if lines := findingLines(mustBuild(t, Options{Dir: dir})); !strings.Contains(lines, "tools/alpha:0 #the-directory : The directory tools/alpha is a link") {
			t.Errorf("found\n%s", lines)
		}
	})
	t.Run("all tools", func(t *testing.T) {
		dir, other := t.TempDir(), newProject(t, "alpha")
		if err := os.Symlink(filepath.Join(other, "tools"), filepath.Join(dir, "tools")); err != nil {
			t.Fatal(err)
		}
		if report, err := Build(Options{Dir: dir}); err == nil {
			t.Errorf("built %+v", report)
		}
	})
}

func TestLint(t *testing.T) {
	dir := newProject(t, "alpha", "beta")
	change(t, dir, "tools/beta/guide.md", "## Examples", "## Example")
	for name, want := range map[string]int{"alpha": 0, "beta": 1, "gamma": 4, "../alpha": 4} {
		report, err := Lint(Options{Dir: dir}, name)
		if err != nil {
			t.Fatal(err)
		}
		if got := report.Errors(); (got > 0) != (want > 0) {
			t.Errorf("%s: %s", name, findingLines(report))
		}
	}
	if report, err := Lint(Options{Dir: dir}); err != nil || report.Errors() != 1 || !slices.Equal(report.Tools, []string{"alpha", "beta"}) {
		t.Errorf("all: %+v, %v", report, err)
	}
	if _, err := Lint(Options{Dir: t.TempDir()}); !errors.Is(err, ErrNoTools) {
		t.Errorf("no tools: %v", err)
	}
	if _, err := Build(Options{Dir: filepath.Join(dir, "nothing")}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no project: %v", err)
	}
}

func TestReports(t *testing.T) {
	dir := newProject(t, "alpha")
	change(t, dir, "tools/alpha/schema.json", `"version": "0.1.0"`, `"version": "<1>"`)
	report := mustBuild(t, Options{Dir: dir})
	var text, asJSON bytes.Buffer
	if err := errors.Join(report.WriteFindings(&text), report.WriteJSON(&asJSON)); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(text.String(), "tools/alpha/schema.json:3: /version: ") || !strings.HasSuffix(text.String(), "\n    docs/tools-reference.md#version\n") {
		t.Errorf("as text:\n%s", text.String())
	}
	var back Report
	if err := json.Unmarshal(asJSON.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*report, back, cmpopts.IgnoreUnexported(Report{})); diff != "" || !strings.Contains(asJSON.String(), "<1>") {
		t.Errorf("as JSON:\n%s\n%s", asJSON.String(), diff)
	}
}

// TestModule has a project of another module, and package names with a meaning in Go.
func TestModule(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "tools"), 0o755),
		os.WriteFile(filepath.Join(dir, "go.mod"), []byte("// A module.\nmodule example.com/desk // ours\n\ngo 1.26\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"string", "string-tool", "ab-c", "error"} {
		if _, err := New(dir, name, ""); err != nil {
			t.Fatal(err)
		}
	}
	check := "package string\n\nimport (\n\t\"context\"\n\n\t\"example.com/desk/registry\"\n)\n\nfunc Check(context.Context, registry.Call[Args, Needs]) error { return nil }\n"
	if err := os.WriteFile(filepath.Join(dir, "tools", "string", "check.go"), []byte(check), 0o644); err != nil {
		t.Fatal(err)
	}
	if report := mustBuild(t, Options{Dir: dir}); report.Errors() > 0 {
		t.Fatal(findingLines(report))
	}
	text := read(t, dir, "tools/zz_tools.go")
	for _, want := range []string{
		`"example.com/desk/registry"`, `stringtool "example.com/desk/tools/string"`, `stringtool2 "example.com/desk/tools/string-tool"`,
		`abc "example.com/desk/tools/ab-c"`, `registry.Bind(stringtool2.Execute)`, `errortool "example.com/desk/tools/error"`,
		`registry.Bind(errortool.Execute)`, `registry.Bind(stringtool.Execute, stringtool.Check)`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
}
