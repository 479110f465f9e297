package certs

import (
	"context"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settleTime is how long files must be left alone before they are read: a certificate and its key
	// are written one after the other.
	settleTime = 500 * time.Millisecond
	// lookEvery is how often they are read without being told: some file systems tell nothing.
	lookEvery = time.Minute
)

// watch reads the files again when they have changed, until ctx ends. It watches their folders:
// Kubernetes and others replace a link there, and what was watched before is gone.
func (s *Store) watch(ctx context.Context) {
	watcher, err := fsnotify.NewWatcher()
	var events chan fsnotify.Event
	var failures chan error
	if err == nil {
		defer func() { _ = watcher.Close() }() // nothing is lost with it
		events, failures = watcher.Events, watcher.Errors
		for _, p := range s.opts.Files {
			for _, name := range []string{p.Cert, p.Key} {
				if err = watcher.Add(filepath.Dir(name)); err != nil {
					break
				}
			}
		}
	}
	if err != nil {
		s.opts.Logger.Warn("the certificates' folders cannot be watched, so the files are read every minute", "error", err)
	}
	look := time.NewTimer(settleTime) // they may have changed since Open
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
			_ = s.Reload() // it has logged the error
			look.Reset(lookEvery)
		}
	}
}
