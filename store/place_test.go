package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMisplaced: a data folder that is moved, replaced or disturbed while the store is open is noticed at the next
// check or write, whichever is first. Nothing is acknowledged then, and when the folder is restored the store
// continues automatically.
func TestMisplaced(t *testing.T) {
	ledger := filepath.Join(natsFolder, streamsFolder, "KV_voicegw_ledger")
	away := func(name string) func(t *testing.T, dir string) (back func()) {
		return func(t *testing.T, dir string) func() {
			path, aside := filepath.Join(dir, name), filepath.Join(t.TempDir(), "aside")
			rename(t, path, aside)
			return func() { rename(t, aside, path) }
		}
	}
	replaced := func(name string) func(t *testing.T, dir string) (back func()) {
		return func(t *testing.T, dir string) func() {
			path, aside := filepath.Join(dir, name), filepath.Join(t.TempDir(), "aside")
			rename(t, path, aside)
			if isDir(aside) {
				copyFolder(t, path, aside)
			} else if data, err := os.ReadFile(aside); err != nil || os.WriteFile(path, data, 0o600) != nil {
				t.Fatal(err)
			}
			return func() {
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
				rename(t, aside, path)
			}
		}
	}
	for name, test := range map[string]struct {
		disturb func(t *testing.T, dir string) (back func())
		// write: a write notices it too.
		write bool
		words string
	}{
		"the folder is moved away":       {away("."), true, "is gone"},
		"the folder is replaced":         {replaced("."), true, "was replaced"},
		"the server's is moved away":     {away(natsFolder), true, "is gone"},
		"the server's is replaced":       {replaced(natsFolder), true, "was replaced"},
		"a stream is moved away":         {away(ledger), true, "is gone"},
		"a stream is replaced":           {replaced(ledger), true, "was replaced"},
		"the witness is removed":         {away("witness"), true, "witness"},
		"the witness is replaced":        {replaced("witness"), true, "witness"},
		"the lock is renamed":            {away(lockName), false, lockName},
		"the lock is replaced":           {replaced(lockName), false, lockName},
		"a foreign folder is among them": {foreignFolder, false, "not of this store"},
	} {
		t.Run(name, func(t *testing.T) {
			// The folder itself is moved by its parent's name.
			dir := filepath.Join(t.TempDir(), "data")
			s := openTest(t, Options{Dir: dir, Sync: SyncInterval})
			entry, _ := reserve(t, s.Ledger, "before")
			back := test.disturb(t, dir)
			if test.write {
				// Without waiting for a check: the write itself notices.
				if _, _, err := s.Ledger.Reserve(t.Context(), Reservation{Key: "in between"}); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), test.words) {
					t.Errorf("a write in between: %v", err)
				}
			}
			s.look()
			_, _, reserved := s.Ledger.Reserve(t.Context(), Reservation{Key: "meanwhile"})
			for what, err := range map[string]error{
				"reserve": reserved, "ready": s.Ready(t.Context()), "finish": s.Ledger.Finish(t.Context(), entry, []byte(`{}`)),
			} {
				if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), test.words) {
					t.Errorf("%s: %v", what, err)
				}
			}
			back()
			s.look()
			if err := errors.Join(s.Ready(t.Context()), s.Ledger.Finish(t.Context(), entry, []byte(`{}`))); err != nil {
				t.Errorf("when it is restored: %v", err)
			}
			closeTest(t, s)
			if _, fresh := reserve(t, openTest(t, Options{Dir: dir}).Ledger, "before"); fresh {
				t.Error("afterwards a side effect may be repeated")
			}
		})
	}
}

// TestForeignAtStart: a foreign folder among the streams is refused, and named.
func TestForeignAtStart(t *testing.T) {
	dir := t.TempDir()
	closeTest(t, openTest(t, Options{Dir: dir}))
	back := foreignFolder(t, dir)
	s, err := Open(t.Context(), Options{Dir: dir})
	if err == nil {
		closeTest(t, s)
	}
	if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "KV_stranger") {
		t.Errorf("it opens with %v", err)
	}
	back()
	openTest(t, Options{Dir: dir})
}

func foreignFolder(t *testing.T, dir string) (back func()) {
	path := filepath.Join(dir, natsFolder, streamsFolder, "KV_stranger")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(filepath.Clean(from), filepath.Clean(to)); err != nil {
		t.Fatal(err)
	}
}
