package local_test

import (
	"testing"

	"voicegw/internal/backends/kb"
	"voicegw/internal/backends/kb/kbtest"
	"voicegw/internal/backends/kb/local"
	"voicegw/internal/backends/kb/source"
)

// demo is an index of the demo knowledge base.
func demo(t *testing.T, embedder kb.Embedder) *local.Index {
	t.Helper()
	x, err := local.Open(local.Options{Embedder: embedder})
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
	return x
}

// The floors are a little below what was measured when the test was written; a
// change that costs more than one question fails. kbtest.Embedder is no model.
func TestRelevance(t *testing.T) {
	tests := []struct {
		name        string
		embedder    kb.Embedder
		recall, mrr float64
	}{
		{"BM25 alone", nil, 0.94, 0.80},
		{"hybrid, with the tests' embedder", &kbtest.Embedder{}, 0.92, 0.86},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := kbtest.Measure(t, demo(t, test.embedder))
			t.Logf("%d questions: recall@3 %.3f, MRR %.3f", r.Questions, r.RecallAt3, r.MRR)
			for _, missed := range r.Missed {
				t.Log(missed)
			}
			if r.Questions < 40 || r.RecallAt3 < test.recall || r.MRR < test.mrr {
				t.Errorf("recall@3 %.3f and MRR %.3f; at least %.2f and %.2f are expected", r.RecallAt3, r.MRR, test.recall, test.mrr)
			}
		})
	}
}
