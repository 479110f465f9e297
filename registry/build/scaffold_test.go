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
		t.Errorf("a new tool builds, and is warned of for each place to fill in:\n%s", findingLines(report))
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

// TestNewOfEachCategory: an example of each category builds, is warned of for each place to fill in, and is
// of that category.
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
		if steps := NextSteps("alpha-beta", category, nil); !strings.Contains(steps, "tools call alpha_beta '{\"") {
			t.Errorf("%s: %s", category, steps)
		}
	}
}

// TestLookalikes: two tools whose names differ in dashes alone are not built, whichever of
// them is looked at.
func TestLookalikes(t *testing.T) {
	dir := newProject(t)
	for _, name := range []string{"kb-search", "kbsearch"} {
		if _, err := New(dir, name, ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, names := range [][]string{nil, {"kbsearch"}} {
		report, err := Lint(Options{Dir: dir}, names...)
		if err != nil || report.Errors() != 1 || !strings.Contains(findingLines(report), `"kbsearch" and "kb_search" differ in underscores alone`) {
			t.Errorf("%v: %v\n%s", names, err, findingLines(report))
		}
	}
}
