package local

import (
	"cmp"
	"container/heap"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	index "github.com/blevesearch/bleve_index_api"

	"voicegw/kb"
)

// The constants of BM25, as Lucene and bleve have them.
const (
	bm25K1 = 1.2
	bm25B  = 0.75
)

// recordWords are a record's stems by part.
type recordWords struct {
	title, tags, text []string
}

func (w recordWords) lengths() lengths {
	return lengths{Title: len(w.title), Tags: len(w.tags), Text: len(w.text)}
}

// lengths are numbers of words; of one record, or summed over all.
type lengths struct {
	Title int `json:"title"`
	Tags  int `json:"tags"`
	Text  int `json:"text"`
}

func (l *lengths) add(o lengths) {
	l.Title += o.Title
	l.Tags += o.Tags
	l.Text += o.Text
}

// bestWords returns the kb.Depth records with the highest BM25 of those that pass
// the filter.
func (s *snapshot) bestWords(ctx context.Context, stems []string, f *filter) ([]kb.Ranked, error) {
	if len(stems) == 0 || len(s.entries) == 0 {
		return nil, nil
	}
	allowed, err := s.allowed(ctx, f)
	if err != nil {
		return nil, err
	}
	scores := &scores{allowed: allowed}
	parts := []struct {
		field  string
		weight float64
		words  int
	}{
		{fieldTitle, kb.WeightTitle, s.lengths.Title},
		{fieldTags, kb.WeightTags, s.lengths.Tags},
		{fieldText, kb.WeightText, s.lengths.Text},
	}
	for _, part := range parts {
		mean := float64(part.words) / float64(len(s.entries))
		for _, stem := range stems {
			if err := s.addTerm(ctx, scores, part.field, stem, part.weight, mean); err != nil {
				return nil, err
			}
		}
	}
	return s.top(ctx, scores, f)
}

// addTerm adds one term's share of BM25 to every document that has it.
func (s *snapshot) addTerm(ctx context.Context, into *scores, field, stem string, weight, mean float64) error {
	postings, err := s.reader.TermFieldReader(ctx, []byte(stem), field, true, true, false)
	if err != nil {
		return err
	}
	defer func() { _ = postings.Close() }()
	n := float64(postings.Count())
	if n == 0 {
		return nil
	}
	idf := math.Log(1 + (float64(len(s.entries))-n+0.5)/(n+0.5))
	var doc index.TermFieldDoc
	for i := 0; ; i++ {
		if i%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		next, err := postings.Next(&doc)
		if err != nil || next == nil {
			return err
		}
		number, err := docNumber(next.ID)
		if err != nil {
			return err
		}
		tf := float64(next.Freq)
		length := 1 / (next.Norm * next.Norm) // scorch keeps 1/sqrt(length)
		into.add(number, weight*idf*tf*(bm25K1+1)/(tf+bm25K1*(1-bm25B+bm25B*length/mean)))
	}
}

// docNumber reads scorch's number of a document: eight bytes, the highest first.
func docNumber(id index.IndexInternalID) (int, error) {
	if len(id) != 8 {
		return 0, fmt.Errorf("a document number of %d bytes; is this another version of scorch?", len(id))
	}
	return int(binary.BigEndian.Uint64(id)), nil
}

// scores are sums by document number.
type scores struct {
	allowed *bitset // nil allows all
	sums    []float64
	touched []int
}

func (s *scores) add(number int, score float64) {
	if s.allowed != nil && !s.allowed.has(number) {
		return
	}
	if number >= len(s.sums) {
		s.sums = append(s.sums, make([]float64, number+1-len(s.sums)+len(s.sums)/2)...)
	}
	if s.sums[number] == 0 {
		s.touched = append(s.touched, number)
	}
	s.sums[number] += score
}

// top takes the best documents, best first, looks each up and keeps those that pass
// the whole filter, until there are enough.
func (s *snapshot) top(ctx context.Context, sc *scores, f *filter) ([]kb.Ranked, error) {
	queue := &docHeap{sums: sc.sums, docs: sc.touched}
	heap.Init(queue)
	var best []kb.Ranked
	for i := 0; queue.Len() > 0; i++ {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		number := heap.Pop(queue).(int)
		score := sc.sums[number]
		// Equal scores at the end are all looked at, so that ids decide and not
		// the order in which records came.
		if len(best) >= kb.Depth && (score < best[kb.Depth-1].Score || len(best) >= 4*kb.Depth) {
			break
		}
		e, err := s.entry(number)
		if err != nil {
			return nil, err
		}
		if e != nil && f.passes(e) {
			best = append(best, kb.Ranked{ID: e.record.ID, Score: score})
		}
	}
	slices.SortFunc(best, func(a, b kb.Ranked) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
	return best[:min(len(best), kb.Depth)], nil
}

// entry returns the record of a document; nil when the store has more than the
// snapshot, which never lasts.
func (s *snapshot) entry(number int) (*entry, error) {
	id, err := s.reader.ExternalID(binary.BigEndian.AppendUint64(nil, uint64(number)))
	if err != nil {
		return nil, err
	}
	return s.entries[id], nil
}

// docHeap has the document with the highest sum at its top.
type docHeap struct {
	sums []float64
	docs []int
}

func (h *docHeap) Len() int           { return len(h.docs) }
func (h *docHeap) Less(i, j int) bool { return h.sums[h.docs[i]] > h.sums[h.docs[j]] }
func (h *docHeap) Swap(i, j int)      { h.docs[i], h.docs[j] = h.docs[j], h.docs[i] }
func (h *docHeap) Push(v any)         { h.docs = append(h.docs, v.(int)) }
func (h *docHeap) Pop() any {
	last := h.docs[len(h.docs)-1]
	h.docs = h.docs[:len(h.docs)-1]
	return last
}

// selective is the share of the records below which a part of the filter is worth
// being looked up before the words. Above it the check of each of the best
// documents costs less.
const selective = 0.25

// allowed returns the documents that pass the part of the filter that the fewest
// pass; nil when many pass every part. The rest of the filter, and dates, are for top.
func (s *snapshot) allowed(ctx context.Context, f *filter) (*bitset, error) {
	type part struct {
		field  string
		values []string // any of them
	}
	var parts []part
	if len(f.namespaces) > 0 {
		p := part{field: fieldNamespace}
		for _, namespace := range f.namespaces {
			p.values = append(p.values, string(namespace))
		}
		parts = append(parts, p)
	}
	if f.kind != "" {
		parts = append(parts, part{fieldType, []string{string(f.kind)}})
	}
	for _, tag := range f.tags {
		parts = append(parts, part{fieldTag, []string{tag}})
	}
	fewest := uint64(selective * float64(len(s.entries)))
	var best *part
	for i := range parts {
		n := uint64(0)
		for _, value := range parts[i].values {
			postings, err := s.reader.TermFieldReader(ctx, []byte(value), parts[i].field, false, false, false)
			if err != nil {
				return nil, err
			}
			n += postings.Count()
			if err := postings.Close(); err != nil {
				return nil, err
			}
		}
		if n <= fewest {
			best, fewest = &parts[i], n
		}
	}
	if best == nil {
		return nil, nil
	}
	var these bitset
	for _, value := range best.values {
		postings, err := s.reader.TermFieldReader(ctx, []byte(value), best.field, false, false, false)
		if err != nil {
			return nil, err
		}
		if err := these.fill(ctx, postings); err != nil {
			return nil, err
		}
	}
	return &these, nil
}

// bitset is a set of document numbers.
type bitset struct{ words []uint64 }

func (b *bitset) has(n int) bool { return n>>6 < len(b.words) && b.words[n>>6]&(1<<(n&63)) != 0 }

func (b *bitset) add(n int) {
	for n>>6 >= len(b.words) {
		b.words = append(b.words, 0)
	}
	b.words[n>>6] |= 1 << (n & 63)
}

// fill takes every document of the postings, and closes them.
func (b *bitset) fill(ctx context.Context, postings index.TermFieldReader) error {
	defer func() { _ = postings.Close() }()
	var doc index.TermFieldDoc
	for i := 0; ; i++ {
		if i%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		next, err := postings.Next(&doc)
		if err != nil || next == nil {
			return err
		}
		number, err := docNumber(next.ID)
		if err != nil {
			return err
		}
		b.add(number)
	}
}
