package build

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"time"

	"voicegw/registry"
)

// Watch reloads a project's registry when its file changes, for authors of tools. It isn't safe for concurrent use.
type Watch struct {
	File   string
	Tools  *registry.Registry
	Logger *slog.Logger
	// Seen is the file's last content; nil if it did not exist.
	Seen []byte
}

const watchEvery = time.Second

// Run checks the file until ctx ends.
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

// Look reloads a changed file. An invalid file is logged once and changes nothing.
func (w *Watch) Look() {
	data, err := os.ReadFile(w.File)
	if err != nil || bytes.Equal(data, w.Seen) {
		return // not built, or being replaced: checked again later
	}
	w.Seen = data
	if err := w.Tools.Reload(data); err != nil {
		w.Logger.Error("the changed registry cannot be used; the tools stay as they are", "file", w.File, "error", err)
		return
	}
	w.Logger.Info("tools loaded again; running sessions keep theirs", "tools_version", w.Tools.Snapshot().Version())
}
