package kb_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"voicegw/internal/backends/kb"
	"voicegw/internal/backends/kb/local"
	"voicegw/internal/testutil"
)

// question is a query to the demo, with the ids of the records that answer it.
type question struct {
	Query string   `json:"query"`
	Right []string `json:"right"`
}

// judged returns the judged queries.
func judged(tb testing.TB) []question {
	tb.Helper()
	data, err := os.ReadFile("testdata/judged.jsonl")
	if err != nil {
		tb.Fatal(err)
	}
	var questions []question
	lines := bufio.NewScanner(strings.NewReader(string(data)))
	for lines.Scan() {
		var q question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			tb.Fatalf("judged.jsonl, %s: %v", lines.Text(), err)
		}
		questions = append(questions, q)
	}
	return questions
}

// relevance measures an index with the judged queries.
type relevance struct {
	Questions int
	// RecallAt3 is the share of queries with a right record among the first three.
	RecallAt3 float64
	// MRR is the mean of 1/(rank of the first right record) within the first ten.
	MRR float64
	// Missed describes the queries without a right record among the first three.
	Missed []string
}

// measure sends every judged query. The index must contain the demo.
func measure(tb testing.TB, index kb.Index) relevance {
	tb.Helper()
	r := relevance{}
	for _, question := range judged(tb) {
		results, err := index.Search(context.Background(), kb.Query{Text: question.Query})
		if err != nil {
			tb.Fatalf("%q: %v", question.Query, err)
		}
		place := slices.IndexFunc(results.Hits, func(h kb.Hit) bool { return slices.Contains(question.Right, h.Record.ID) })
		r.Questions++
		if place >= 0 {
			r.MRR += 1 / float64(place+1)
		}
		if place >= 0 && place < 3 {
			r.RecallAt3++
			continue
		}
		var instead []string
		for _, h := range results.Hits[:min(3, len(results.Hits))] {
			instead = append(instead, h.Record.ID)
		}
		r.Missed = append(r.Missed, fmt.Sprintf("%q: right is %v at place %d; first are %v", question.Query, question.Right,
			place+1, instead))
	}
	r.RecallAt3 /= float64(r.Questions)
	r.MRR /= float64(r.Questions)
	return r
}

func openLocal(t *testing.T, embedder kb.Embedder) kb.Index {
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
	return x
}

func TestLocalConforms(t *testing.T) { conforms(t, openLocal) }

// demo fills an index with the demo and its vectors.
func demo(t *testing.T, x kb.Index) kb.Index {
	t.Helper()
	s, err := kb.OpenSource(t.Context(), x, kb.SourceOptions{Static: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range s.State().Problems {
		t.Error(p)
	}
	testutil.WaitUntil(t, "every record has its vector", func() bool {
		for _, h := range held(t, x) {
			if !h.Complete {
				return false
			}
		}
		return true
	})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	return x
}

// TestRelevance allows a loss of one query against the measured recall. fakeEmbedder is not a model.
func TestRelevance(t *testing.T) {
	tests := []struct {
		name        string
		embedder    kb.Embedder
		recall, mrr float64
	}{
		{"BM25 alone", nil, 0.94, 0.80},
		{"hybrid, with the tests' embedder", &fakeEmbedder{}, 0.92, 0.86},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := measure(t, demo(t, openLocal(t, test.embedder)))
			t.Logf("%d questions: recall@3 %.3f, MRR %.3f", r.Questions, r.RecallAt3, r.MRR)
			for _, missed := range r.Missed {
				t.Log(missed)
			}
			if r.Questions < 50 || r.RecallAt3 < test.recall || r.MRR < test.mrr {
				t.Errorf("recall@3 %.3f and MRR %.3f; at least %.2f and %.2f are expected", r.RecallAt3, r.MRR, test.recall, test.mrr)
			}
		})
	}
}

// TestRelevanceOfTheSimulator: with the simulator's vectors the judged queries find their records about as well as with
// words alone, or better.
func TestRelevanceOfTheSimulator(t *testing.T) {
	words := measure(t, demo(t, openLocal(t, nil)))
	t.Logf("words alone: recall@3 %.3f, MRR %.3f", words.RecallAt3, words.MRR)
	for _, test := range []struct {
		dimensions int
		worse      float64 // than words alone, at most
	}{{3072, 0.02}, {1536, 0.02}, {256, 0.04}} { // short vectors are less precise
		r := measure(t, demo(t, openLocal(t, &fakeEmbedder{Dimensions: test.dimensions})))
		t.Logf("with vectors of %d: recall@3 %.3f, MRR %.3f", test.dimensions, r.RecallAt3, r.MRR)
		for _, m := range r.Missed {
			t.Log(m)
		}
		if r.RecallAt3 < words.RecallAt3-test.worse || r.MRR < words.MRR {
			t.Errorf("recall@3 %.3f and MRR %.3f; words alone have %.3f and %.3f", r.RecallAt3, r.MRR, words.RecallAt3, words.MRR)
		}
	}
}
