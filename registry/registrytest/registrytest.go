// Package registrytest makes registries for the tests of other packages.
package registrytest

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"voicegw/registry"
	"voicegw/registry/build"
)

// Project builds the tools of this project, as they are in the work tree, and returns
// their tool_registry.json. It writes nothing in the work tree, and fails the test if the
// build fails.
func Project(t testing.TB) []byte {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "tools"), os.DirFS(filepath.Join(Root(t), "tools"))); err != nil {
		t.Fatal(err)
	}
	report, err := build.Build(build.Options{Dir: dir, Time: time.Unix(0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	if report.Errors() > 0 {
		t.Fatalf("the project's tools do not build: %+v", report.Findings)
	}
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(build.RegistryFile)))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Root returns the directory of the project, which holds go.mod: the test's or one above it.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("there is no go.mod at or above the test's directory")
		}
		dir = filepath.Dir(dir)
	}
}

// File returns a tool_registry.json of the given tools.
func File(t testing.TB, tools ...registry.Entry) []byte {
	t.Helper()
	data, err := registry.File{GeneratedAt: "2026-01-01T00:00:00.000Z", Tools: tools}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Told returns the arguments of registry.Load for a test that inspects the tools of data
// and calls none: their handlers return an empty answer.
func Told(t testing.TB, data []byte) ([]byte, registry.Options) {
	t.Helper()
	var file registry.File
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	handlers := map[string]registry.Handler{}
	for _, tool := range file.Tools {
		handlers[tool.ToolID] = registry.Bind(func(context.Context, registry.Call[json.RawMessage, struct{}]) (registry.Result, error) {
			return registry.Result{}, nil
		})
	}
	return data, registry.Options{Handlers: handlers}
}
