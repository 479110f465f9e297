package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNewToolInAClone follows docs/tools.md in a copy of the project that was never built: a missing registry, a new
// tool, make tools, a call; then a handler that uses an argument before it is generated.
func TestNewToolInAClone(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds the program several times")
	}
	dir := t.TempDir()
	clone(t, "../..", dir)
	c := &cloned{t: t, dir: dir}

	c.run(0, "go", "build", "-ldflags=-s -w", "-o", "bin/voicegw", "./cmd/voicegw")
	if out := c.run(1, "bin/voicegw", "tools", "list"); !strings.Contains(out, "make tools") {
		t.Errorf("without a registry:\n%s", out)
	}

	c.run(0, "bin/voicegw", "tools", "new", "weather-lookup")
	c.run(0, "./scripts/build")
	c.run(0, "go", "test", "./tools/weather-lookup")
	var envelope struct {
		OK   bool
		Data struct{ Results []struct{ Title string } }
	}
	out := c.run(0, "bin/voicegw", "tools", "call", "weather-lookup", `{"query": "tea"}`)
	if err := json.Unmarshal([]byte(out), &envelope); err != nil || !envelope.OK || len(envelope.Data.Results) != 1 || envelope.Data.Results[0].Title != "tea" {
		t.Errorf("the call: %v\n%s", err, out)
	}

	c.change("tools/weather-lookup/schema.json", `"limit": {`, `"unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"}, "limit": {`)
	c.change("tools/weather-lookup/guide.md", "- `limit`", "- `unit`: celsius if you do not say.\n- `limit`")
	c.change("tools/weather-lookup/handler.go", "Title: call.Args.Query", "Title: call.Args.Query + string(call.Args.Unit)")
	if out := c.run(1, "./scripts/tools", "--check"); !strings.Contains(out, "zz_args.go") {
		t.Errorf("a stale file:\n%s", out)
	}
	c.run(0, "./scripts/build")
	if out := c.run(0, "bin/voicegw", "tools", "call", "weather_lookup", `{"query": "tea"}`); !strings.Contains(out, `"teacelsius"`) {
		t.Errorf("with a new argument:\n%s", out)
	}
}

// cloned is a copy of the project.
type cloned struct {
	t   *testing.T
	dir string
}

// run runs a program in the copy, checks its exit code and returns its output.
func (c *cloned) run(code int, name string, args ...string) string {
	c.t.Helper()
	if strings.HasPrefix(name, "bin/") {
		name = filepath.Join(c.dir, name)
	}
	cmd := exec.CommandContext(c.t.Context(), name, args...)
	cmd.Dir = c.dir
	// With equal file times, a run reuses the build cache of the run before.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS="+os.Getenv("GOFLAGS")+" -trimpath -buildvcs=false", "SOURCE_DATE_EPOCH=1767225600")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run() // the exit code is checked below
	if got := cmd.ProcessState.ExitCode(); got != code {
		c.t.Fatalf("%s %v: exit code %d, want %d\n%s", name, args, got, code, out.String())
	}
	return out.String()
}

func (c *cloned) change(name, old, replacement string) {
	c.t.Helper()
	name = filepath.Join(c.dir, name)
	data, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(data), old) {
		c.t.Fatalf("%s does not hold %q: %v", name, old, err)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(data), old, replacement, 1)), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// clone copies the files of a clone.
func clone(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch d.Name() {
		case ".git", "bin", "node_modules", "tool_registry.json":
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(from, name)
		if err != nil || !d.IsDir() && !d.Type().IsRegular() {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), data, info.Mode().Perm())
	})
	if err != nil {
		t.Fatal(err)
	}
}
