package process

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settleTime is the quiet period before files are read: a certificate and its key are written one after the other.
	settleTime = 500 * time.Millisecond
	// lookEvery is the polling interval, because some file systems send no events.
	lookEvery = time.Minute
)

// Options configure Run. All are required.
type Options struct {
	// What names the files in the log, such as "certificates".
	What string
	// Files returns the paths. It is called again before each wait.
	Files func() []string
	// Look is called at the start, 500 ms after the last change in the files' folders, and every minute.
	Look func()
	// Logger gets a warning if the folders can't be watched; then only polling remains.
	Logger *slog.Logger
}

// Run watches files until ctx ends and calls Look on the caller's goroutine. It watches the folders, because Kubernetes
// and others replace a link there, after which a watch on the file itself would see nothing.
func Run(ctx context.Context, o Options) {
	w := watch{Options: o, folders: map[string]bool{}}
	var events chan fsnotify.Event
	var failures chan error
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		w.warn(err)
	} else {
		defer func() { _ = watcher.Close() }()
		w.watcher, events, failures = watcher, watcher.Events, watcher.Errors
	}
	w.follow()
	look := time.NewTimer(settleTime) // files may have changed since they were read
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-events:
			look.Reset(settleTime)
		case <-failures: // such as lost events
			look.Reset(settleTime)
		case <-look.C:
			o.Look()
			w.follow()
			look.Reset(lookEvery)
		}
	}
}

type watch struct {
	Options
	watcher *fsnotify.Watcher // nil if the system has none
	folders map[string]bool   // the watched folders
	warned  bool
}

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
		w.Logger.Warn("the folders of the "+w.What+" cannot be watched; checking the files every minute instead", "error", err)
	}
}
