package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"voicegw/internal/conversation"
	"voicegw/internal/testutil"
)

// damageEnv makes TestDamage run all its cases instead of a sample.
const damageEnv = "VOICEGW_DAMAGE"

// estate is the contents of the store in the damage tests.
type estate struct {
	done, pending   []string
	asked, answered []string // tokens
	open, used      []string // secrets of tickets
	blocked         []string
}

// extend writes more records of each kind.
func (e *estate) extend(t *testing.T, s *Store, name string, n int) {
	t.Helper()
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		one := fmt.Sprintf("%s %d", name, i)
		entry, _ := reserve(t, s.Ledger, one)
		check(s.Ledger.Finish(ctx, entry, fmt.Appendf(nil, `{"did":"%s","note":"%0200d"}`, one, 0)))
		check(s.Audit.AppendAll(ctx, [][]byte{fmt.Appendf(nil, `{"did":"%s"}`, one)}))
		e.done = append(e.done, one)
		if i%3 > 0 {
			continue
		}
		reserve(t, s.Ledger, one+" pending")
		e.pending = append(e.pending, one+" pending")
		entry, _ = reserve(t, s.Ledger, one+" released")
		check(s.Ledger.Release(ctx, entry))
		for _, answer := range []string{" asked", " answered"} {
			q := question(t, one+answer, time.Hour)
			check(s.Confirmations.Create(ctx, q))
			if answer == " asked" {
				e.asked = append(e.asked, q.Token)
				continue
			}
			_, err := s.Confirmations.Resolve(ctx, q.Token, "", true, time.Now())
			check(err)
			e.answered = append(e.answered, q.Token)
		}
		for _, use := range []bool{false, true} {
			secret, err := s.Tickets.Create(ctx, Ticket{SessionID: one, User: "ada"})
			check(err)
			if !use {
				e.open = append(e.open, secret)
				continue
			}
			_, err = s.Tickets.Redeem(ctx, secret, "", time.Now())
			check(err)
			e.used = append(e.used, secret)
		}
		check(s.Blocks.Block(ctx, one, time.Now().Add(time.Hour)))
		e.blocked = append(e.blocked, one)
		talk := conversation.New(fmt.Sprintf("c%s%d", name, i), "", "", time.Now())
		_, err := s.Conversations.Save(ctx, talk, 0)
		check(err)
	}
}

// forgotten lists the records that the store has lost, and the actions that it would repeat. lenient allows an
// unknown outcome of finished actions and unknown questions, as after AcceptDamage; blind allows lost blocks too.
func (e *estate) forgotten(t *testing.T, s *Store, lenient, blind bool) (bad []string) {
	t.Helper()
	ctx := t.Context()
	say := func(format string, a ...any) { bad = append(bad, fmt.Sprintf(format, a...)) }
	for _, name := range slices.Concat(e.done, e.pending) {
		entry, fresh, err := s.Ledger.Reserve(ctx, Reservation{Key: name})
		done := slices.Contains(e.done, name)
		switch {
		case err != nil && !lenient:
			say("%s: %v", name, err)
		case err != nil: // nothing is repeated
		case fresh:
			say("%s is repeated", name)
		case done && entry.State == Done && !bytes.Contains(entry.Envelope, []byte(name)):
			say("%s has the answer %s", name, entry.Envelope)
		case done && entry.State != Done && !lenient:
			say("%s is %s", name, entry.State)
		}
	}
	for _, token := range e.answered {
		if _, err := s.Confirmations.Resolve(ctx, token, "", true, time.Now()); err == nil || !errors.Is(err, ErrUsed) && !lenient {
			say("the answered confirmation %s: %v", token, err)
		}
	}
	for _, token := range e.asked {
		if _, err := s.Confirmations.Get(ctx, token); err != nil && !lenient {
			say("the confirmation %s: %v", token, err)
		}
	}
	for _, secret := range e.used {
		if _, err := s.Tickets.Redeem(ctx, secret, "", time.Now()); err == nil || !errors.Is(err, ErrUsed) && !lenient {
			say("a used ticket: %v", err)
		}
	}
	for _, user := range e.blocked {
		if _, ok := s.Blocks.Blocked(user); !ok && !blind {
			say("%s is admitted", user)
		}
	}
	return bad
}

// damageCase is one damage to one file or folder of the data.
type damageCase struct {
	path string // below the data folder
	name string
	do   func(path string) error
}

// damages are all damages to a file of that size; old is its older copy, empty for none.
func damages(size int64, old string) map[string]func(path string) error {
	edit := func(f func(data []byte) []byte) func(string) error {
		return func(path string) error {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, f(data), 0o600)
		}
	}
	all := map[string]func(string) error{
		"garbage": edit(func(data []byte) []byte { return append(data, bytes.Repeat([]byte("garbage"), 30)...) }),
		"removed": os.Remove,
		"doubled": func(path string) error {
			data, err := os.ReadFile(path)
			ext := filepath.Ext(path)
			copied := strings.TrimSuffix(path, ext) + "9" + ext // such as 19.blk
			return errors.Join(err, os.WriteFile(copied, data, 0o600))
		},
	}
	if size > 0 {
		all["empty"] = edit(func([]byte) []byte { return nil })
		all["half"] = edit(func(data []byte) []byte { return data[:len(data)/2] })
		for _, n := range []int64{1, 7, 60} {
			if n < size {
				all[fmt.Sprintf("cut by %d", n)] = edit(func(data []byte) []byte { return data[:size-n] })
			}
		}
		for _, at := range []int64{0, 3, 22, size / 3, size / 2, size - 9, size - 1} {
			if at >= 0 && at < size {
				all[fmt.Sprintf("byte %d flipped", at)] = edit(func(data []byte) []byte { data[at] ^= 0x10; return data })
			}
		}
		for page := int64(0); page < size && page < 5*4096; page += 4096 {
			all[fmt.Sprintf("page %d zeroed", page/4096)] = edit(func(data []byte) []byte {
				clear(data[page:min(page+4096, size)])
				return data
			})
		}
	}
	if old != "" {
		all["older"] = func(path string) error {
			data, err := os.ReadFile(old)
			return errors.Join(err, os.WriteFile(path, data, 0o600))
		}
	}
	return all
}

// damageCases are all damages to the files of dir; older is an earlier copy of the folder.
func damageCases(t *testing.T, dir, older string) (cases []damageCase) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if d.IsDir() {
			cases = append(cases, damageCase{rel, "removed", os.RemoveAll})
			if old := filepath.Join(older, rel); isDir(old) {
				cases = append(cases, damageCase{rel, "older", func(path string) error {
					return errors.Join(os.RemoveAll(path), os.CopyFS(path, os.DirFS(old)))
				}})
			}
			return nil
		}
		info, err := d.Info()
		if err != nil || rel == lockName {
			return err
		}
		old := filepath.Join(older, rel)
		if _, err := os.Stat(old); err != nil {
			old = ""
		}
		all := damages(info.Size(), old)
		for _, name := range slices.Sorted(mapsKeys(all)) {
			cases = append(cases, damageCase{rel, name, all[name]})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

func mapsKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// TestDamage: after any damage to a data file, either the store refuses to open with a reason until the operator
// accepts it, or it knows everything that was done, asked, used and blocked. After an acceptance no action is
// repeated either.
func TestDamage(t *testing.T) {
	o := Options{Dir: t.TempDir(), Sync: SyncInterval}
	older, closed, killed := t.TempDir(), t.TempDir(), t.TempDir()
	var is estate
	s := openTest(t, o)
	is.extend(t, s, "old", 6)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	copyFolder(t, older, o.Dir)
	s = openTest(t, o)
	is.extend(t, s, "new", 30)
	copyFolder(t, killed, o.Dir) // as a killed process leaves it
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	copyFolder(t, closed, o.Dir)
	every, part := 20, 100/testutil.SampleUnderRace(100) // under the race detector one case in ten of the sample
	if os.Getenv(damageEnv) != "" {
		every, part = 1, 1
	}
	n := 0
	for from, dir := range map[string]string{"closed": closed, "killed": killed} {
		for i, c := range damageCases(t, dir, older) {
			if i%every != 0 && (every == 1 || i%7 != 0 || !strings.Contains(c.path, "ledger")) {
				continue
			}
			if n++; n%part > 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s/%s", from, c.path, c.name), func(t *testing.T) {
				t.Parallel()
				data := t.TempDir()
				copyFolder(t, data, dir)
				if err := c.do(filepath.Join(data, c.path)); err != nil {
					t.Fatal(err)
				}
				is.survives(t, Options{Dir: data, Sync: SyncInterval})
			})
		}
	}
	t.Logf("%d cases; one in %d runs", n, part)
}

// survives opens damaged data as an operator would.
func (e *estate) survives(t *testing.T, o Options) {
	t.Helper()
	o = patient(o)
	s, err := Open(t.Context(), o)
	if err == nil {
		defer closeTest(t, s)
		if bad := e.forgotten(t, s, false, false); len(bad) > 0 {
			t.Errorf("it opens, but: %s", strings.Join(bad[:min(len(bad), 5)], "; "))
		}
		return
	}
	t.Log(err)
	damaged, again := new(DamageError), new(DamageError)
	if !errors.As(err, &damaged) || !strings.Contains(err.Error(), o.Dir) {
		t.Fatalf("the refusal is: %v", err)
	}
	s, err = Open(t.Context(), o)
	if err == nil {
		closeTest(t, s)
		t.Fatal("it was refused, but opens the next time")
	}
	if !errors.As(err, &again) || again.Code != damaged.Code {
		t.Fatalf("refused again, with another code: %v", err)
	}
	o.AcceptDamage = damaged.Code
	if s, err = Open(t.Context(), o); err != nil {
		t.Fatalf("accepted: %v", err)
	}
	blind := s.Accepted.All
	bad := e.forgotten(t, s, true, blind)
	closeTest(t, s)
	o.AcceptDamage = ""
	if s, err = Open(t.Context(), o); err != nil {
		t.Fatalf("after it was accepted: %v", err)
	}
	bad = append(bad, e.forgotten(t, s, true, blind)...)
	closeTest(t, s)
	if len(bad) > 0 {
		t.Errorf("accepted, but: %s", strings.Join(bad[:min(len(bad), 5)], "; "))
	}
}

func closeTest(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// copyFolder copies the contents of from into the existing folder to.
func copyFolder(t *testing.T, to, from string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// TestReleasedIsNoLoss: a released reservation does not count as lost when the note of its removal has expired too,
// even if the process was killed right after the removal.
func TestReleasedIsNoLoss(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	s := openTest(t, o)
	e, _ := reserve(t, s.Ledger, "a")
	if err := s.Ledger.Release(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	// The note has expired an hour later.
	if err := s.Ledger.bucket.stream.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	killed := t.TempDir()
	copyFolder(t, killed, o.Dir)
	if _, fresh := reserve(t, openTest(t, Options{Dir: killed}).Ledger, "a"); !fresh {
		t.Error("it is still reserved")
	}
}
