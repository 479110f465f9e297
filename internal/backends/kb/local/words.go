package local

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"

	"voicegw/internal/backends/kb"
)

// The constants of BM25, the same as in Lucene.
const (
	bm25K1 = 1.2
	bm25B  = 0.75
)

// bestWords returns the kb.Depth records with the highest BM25 among those that pass the filter. For each group, a
// record counts its best variant, in each part of the record. visits bounds the places that may be read (maxVisits).
func (s *snapshot) bestWords(ctx context.Context, groups []group, f *filter, visits int) ([]kb.Ranked, error) {
	if len(groups) == 0 || len(s.entries) == 0 {
		return nil, nil
	}
	sc := takeScores(s.docs, f)
	defer sc.giveBack()
	whole := 0.0
	for i, g := range groups {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !g.part {
			whole += g.share
		}
		visits = max(visits-s.addGroup(sc, g, visits/(len(groups)-i)), 0)
	}
	return sc.top(whole), nil
}

// addGroup adds the scores of a word and its variants to the documents that have them, the short
// parts of records first. If reading a part everywhere would take more visits than are left, it
// is read only in the documents with the highest scores so far. It returns the visits it took.
func (s *snapshot) addGroup(sc *scores, g group, visits int) (visited int) {
	all := float64(len(s.entries))
	for part := range kb.Parts {
		var lists []list
		var factors []variant // of the lists
		postings := 0
		for _, one := range g.variants {
			if l := s.postings.find(part, one.term); l.live > 0 {
				lists, factors = append(lists, l), append(factors, one)
				postings += len(l.places)
			}
		}
		if len(lists) == 0 {
			continue
		}
		var narrow []int
		if left := max(visits-visited, 0); postings > left {
			narrow = sc.narrow(left/len(lists), postings/len(lists))
		}
		mean := float64(s.lengths[part]) / all
		for i, l := range lists {
			n := float64(min(l.live, len(s.entries))) // a later Apply may have added some
			idf := math.Log(1 + (all-n+0.5)/(n+0.5))
			sc.addTerm(l.places, narrow, mean, factors[i].weight*kb.Weights[part]*idf, factors[i].weight)
		}
		sc.endField()
		if narrow == nil {
			visited += postings
		} else {
			visited += lookUp * len(narrow) * len(lists)
		}
	}
	sc.endGroup(g.share)
	return visited
}

// addTerm adds one term's part of BM25 to every document that has it, or only to those of narrow if that is not nil.
func (s *scores) addTerm(places []place, narrow []int, mean, factor, weight float64) {
	add := func(at place) {
		tf := float64(at.count)
		s.add(int(at.number), factor*tf*(bm25K1+1)/(tf+bm25K1*(1-bm25B+bm25B*float64(at.length)/mean)), weight)
	}
	if narrow == nil {
		for _, at := range places {
			add(at)
		}
		return
	}
	for _, number := range narrow {
		i, found := slices.BinarySearchFunc(places, uint32(number), func(at place, n uint32) int { return cmp.Compare(at.number, n) })
		if found {
			add(places[i])
		}
		places = places[i:]
	}
}

// scores are sums by document number. touched lists those that are not zero.
type scores struct {
	records []*entry // by number; nil for a removed one
	filter  *filter
	docs    []docScore
	touched []int
	// field and group are the documents that contain the current field and group.
	field, group []int
	kept         []int // the documents that narrow chose last
}

type docScore struct {
	sum   float64
	cover float32 // of the question, summed
	// best is the field's best variant so far; weight is the group's.
	best, weight float32
}

// pool keeps the memory of scores between searches, because it has the size of the index.
var pool = sync.Pool{New: func() any { return &scores{} }}

func takeScores(records []*entry, f *filter) *scores {
	s := pool.Get().(*scores)
	s.records, s.filter = records, f
	if missing := len(records) - len(s.docs); missing > 0 {
		s.docs = append(s.docs, make([]docScore, missing+len(records)/2)...)
	}
	return s
}

func (s *scores) giveBack() {
	for _, number := range s.touched {
		s.docs[number] = docScore{}
	}
	s.records, s.filter = nil, nil
	s.touched, s.field, s.group, s.kept = s.touched[:0], s.field[:0], s.group[:0], s.kept[:0]
	pool.Put(s)
}

// add records the score of a variant in a document.
func (s *scores) add(number int, score, weight float64) {
	if number >= len(s.records) || s.records[number] == nil || !s.filter.passes(s.records[number]) {
		return
	}
	d := &s.docs[number]
	if d.sum == 0 && d.weight == 0 {
		s.touched = append(s.touched, number)
	}
	if d.weight == 0 {
		s.group = append(s.group, number)
	}
	if d.best == 0 {
		s.field = append(s.field, number)
	}
	d.best, d.weight = max(d.best, float32(score)), max(d.weight, float32(weight))
}

// endField adds up the best variants of one part of the records.
func (s *scores) endField() {
	for _, number := range s.field {
		d := &s.docs[number]
		d.sum += float64(d.best)
		d.best = 0
	}
	s.field = s.field[:0]
}

// endGroup counts the group as found, depending on how close its best variant is to the word.
func (s *scores) endGroup(share float64) {
	for _, number := range s.group {
		d := &s.docs[number]
		d.cover += float32(share) * d.weight
		d.weight = 0
	}
	s.group = s.group[:0]
}

// top returns the kb.Depth best records, best first. whole is the sum of the shares of all words.
// Among equal scores ids decide, not the order of insertion.
func (s *scores) top(whole float64) []kb.Ranked {
	least := 0.0
	if len(s.touched) > kb.Depth {
		least = math.Inf(1)
		for _, number := range s.best(s.touched, kb.Depth) {
			least = min(least, s.docs[number].sum)
		}
	}
	var found []kb.Ranked
	for _, number := range s.touched {
		if d := s.docs[number]; d.sum >= least {
			found = append(found, kb.Ranked{ID: s.records[number].record.ID, Score: d.sum, Cover: min(float64(d.cover)/whole, 1)})
		}
	}
	return kb.Best(found)
}

// maxVisits bounds the postings that a search reads, over all its wordings. A search looks up rare words first and
// shares the remaining visits among the remaining words. It looks up a word with more postings than its share only in
// the best documents so far (the limited accumulators of Moffat and Zobel, "Self-Indexing Inverted Files for Fast Text
// Retrieval", TOIS 1996), because a record with only common words does not rank above a record with rare ones.
const maxVisits = 60_000

const leastCandidates = 4 * kb.Depth // the number of documents after which common words add no others

const lookUp = 3 // the cost in visits of looking up one document in a word's postings

// narrow returns the documents found so far with the highest scores, in order: as many as can
// be looked up with the given visits, and at least leastCandidates. It returns nil if fewer
// are known, or if reading all of a word's postings is no more work.
func (s *scores) narrow(visits, postings int) []int {
	most := max(visits/lookUp, leastCandidates)
	if len(s.touched) < leastCandidates || lookUp*min(most, len(s.touched)) >= postings {
		return nil
	}
	s.kept = append(s.kept[:0], s.touched...)
	if len(s.kept) > most {
		s.kept = s.best(s.kept, most)
	}
	slices.Sort(s.kept)
	return s.kept
}

// best moves the n documents with the highest sums to the front, in any order, and returns them (Hoare's FIND).
func (s *scores) best(docs []int, n int) []int {
	higher := func(a, b int) bool {
		if c := cmp.Compare(s.docs[a].sum, s.docs[b].sum); c != 0 {
			return c > 0
		}
		return a < b
	}
	for low, high := 0, len(docs)-1; low < high; {
		pivot := docs[low+(high-low)/2]
		i, j := low, high
		for i <= j {
			for higher(docs[i], pivot) {
				i++
			}
			for higher(pivot, docs[j]) {
				j--
			}
			if i <= j {
				docs[i], docs[j] = docs[j], docs[i]
				i++
				j--
			}
		}
		switch {
		case n-1 <= j:
			high = j
		case n-1 >= i:
			low = i
		default:
			low = high
		}
	}
	return docs[:n]
}
