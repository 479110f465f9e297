package kb

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
)

const (
	// Depth is the maximum number of records that each ranking (words, vectors) adds to the fusion.
	Depth = 50
	// fusionK is the k of reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009). It limits the weight of
	// first places.
	fusionK = 60
)

// Ranked is a record in a ranking.
type Ranked struct {
	ID    string
	Score float64 // BM25, or the cosine
	// Cover is the part of the question's words that the record has, 0 to 1. Rankings by vectors do not set it.
	Cover float64
}

// Wording is a wording of the question with its ranking by words.
type Wording struct {
	Text string
	// Weight is 1 for the question itself and less for others.
	Weight float64
	// Ranked are at most Depth records, in any order.
	Ranked []Ranked
}

// Wordings returns the query itself, its alternatives, and its rewordings with synonyms of phrases.
func Wordings(q *Query, synonyms *Synonyms) []Wording {
	all := []Wording{{Text: q.Text, Weight: 1}}
	for _, text := range slices.Concat(q.Alternatives, synonyms.Rewordings(q.Text)) {
		all = append(all, Wording{Text: text, Weight: AlternativeWeight})
	}
	return all
}

// AlternativeWeight is the weight of all wordings but the first.
const AlternativeWeight = 0.75

// Fuse makes at most limit hits, without snippets, of the best records by words and by vectors, each at most Depth in
// any order. Hit.Score documents the scores. The first wording is the question. vectors may be empty. Fuse omits ids
// for which record returns false.
//
// A record whose whole title is in a wording gets a higher score by words; titles of two words and more are another
// ranking in the fusion.
func (r *Ranker) Fuse(wordings []Wording, vectors []Ranked, limit int, record func(id string) (Record, bool)) []Hit {
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
	names := map[string]int{}
	worth := map[string]float64{}
	for i, w := range wordings {
		ranked := fetch(w.Ranked, func(h *Hit, s float64) { h.BM25 = max(h.BM25, s) })
		named := r.named(w.Text, hits)
		for id, n := range named {
			if i == 0 || n >= 2 {
				names[id] = max(names[id], n)
			}
		}
		r.join(worth, w, ranked, named, hits)
	}
	ranking := make([]Ranked, 0, len(worth))
	for id, score := range worth {
		ranking = append(ranking, Ranked{ID: id, Score: score})
	}
	ranking = Best(ranking)
	if len(vectors) == 0 {
		for _, one := range ranking {
			hits[one.ID].Score = one.Score
		}
	} else {
		vectors = fetch(vectors, func(h *Hit, s float64) { h.Vector = s })
		slices.SortFunc(vectors, byScore)
		maps.Copy(names, r.named(wordings[0].Text, hits)) // vectors may have added hits
		fuse(hits, ranking, vectors, longNames(names))
	}
	maps.DeleteFunc(hits, func(_ string, h *Hit) bool { return h.Score == 0 }) // beyond Depth
	return sorted(hits, limit)
}

// also is the weight of a record's further wordings after the best one.
const also = 0.15

// join adds a wording to the worth of records: the record's BM25 divided by the best record's, times the best record's
// Cover, times the wording's weight.
func (r *Ranker) join(worth map[string]float64, w Wording, ranked []Ranked, named map[string]int, hits map[string]*Hit) {
	ranked = slices.Clone(ranked)
	for i := range ranked {
		title := hits[ranked[i].ID].Record.Title
		ranked[i].Score *= raise(named[ranked[i].ID]) * spelling(w.Text, title)
	}
	slices.SortFunc(ranked, byScore)
	for _, one := range ranked {
		score := one.Score / ranked[0].Score * min(ranked[0].Cover, 1) * w.Weight
		worth[one.ID] = min(max(worth[one.ID], score)+also*min(worth[one.ID], score), 1)
	}
}

// misspelt is the factor for a title whose words all differ from the question's in accents.
const misspelt = 0.97

// spelling returns the factor, from misspelt to 1, for a title whose words differ from the question's in accents.
func spelling(question, title string) float64 {
	if ascii(question) && ascii(title) {
		return 1
	}
	asked := map[string]bool{}
	folded := map[string]bool{}
	for _, t := range Tokens(question) {
		asked[t.Text], folded[Fold(t.Text)] = true, true
	}
	same, other := 0, 0
	for _, t := range Tokens(title) {
		switch {
		case asked[t.Text]:
			same++
		case folded[Fold(t.Text)]:
			other++
		}
	}
	if other == 0 {
		return 1
	}
	return 1 - (1-misspelt)*float64(other)/float64(same+other)
}

func fuse(hits map[string]*Hit, rankings ...[]Ranked) {
	rankings = slices.DeleteFunc(rankings, func(r []Ranked) bool { return len(r) == 0 })
	for _, ranking := range rankings {
		for place, one := range ranking {
			hits[one.ID].Score += (fusionK + 1) / (fusionK + 1 + float64(place)) / float64(len(rankings))
		}
	}
}

// named returns the number of words in the titles that are wholly in the query.
func (r *Ranker) named(query string, hits map[string]*Hit) map[string]int {
	asked, stems := r.sequence(query)
	names := map[string]int{}
	for id, h := range hits {
		whole, stemmed := r.sequence(h.Record.Title)
		switch {
		case whole != " " && strings.Contains(asked, whole):
			names[id] = strings.Count(whole, " ") - 1
		case stemmed != " " && strings.Contains(stems, stemmed):
			names[id] = strings.Count(stemmed, " ") - 1
		}
	}
	return names
}

// sequence returns the folded words of a text, and their English stems without stop words, with spaces around each.
func (r *Ranker) sequence(text string) (whole, stemmed string) {
	var a, b strings.Builder
	a.WriteByte(' ')
	b.WriteByte(' ')
	for _, t := range Tokens(text) {
		a.WriteString(Fold(t.Text) + " ")
		if !r.Stop(t.Text, "en") {
			b.WriteString(r.Stem(t.Text, "en") + " ")
		}
	}
	return a.String(), b.String()
}

// raise returns the factor of BM25 for a title with that many words in the query. A single word may be there by chance.
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

// Best sorts a ranking, equal scores by id, and returns the Depth best.
func Best(ranking []Ranked) []Ranked {
	slices.SortFunc(ranking, byScore)
	return ranking[:min(len(ranking), Depth)]
}
