package build

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"voicegw/registry"
	"voicegw/registry/spec"
)

func TestNew(t *testing.T) {
	dir := newProject(t)
	files, err := New(dir, "weather-lookup", "")
	want := []string{"schema.json", "guide.md", "handler.go", "handler_test.go", "zz_args.go"}
	for i := range want {
		want[i] = "tools/weather-lookup/" + want[i]
	}
	if err != nil || !slices.Equal(files, want) {
		t.Fatalf("wrote %v, %v", files, err)
	}
	report := mustBuild(t, Options{Dir: dir})
	if report.Errors() > 0 || len(report.Findings) != 3 {
		t.Errorf("a new tool builds, with a warning for each placeholder:\n%s", findingLines(report))
	}
	if _, err := New(dir, "weather-lookup", ""); !errors.Is(err, ErrExists) {
		t.Errorf("the second time: %v", err)
	}
	if _, err := New(t.TempDir(), "weather-lookup", ""); !errors.Is(err, ErrNoTools) {
		t.Errorf("elsewhere: %v", err)
	}
	for _, name := range []string{"", ".", "..", "a/b", "../a", "Weather", "weather_lookup", "-a", "a-", "a--b", "1a", "wetter-süd", "go-to", "main", "vendor", "unit-test", "a b", "a\n", "a.b", "confirm-action", "describe-tool", "confirmaction"} {
		if _, err := New(dir, name, ""); !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", name, err)
		}
	}
	entries, err := os.ReadDir(filepath.Join(dir, "tools"))
	if err != nil || len(entries) != 2 {
		t.Errorf("there are %v, %v", entries, err)
	}
}

// TestNewOfEachCategory: a new tool of each category builds, with a warning for each placeholder, and has that
// category.
func TestNewOfEachCategory(t *testing.T) {
	for _, category := range []spec.Category{spec.CategoryAction, spec.CategoryRetrieval, spec.CategoryUtility} {
		dir := newProject(t)
		if _, err := New(dir, "alpha-beta", category); err != nil {
			t.Fatal(err)
		}
		report := mustBuild(t, Options{Dir: dir})
		if report.Errors() > 0 || len(report.Findings) != 3 {
			t.Errorf("%s:\n%s", category, findingLines(report))
		}
		var file registry.File
		if err := json.Unmarshal([]byte(read(t, dir, RegistryFile)), &file); err != nil {
			t.Fatal(err)
		}
		if got := file.Tools[0]; got.Category != category || len(got.Output) == 0 {
			t.Errorf("%s: it is of the category %s, with the output %s", category, got.Category, got.Output)
		}
		if steps := NextSteps("", "alpha-beta", category, nil); !strings.Contains(steps, "tools call alpha_beta '{\"") {
			t.Errorf("%s: %s", category, steps)
		}
	}
}

// TestNewForeign: a tool that is not Go code has three files and warnings only for its placeholders.
func TestNewForeign(t *testing.T) {
	kinds := []string{"handler.yaml", "handler.js"}
	for _, category := range []spec.Category{"", spec.CategoryAction, spec.CategoryUtility} {
		dir := t.TempDir()
		for i, kind := range kinds {
			name := []string{"alpha-beta", "gamma"}[i]
			files, err := New(dir, name, category, kind)
			if want := []string{name + "/schema.json", name + "/guide.md", name + "/" + kind}; err != nil || !slices.Equal(files, want) {
				t.Errorf("wrote %v, %v", files, err)
			}
		}
		tools, report, err := LintForeign(dir, kinds...)
		if err != nil || len(tools) != 2 || report.Errors() > 0 || len(report.Findings) != 4 {
			t.Errorf("%v, %v:\n%s", tools, err, findingLines(report))
		}
		if _, err := New(dir, "gamma", category, "handler.js"); !errors.Is(err, ErrExists) {
			t.Errorf("the second time: %v", err)
		}
		if _, err := New(dir, "../a", category, "handler.js"); !errors.Is(err, ErrName) {
			t.Errorf("a bad name: %v", err)
		}
		if _, err := New(filepath.Join(dir, "none"), "a", category, "handler.js"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("no directory: %v", err)
		}
	}
}

// TestKinds: a tool has one handler, whose name gives its kind.
func TestKinds(t *testing.T) {
	kinds := []string{"handler.yaml", "handler.js"}
	for want, handlers := range map[string][]string{
		"error none: The handler is missing. A tool has schema.json, guide.md and handler.yaml or handler.js.":  nil,
		"error none: There are handler.yaml and handler.js, but a tool has only one handler; remove the other.": kinds,
		"error none/schema.json: Only a handler in JavaScript (handler.js) uses \"network\"; remove it.":        {"handler.yaml"},
		"": {"handler.js"},
	} {
		dir := t.TempDir()
		if _, err := New(dir, "none", spec.CategoryUtility, "handler.js"); err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(dir, "none")
		schema := strings.Replace(read(t, at, "schema.json"), `"parameters"`, `"network": ["api.example.com"], "parameters"`, 1)
		if err := errors.Join(os.Remove(filepath.Join(at, "handler.js")), os.WriteFile(filepath.Join(at, "schema.json"), []byte(schema), 0o600)); err != nil {
			t.Fatal(err)
		}
		for _, name := range handlers {
			if err := os.WriteFile(filepath.Join(at, name), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		tools, report, err := LintForeign(dir, kinds...)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, f := range report.Findings {
			if rel, _ := filepath.Rel(dir, f.File); f.Severity == SeverityError {
				got += "error " + filepath.ToSlash(rel) + ": " + f.Message
			}
		}
		if got != want || want == "" && (len(tools) != 1 || tools[0].Kind != "handler.js") {
			t.Errorf("%v: %q, want %q", handlers, got, want)
		}
	}
}

// TestLookalikes: two tools whose names differ only in dashes are not built, whichever is checked.
func TestLookalikes(t *testing.T) {
	dir := newProject(t)
	for _, name := range []string{"kb-search", "kbsearch"} {
		if _, err := New(dir, name, ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, names := range [][]string{nil, {"kbsearch"}} {
		report, err := Lint(Options{Dir: dir}, names...)
		if err != nil || report.Errors() != 1 || !strings.Contains(findingLines(report), `"kbsearch" and "kb_search" differ only in underscores`) {
			t.Errorf("%v: %v\n%s", names, err, findingLines(report))
		}
	}
}
