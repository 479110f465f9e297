package process

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settleTime is how long files must be left alone before they are looked at: of several, such as a
	// certificate and its key, one is written after the other.
	settleTime = 500 * time.Millisecond
	// lookEvery is how often they are looked at without being told: some file systems tell nothing.
	lookEvery = time.Minute
)

// Options configure Run. All of them are required.
type Options struct {
	// What names the files in the log, such as "certificates".
	What string
	// Files returns their paths. It is asked again before each wait, so that they may be others.
	Files func() []string
	// Look is called when one of them may have changed: 500 ms after the last change in their folders,
	// once at the start, and every minute.
	Look func()
	// Logger gets a warning if their folders cannot be watched; then only the minute counts.
	Logger *slog.Logger
}

// Run watches files until ctx ends, and calls Look in the caller's goroutine. It watches their folders:
// Kubernetes and others replace a link there, and what was watched before is gone.
func Run(ctx context.Context, o Options) {
	w := watch{Options: o, folders: map[string]bool{}}
	var events chan fsnotify.Event
	var failures chan error
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		w.warn(err)
	} else {
		defer func() { _ = watcher.Close() }() // nothing is lost with it
		w.watcher, events, failures = watcher, watcher.Events, watcher.Errors
	}
	w.follow()
	look := time.NewTimer(settleTime) // they may have changed since they were read
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-events:
			look.Reset(settleTime)
		case <-failures: // such as events that were lost
			look.Reset(settleTime)
		case <-look.C:
			o.Look()
			w.follow()
			look.Reset(lookEvery)
		}
	}
}

// watch is what Run keeps.
type watch struct {
	Options
	watcher *fsnotify.Watcher // nil if the system offers none
	folders map[string]bool   // those that are watched
	warned  bool
}

// follow watches the folders in which the files are now, and no others.
func (w *watch) follow() {
	if w.watcher == nil {
		return
	}
	now := map[string]bool{}
	for _, name := range w.Files() {
		now[filepath.Dir(name)] = true
	}
	for folder := range w.folders {
		if !now[folder] {
			_ = w.watcher.Remove(folder) // it may be gone
			delete(w.folders, folder)
		}
	}
	for folder := range now {
		if w.folders[folder] {
			continue
		}
		if err := w.watcher.Add(folder); err != nil {
			w.warn(err)
			continue
		}
		w.folders[folder] = true
	}
}

func (w *watch) warn(err error) {
	if !w.warned {
		w.warned = true
		w.Logger.Warn("the folders of the "+w.What+" cannot be watched, so the files are looked at every minute", "error", err)
	}
}
