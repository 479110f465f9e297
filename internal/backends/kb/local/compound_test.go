package local_test

import (
	"testing"
	"time"

	"voicegw/internal/backends/kb"
	"voicegw/internal/backends/kb/local"
)

// TestCompounds: the head of a compound, its parts and the whole find one another if no record contains the exact word.
func TestCompounds(t *testing.T) {
	x, err := local.Open(local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	var records []kb.Record
	for id, title := range map[string]string{
		"doc:whole": "Kündigungsfristen im Überblick", "doc:parts": "Beginn der Rechnung und Ende der Mahnung", "doc:other": "Ein Haus am See und nicht im Wald",
	} {
		rec := kb.Record{ID: id, Title: title, LastUpdated: time.Unix(1, 0)}
		rec.Normalize()
		records = append(records, rec)
	}
	if err := x.Apply(t.Context(), kb.Batch{Upsert: records}); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{"Frist": "doc:whole", "Fristen": "doc:whole", "Kündigung": "doc:whole", "Rechnungsmahnung": "doc:parts", "Zebra": ""} {
		found, err := x.Search(t.Context(), kb.Query{Text: query})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if len(found.Hits) > 0 {
			got = found.Hits[0].Record.ID
			if found.Hits[0].Score >= 1 {
				t.Errorf("%s counts as the word itself: %v", query, found.Hits[0].Score)
			}
		}
		if got != want || len(found.Hits) > 1 {
			t.Errorf("%s finds %q of %d, want %q", query, got, len(found.Hits), want)
		}
	}
}
