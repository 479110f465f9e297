package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fillEnv makes the test binary fill the store in the folder that it names.
const fillEnv = "VOICEGW_STORE_FILL"

// fill appends to the audit until that fails, and prints the store's state.
func fill(dir string) {
	ctx := context.Background()
	s, err := Open(ctx, Options{Dir: dir, Wait: 300 * time.Millisecond})
	if err != nil {
		fmt.Fprintln(os.Stdout, "open:", err)
		os.Exit(1)
	}
	line, stored := bytes.Repeat([]byte("x"), 100_000), 0
	ready := s.Ready(ctx)
	for tries := 0; ready == nil && tries < 1000; tries++ {
		if err = s.Audit.AppendAll(ctx, [][]byte{line}); err == nil {
			stored++
			continue
		}
		ready = s.Ready(ctx) // nil if the machine was only too slow for the store's time limit
	}
	fmt.Fprintf(os.Stdout, "stored %d\nunavailable %t\nready %v\n", stored, errors.Is(err, ErrUnavailable), ready)
	os.Exit(0)
}

// TestDiskFull: when a file cannot grow any more, writes are ErrUnavailable, the store is not ready, and acknowledged
// data is there once there is room. A limit on file sizes simulates the full disk.
func TestDiskFull(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell to set a limit with")
	}
	dir := filepath.Join(t.TempDir(), "data")
	child := exec.CommandContext(t.Context(), sh, "-c", `ulimit -f 4000 && exec "$0"`, os.Args[0])
	child.Env = append(os.Environ(), fillEnv+"="+dir)
	out, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var stored int
	if _, err := fmt.Sscanf(string(out), "stored %d\nunavailable true\n", &stored); err != nil || stored < 1 {
		t.Fatalf("%v in:\n%s", err, out)
	}
	if _, ready, _ := strings.Cut(string(out), "ready "); !strings.Contains(ready, dir) || !strings.Contains(ready, "restart") {
		t.Errorf("ready: %s", ready)
	}
	found := 0
	s := openTest(t, Options{Dir: dir})
	if err := s.Audit.Read(t.Context(), time.Time{}, func([]byte) error { found++; return nil }); err != nil || found < stored {
		t.Errorf("%d were acknowledged, %d are there: %v", stored, found, err)
	}
	if err := errors.Join(s.Audit.AppendAll(t.Context(), [][]byte{[]byte("x")}), s.Ready(t.Context())); err != nil {
		t.Error(err)
	}
}
