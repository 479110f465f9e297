package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// callTool runs "tools call" and returns what it prints.
func callTool(t *testing.T, tool, args string, flags ...string) (out string, ok bool) {
	t.Helper()
	var stdout, stderr strings.Builder
	code := Run(t.Context(), Process{
		Args:   append([]string{"tools", "call", tool, args, "--set", "data_dir=" + t.TempDir()}, flags...),
		Stdout: &stdout, Stderr: &stderr,
	})
	return stdout.String() + stderr.String(), code == exitOK
}

// TestNamespacesAreGranted: by the configuration, to the user, the agent and the scopes of the
// call, in both tools.
func TestNamespacesAreGranted(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "trip.md"), []byte("---\nid: doc:trip\ntitle: Secret trip\nnamespace: personal\n---\nTo the sea."), 0o600); err != nil {
		t.Fatal(err)
	}
	path := []string{"--set", "kb.path=" + dir, "--user", "ada"}
	for name, tc := range map[string]struct {
		flags   []string
		granted bool
	}{
		"by nothing":         {nil, false},
		"by the user":        {[]string{"--set", "kb.namespaces.personal.users=bob,ada"}, true},
		"by another user":    {[]string{"--set", "kb.namespaces.personal.users=bob"}, false},
		"by the agent":       {[]string{"--set", "kb.namespaces.personal.agents=default"}, true},
		"by a scope":         {[]string{"--set", "kb.namespaces.personal.scopes=private", "--scope", "private"}, true},
		"by another scope":   {[]string{"--set", "kb.namespaces.personal.scopes=private", "--scope", "other"}, false},
		"to everyone at all": {[]string{"--set", "kb.namespaces.personal.scopes=*"}, true},
	} {
		flags := append(append([]string{}, path...), tc.flags...)
		if out, ok := callTool(t, "kb_search", `{"query":"trip","namespace":"personal"}`, flags...); ok != tc.granted || strings.Contains(out, "doc:trip") != tc.granted || !tc.granted && !strings.Contains(out, `"AUTH"`) {
			t.Errorf("kb_search, %s: %t %s", name, ok, out)
		}
		if out, ok := callTool(t, "kb_get", `{"id":"doc:trip"}`, flags...); !ok || strings.Contains(out, "To the sea") != tc.granted {
			t.Errorf("kb_get, %s: %t %s", name, ok, out)
		}
	}
	for setting, want := range map[string]string{
		"kb.namespaces.personal.users=127.0.0.1": "kb.namespaces.personal.users",
		"kb.namespaces.studio.scopes=a b":        "kb.namespaces.studio.scopes",
	} {
		if out, ok := callTool(t, "kb_get", `{"id":"doc:trip"}`, "--set", setting); ok || !strings.Contains(out, want) {
			t.Errorf("%s: %s", setting, out)
		}
	}
}
