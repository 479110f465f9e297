package kb

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

const (
	// Depth is how many records each ranking (words, vectors) brings to the fusion.
	Depth = 50
	// fusionK is the k of reciprocal rank fusion (Cormack, Clarke and Buettcher,
	// SIGIR 2009): it keeps one ranking's first place from outweighing everything.
	fusionK = 60
)

// Ranked is one record in one ranking.
type Ranked struct {
	ID    string
	Score float64 // BM25, or the cosine
}

// Fuse makes hits of the best records by words and by vectors (each at most Depth,
// in any order), as Hit.Score documents it: at most limit, without snippets. vectors
// is empty when vectors took no part. record returns a record for an id, and false
// for one that is gone, which is left out.
//
// A record whose whole title stands in the query is raised among the words; in the
// fusion, titles of two words and more are a ranking of their own.
func (r *Ranker) Fuse(query string, words, vectors []Ranked, limit int, record func(id string) (Record, bool)) []Hit {
	hits := map[string]*Hit{}
	fetch := func(ranking []Ranked, set func(*Hit, float64)) []Ranked {
		var kept []Ranked
		for _, one := range ranking {
			h := hits[one.ID]
			if h == nil {
				rec, ok := record(one.ID)
				if !ok {
					continue
				}
				h = &Hit{Record: rec}
				hits[one.ID] = h
			}
			set(h, one.Score)
			kept = append(kept, one)
		}
		return kept
	}
	words = fetch(words, func(h *Hit, s float64) { h.BM25 = s })
	vectors = fetch(vectors, func(h *Hit, s float64) { h.Vector = s })
	names := r.named(query, hits)
	for i := range words {
		words[i].Score *= raise(names[words[i].ID])
	}
	slices.SortFunc(words, byScore)
	slices.SortFunc(vectors, byScore)
	if len(vectors) == 0 {
		for _, one := range words {
			hits[one.ID].Score = one.Score / words[0].Score
		}
		return sorted(hits, limit)
	}
	fuse(hits, words, vectors, longNames(names))
	return sorted(hits, limit)
}

// fuse adds up the rankings; empty ones do not count.
func fuse(hits map[string]*Hit, rankings ...[]Ranked) {
	rankings = slices.DeleteFunc(rankings, func(r []Ranked) bool { return len(r) == 0 })
	for _, ranking := range rankings {
		for place, one := range ranking {
			hits[one.ID].Score += (fusionK + 1) / (fusionK + 1 + float64(place)) / float64(len(rankings))
		}
	}
}

// named returns, of those hits whose whole title stands in the query, how many
// words the title has.
func (r *Ranker) named(query string, hits map[string]*Hit) map[string]int {
	asked := " " + strings.Join(r.english.Stems(query), " ") + " "
	names := map[string]int{}
	for id, h := range hits {
		stems := r.english.Stems(h.Record.Title)
		if len(stems) > 0 && strings.Contains(asked, " "+strings.Join(stems, " ")+" ") {
			names[id] = len(stems)
		}
	}
	return names
}

// raise is what BM25 is multiplied by for a title of so many words in the query: a
// single word may well be there by chance.
func raise(words int) float64 {
	switch words {
	case 0:
		return 1
	case 1:
		return 1.15
	}
	return 1.5
}

func longNames(names map[string]int) []Ranked {
	var long []Ranked
	for id, n := range names {
		if n >= 2 {
			long = append(long, Ranked{ID: id, Score: float64(n)})
		}
	}
	slices.SortFunc(long, byScore)
	return long
}

func byScore(a, b Ranked) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
}

func sorted(hits map[string]*Hit, limit int) []Hit {
	out := make([]Hit, 0, len(hits))
	for _, h := range hits {
		h.Score = min(max(math.Round(h.Score*1e4)/1e4, 1e-4), 1)
		out = append(out, *h)
	}
	slices.SortFunc(out, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Record.ID, b.Record.ID))
	})
	return out[:min(limit, len(out))]
}

// RecordWords are the stems of a record's title, of its tags and of its text, in
// their order, repeated as they are there.
func (r *Ranker) RecordWords(rec *Record) (title, tags, text []string) {
	return r.english.Stems(rec.Title), r.english.Stems(strings.Join(rec.Tags, " ")), r.english.Stems(Plain(rec.Text))
}

// MaxQueryStems bounds the different words of a query that are looked for.
const MaxQueryStems = 32

// QueryStems are the different stems of a query, the first MaxQueryStems of them.
func (r *Ranker) QueryStems(query string) []string {
	var stems []string
	seen := map[string]bool{}
	for _, stem := range r.english.Stems(query) {
		if !seen[stem] && len(stems) < MaxQueryStems {
			seen[stem] = true
			stems = append(stems, stem)
		}
	}
	return stems
}

// The weights of a record's parts in BM25: a word's score in each part is
// multiplied by these, and the parts are summed.
const (
	WeightTitle = 2.5
	WeightTags  = 1.5
	WeightText  = 1.0
)

// Best are the Depth best of a ranking, best first, ids deciding among equal ones.
// It sorts the given slice.
func Best(ranking []Ranked) []Ranked {
	slices.SortFunc(ranking, byScore)
	return ranking[:min(len(ranking), Depth)]
}
