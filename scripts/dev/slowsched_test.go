package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheEditsFitThisGo: each place that is changed exists exactly once, so that a new Go
// version fails here and not during a search for a race.
func TestTheEditsFitThisGo(t *testing.T) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	goroot, folder := strings.TrimSpace(string(out)), t.TempDir()
	if err := writeOverlay(goroot, folder); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(folder, "overlay.json"))
	if err != nil {
		t.Fatal(err)
	}
	var overlay struct{ Replace map[string]string }
	if err := json.Unmarshal(data, &overlay); err != nil || len(overlay.Replace) != 2 {
		t.Fatalf("%s: %v", data, err)
	}
	for original, changed := range overlay.Replace {
		before, err1 := os.ReadFile(original)
		after, err2 := os.ReadFile(changed)
		if err1 != nil || err2 != nil || !strings.HasPrefix(original, goroot) || len(after) <= len(before) {
			t.Errorf("%s instead of %s: %v, %v", changed, original, err1, err2)
		}
	}
}

// TestAnotherSchedulerIsRefused: nothing is written that would not be what was meant.
func TestAnotherSchedulerIsRefused(t *testing.T) {
	goroot, folder := t.TempDir(), t.TempDir()
	source := filepath.Join(goroot, "src", "runtime")
	if err := os.MkdirAll(source, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"proc.go", "runtime2.go"} {
		if err := os.WriteFile(filepath.Join(source, file), []byte("package runtime\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	err := writeOverlay(goroot, folder)
	if err == nil || !strings.Contains(err.Error(), "SCHEDULER=plain") {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(folder); len(left) != 0 {
		t.Errorf("%v was written", left)
	}
}
