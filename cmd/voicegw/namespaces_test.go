package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"voicegw/internal/server"
)

// callTool runs "tools call" and returns its output.
func callTool(t *testing.T, tool, args string, flags ...string) (out string, ok bool) {
	t.Helper()
	var stdout, stderr strings.Builder
	code := Run(t.Context(), Process{
		Args: append([]string{"tools", "call", tool, args, "--set", "data_dir=" + t.TempDir()}, flags...),
		Host: server.Host{Stdout: &stdout, Stderr: &stderr},
	})
	return stdout.String() + stderr.String(), code == exitOK
}

// TestNamespacesAreGranted: in both tools the configuration grants namespaces to the user, the agent and the scopes of a
// call.
func TestNamespacesAreGranted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "trip.md"), []byte("---\nid: doc:trip\ntitle: Secret trip\nnamespace: personal\n---\nTo the sea."), 0o600); err != nil {
		t.Fatal(err)
	}
	path := []string{"--set", "kb.path=" + dir, "--user", "ada"}
	for name, tc := range map[string]struct {
		flags   []string
		granted bool
	}{
		"without a grant":  {nil, false},
		"by the user":      {[]string{"--set", "kb.namespaces.personal.users=bob,ada"}, true},
		"by another user":  {[]string{"--set", "kb.namespaces.personal.users=bob"}, false},
		"by the agent":     {[]string{"--set", "kb.namespaces.personal.agents=default"}, true},
		"by a scope":       {[]string{"--set", "kb.namespaces.personal.scopes=private", "--scope", "private"}, true},
		"by another scope": {[]string{"--set", "kb.namespaces.personal.scopes=private", "--scope", "other"}, false},
		"to every caller":  {[]string{"--set", "kb.namespaces.personal.scopes=*"}, true},
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

// TestToolsCallComparesVectors: a search from the command line waits for the vectors of new records; without a server for
// vectors, the command and its answer say so.
func TestToolsCallComparesVectors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.md"), []byte("---\nid: doc:a\n---\n# Anchor\nIron."), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "synonyms.txt"), []byte("hook => anchor\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := false
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if broken {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var body struct {
			Input []string `json:"input"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		data := []map[string]any{}
		for i := range body.Input {
			data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": []float32{1, 0.5}})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "model": "small", "data": data, "usage": map[string]int{"prompt_tokens": 1, "total_tokens": 1}})
	}))
	defer srv.Close()
	flags := []string{"--set", "kb.path=" + dir, "--set", "kb.synonyms=" + filepath.Join(dir, "synonyms.txt"),
		"--set", "kb.embeddings.base_url=" + srv.URL + "/v1", "--set", "kb.embeddings.model=small"}
	if out, ok := callTool(t, "kb_search", `{"query":"hook"}`, flags...); !ok || !strings.Contains(out, "doc:a") || strings.Contains(out, "degraded") || strings.Contains(out, "no vector") {
		t.Errorf("%t %s", ok, out)
	}
	broken = true
	if out, ok := callTool(t, "kb_search", `{"query":"hook"}`, flags...); !ok || !strings.Contains(out, "doc:a") || !strings.Contains(out, `"degraded":true`) && !strings.Contains(out, `"degraded": true`) || !strings.Contains(out, "no vector") {
		t.Errorf("%t %s", ok, out)
	}
	if out, ok := callTool(t, "kb_search", `{"query":"hook"}`, "--set", "kb.synonyms="+filepath.Join(dir, "none.txt")); ok || !strings.Contains(out, "kb.synonyms") {
		t.Errorf("%t %s", ok, out)
	}
}
