package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"

	"voicegw/internal/testutil"
)

// TestReopen: everything is there when a folder is opened again.
func TestReopen(t *testing.T) {
	for name, sync := range map[string]Sync{"always": SyncAlways, "interval": SyncInterval} {
		t.Run(name, func(t *testing.T) {
			o := Options{Dir: filepath.Join(t.TempDir(), "deep", "data"), Sync: sync}
			s := openTest(t, o)
			pending, _ := reserve(t, s.Ledger, "pending")
			done, _ := reserve(t, s.Ledger, "done")
			q, until := question(t, "a", time.Hour), time.Now().Add(time.Hour)
			for _, err := range []error{
				s.Ledger.Finish(t.Context(), done, json.RawMessage(`{"ok":true}`)),
				s.Confirmations.Create(t.Context(), q),
				s.Blocks.Block(t.Context(), "ada", until),
				s.Audit.AppendAll(t.Context(), [][]byte{[]byte(key(t, "line"))}),
				s.Close(),
				s.Close(),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			s = openTest(t, o)
			if e, fresh := reserve(t, s.Ledger, "pending"); fresh || e.State != Pending || !e.At.Equal(pending.At) {
				t.Errorf("the pending entry: %t %+v", fresh, e)
			}
			if e, fresh := reserve(t, s.Ledger, "done"); fresh || string(e.Envelope) != `{"ok":true}` {
				t.Errorf("the finished entry: %t %+v", fresh, e)
			}
			if got, err := s.Confirmations.Resolve(t.Context(), q.Token, "s1", true, time.Now()); err != nil || string(got.Args) != string(q.Args) {
				t.Errorf("the confirmation: %+v, %v", got, err)
			}
			list := s.Blocks.List()
			if diff := cmp.Diff([]Block{{User: "ada", Until: until}}, list); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{key(t, "line")}, audited(t, s, time.Time{})); diff != "" {
				t.Error(diff)
			}
			// An earlier reservation can be finished by its next finder.
			e, _ := reserve(t, s.Ledger, "pending")
			if err := s.Ledger.Finish(t.Context(), e, json.RawMessage(`{}`)); err != nil {
				t.Error(err)
			}
			info, err := os.Stat(o.Dir)
			if err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("the folder: %v %v", info.Mode(), err)
			}
		})
	}
}

// TestOneFolderOneStore: an open folder is refused, with the name of its process.
func TestOneFolderOneStore(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	s := openTest(t, o)
	_, err := Open(t.Context(), o)
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), o.Dir) || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
		t.Errorf("the second: %v", err)
	}
	reserve(t, s.Ledger, "a") // the first continues
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	openTest(t, o)
}

// TestOpenErrors: each error names the problem, its place and the fix.
func TestOpenErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	closed, err := testutil.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	plain := startServer(t, &server.Options{Port: -1})
	locked := startServer(t, &server.Options{Port: -1, Username: "u", Password: "p"})
	for name, test := range map[string]struct {
		o    Options
		want []string
	}{
		"nothing":         {Options{}, []string{"set Dir", "or URL"}},
		"both":            {Options{URL: "nats://x", Memory: true}, []string{"exclude"}},
		"credentials":     {Options{Dir: "x", Credentials: "y"}, []string{"set URL"}},
		"replicas":        {Options{Dir: "x", Replicas: 3}, []string{"3", "set URL"}},
		"many replicas":   {Options{URL: "nats://x", Replicas: 9}, []string{"9", "1 to 5"}},
		"folder is file":  {Options{Dir: file}, []string{file, "may write"}},
		"below a file":    {Options{Dir: filepath.Join(file, "x")}, []string{file, "may write"}},
		"no listener":     {Options{URL: "nats://secret-token@" + closed}, []string{closed, "start it"}},
		"not a URL":       {Options{URL: "nats://secret-token:%zz@x"}, []string{"nats://host:4222"}},
		"no JetStream":    {Options{URL: plain.ClientURL()}, []string{plain.Addr().String(), "-js"}},
		"no login":        {Options{URL: locked.ClientURL()}, []string{locked.Addr().String(), "credentials"}},
		"no credentials":  {Options{URL: plain.ClientURL(), Credentials: file + "x"}, []string{file + "x"}},
		"replicas of one": {Options{URL: startJetStream(t).ClientURL(), Replicas: 3}, []string{"single server"}},
	} {
		t.Run(name, func(t *testing.T) {
			test.o.Wait = 300 * time.Millisecond
			s, err := Open(t.Context(), test.o)
			if err == nil {
				s.Close()
				t.Fatal("no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
			if strings.Contains(err.Error(), "secret-token") {
				t.Errorf("a secret is in: %v", err)
			}
		})
	}
}

// TestBrokenData: unusable data is an error that names the folder.
func TestBrokenData(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nats"), []byte("not a folder"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Options{Dir: dir})
	if err == nil {
		s.Close()
		t.Fatal("no error")
	}
	if !strings.Contains(err.Error(), dir) {
		t.Errorf("%s is not in: %v", dir, err)
	}
}

// TestClosed: operations after Close fail at once.
func TestClosed(t *testing.T) {
	s := openTest(t, Options{Memory: true})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, reserved := s.Ledger.Reserve(t.Context(), Reservation{Key: "a"})
	_, shown := s.Confirmations.Get(t.Context(), "a")
	for what, err := range map[string]error{
		"reserve": reserved, "get": shown,
		"append": s.Audit.AppendAll(t.Context(), [][]byte{[]byte("a")}),
		"read":   s.Audit.Read(t.Context(), time.Time{}, func([]byte) error { return nil }),
		"block":  s.Blocks.Block(t.Context(), "a", time.Now().Add(time.Hour)),
		"ready":  s.Ready(t.Context()),
	} {
		if !errors.Is(err, errClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestCloseWhileWriting: a writer during Close gets an answer, and acknowledged data is there.
func TestCloseWhileWriting(t *testing.T) {
	o := Options{Dir: t.TempDir(), Sync: SyncInterval}
	s := openTest(t, o)
	acknowledged := make([]int, 8)
	closed := make(chan error, 1)
	racers(8, func(i int) {
		for n := range 100_000 {
			err := s.Audit.AppendAll(context.Background(), [][]byte{fmt.Appendf(nil, "%s %d %d", t.Name(), i, n)})
			if errors.Is(err, errClosed) {
				return
			} else if err != nil {
				t.Error(err)
				return
			}
			acknowledged[i] = n + 1
			if i == 0 && n == 20 {
				go func() { closed <- s.Close() }()
			}
		}
	})
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	found := make([]int, 8)
	for _, line := range audited(t, openTest(t, o), time.Time{}) {
		var i, n int
		fmt.Sscanf(strings.TrimPrefix(line, t.Name()), "%d %d", &i, &n)
		found[i]++
	}
	for i := range found {
		if found[i] < acknowledged[i] {
			t.Errorf("writer %d: %d were acknowledged, %d are there", i, acknowledged[i], found[i])
		}
	}
}

// TestMemoryLeavesNothing: a store in memory leaves no files.
func TestMemoryLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := openTest(t, Options{Memory: true})
	reserve(t, s.Ledger, "a")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestRecordsAreForgotten: a finished entry, a released one and a block expire automatically.
func TestRecordsAreForgotten(t *testing.T) {
	t.Parallel()
	s := openTest(t, Options{Memory: true, LedgerLife: time.Second})
	l := s.Ledger
	e, _ := reserve(t, l, "done")
	if err := l.Finish(t.Context(), e, json.RawMessage(`{}`)); err != nil {
		t.Fatal(err)
	}
	if err := s.Blocks.Block(t.Context(), "ada", time.Now().Add(300*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	testutil.WaitUntil(t, "the block ends", func() bool {
		_, ok := s.Blocks.Blocked("ada")
		list := s.Blocks.List()
		return !ok && len(list) == 0
	})
	if was, err := s.Blocks.Unblock(t.Context(), "ada"); was || err != nil {
		t.Errorf("unblocking after the block's end: %t %v", was, err)
	}
	testutil.WaitUntil(t, "the entry is forgotten", func() bool {
		_, fresh := reserve(t, l, "done")
		return fresh
	})
}

// TestBlocksAreBounded: an expired block makes room, an active one is never forgotten.
func TestBlocksAreBounded(t *testing.T) {
	t.Parallel()
	s := openTest(t, Options{Memory: true, MostBlocks: 2})
	block := func(user string, d time.Duration) error {
		return s.Blocks.Block(t.Context(), user, time.Now().Add(d))
	}
	if err := errors.Join(block("a", 500*time.Millisecond), block("b", time.Hour), block("b", 2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := block("c", time.Hour); !errors.Is(err, ErrFull) {
		t.Errorf("the third user: %v", err)
	}
	testutil.WaitUntil(t, "an expired block makes room", func() bool { return block("c", time.Hour) == nil })
	if _, ok := s.Blocks.Blocked("b"); !ok {
		t.Error("an active block was forgotten")
	}
}

// TestLeasesEndWithTheirProcess: when an embedded store is opened again, the previous process is dead, so its
// conversations are free at once.
func TestLeasesEndWithTheirProcess(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	s := openTest(t, o)
	if _, err := s.Conversations.Lease(t.Context(), "c1", time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil { // without releasing the lease
		t.Fatal(err)
	}
	s = openTest(t, o)
	held, err := s.Conversations.Lease(t.Context(), "c1", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	held.Release()
}
