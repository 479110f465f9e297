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

// writeForEver writes to a store, and says each key once it is acknowledged. It ends
// when it is killed, or when nobody listens any more.
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
		e, fresh, err := s.Ledger().Reserve(ctx, Reservation{Key: name, Lease: time.Minute})
		if err != nil || !fresh {
			return fmt.Errorf("%s: %t %w", name, fresh, err)
		}
		if _, err := fmt.Fprintln(os.Stdout, "reserved", name); err != nil {
			return err
		}
		if err := s.Ledger().Finish(ctx, e, json.RawMessage(name)); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(os.Stdout, "finished", name); err != nil {
			return err
		}
		if err := s.Audit().AppendAll(ctx, [][]byte{[]byte(name)}); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(os.Stdout, "audited", name); err != nil {
			return err
		}
	}
}

// TestKilled: a process that writes is killed at any moment, ten times, each time on a
// folder of its own. Whatever was acknowledged is there. (It shows what a crash of the
// process does; the loss of power it cannot show.)
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
			if err := s.Audit().Read(t.Context(), time.Time{}, func(line []byte) error { lines[string(line)] = true; return nil }); err != nil {
				t.Fatal(err)
			}
			for name, what := range acknowledged {
				e, fresh := reserve(t, s.Ledger(), name)
				switch {
				case fresh:
					t.Errorf("%s: %s, and gone", name, what)
				case what != "reserved" && (e.State != Done || string(e.Envelope) != name):
					t.Errorf("%s: %s, and it is %+v", name, what, e)
				case what == "audited" && !lines[name]:
					t.Errorf("%s: audited, and gone", name)
				}
			}
			t.Logf("%d keys were acknowledged, %d lines are there", len(acknowledged), len(lines))
		})
	}
}

// killedAfter runs a writer, kills it once it has said so many lines, and returns the
// last thing that it said of each key.
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
		// What it said before it was killed counts too, and a torn last line does not.
		if what, name, ok := strings.Cut(said.Text(), " "); ok {
			acknowledged[name] = what
		}
	}
	if err := child.Wait(); err == nil || child.ProcessState.ExitCode() != -1 {
		t.Fatalf("the writer ended by itself: %v", err)
	}
	if len(acknowledged) == 0 {
		t.Fatal("nothing was acknowledged")
	}
	return acknowledged
}
