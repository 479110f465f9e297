package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUpToDate: the files that are committed are those that the tables make.
func TestUpToDate(t *testing.T) {
	t.Chdir("../..")
	files, err := generate(os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if old, err := os.ReadFile(f.path); err != nil || !bytes.Equal(old, f.data) {
			t.Errorf("%s is out of date; run go run ./scripts/dev dashboards", f.path)
		}
	}
	if len(files) != 4 {
		t.Errorf("there are %d generated files", len(files))
	}
}

// TestSettle: a check changes nothing and names what differs.
func TestSettle(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	f := []file{{name, []byte("new")}}
	if err := settle(f, true); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("a missing file: %v", err)
	}
	if err := settle(f, false); err != nil {
		t.Fatal(err)
	}
	if err := settle(f, true); err != nil {
		t.Errorf("what was just written: %v", err)
	}
}

// TestSection replaces what stands between the marks, and nothing else.
func TestSection(t *testing.T) {
	got, err := section([]byte("a\n<!-- x: y -->\nold\n<!-- end -->\nb\n"), "x", "new\n")
	if want := "a\n<!-- x: y -->\n\nnew\n\n<!-- end -->\nb\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
	for _, text := range []string{"", "<!-- x: ", "<!-- x: -->\n", "<!-- z: -->\n<!-- end -->"} {
		if _, err := section([]byte(text), "x", "new"); err == nil {
			t.Errorf("%q has no such section, and that is no error", text)
		}
	}
}
