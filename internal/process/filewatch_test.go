package process

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"voicegw/internal/testutil"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRun: a file is checked after a write, after a replacement through a link, and in another folder after its creation.
func TestRun(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	var file atomic.Pointer[string]
	at := func(folder string) {
		name := filepath.Join(folder, "keys")
		file.Store(&name)
	}
	at(first)
	var mu sync.Mutex
	seen := "" // the content at the last check
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		Run(ctx, Options{What: "keys", Logger: slog.New(slog.DiscardHandler), Files: func() []string { return []string{*file.Load()} }, Look: func() {
			data, _ := os.ReadFile(*file.Load()) // it is missing at first
			mu.Lock()
			defer mu.Unlock()
			seen = string(data)
		}})
	})
	defer running.Wait()
	defer stop()
	reads := func(want string) {
		t.Helper()
		testutil.WaitUntil(t, "it reads "+want, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return seen == want
		})
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(first, "keys"), "one")
	reads("one")

	write(filepath.Join(first, "of-today"), "two")
	if err := os.Symlink("of-today", filepath.Join(first, "link")); err != nil {
		t.Skip(err)
	}
	if err := os.Rename(filepath.Join(first, "link"), filepath.Join(first, "keys")); err != nil {
		t.Fatal(err)
	}
	reads("two")

	at(second)
	write(filepath.Join(first, "else"), "") // a check on request; from then on the other folder is watched
	reads("")
	write(filepath.Join(second, "keys"), "three")
	reads("three")
}
