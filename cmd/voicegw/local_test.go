package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"voicegw/sim"
)

// TestLocalPage: the configuration of docs/local.md serves a session with a local server, played by the simulator at
// another address and under its own model name.
func TestLocalPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/local.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 1 {
		t.Fatalf("the page has %d configurations", len(blocks))
	}
	local, err := sim.Start(t.Context(), "", sim.Options{Speed: -1, FirstAudioMS: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = local.Close() })
	text := strings.NewReplacer("http://127.0.0.1:8081/v1", local.OpenAIURL(), "model: voice\n", "model: localai\n").Replace(blocks[0][1])
	file := filepath.Join(t.TempDir(), "voicegw.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, "--config", file, "--set", "drain_timeout=1s")
	c := r.phone(t, "local")
	c.ask("hello")
	if end := c.answered(); end.Status != "completed" || end.Usage.Cost == nil || end.Usage.Cost.USDMicros != 0 || end.Usage.Cost.Unpriced != 0 {
		t.Errorf("%+v", end)
	}
}
