package witness

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// claimed is a claim with a distinct n.
func claimed(n int) Claim {
	return Claim{Bucket: Ledger, Key: Key{byte(n), byte(n >> 8)}, Revision: uint64(n + 1), Sum: Sum{byte(n)}, Until: time.Now().Add(time.Hour).Round(0)}
}

// begin begins a journal in dir after the existing one.
func begin(t testing.TB, dir string, base Base) *Journal {
	t.Helper()
	j, err := Begin(dir, read(t, dir), base, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func read(t testing.TB, dir string) Contents {
	t.Helper()
	c, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func add(t testing.TB, j *Journal, claims ...Claim) {
	t.Helper()
	if err := j.Add(t.Context(), claims...); err != nil {
		t.Fatal(err)
	}
}

// TestJournal: added claims are read again, the newest of each key, even without Close.
func TestJournal(t *testing.T) {
	dir := t.TempDir()
	if c := read(t, dir); !c.Absent || c.Broken != "" {
		t.Fatalf("an empty folder: %+v", c)
	}
	created, doubt := time.Now().Add(-time.Hour).UTC().Round(0), time.Now().Add(time.Hour).UTC().Round(0)
	j := begin(t, dir, Base{Claims: []Claim{claimed(0)}, Streams: map[Bucket]Stream{Audit: {Created: created, Last: 3}}, Doubt: doubt})
	newer := claimed(1)
	newer.Revision = 9
	going := claimed(2)
	going.Going = true
	add(t, j, newer, claimed(1), claimed(2))
	j.Saw(Audit, 12)
	add(t, j, going)
	c := read(t, dir)
	if c.Absent || c.Broken != "" || len(c.Notes) > 0 || c.ID != j.ID || !c.Doubt.Equal(doubt) || c.Latest.Before(created) {
		t.Errorf("read: %+v", c)
	}
	if s := c.Streams[Audit]; s.Last != 12 || !s.Created.Equal(created) || c.Streams[Ledger].Last != 9 {
		t.Errorf("the streams are %+v", c.Streams)
	}
	got := map[Key]Claim{}
	for _, claim := range c.Claims {
		got[claim.Key] = claim
	}
	if k := (Key{1}); len(got) != 3 || got[k].Revision != 9 || !got[k].Until.Equal(newer.Until) || got[k].Sum != newer.Sum || !got[Key{2}].Going {
		t.Errorf("the claims are %+v", got)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := j.Add(t.Context(), claimed(5)); err == nil {
		t.Error("a closed journal takes claims")
	}
}

// TestDamagedJournal: a journal is reported broken if and only if it has lost something.
func TestDamagedJournal(t *testing.T) {
	const records = 20 // plus the header and the base record
	flip := func(at int) func(t *testing.T, dir string) {
		return change(journalName, func(data []byte) []byte { data[at] ^= 1; return data })
	}
	for name, test := range map[string]struct {
		damage func(t *testing.T, dir string)
		broken string // part of the message; empty for an intact journal
		note   string
	}{
		"nothing":             {damage: func(*testing.T, string) {}},
		"the header":          {damage: flip(30), broken: "first record"},
		"a record":            {damage: flip(5 * recordSize), broken: "record 5"},
		"its checksum":        {damage: flip(6*recordSize - 1), broken: "record 5"},
		"the last record":     {damage: flip((records+1)*recordSize + 60), broken: fmt.Sprintf("after %d of %d", records+1, records+2)},
		"zeros in the middle": {damage: change(journalName, func(data []byte) []byte { clear(data[512:1024]); return data }), broken: "record 4"},
		"zeros at the end":    {damage: change(journalName, func(data []byte) []byte { clear(data[1024:]); return data }), broken: "after 8 of"},
		"cut in half":         {damage: change(journalName, func(data []byte) []byte { return data[:records*recordSize/2] }), broken: "after 10 of"},
		"cut by one":          {damage: change(journalName, func(data []byte) []byte { return data[:(records+2)*recordSize-1] }), broken: "after"},
		"two swapped":         {damage: change(journalName, swap), broken: "record 4"},
		"empty":               {damage: change(journalName, func([]byte) []byte { return nil }), broken: "no readable record"},
		"missing":             {damage: remove(journalName), broken: "is missing"},
		"another file":        {damage: change(journalName, func([]byte) []byte { return []byte("not this at all") }), broken: "no readable record"},
		"garbage after it":    {damage: change(journalName, func(data []byte) []byte { return append(data, bytes.Repeat([]byte("x"), 999)...) })},
		"a torn last record":  {damage: flip((records + 2) * recordSize)},
		"no spare space":      {damage: change(journalName, func(data []byte) []byte { return data[:(records+2)*recordSize] })},
		"the mark is missing": {damage: remove(markName), note: "missing or unreadable"},
		"the mark is damaged": {damage: change(markName, func(data []byte) []byte { data[40] ^= 1; return data }), note: "missing or unreadable"},
		"the mark is empty":   {damage: change(markName, func([]byte) []byte { return nil }), note: "missing or unreadable"},
		"an older generation": {damage: older(journalName), broken: "older copy"},
		"the mark is older":   {damage: older(markName), note: "older copy"},
		"both are older":      {damage: func(t *testing.T, dir string) { older(journalName)(t, dir); older(markName)(t, dir) }},
		"a half next one":     {damage: func(t *testing.T, dir string) { write(t, filepath.Join(dir, nextName), []byte("half")) }},
		"killed before the mark": {damage: func(t *testing.T, dir string) {
			mark := load(t, filepath.Join(dir, markName))
			begin(t, dir, Base{ID: read(t, dir).ID})
			write(t, filepath.Join(dir, markName), mark)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for range 3 { // generations
				j := begin(t, dir, Base{ID: Key{9}, Claims: []Claim{claimed(100)}})
				keepOld(t, dir)
				for i := range records {
					add(t, j, claimed(i))
				}
				if err := j.Close(); err != nil {
					t.Fatal(err)
				}
			}
			test.damage(t, dir)
			c := read(t, dir)
			if (test.broken == "") != (c.Broken == "") || !strings.Contains(c.Broken, test.broken) {
				t.Errorf("broken: %q, want %q", c.Broken, test.broken)
			}
			if notes := strings.Join(c.Notes, "\n"); (test.note == "") != (notes == "") || !strings.Contains(notes, test.note) {
				t.Errorf("notes: %q, want %q", notes, test.note)
			}
			if c.Absent {
				t.Error("it counts as absent")
			}
			// The next generation is intact in each case.
			add(t, begin(t, dir, Base{ID: c.ID, Claims: c.Claims}), claimed(50))
			if c := read(t, dir); c.Broken != "" || len(c.Notes) > 0 {
				t.Errorf("the next generation: %q %v", c.Broken, c.Notes)
			}
		})
	}
}

// TestTornByPower: a power cut leaves unsynced data in any state, which is not damage.
func TestTornByPower(t *testing.T) {
	dir := t.TempDir()
	j, err := Begin(dir, read(t, dir), Base{}, false) // without syncs
	if err != nil {
		t.Fatal(err)
	}
	add(t, j, claimed(1), claimed(2))
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	add(t, j, claimed(3), claimed(4), claimed(5))
	change(journalName, func(data []byte) []byte { clear(data[3*recordSize : 4*recordSize]); return data })(t, dir)
	c := read(t, dir)
	if c.Broken != "" || len(c.Claims) != 4 {
		t.Errorf("%q with %d claims", c.Broken, len(c.Claims))
	}
	change(journalName, func(data []byte) []byte { clear(data[2*recordSize : 3*recordSize]); return data })(t, dir)
	if c := read(t, dir); !strings.Contains(c.Broken, "record 2") {
		t.Errorf("synced data is lost: %q", c.Broken)
	}
	_ = j.Close()
}

// TestGenerations: a journal that has grown is rewritten with its current claims.
func TestGenerations(t *testing.T) {
	dir := t.TempDir()
	j := begin(t, dir, Base{Doubt: time.Unix(1<<32, 0)})
	first := j.generation
	over, going := claimed(7), claimed(8)
	over.Until = time.Now().Add(-time.Hour)
	going.Going = true
	pack := make([]Claim, 1000)
	for n := 0; n < 2*slack; n += len(pack) {
		for i := range pack {
			pack[i] = claimed(i + 100)
			pack[i].Revision = uint64(n + 1)
		}
		add(t, j, append(pack, over, going)...)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if j.generation == first {
		t.Error("it was never rewritten")
	}
	c := read(t, dir)
	if info, err := os.Stat(filepath.Join(dir, journalName)); err != nil || info.Size() > (slack+4000)*recordSize+roomBytes {
		t.Errorf("it takes %d bytes: %v", info.Size(), err)
	}
	if c.Broken != "" || len(c.Claims) < 1000 || len(c.Claims) > 1002 || c.Doubt.Unix() != 1<<32 {
		t.Errorf("%q, %d claims, doubt until %v", c.Broken, len(c.Claims), c.Doubt)
	}
}

// TestManyAdd: acknowledged claims of many callers are all in the journal.
func TestManyAdd(t *testing.T) {
	dir := t.TempDir()
	j := begin(t, dir, Base{})
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for n := range 20 {
				if err := j.Add(t.Context(), claimed(i*20+n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if c := read(t, dir); len(c.Claims) != 320 || c.Broken != "" {
		t.Errorf("%d claims, %q", len(c.Claims), c.Broken)
	}
}

// TestRenew: after a failed write the journal takes nothing until it is rewritten; then it has everything
// acknowledged.
func TestRenew(t *testing.T) {
	dir := t.TempDir()
	j := begin(t, dir, Base{})
	add(t, j, claimed(1))
	_ = j.fail(os.ErrDeadlineExceeded)
	if err := j.Add(t.Context(), claimed(2)); err == nil {
		t.Fatal("a failed journal takes claims")
	}
	if err := j.Renew(); err != nil {
		t.Fatal(err)
	}
	add(t, j, claimed(3))
	if c := read(t, dir); len(c.Claims) != 2 || c.Broken != "" {
		t.Errorf("%+v", c)
	}
}

func FuzzParse(f *testing.F) {
	dir := f.TempDir()
	j := begin(f, dir, Base{Claims: []Claim{claimed(1)}, Streams: map[Bucket]Stream{Audit: {Last: 3}}})
	add(f, j, claimed(2))
	whole := load(f, filepath.Join(dir, journalName))[:4*recordSize]
	f.Add(whole, uint64(4))
	f.Add(whole[:300], uint64(0))
	f.Fuzz(func(t *testing.T, data []byte, marked uint64) {
		j, err := parse(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if j.whole > uint64(len(data)/recordSize) {
			t.Errorf("%d records in %d bytes", j.whole, len(data))
		}
		if j.broken(marked) == "" && max(marked, j.settled) > j.whole {
			t.Errorf("whole with %d of %d records", j.whole, marked)
		}
	})
}

// The following make and change files.

func load(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func change(name string, f func([]byte) []byte) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		path := filepath.Join(dir, name)
		write(t, path, f(load(t, path)))
	}
}

func remove(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// keepOld copies the files of the first generation, for older.
func keepOld(t *testing.T, dir string) {
	for _, name := range []string{journalName, markName} {
		if path := filepath.Join(dir, name+".old"); !exists(path) {
			write(t, path, load(t, filepath.Join(dir, name)))
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func older(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		write(t, filepath.Join(dir, name), load(t, filepath.Join(dir, name+".old")))
	}
}

func swap(data []byte) []byte {
	a := bytes.Clone(data[4*recordSize : 5*recordSize])
	copy(data[4*recordSize:], data[5*recordSize:6*recordSize])
	copy(data[5*recordSize:], a)
	return data
}
