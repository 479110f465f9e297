package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"voicegw/config"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/store"
)

func TestVoiceInstructions(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Agent.Instructions = "You work for a bicycle shop."
	tools, err := registry.Load(registrytest.Inspected(t, registrytest.Project(t)))
	if err != nil {
		t.Fatal(err)
	}
	text := instructions(cfg, spec.ModeVoice, cfg.Agent.Instructions, budget(cfg.AgentBudget().Voice), tools.Snapshot(), prompts.NewMark(), "")
	for _, want := range []string{
		"bicycle shop", tools.Snapshot().Version(), "**kb_search** (retrieval): Searches", "**describe_tool** (utility)", "begins with [voicegw:", "**end_voice_session**",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the instructions:\n%s", want, text)
		}
	}
	for _, not := range []string{"start_voice_session", "## Parameters"} {
		if strings.Contains(text, not) {
			t.Errorf("%q is in the instructions of voice", not)
		}
	}
}

// TestDevReadsTheProject: with --dev the registry of the working directory is loaded, and loaded again after a change; a
// broken one is reported once and changes nothing.
func TestDevReadsTheProject(t *testing.T) {
	embedded := registrytest.Project(t)
	t.Chdir(t.TempDir())
	var log bytes.Buffer
	caps, err := openCapabilities(t.Context(), config.Default(), t.TempDir(), store.Options{Memory: true}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer caps.close()
	if err := openImages(config.Default(), t.TempDir(), nil, caps, new(liveImages)); err != nil {
		t.Fatal(err)
	}
	dev, plain := config.Default(), config.Default()
	dev.Dev = true
	p := Host{Registry: func() ([]byte, error) { return embedded, nil }}

	tools, reload, err := p.loadTools(caps.registryOptions(true), dev, nil)
	if err != nil || reload == nil {
		t.Fatal(reload, err)
	}
	first := tools.Snapshot()
	reload.Look() // no file exists
	if tools.Snapshot() != first {
		t.Error("the tools have changed without a file")
	}
	write := func(data []byte) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(reload.File), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(reload.File, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	changed := reworded(t, embedded)
	write(changed)
	reload.Look()
	second := tools.Snapshot()
	if second.Version() == first.Version() {
		t.Error("the changed file was not loaded")
	}
	write([]byte(`{"tools": 1}`))
	reload.Look()
	reload.Look()
	if tools.Snapshot() != second || strings.Count(log.String(), "the tools stay as they are") != 1 {
		t.Errorf("after a broken file: %s", log.String())
	}

	// The next start loads the file at once; without --dev it is not watched.
	write(changed)
	if tools, _, err := p.loadTools(caps.registryOptions(true), dev, nil); err != nil || tools.Snapshot().Version() != second.Version() {
		t.Errorf("with dev: %v", err)
	}
	tools, reload, err = p.loadTools(caps.registryOptions(false), plain, nil)
	if err != nil || reload != nil || tools.Snapshot().Version() != first.Version() {
		t.Errorf("without dev: %v, %v", reload, err)
	}
	if err := tools.Reload(changed); !errors.Is(err, registry.ErrLocked) {
		t.Errorf("without --dev a reload returns %v", err)
	}
}

// reworded is a registry with a changed summary.
func reworded(t *testing.T, data []byte) []byte {
	t.Helper()
	var file registry.File
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	file.Tools[0].Summary += " Or not."
	data, err := file.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}
