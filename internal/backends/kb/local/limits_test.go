package local

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/backends/kb"
)

// commonAndRare is a snapshot of 6000 records with a common word: each 25th also has a rare one, and is in the namespace
// studio. Half of the others are public.
func commonAndRare(t *testing.T) *snapshot {
	t.Helper()
	x, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	var records []kb.Record
	for i := range 6000 {
		rec := kb.Record{ID: fmt.Sprintf("doc:d%04d", i), Title: "Note", Text: "common", LastUpdated: day}
		switch {
		case i%25 == 0:
			rec.Text += " seldom"
		case i%2 == 0:
			rec.Namespace = kb.NamespacePublic
		}
		rec.Normalize()
		records = append(records, rec)
	}
	if err := x.Apply(t.Context(), kb.Batch{Upsert: records}); err != nil {
		t.Fatal(err)
	}
	s, err := x.begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.calls.Done)
	return s
}

var commonAndRareGroups = []group{{share: 1, variants: []variant{{"seldom", 1}}}, {share: 1, variants: []variant{{"common", 1}}}}

// TestVisitsAreBounded: after a rare word has found enough records, a common word is not looked up in all of its records.
func TestVisitsAreBounded(t *testing.T) {
	s := commonAndRare(t)
	sc := takeScores(s.docs, newFilter(&kb.Query{}))
	defer sc.giveBack()
	for i, want := range []int{240, lookUp * leastCandidates} {
		if visited := s.addGroup(sc, commonAndRareGroups[i], 200); visited != want {
			t.Errorf("group %d: %d postings are visited, want %d", i, visited, want)
		}
	}
}

// TestFilterTakesTheCandidates: if no candidate passes the filter, the records that contain only the common word are
// still found.
func TestFilterTakesTheCandidates(t *testing.T) {
	f := newFilter(&kb.Query{Namespaces: []kb.Namespace{kb.NamespacePublic}})
	best, err := commonAndRare(t).bestWords(t.Context(), commonAndRareGroups, f, 500)
	if err != nil || len(best) != kb.Depth {
		t.Errorf("%d records are found, error %v", len(best), err)
	}
}

func TestBestDocuments(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		s := &scores{docs: make([]docScore, 1+r.IntN(60))}
		var docs []int
		for i := range s.docs {
			s.docs[i].sum = float64(r.IntN(8))
			docs = append(docs, i)
		}
		want := slices.Clone(docs)
		slices.SortFunc(want, func(a, b int) int {
			if d := s.docs[b].sum - s.docs[a].sum; d != 0 {
				return int(math.Copysign(1, d))
			}
			return a - b
		})
		n := 1 + r.IntN(len(docs))
		r.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
		got := s.best(docs, n)
		slices.Sort(got)
		slices.Sort(want[:n])
		if diff := cmp.Diff(want[:n], got); diff != "" {
			t.Fatal(diff)
		}
	}
}
