package main

import (
	"os"
	"strings"
	"testing"
)

// TestUpToDate: the committed page has the metrics of the table. A check changes nothing.
func TestUpToDate(t *testing.T) {
	t.Chdir("../..")
	if err := metricsList([]string{"--check"}); err != nil {
		t.Error(err)
	}
	t.Chdir(t.TempDir())
	if err := os.Mkdir("docs", 0o700); err != nil {
		t.Fatal(err)
	}
	const old = "<!-- metrics: -->\n\nold\n<!-- end -->\n"
	if err := os.WriteFile(page, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := metricsList([]string{"--check"}); err == nil || !strings.Contains(err.Error(), page) {
		t.Errorf("an old page: %v", err)
	}
	if text, err := os.ReadFile(page); err != nil || string(text) != old {
		t.Errorf("the check has written %q, %v", text, err)
	}
	if err := metricsList(nil); err != nil {
		t.Fatal(err)
	}
	if err := metricsList([]string{"--check"}); err != nil {
		t.Errorf("a new page: %v", err)
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
