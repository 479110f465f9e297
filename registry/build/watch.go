package build

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"time"

	"voicegw/registry"
)

// Watch loads a project's registry again when its file has changed: for authors of tools.
// One goroutine at a time may use it.
type Watch struct {
	// File is the project's tool_registry.json, Tools what was loaded of it.
	File  string
	Tools *registry.Registry
	// Logger is told of what was loaded again, and of what cannot be.
	Logger *slog.Logger
	// Seen is what the file held when it was last read; nil if it was not there.
	Seen []byte
}

// watchEvery is how often the file is looked at.
const watchEvery = time.Second

// Run looks at the file until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.Look()
		}
	}
}

// Look loads the file if it has changed. What cannot be loaded is logged once and leaves
// the tools as they are.
func (w *Watch) Look() {
	data, err := os.ReadFile(w.File)
	if err != nil || bytes.Equal(data, w.Seen) {
		return // not built, or just being replaced: the next look will see
	}
	w.Seen = data
	if err := w.Tools.Reload(data); err != nil {
		w.Logger.Error("the changed registry cannot be used; the tools stay as they are", "file", w.File, "error", err)
		return
	}
	w.Logger.Info("tools loaded again; running sessions keep theirs", "tools_version", w.Tools.Snapshot().Version())
}
