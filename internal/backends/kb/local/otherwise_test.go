package local_test

import (
	"fmt"
	"testing"
	"time"

	"voicegw/internal/backends/kb"
	"voicegw/internal/backends/kb/local"
)

// TestOtherSpellings: a query heard or typed as fewer or more words, or with several kinds of typos, finds the record
// with another spelling.
func TestOtherSpellings(t *testing.T) {
	x, err := local.Open(local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	questions := []struct{ title, query string }{
		{"Pump Z 480", "z480"},
		{"Norm 27001 of the house", "norm27001"},
		{"Mixer 5 Plus", "mixer5plus"},
		{"QR-9/C", "qr9c"},
		{"Feuerwehrzufahrt", "feuer wehr zufahrt"},
		{"Kettle R88T", "r 88 t"},
		{"Brandmaxers", "prandmacksers"}, // as it sounds
	}
	for i, q := range questions {
		rec := kb.Record{ID: fmt.Sprintf("doc:r%d", i), Title: q.title, LastUpdated: time.Unix(1, 0)}
		rec.Normalize()
		if err := x.Apply(t.Context(), kb.Batch{Upsert: []kb.Record{rec}}); err != nil {
			t.Fatal(err)
		}
	}
	for i, q := range questions {
		found, err := x.Search(t.Context(), kb.Query{Text: q.query})
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("doc:r%d", i); len(found.Hits) == 0 || found.Hits[0].Record.ID != want {
			t.Errorf("%q does not find %q first: %+v", q.query, q.title, found.Hits)
		}
	}
	for _, query := range []string{"y480", "zz"} {
		if found, err := x.Search(t.Context(), kb.Query{Text: query}); err != nil || len(found.Hits) > 0 {
			t.Errorf("%q finds %+v, error %v", query, found.Hits, err)
		}
	}
}
