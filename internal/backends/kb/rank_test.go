package kb_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/backends/kb"
)

// titled makes the records of a fusion, by id.
func titled(titles map[string]string) func(string) (kb.Record, bool) {
	return func(id string) (kb.Record, bool) {
		title, ok := titles[id]
		return kb.Record{ID: id, Title: title}, ok
	}
}

func scores(hits []kb.Hit) []string {
	var out []string
	for _, h := range hits {
		out = append(out, fmt.Sprintf("%s %.4f", h.Record.ID, h.Score))
	}
	return out
}

// byWords is the ranking of a query by words that covers all of it.
func byWords(query string, ranked ...kb.Ranked) []kb.Wording {
	for i := range ranked {
		ranked[i].Cover = 1
	}
	return []kb.Wording{{Text: query, Weight: 1, Ranked: ranked}}
}

func TestFuseWordsAlone(t *testing.T) {
	got := ranker(t).Fuse(byWords("anything", []kb.Ranked{{ID: "c", Score: 2}, {ID: "a", Score: 8}, {ID: "b", Score: 2}, {ID: "gone", Score: 9}}...), nil, 10, titled(map[string]string{"a": "x", "b": "x", "c": "x"}))
	if diff := cmp.Diff([]string{"a 1.0000", "b 0.2500", "c 0.2500"}, scores(got)); diff != "" {
		t.Error(diff)
	}
	if got[0].BM25 != 8 || got[0].Vector != 0 {
		t.Errorf("%+v", got[0])
	}
}

func TestFuseByPlace(t *testing.T) {
	words := []kb.Ranked{{ID: "a", Score: 100}, {ID: "b", Score: 1}}
	vectors := []kb.Ranked{{ID: "b", Score: 0.9}, {ID: "c", Score: 0.8}}
	got := ranker(t).Fuse(byWords("anything", words...), vectors, 2, titled(map[string]string{"a": "x", "b": "x", "c": "x"}))
	// b: (61/62 + 61/61)/2; a: (61/61)/2; c: (61/62)/2 is over the limit.
	if diff := cmp.Diff([]string{"b 0.9919", "a 0.5000"}, scores(got)); diff != "" {
		t.Error(diff)
	}
	if got[0].BM25 != 1 || got[0].Vector != 0.9 {
		t.Errorf("%+v", got[0])
	}
}

func TestWholeTitlesRankHigher(t *testing.T) {
	titles := titled(map[string]string{"one": "Invoices", "two": "Ada Lindqvist", "none": "Ada Lindqvist of Malmo"})
	words := func() []kb.Ranked {
		return []kb.Ranked{{ID: "one", Score: 10}, {ID: "two", Score: 10}, {ID: "none", Score: 12}}
	}
	got := ranker(t).Fuse(byWords("the invoice of ada lindqvist", words()...), nil, 10, titles)
	if diff := cmp.Diff([]string{"two 1.0000", "none 0.8000", "one 0.7667"}, scores(got)); diff != "" {
		t.Error(diff)
	}
	got = ranker(t).Fuse(byWords("ada lindqvist", words()...), []kb.Ranked{{ID: "none", Score: 0.9}, {ID: "one", Score: 0.8}, {ID: "two", Score: 0.7}}, 10, titles)
	if got[0].Record.ID != "two" {
		t.Errorf("%v", scores(got))
	}
}

func TestScoresStayWithinTheirBounds(t *testing.T) {
	var words, vectors []kb.Ranked
	for i := range kb.Depth {
		words = append(words, kb.Ranked{ID: fmt.Sprint(i), Score: math.Pow(10, -float64(i))})
		vectors = append(vectors, kb.Ranked{ID: fmt.Sprint(i), Score: 1 - float64(i)/100})
	}
	record := func(id string) (kb.Record, bool) { return kb.Record{ID: id}, true }
	for _, v := range [][]kb.Ranked{nil, vectors} {
		for _, h := range ranker(t).Fuse(byWords("q", slices.Clone(words)...), v, kb.Depth, record) {
			if h.Score <= 0 || h.Score > 1 {
				t.Errorf("%s: %v", h.Record.ID, h.Score)
			}
		}
	}
}

// TestOtherWordings: a record's score is that of its best wording, other wordings add a little, and the covered part of a
// wording limits the score of its best record.
func TestOtherWordings(t *testing.T) {
	titles := titled(map[string]string{"a": "x", "b": "x", "c": "x"})
	got := ranker(t).Fuse([]kb.Wording{
		{Text: "one two", Weight: 1, Ranked: []kb.Ranked{{ID: "a", Score: 9, Cover: 0.5}, {ID: "b", Score: 3, Cover: 0.5}}},
		{Text: "other", Weight: kb.AlternativeWeight, Ranked: []kb.Ranked{{ID: "c", Score: 2, Cover: 1}, {ID: "a", Score: 1, Cover: 1}}},
	}, nil, 10, titles)
	if diff := cmp.Diff([]string{"c 0.7500", "a 0.5563", "b 0.1667"}, scores(got)); diff != "" {
		t.Error(diff)
	}
	if got[1].BM25 != 9 {
		t.Errorf("%+v", got[1])
	}
}
