package rest_test

import (
	"context"
	"testing"

	"voicegw/internal/backends/kb"
	"voicegw/internal/backends/kb/kbtest"
	"voicegw/internal/backends/kb/local"
	"voicegw/internal/backends/kb/source"
	"voicegw/sim/rest"
)

// embedder makes vectors without a server.
type embedder struct{ dimensions int }

func (e embedder) Embed(_ context.Context, texts []string) ([][]float32, error) {
	var out [][]float32
	for _, t := range texts {
		out = append(out, rest.Vector(t, e.dimensions))
	}
	return out, nil
}

func measure(t *testing.T, e kb.Embedder) kbtest.Relevance {
	t.Helper()
	x, err := local.Open(local.Options{Embedder: e})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	records, problems := source.Load(source.Demo())
	for _, p := range problems {
		t.Error(p)
	}
	if err := x.Apply(t.Context(), kb.Batch{Upsert: records}); err != nil {
		t.Fatal(err)
	}
	return kbtest.Measure(t, x)
}

// The judged questions find their records with these vectors at least about as well as with words alone.
func TestRelevance(t *testing.T) {
	words := measure(t, nil)
	t.Logf("words alone: recall@3 %.3f, MRR %.3f", words.RecallAt3, words.MRR)
	for _, test := range []struct {
		dimensions int
		worse      float64 // than words alone, at most
	}{{3072, 0.02}, {1536, 0.02}, {256, 0.04}} { // short vectors mix things up
		r := measure(t, embedder{test.dimensions})
		t.Logf("with vectors of %d: recall@3 %.3f, MRR %.3f", test.dimensions, r.RecallAt3, r.MRR)
		for _, m := range r.Missed {
			t.Log(m)
		}
		if r.Questions < 50 || r.RecallAt3 < words.RecallAt3-test.worse || r.MRR < words.MRR {
			t.Errorf("recall@3 %.3f and MRR %.3f; words alone have %.3f and %.3f", r.RecallAt3, r.MRR, words.RecallAt3, words.MRR)
		}
	}
}
