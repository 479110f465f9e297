package kb_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"voicegw/internal/backends/kb"
	"voicegw/internal/backends/kb/local"
)

// TestSynonymsAreReadAgain: a changed file of synonyms is read again, and its problems are reported with those of the
// records. After its removal the synonyms remain.
func TestSynonymsAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(t.TempDir(), "synonyms.txt")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "a.md"), "---\nid: doc:a\n---\n# Bicycle shed")
	write(file, "velo, cycle\n")
	synonyms, err := kb.OpenSynonyms(file)
	if err != nil {
		t.Fatal(err)
	}
	x, err := local.Open(local.Options{Synonyms: synonyms.Current})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = x.Close() }()
	changes := make(chan kb.SourceChange, 10)
	reader, err := kb.OpenSource(t.Context(), x, kb.SourceOptions{
		Path: dir, Synonyms: synonyms, Debounce: time.Millisecond, Poll: 20 * time.Millisecond, OnChange: func(c kb.SourceChange) { changes <- c },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	finds := func() int {
		t.Helper()
		found, err := x.Search(t.Context(), kb.Query{Text: "velo"})
		if err != nil {
			t.Fatal(err)
		}
		return len(found.Hits)
	}
	if finds() != 0 {
		t.Error("found before")
	}
	<-changes // the first reading
	write(file, "velo, bicycle\nalone\n")
	if c := <-changes; len(c.Problems) != 1 || c.Problems[0].Line != 2 || c.Problems[0].File != file {
		t.Errorf("%+v", c.Problems)
	}
	if finds() != 1 {
		t.Error("the new synonym is not known")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if c := <-changes; len(c.Problems) != 1 || !strings.Contains(c.Problems[0].Message, "cannot be read") {
		t.Errorf("%+v", c.Problems)
	}
	if finds() != 1 {
		t.Error("the synonyms were removed with their file")
	}
	if _, err := kb.OpenSynonyms(file); err == nil || !strings.Contains(err.Error(), "synonyms") {
		t.Errorf("a file that does not exist: %v", err)
	}
	if _, err := kb.OpenSynonyms(dir); err == nil {
		t.Error("a folder was accepted")
	}
}
