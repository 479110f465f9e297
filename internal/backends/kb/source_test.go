package kb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/backends/kb"
	"voicegw/internal/backends/kb/local"
	"voicegw/internal/testutil"
)

// folder is a source over real files, with an index.
type folder struct {
	t       *testing.T
	path    string
	index   kb.Index
	source  *kb.Source
	changes chan kb.SourceChange // from the source to the test; never closed
	log     *logBuffer
}

// logBuffer is a log that is read while it is written.
type logBuffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}

// write replaces a file like an editor: by another one.
func (f *folder) write(name, data string) {
	f.t.Helper()
	path := filepath.Join(f.path, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path+".tmp", []byte(data), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		f.t.Fatal(err)
	}
}

func (f *folder) remove(name string) {
	f.t.Helper()
	if err := os.RemoveAll(filepath.Join(f.path, name)); err != nil {
		f.t.Fatal(err)
	}
}

func markdown(id, title string) string {
	return "---\nid: " + id + "\ntitle: " + title + "\n---\nText.\n"
}

func newFolder(t *testing.T, files map[string]string, change func(*folder, *kb.SourceOptions)) *folder {
	t.Helper()
	f := &folder{t: t, path: t.TempDir(), changes: make(chan kb.SourceChange, 100), log: &logBuffer{}}
	for name, data := range files {
		f.write(name, data)
	}
	o := kb.SourceOptions{
		Path: f.path, Debounce: 20 * time.Millisecond, Poll: time.Hour, Logger: slog.New(slog.NewTextHandler(f.log, nil)),
		OnChange: func(c kb.SourceChange) { f.changes <- c },
	}
	if change != nil {
		change(f, &o)
	}
	if f.index == nil {
		x, err := local.Open(local.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f.index = x
	}
	s, err := kb.OpenSource(t.Context(), f.index, o)
	if err != nil {
		t.Fatal(err)
	}
	f.source = s
	t.Cleanup(func() {
		for range 2 {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := f.index.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// until waits for a change after which the index has these titles.
func (f *folder) until(titles ...string) kb.SourceChange {
	f.t.Helper()
	limit := time.NewTimer(testutil.WaitLimit)
	defer limit.Stop()
	for {
		select {
		case c := <-f.changes:
			if cmp.Equal(titles, f.titles()) {
				return c
			}
		case <-limit.C:
			f.t.Fatalf("the index has %v, want %v; the log is\n%s", f.titles(), titles, f.log)
		}
	}
}

func (f *folder) titles() []string {
	f.t.Helper()
	held, err := f.index.Held(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	var titles []string
	for _, id := range []string{"doc:a", "doc:b", "doc:c", "doc:d"} {
		if _, ok := held[id]; !ok {
			continue
		}
		found, _, err := f.index.Get(f.t.Context(), []string{id})
		if err != nil {
			f.t.Fatal(err)
		}
		titles = append(titles, found[0].Title)
	}
	return titles
}

func TestTheDemoIsTheDefault(t *testing.T) {
	x, err := local.Open(local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := kb.OpenSource(t.Context(), x, kb.SourceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	results, err := x.Search(t.Context(), kb.Query{Text: "opening hours", Namespaces: []kb.Namespace{kb.NamespacePublic}})
	if err != nil || len(results.Hits) == 0 || results.Hits[0].Record.ID != "doc:opening_hours" {
		t.Errorf("%+v, %v", results.Hits, err)
	}
	if c := s.State(); c.Records < 55 || c.Upserted != c.Records || len(c.Problems) != 0 {
		t.Errorf("%+v", c)
	}
	if err := errors.Join(s.Close(), x.Close()); err != nil {
		t.Error(err)
	}
}

func TestChangesOfFilesReachTheIndex(t *testing.T) {
	f := newFolder(t, map[string]string{"a.md": markdown("doc:a", "A1")}, nil)
	if c := f.until("A1"); c.Upserted != 1 || c.Records != 1 {
		t.Errorf("%+v", c)
	}
	f.write("a.md", markdown("doc:a", "A2")) // as long as before
	f.until("A2")
	f.write("new/deep/b.md", markdown("doc:b", "B1"))
	f.until("A2", "B1")
	f.write("new/deep/b.md", markdown("doc:b", "B2")) // in a new folder
	f.until("A2", "B2")
	f.write("c.jsonl", `{"id":"doc:c","title":"C1"}`+"\n"+`{"id":"doc:d","title":"D1","last_updated":"2026-01-01"}`)
	f.until("A2", "B2", "C1", "D1")
	f.write("c.jsonl", `{"id":"doc:d","title":"D1","last_updated":"2026-01-01"}`)
	if c := f.until("A2", "B2", "D1"); c.Deleted != 1 || c.Upserted != 0 {
		t.Errorf("%+v: an unchanged record was put in again", c)
	}
	f.remove("new")
	f.until("A2", "D1")
	f.write("new/deep/b.md", markdown("doc:b", "B3")) // a folder with an old name
	f.until("A2", "B3", "D1")
}

// TestChangeOfSameSizeAndTime: a file of the same size and time is read again when the system reports a change.
func TestChangeOfSameSizeAndTime(t *testing.T) {
	f := newFolder(t, map[string]string{"a.md": markdown("doc:a", "A1")}, nil)
	f.until("A1")
	path := filepath.Join(f.path, "a.md")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f.write("other/a.md.new", markdown("doc:a", "A2"))
	fresh := filepath.Join(f.path, "other/a.md.new")
	if err := os.Chtimes(fresh, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, path); err != nil {
		t.Fatal(err)
	}
	f.until("A2")
}

func TestBadFileRemovesNothing(t *testing.T) {
	f := newFolder(t, map[string]string{"a.md": markdown("doc:a", "A1"), "b.md": "oops", "c.jsonl": `{"id":"doc:c","title":"C1"}`}, nil)
	c := f.until("A1", "C1")
	if len(c.Problems) != 1 || c.Problems[0].File != "b.md" {
		t.Errorf("%v", c.Problems)
	}
	f.write("a.md", "half")
	f.write("c.jsonl", `{"id":"doc:c","title":`+"\n"+`{"id":"doc:d","title":"D1"}`)
	c = f.until("A1", "C1", "D1")
	for len(c.Problems) != 3 { // the two files may be reported one after the other
		c = f.until("A1", "C1", "D1")
	}
	if !strings.Contains(f.log.String(), "b.md:1: the file does not begin") {
		t.Errorf("the log is\n%s", f.log)
	}
	f.write("a.md", markdown("doc:a", "A2"))
	f.write("c.jsonl", `{"id":"doc:d","title":"D1"}`)
	f.remove("b.md")
	c = f.until("A2", "D1")
	for len(c.Problems) != 0 {
		c = f.until("A2", "D1")
	}
	if len(f.source.State().Problems) != 0 {
		t.Errorf("%v", f.source.State().Problems)
	}
}

func TestEmptyFolderRemovesNothing(t *testing.T) {
	f := newFolder(t, map[string]string{"a.md": markdown("doc:a", "A1")}, nil)
	f.until("A1")
	f.remove("a.md")
	c := f.until("A1")
	if len(c.Problems) != 1 || !strings.Contains(c.Problems[0].Message, "1 records of the index are missing in the folder, but kept") {
		t.Errorf("%v", c.Problems)
	}
	f.write("b.md", markdown("doc:b", "B1"))
	f.until("B1")
}

// TestRestartSendsOnlyChanges: the index may outlive the source, as one in a server does.
func TestRestartSendsOnlyChanges(t *testing.T) {
	x, err := local.Open(local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	modified := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for round, upserted := range []int{2, 0, 1} {
		files := t.TempDir()
		titles := []string{"A1", "B1"}
		if round == 2 {
			titles[1] = "B2"
		}
		for i, name := range []string{"a.md", "b.md"} {
			path := filepath.Join(files, name)
			if err := os.WriteFile(path, []byte(markdown("doc:"+name[:1], titles[i])), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, modified, modified); err != nil {
				t.Fatal(err)
			}
		}
		s, err := kb.OpenSource(t.Context(), x, kb.SourceOptions{Path: files, Static: true})
		if err != nil {
			t.Fatal(err)
		}
		if c := s.State(); c.Upserted != upserted || c.Records != 2 {
			t.Errorf("round %d: %+v", round, c)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestFoldersThatCannotBeRead(t *testing.T) {
	x, err := local.Open(local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, file + "/none", filepath.Join(t.TempDir(), "none")} {
		if _, err := kb.OpenSource(t.Context(), x, kb.SourceOptions{Path: path}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := kb.OpenSource(t.Context(), x, kb.SourceOptions{}); !errors.Is(err, kb.ErrClosed) {
		t.Errorf("an index that refuses all records: %v", err)
	}
}

// memory is an index that only stores records, and fails on request.
type memory struct {
	kb.Index
	mu      sync.Mutex
	held    map[string]kb.Held
	fail    error
	embed   bool
	applies []string
}

func (m *memory) Held(context.Context) (map[string]kb.Held, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	held := map[string]kb.Held{}
	for id, h := range m.held {
		held[id] = h
	}
	return held, nil
}

func (m *memory) Apply(ctx context.Context, b kb.Batch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	m.applies = append(m.applies, fmt.Sprintf("%d in, %d out, words only %v", len(b.Upsert), len(b.Delete), b.WordsOnly))
	for _, r := range b.Upsert {
		m.held[r.ID] = kb.Held{Hash: r.Hash(), Complete: m.embed && !b.WordsOnly}
	}
	for _, id := range b.Delete {
		delete(m.held, id)
	}
	return ctx.Err()
}

func (m *memory) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

func (m *memory) applied() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.applies
	m.applies = nil
	return out
}

func TestVectorsAreAddedInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var lines strings.Builder
		for i := range 1200 {
			fmt.Fprintf(&lines, `{"id":"doc:r%d","title":"Record %d"}`+"\n", i, i)
		}
		if err := os.WriteFile(filepath.Join(dir, "all.jsonl"), []byte(lines.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		m := &memory{held: map[string]kb.Held{}, embed: true}
		var last kb.SourceChange
		s, err := kb.OpenSource(t.Context(), m, kb.SourceOptions{Path: dir, Static: true, OnChange: func(c kb.SourceChange) { last = c }})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want := []string{"1200 in, 0 out, words only true", "512 in, 0 out, words only false", "512 in, 0 out, words only false", "176 in, 0 out, words only false"}
		if diff := cmp.Diff(want, m.applied()); diff != "" {
			t.Error(diff)
		}
		if last.Embedded != 1200 || last.Waiting != 0 {
			t.Errorf("%+v", last)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestFailingEmbedderBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{held: map[string]kb.Held{}}
		s, err := kb.OpenSource(t.Context(), m, kb.SourceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		m.applied()
		began := time.Now()
		var at []string
		for len(at) < 7 {
			<-time.After(time.Second)
			synctest.Wait()
			if len(m.applied()) > 0 {
				at = append(at, time.Since(began).String())
			}
		}
		if diff := cmp.Diff([]string{"30s", "1m30s", "3m30s", "7m30s", "15m30s", "25m30s", "35m30s"}, at); diff != "" {
			t.Error(diff)
		}
		m.set(func() { m.embed = true })
		<-time.After(10 * time.Minute)
		synctest.Wait()
		if c := s.State(); c.Waiting != 0 || c.Embedded != c.Records {
			t.Errorf("%+v", c)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestAFailingIndexIsTriedAgain(t *testing.T) {
	m := &memory{held: map[string]kb.Held{}, embed: true}
	f := newFolder(t, map[string]string{"a.md": markdown("doc:a", "A1")}, func(f *folder, o *kb.SourceOptions) {
		f.index, o.Poll = closing{m}, 50*time.Millisecond
	})
	<-f.changes
	broken := errors.New("no such host")
	m.set(func() { m.fail = broken })
	f.write("b.md", markdown("doc:b", "B1"))
	for c := range f.changes {
		if errors.Is(c.Err, broken) {
			break
		}
	}
	m.set(func() { m.fail = nil })
	for c := range f.changes {
		if c.Err == nil && c.Records == 2 && c.Upserted == 1 {
			break
		}
	}
	if held, _ := m.Held(t.Context()); len(held) != 2 {
		t.Errorf("the index has %v", held)
	}
	if !strings.Contains(f.log.String(), "no such host") {
		t.Errorf("the log is\n%s", f.log)
	}
}

// closing is a memory that can be closed.
type closing struct{ *memory }

func (closing) Close() error { return nil }

func TestPollFindsUnreportedChanges(t *testing.T) {
	f := newFolder(t, map[string]string{"a.md": markdown("doc:a", "A1")}, func(f *folder, o *kb.SourceOptions) {
		o.Debounce, o.Poll = time.Hour, 50*time.Millisecond
	})
	f.until("A1")
	f.write("b.md", markdown("doc:b", "B1"))
	f.until("A1", "B1")
}

func TestLinkedFile(t *testing.T) {
	target := filepath.Join(t.TempDir(), "t.md")
	if err := os.WriteFile(target, []byte(markdown("doc:b", "B1")), 0o600); err != nil {
		t.Fatal(err)
	}
	f := newFolder(t, map[string]string{"a.md": markdown("doc:a", "A1")}, nil)
	f.until("A1")
	if err := os.Symlink(target, filepath.Join(f.path, "b.md")); err != nil {
		t.Skip(err)
	}
	f.until("A1", "B1")
	if err := os.Symlink(filepath.Join(f.path, "none"), filepath.Join(f.path, "c.md")); err != nil {
		t.Fatal(err)
	}
	f.write("d.md", markdown("doc:d", "D1"))
	if c := f.until("A1", "B1", "D1"); len(c.Problems) != 0 {
		t.Errorf("a broken link: %v", c.Problems)
	}
}
