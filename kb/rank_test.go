package kb_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/kb"
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

func TestFuseWordsAlone(t *testing.T) {
	got := ranker(t).Fuse("anything", []kb.Ranked{{"c", 2}, {"a", 8}, {"b", 2}, {"gone", 9}}, nil, 10, titled(map[string]string{"a": "x", "b": "x", "c": "x"}))
	if diff := cmp.Diff([]string{"a 1.0000", "b 0.2500", "c 0.2500"}, scores(got)); diff != "" {
		t.Error(diff)
	}
	if got[0].BM25 != 8 || got[0].Vector != 0 {
		t.Errorf("%+v", got[0])
	}
}

func TestFuseByPlace(t *testing.T) {
	words := []kb.Ranked{{"a", 100}, {"b", 1}}
	vectors := []kb.Ranked{{"b", 0.9}, {"c", 0.8}}
	got := ranker(t).Fuse("anything", words, vectors, 2, titled(map[string]string{"a": "x", "b": "x", "c": "x"}))
	// b: (61/62 + 61/61)/2; a: (61/61)/2; c: (61/62)/2 is over the limit.
	if diff := cmp.Diff([]string{"b 0.9919", "a 0.5000"}, scores(got)); diff != "" {
		t.Error(diff)
	}
	if got[0].BM25 != 1 || got[0].Vector != 0.9 {
		t.Errorf("%+v", got[0])
	}
}

func TestWholeTitlesAreRaised(t *testing.T) {
	titles := titled(map[string]string{"one": "Invoices", "two": "Ada Lindqvist", "none": "Ada Lindqvist of Malmo"})
	words := func() []kb.Ranked { return []kb.Ranked{{"one", 10}, {"two", 10}, {"none", 12}} }
	got := ranker(t).Fuse("the invoice of ada lindqvist", words(), nil, 10, titles)
	if diff := cmp.Diff([]string{"two 1.0000", "none 0.8000", "one 0.7667"}, scores(got)); diff != "" {
		t.Error(diff)
	}
	got = ranker(t).Fuse("ada lindqvist", words(), []kb.Ranked{{"none", 0.9}, {"one", 0.8}, {"two", 0.7}}, 10, titles)
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
		for _, h := range ranker(t).Fuse("q", slices.Clone(words), v, kb.Depth, record) {
			if h.Score <= 0 || h.Score > 1 {
				t.Errorf("%s: %v", h.Record.ID, h.Score)
			}
		}
	}
}

func TestQueryStems(t *testing.T) {
	r := ranker(t)
	if diff := cmp.Diff([]string{"ada", "studio", "invoic", "café"}, r.QueryStems("Where is Ada's studio? The INVOICES, invoice; café")); diff != "" {
		t.Error(diff)
	}
	long := strings.Repeat("a1 b2 c3 d4 e5 f6 g7 h8 i9 j10 ", 1) + strings.Join(strings.Split(strings.Repeat("x", 40), ""), "1 ")
	for i := range 60 {
		long += fmt.Sprintf(" w%d", i)
	}
	if n := len(r.QueryStems(long)); n != kb.MaxQueryStems {
		t.Errorf("%d stems", n)
	}
	title, tags, text := r.RecordWords(&kb.Record{Title: "The Boats", Tags: []string{"big boat"}, Text: "**Boats** float."})
	if diff := cmp.Diff([][]string{{"boat"}, {"big", "boat"}, {"boat", "float"}}, [][]string{title, tags, text}); diff != "" {
		t.Error(diff)
	}
}
