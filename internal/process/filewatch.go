package process

import (
	"cmp"
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settleTime is the default of Options.Settle: a certificate and its key are written one after the other.
	settleTime = 500 * time.Millisecond
	// lookEvery is the default of Options.Every.
	lookEvery = time.Minute
)

// Options configure Run. The durations are optional.
type Options struct {
	// What names the files in the log, such as "certificates".
	What string
	// Files returns the paths. It is called after each Look.
	Files func() []string
	// Look is called at the start, after the last change in the files' folders, and regularly.
	Look func()
	// Logger gets a warning if the folders can't be watched; then only polling remains.
	Logger *slog.Logger
	Settle time.Duration // the quiet period before files are read; zero means 500 ms
	Every  time.Duration // the polling interval, because some file systems send no events; zero means a minute
}

// Run watches files until ctx ends and calls Look on the caller's goroutine. It watches the folders, because Kubernetes
// and others replace a link there, after which a watch on the file itself would see nothing.
func Run(ctx context.Context, o Options) {
	o.Settle, o.Every = cmp.Or(o.Settle, settleTime), cmp.Or(o.Every, lookEvery)
	w := watch{Options: o}
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
	settled := time.NewTimer(o.Settle) // files may have changed since they were read
	defer settled.Stop()
	poll := time.NewTicker(o.Every)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-events:
			settled.Reset(o.Settle)
			continue
		case <-failures: // such as lost events
			settled.Reset(o.Settle)
			continue
		case <-settled.C:
		case <-poll.C:
		}
		o.Look()
		if w.follow() {
			settled.Reset(o.Settle) // a new folder may have files from before the watch
		}
	}
}

type watch struct {
	Options
	watcher *fsnotify.Watcher // nil if the system has none
	warned  bool
}

// follow watches the files' folders, also those that were removed and made again, and reports whether one is new.
func (w *watch) follow() (found bool) {
	if w.watcher == nil {
		return false
	}
	now := map[string]bool{}
	for _, name := range w.Files() {
		now[filepath.Dir(name)] = true
	}
	watched := w.watcher.WatchList()
	for _, folder := range watched {
		if !now[folder] {
			_ = w.watcher.Remove(folder) // it may be gone
		}
	}
	for folder := range now {
		if slices.Contains(watched, folder) {
			continue
		}
		if err := w.watcher.Add(folder); err != nil {
			w.warn(err)
			continue
		}
		found = true
	}
	return found
}

func (w *watch) warn(err error) {
	if !w.warned {
		w.warned = true
		every := "minute"
		if w.Every != lookEvery {
			every = w.Every.String()
		}
		w.Logger.Warn("the folders of the "+w.What+" cannot be watched; checking the files every "+every+" instead", "error", err)
	}
}
