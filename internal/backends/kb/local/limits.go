package local

import (
	"cmp"
	"slices"

	"voicegw/internal/backends/kb"
)

// maxVisits bounds the postings that a search reads, over all its wordings. A search looks up rare words first and
// shares the remaining visits among the remaining words. It looks up a word with more postings than its share only in
// the best documents so far (the limited accumulators of Moffat and Zobel, "Self-Indexing Inverted Files for Fast Text
// Retrieval", TOIS 1996), because a record with only common words does not rank above a record with rare ones.
const maxVisits = 60_000

// leastCandidates is the number of documents after which common words add no others.
const leastCandidates = 4 * kb.Depth

// lookUp is the cost in visits of looking up one document in a word's postings.
const lookUp = 3

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

// best moves the n documents with the highest sums to the front, in any order, and returns
// them (Hoare's FIND).
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
