package kb_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/backends/kb"
)

func openCache(t *testing.T, e *fakeEmbedder, o kb.EmbeddingCacheOptions) *kb.EmbeddingCache {
	t.Helper()
	c, err := kb.NewEmbeddingCache(e, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func embedded(t *testing.T, c *kb.EmbeddingCache, texts ...string) [][]float32 {
	t.Helper()
	v, err := c.Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestRecordsAreEmbeddedOnce(t *testing.T) {
	o := kb.EmbeddingCacheOptions{Path: filepath.Join(t.TempDir(), "deep", "vectors"), Identity: "m"}
	first := &fakeEmbedder{}
	c := openCache(t, first, o)
	want := embedded(t, c, "a", "b", "a")
	if first.Embedded() != 2 {
		t.Errorf("%d texts were asked for, of two", first.Embedded())
	}
	embedded(t, c, "b", "c")
	if first.Embedded() != 3 {
		t.Errorf("%d texts were asked for, of three", first.Embedded())
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}

	second := &fakeEmbedder{}
	c = openCache(t, second, o)
	if diff := cmp.Diff(want, embedded(t, c, "a", "b", "a")); diff != "" {
		t.Error(diff)
	}
	embedded(t, c, "c", "d")
	if second.Embedded() != 1 {
		t.Errorf("%d texts were asked for again, of one that is new", second.Embedded())
	}

	other := &fakeEmbedder{}
	o.Identity = "another model"
	c = openCache(t, other, o)
	embedded(t, c, "a")
	if other.Embedded() != 1 {
		t.Error("another model got the vectors of this one")
	}
}

func TestBrokenCacheFile(t *testing.T) {
	o := kb.EmbeddingCacheOptions{Path: filepath.Join(t.TempDir(), "vectors"), Identity: "m"}
	c := openCache(t, &fakeEmbedder{Dimensions: 4}, o)
	embedded(t, c, "a", "b", "c")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(o.Path)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		data []byte
		asks int
	}{
		"cut in the last":        {data[:len(data)-3], 1},
		"a bit in the second":    {flipped(data, len(data)-60), 2},
		"not even a head":        {data[:5], 3},
		"nothing":                {nil, 3},
		"something else":         {[]byte("this is not a file of vectors, but it is longer than a head is, so much is sure"), 3},
		"more, but not an entry": {append(slices.Clone(data), make([]byte, 100)...), 0},
	} {
		if err := os.WriteFile(o.Path, test.data, 0o600); err != nil {
			t.Fatal(err)
		}
		for round, asks := range []int{test.asks, 0} { // repaired, then whole
			e := &fakeEmbedder{Dimensions: 4}
			c := openCache(t, e, o)
			embedded(t, c, "a", "b", "c")
			if e.Embedded() != asks {
				t.Errorf("%s, round %d: %d texts were asked for, of %d", name, round, e.Embedded(), asks)
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func flipped(data []byte, at int) []byte {
	out := slices.Clone(data)
	out[at] ^= 1
	return out
}

func TestTooLargeCacheFile(t *testing.T) {
	o := kb.EmbeddingCacheOptions{Path: filepath.Join(t.TempDir(), "vectors")}
	embedded(t, openCache(t, &fakeEmbedder{}, o), "a")
	if err := os.Truncate(o.Path, 4<<30+1); err != nil { // the file is sparse
		t.Fatal(err)
	}
	e := &fakeEmbedder{}
	embedded(t, openCache(t, e, o), "a")
	if e.Embedded() != 1 {
		t.Error("the file was not replaced")
	}
}

func TestLastQueriesAreCached(t *testing.T) {
	e := &fakeEmbedder{}
	path := filepath.Join(t.TempDir(), "vectors")
	c := openCache(t, e, kb.EmbeddingCacheOptions{Path: path})
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(text string, asks int) {
		t.Helper()
		if _, err := c.EmbedQuery(t.Context(), text); err != nil {
			t.Fatal(err)
		}
		if e.Embedded() != asks {
			t.Errorf("question %s: the cache asked for %d texts, want %d", text, e.Embedded(), asks)
		}
	}
	for i := range 1000 {
		ask(strconv.Itoa(i), i+1)
	}
	ask("0", 1000)
	ask("new", 1001) // drops "1"
	ask("0", 1001)
	ask("1", 1002)
	after, err := os.ReadFile(path)
	if err != nil || len(after) != len(before) {
		t.Errorf("questions were written to the file: %d bytes, %d before, %v", len(after), len(before), err)
	}
}

func TestFailuresAreNotCached(t *testing.T) {
	e := &fakeEmbedder{}
	e.Fail(errEmbedder)
	c := openCache(t, e, kb.EmbeddingCacheOptions{Path: filepath.Join(t.TempDir(), "vectors")})
	if _, err := c.Embed(t.Context(), []string{"a"}); !errors.Is(err, errEmbedder) {
		t.Errorf("%v", err)
	}
	if _, err := c.EmbedQuery(t.Context(), "a"); !errors.Is(err, errEmbedder) {
		t.Errorf("%v", err)
	}
	e.Fail(nil)
	embedded(t, c, "a")
	if _, err := c.EmbedQuery(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

func TestCacheWithoutAFileAndAfterClose(t *testing.T) {
	c := openCache(t, &fakeEmbedder{}, kb.EmbeddingCacheOptions{})
	embedded(t, c, "a")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	embedded(t, c, "a")
	if _, err := kb.NewEmbeddingCache(&fakeEmbedder{}, kb.EmbeddingCacheOptions{Path: t.TempDir()}); err == nil {
		t.Error("a folder was accepted as a file")
	}
}

func FuzzCacheFile(f *testing.F) {
	path := filepath.Join(f.TempDir(), "vectors")
	c, err := kb.NewEmbeddingCache(&fakeEmbedder{Dimensions: 3}, kb.EmbeddingCacheOptions{Path: path})
	if err != nil {
		f.Fatal(err)
	}
	if _, err := c.Embed(f.Context(), []string{"a", "b"}); err != nil {
		f.Fatal(err)
	}
	if err := c.Close(); err != nil {
		f.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:60])
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "vectors")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		c := openCache(t, &fakeEmbedder{Dimensions: 3}, kb.EmbeddingCacheOptions{Path: path})
		embedded(t, c, "a", "b", "c")
		embedded(t, c, "a", "b", "c")
	})
}
