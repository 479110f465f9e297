package store

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// writerEnv makes the test binary a writer on the folder that it names.
const writerEnv = "VOICEGW_STORE_WRITER"

// writeForEver writes to a store, and prints each key once it is acknowledged. It ends when it is killed, or its
// output is closed.
func writeForEver(dir string) {
	o := Options{Dir: dir}
	if name, ok := strings.CutPrefix(dir, "interval:"); ok {
		o.Dir, o.Sync = name, SyncInterval
	}
	if err := writeAll(o); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(1)
}

func writeAll(o Options) error {
	s, err := Open(context.Background(), patient(o))
	if err != nil {
		return err
	}
	ctx := context.Background()
	for i := 0; ; i++ {
		name := fmt.Sprint(i)
		e, fresh, err := s.Ledger.Reserve(ctx, Reservation{Key: name, Lease: time.Minute})
		if err != nil || !fresh {
			return fmt.Errorf("%s: %t %w", name, fresh, err)
		}
		if _, err := fmt.Fprintln(os.Stdout, "reserved", name); err != nil {
			return err
		}
		if err := s.Ledger.Finish(ctx, e, json.RawMessage(name)); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(os.Stdout, "finished", name); err != nil {
			return err
		}
		if err := s.Audit.AppendAll(ctx, [][]byte{[]byte(name)}); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(os.Stdout, "audited", name); err != nil {
			return err
		}
	}
}

// TestKilled: a writing process is killed at random times, ten times, each time on its own folder. All acknowledged
// data is there. (This shows a crash of the process, not a loss of power.)
func TestKilled(t *testing.T) {
	for run := range 10 {
		name, o := "always", Options{Dir: t.TempDir()}
		child := o.Dir
		if run%2 == 1 {
			name, o.Sync, child = "interval", SyncInterval, "interval:"+o.Dir
		}
		t.Run(fmt.Sprintf("%s/%d", name, run), func(t *testing.T) {
			acknowledged := killedAfter(t, child, 1+rand.IntN(1500))
			s := openTest(t, o)
			lines := make(map[string]bool)
			if err := s.Audit.Read(t.Context(), time.Time{}, func(line []byte) error { lines[string(line)] = true; return nil }); err != nil {
				t.Fatal(err)
			}
			for name, what := range acknowledged {
				e, fresh := reserve(t, s.Ledger, name)
				switch {
				case fresh:
					t.Errorf("%s: %s, but lost", name, what)
				case what != "reserved" && (e.State != Done || string(e.Envelope) != name):
					t.Errorf("%s: %s, but it is %+v", name, what, e)
				case what == "audited" && !lines[name]:
					t.Errorf("%s: audited, but lost", name)
				}
			}
			t.Logf("%d keys were acknowledged, %d lines are there", len(acknowledged), len(lines))
		})
	}
}

// killedAfter runs a writer, kills it after most lines, and returns the last word about each key.
func killedAfter(t *testing.T, dir string, most int) map[string]string {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), writerEnv+"="+dir)
	child.Stderr = t.Output()
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	acknowledged := make(map[string]string)
	said := bufio.NewScanner(out)
	for n := 0; said.Scan(); n++ {
		if n == most {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		// Output from before the kill counts too, but not a torn last line.
		if what, name, ok := strings.Cut(said.Text(), " "); ok {
			acknowledged[name] = what
		}
	}
	if err := child.Wait(); err == nil || child.ProcessState.ExitCode() != -1 {
		t.Fatalf("the writer ended early: %v", err)
	}
	if len(acknowledged) == 0 {
		t.Fatal("nothing was acknowledged")
	}
	return acknowledged
}
