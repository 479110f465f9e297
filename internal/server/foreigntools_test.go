package server

import (
	"os"
	"path/filepath"
	"testing"

	"voicegw/config"
)

// TestToolFiles: the state changes with every file, but with a package only if npm changed it.
func TestToolFiles(t *testing.T) {
	dir, lock := t.TempDir(), filepath.Join(t.TempDir(), "mcp.lock.json")
	if err := os.MkdirAll(filepath.Join(dir, "node_modules", "p"), 0o700); err != nil {
		t.Fatal(err)
	}
	last := ""
	for _, change := range []struct {
		file   string
		counts bool
	}{
		{filepath.Join(dir, "x.js"), true}, {filepath.Join(dir, "node_modules", "p", "index.js"), false},
		{filepath.Join(dir, "node_modules", ".package-lock.json"), true}, {filepath.Join(dir, ".swap"), true}, {lock, true},
	} {
		if err := os.WriteFile(change.file, []byte("1"), 0o600); err != nil {
			t.Fatal(err)
		}
		now := toolFiles([]string{dir}, config.MCP{Lock: lock})
		if (now != last) != change.counts {
			t.Errorf("%s: the state is %q after %q", change.file, now, last)
		}
		last = now
	}
	if toolFiles(nil, config.MCP{Lock: lock}) == toolFiles([]string{dir + "/none"}, config.MCP{Lock: lock}) {
		t.Error("a directory that is missing does not count")
	}
}
