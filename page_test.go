package voicegw_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// namedTest is a test that a page names, with its package or alone.
	namedTest = regexp.MustCompile("`(?:([a-z0-9/]+)\\.)?((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]*)`")
	// namedFile is a file that a page names by its path, which may hold a star.
	namedFile = regexp.MustCompile("`([a-z0-9_*-]+(?:/[A-Za-z0-9_.*-]+)+\\.(?:go|txtar|ts|tsx|md|yaml|json))`")
	// testFunc is the beginning of a test's declaration.
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]*)\(`)
)

// TestPagesNameWhatExists: a test or a file that a page of the top folder or of docs
// names is there, so that readers can find it.
func TestPagesNameWhatExists(t *testing.T) {
	tests := declaredTests(t)
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	names := 0
	for _, page := range append(pages, "ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "SECURITY.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range namedTest.FindAllStringSubmatch(string(text), -1) {
			names++
			folders, ok := tests[m[2]]
			if !ok || m[1] != "" && !slices.ContainsFunc(folders, func(folder string) bool {
				return folder == m[1] || strings.HasSuffix(folder, "/"+m[1])
			}) {
				t.Errorf("%s names the test %s, which does not exist", page, strings.Trim(m[0], "`"))
			}
		}
		for _, m := range namedFile.FindAllStringSubmatch(string(text), -1) {
			names++
			if !strings.HasPrefix(m[1], "bin/") && !someFile(m[1]) { // bin is made by the build
				t.Errorf("%s names the file %s, which does not exist", page, m[1])
			}
		}
	}
	if names < 50 {
		t.Errorf("the pages name only %d tests and files; has their form changed?", names)
	}
}

// someFile says whether a path, from the top or from inside of any package, exists.
func someFile(pattern string) bool {
	for _, prefix := range []string{"", "orchestrator", "web", "*", "*/*"} {
		if found, err := filepath.Glob(path.Join(prefix, pattern)); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

// declaredTests finds the tests of the tree and the folders that each stands in.
func declaredTests(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git" || name == "bin"):
			return filepath.SkipDir
		case !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(name)
		for _, m := range testFunc.FindAllStringSubmatch(string(source), -1) {
			found[m[1]] = append(found[m[1]], path.Dir(filepath.ToSlash(name)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
