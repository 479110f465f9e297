package build

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"time"

	"voicegw/registry"
)

// Watch reloads a project's registry when its file has changed: for authors of tools.
// Only one goroutine at a time may use it.
type Watch struct {
	// File is the project's tool_registry.json, Tools the registry loaded from it.
	File  string
	Tools *registry.Registry
	// Logger gets a line for each reload, successful or not.
	Logger *slog.Logger
	// Seen is the file's content when it was last read; nil if the file did not exist.
	Seen []byte
}

// watchEvery is how often Run looks at the file.
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

// Look loads the file if it has changed. A file that cannot be loaded is logged once and
// leaves the tools as they are.
func (w *Watch) Look() {
	data, err := os.ReadFile(w.File)
	if err != nil || bytes.Equal(data, w.Seen) {
		return // not built, or just being replaced: the next Look will find it
	}
	w.Seen = data
	if err := w.Tools.Reload(data); err != nil {
		w.Logger.Error("the changed registry cannot be used; the tools stay as they are", "file", w.File, "error", err)
		return
	}
	w.Logger.Info("tools loaded again; running sessions keep theirs", "tools_version", w.Tools.Snapshot().Version())
}
