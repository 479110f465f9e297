package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"voicegw/internal/server"
	"voicegw/registry/registrytest"
	"voicegw/store"
)

// TestDamagedData: serve does not start with damaged data and says how to continue; with the code that it printed it
// starts once, and the audit records that.
func TestDamagedData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kept, err := store.Open(t.Context(), store.Options{Dir: filepath.Join(dir, "store"), Sync: store.SyncInterval})
	if err != nil {
		t.Fatal(err)
	}
	effect := store.Reservation{Key: "a deed", Lease: time.Minute}
	e, _, err := kept.Ledger.Reserve(t.Context(), effect)
	if err == nil {
		err = kept.Ledger.Finish(t.Context(), e, []byte(`{}`))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := kept.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "store/nats/jetstream/$G/streams/KV_voicegw_ledger/msgs/1.blk"), 40); err != nil {
		t.Fatal(err)
	}

	serve := func(args ...string) (int, string) {
		var out, complaints console
		tools := registrytest.Project(t)
		code := Run(context.Background(), Process{
			Args: append([]string{"serve", "--listen", "127.0.0.1:0", "--data-dir", dir}, args...), Stdin: strings.NewReader(""),
			Host: server.Host{Stdout: &out, Stderr: &complaints, Registry: func() ([]byte, error) { return tools, nil }},
		})
		return code, complaints.String()
	}
	code, text := serve()
	found := regexp.MustCompile(`voicegw serve --accept-damage ([0-9a-f]+)\n`).FindStringSubmatch(text)
	if code != exitFailure || found == nil || !strings.Contains(text, "ledger: 1 record is missing") || !strings.Contains(text, dir) {
		t.Fatalf("it ended with %d and printed:\n%s", code, text)
	}
	if code, text := serve("--accept-damage", "0123abcd"); code != exitFailure || !strings.Contains(text, found[0]) {
		t.Errorf("with the code of another damage it ended with %d and printed:\n%s", code, text)
	}

	r := start(t, "--data-dir", dir, "--accept-damage", found[1])
	r.signals <- os.Interrupt
	if code := r.ended(); code != exitOK {
		t.Errorf("it ended with %d:\n%s", code, r.err.String())
	}
	lines, err := os.ReadFile(filepath.Join(dir, "audit", "audit.jsonl"))
	if err != nil || !strings.Contains(string(lines), `"damage_accepted"`) || !strings.Contains(string(lines), "actions in doubt: 1") {
		t.Errorf("the audit has %s, %v", lines, err)
	}
	kept, err = store.Open(t.Context(), store.Options{Dir: filepath.Join(dir, "store"), Sync: store.SyncInterval})
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	if e, fresh, err := kept.Ledger.Reserve(t.Context(), effect); fresh || err != nil || e.State != store.Pending {
		t.Errorf("the side effect may happen again: %t %+v %v", fresh, e, err)
	}
}

// TestBackupAndRestore follows docs/data.md: after the restore of an older backup no side effect is repeated, neither
// those of the backup nor the later ones.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	dir, backup := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "backup")
	do := func(key string) (e store.Entry, fresh bool) {
		t.Helper()
		kept, err := store.Open(t.Context(), store.Options{Dir: filepath.Join(dir, "store"), Sync: store.SyncInterval})
		if err != nil {
			t.Fatal(err)
		}
		e, fresh, err = kept.Ledger.Reserve(t.Context(), store.Reservation{Key: key, Lease: time.Minute})
		if err == nil && fresh {
			err = kept.Ledger.Finish(t.Context(), e, []byte(`{"done":true}`))
		}
		if err = errors.Join(err, kept.Close()); err != nil {
			t.Fatal(err)
		}
		return e, fresh
	}
	if r := start(t, "--data-dir", dir); true {
		r.signals <- os.Interrupt
		r.ended()
	}
	do("before the backup")
	copyFolder := func(from, to string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "cp", "-a", from, to).CombinedOutput(); err != nil {
			t.Fatalf("cp: %v\n%s", err, out)
		}
	}
	copyFolder(dir, backup)
	do("after the backup")

	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	copyFolder(backup, dir)
	for _, file := range []string{"store/witness", "store/witness.mark"} {
		if err := os.Remove(filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	var complaints console
	tools := registrytest.Project(t)
	code := Run(context.Background(), Process{
		Args: []string{"serve", "--listen", "127.0.0.1:0", "--data-dir", dir}, Stdin: strings.NewReader(""),
		Host: server.Host{Stdout: &complaints, Stderr: &complaints, Registry: func() ([]byte, error) { return tools, nil }},
	})
	found := regexp.MustCompile(`voicegw serve --accept-damage ([0-9a-f]+)\n`).FindStringSubmatch(complaints.String())
	if code != exitFailure || found == nil {
		t.Fatalf("it ended with %d and printed:\n%s", code, complaints.String())
	}
	r := start(t, "--data-dir", dir, "--accept-damage", found[1])
	r.signals <- os.Interrupt
	if code := r.ended(); code != exitOK {
		t.Fatalf("it ended with %d:\n%s", code, r.err.String())
	}
	if e, fresh := do("before the backup"); fresh || e.State != store.Done {
		t.Errorf("the side effect before the backup: repeated %t, %v", fresh, e.State)
	}
	if e, fresh := do("after the backup"); fresh || e.State == store.Done {
		t.Errorf("the side effect after the backup: repeated %t, %v", fresh, e.State)
	}
}
