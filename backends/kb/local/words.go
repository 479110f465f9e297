package local

import (
	"cmp"
	"container/heap"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"

	index "github.com/blevesearch/bleve_index_api"

	"voicegw/backends/kb"
	"voicegw/backends/kb/internal/words"
)

// The constants of BM25, the same as in Lucene and bleve.
const (
	bm25K1 = 1.2
	bm25B  = 0.75
)

// recordWords are a record's words, by part.
type recordWords struct {
	in                words.Text
	title, tags, text []words.Term
}

func (w recordWords) lengths() lengths {
	return lengths{Title: countForms(w.title), Tags: countForms(w.tags), Text: countForms(w.text)}
}

// languages are those whose word forms are known.
func (w recordWords) languages() []words.Language { return w.in.Languages() }

func countForms(terms []words.Term) (n int) {
	for _, t := range terms {
		n += len(t.Forms)
	}
	return n
}

// lengths are numbers of words, of one record or of all.
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

// bestWords returns the kb.Depth records with the highest BM25 among those that pass the filter.
// For each group, a record counts its best variant, in each part of the record. visits bounds the
// postings that may be read (limits.go).
func (s *snapshot) bestWords(ctx context.Context, groups []group, f *filter, visits int) ([]kb.Ranked, error) {
	if len(groups) == 0 || len(s.entries) == 0 {
		return nil, nil
	}
	allowed, err := s.allowed(ctx, f)
	if err != nil {
		return nil, err
	}
	best, cut, err := s.rank(ctx, groups, f, allowed, visits)
	if cut && err == nil && len(best) < kb.Depth && !f.empty() {
		// The filter removed most of the candidates: others may pass it.
		best, _, err = s.rank(ctx, groups, f, allowed, math.MaxInt)
	}
	return best, err
}

// rank is bestWords over the allowed documents. cut says that some of them, which only have
// common words, were skipped.
func (s *snapshot) rank(ctx context.Context, groups []group, f *filter, allowed *bitset, visits int) (best []kb.Ranked, cut bool, err error) {
	sc := takeScores(allowed)
	defer sc.giveBack()
	whole := 0.0
	for i, g := range groups {
		if !g.part {
			whole += g.share
		}
		visited, narrowed, err := s.addGroup(ctx, sc, g, visits/(len(groups)-i))
		if err != nil {
			return nil, cut, err
		}
		cut = cut || narrowed
		visits = max(visits-visited, 0)
	}
	best, err = s.top(ctx, sc, f, whole)
	return best, cut, err
}

// partsOf are the parts of a record over which BM25 is summed.
func (s *snapshot) partsOf() [3]part {
	mean := func(words int) float64 { return float64(words) / float64(len(s.entries)) }
	return [3]part{
		{fieldTitle, kb.WeightTitle, mean(s.lengths.Title)},
		{fieldTags, kb.WeightTags, mean(s.lengths.Tags)},
		{fieldText, kb.WeightText, mean(s.lengths.Text)},
	}
}

type part struct {
	field        string
	weight, mean float64 // mean number of words
}

// addGroup adds the scores of a word and its variants to the documents that have them, the short
// parts of records first. If reading a part everywhere would take more visits than are left, it
// is read only in the documents with the highest scores so far. It returns the visits it took.
func (s *snapshot) addGroup(ctx context.Context, sc *scores, g group, visits int) (visited int, narrowed bool, err error) {
	var readers [3][]index.TermFieldReader
	defer func() {
		for _, of := range readers {
			for _, r := range of {
				_ = r.Close()
			}
		}
	}()
	parts := s.partsOf()
	var open, postings [3]int
	for i, p := range parts {
		for _, one := range g.variants {
			r, err := s.reader.TermFieldReader(ctx, []byte(one.term), p.field, true, true, false)
			if err != nil {
				return 0, false, err
			}
			readers[i] = append(readers[i], r)
			if n := int(r.Count()); n > 0 {
				open[i]++
				postings[i] += n
			}
		}
	}
	for i, p := range parts {
		var narrow []int
		if left := max(visits-visited, 0); postings[i] > left {
			narrow = sc.narrow(left/open[i], postings[i]/open[i])
		}
		for j, one := range g.variants {
			if n := readers[i][j].Count(); n > 0 {
				idf := math.Log(1 + (float64(len(s.entries))-float64(n)+0.5)/(float64(n)+0.5))
				if err := sc.addTerm(ctx, readers[i][j], narrow, p.mean, one.weight*p.weight*idf, one.weight); err != nil {
					return 0, false, err
				}
			}
		}
		sc.endField()
		if narrow == nil {
			visited += postings[i]
		} else {
			visited += lookUp * len(narrow) * open[i]
			narrowed = true
		}
	}
	sc.endGroup(g.share)
	return visited, narrowed, nil
}

// addTerm adds one term's part of BM25 to every document that has it, or only to those of narrow
// if that is not nil.
func (s *scores) addTerm(ctx context.Context, postings index.TermFieldReader, narrow []int, mean, factor, weight float64) error {
	w := walk{postings: postings, narrow: narrow}
	for i := 0; ; i++ {
		if i%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		next, number, err := w.next()
		if err != nil || next == nil {
			return err
		}
		tf := float64(next.Freq)
		length := 1 / (next.Norm * next.Norm) // scorch keeps 1/sqrt(length)
		s.add(number, factor*tf*(bm25K1+1)/(tf+bm25K1*(1-bm25B+bm25B*length/mean)), weight)
	}
}

// walk iterates over the postings of a term, in all documents or in those of narrow.
type walk struct {
	postings index.TermFieldReader
	narrow   []int // in order
	at       int   // in narrow
	doc      index.TermFieldDoc
	key      [8]byte
}

// next returns the next posting and its document; nil after the last.
func (w *walk) next() (*index.TermFieldDoc, int, error) {
	if w.narrow == nil {
		next, err := w.postings.Next(&w.doc)
		if err != nil || next == nil {
			return nil, 0, err
		}
		number, err := docNumber(next.ID)
		return next, number, err
	}
	for w.at < len(w.narrow) {
		binary.BigEndian.PutUint64(w.key[:], uint64(w.narrow[w.at]))
		next, err := w.postings.Advance(w.key[:], &w.doc)
		if err != nil || next == nil {
			return nil, 0, err
		}
		number, err := docNumber(next.ID)
		if err != nil {
			return nil, 0, err
		}
		for w.at < len(w.narrow) && w.narrow[w.at] < number {
			w.at++
		}
		if w.at < len(w.narrow) && w.narrow[w.at] == number {
			w.at++
			return next, number, nil
		}
	}
	return nil, 0, nil
}

// docNumber reads scorch's number of a document: eight bytes, big endian.
func docNumber(id index.IndexInternalID) (int, error) {
	if len(id) != 8 {
		return 0, fmt.Errorf("a document number of %d bytes; is this another version of scorch?", len(id))
	}
	return int(binary.BigEndian.Uint64(id)), nil
}

// scores are sums by document number. touched lists those that are not zero.
type scores struct {
	allowed *bitset // nil allows all
	docs    []docScore
	touched []int
	// field and group are the documents that contain the current field and group.
	field, group []int
	// kept are the documents that narrow chose last.
	kept []int
}

// docScore is the score of one document.
type docScore struct {
	sum   float64
	cover float32 // of the question, summed
	// best is the field's best variant so far; weight is the group's.
	best, weight float32
}

// pool keeps the memory of scores between searches, because it has the size of the index.
var pool = sync.Pool{New: func() any { return &scores{} }}

func takeScores(allowed *bitset) *scores {
	s := pool.Get().(*scores)
	s.allowed = allowed
	return s
}

func (s *scores) giveBack() {
	for _, number := range s.touched {
		s.docs[number] = docScore{}
	}
	s.allowed, s.touched, s.field, s.group = nil, s.touched[:0], s.field[:0], s.group[:0]
	s.kept = s.kept[:0]
	pool.Put(s)
}

// add records the score of a variant in a document.
func (s *scores) add(number int, score, weight float64) {
	if s.allowed != nil && !s.allowed.has(number) {
		return
	}
	if number >= len(s.docs) {
		s.docs = append(s.docs, make([]docScore, number+1-len(s.docs)+len(s.docs)/2)...)
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

// top takes the best documents, best first, reads each one's record and keeps those that pass
// the whole filter, until there are enough.
func (s *snapshot) top(ctx context.Context, sc *scores, f *filter, whole float64) ([]kb.Ranked, error) {
	queue := &docHeap{scores: sc.docs, docs: slices.Clone(sc.touched)}
	heap.Init(queue)
	var best []kb.Ranked
	for i := 0; queue.Len() > 0; i++ {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		number := heap.Pop(queue).(int)
		score := sc.docs[number].sum
		// All documents with the last score are considered, so that ids decide and not the
		// order in which records were added.
		if len(best) >= kb.Depth && (score < best[kb.Depth-1].Score || len(best) >= 4*kb.Depth) {
			break
		}
		e, err := s.entry(number)
		if err != nil {
			return nil, err
		}
		if e != nil && f.passes(e) {
			best = append(best, kb.Ranked{ID: e.record.ID, Score: score, Cover: min(float64(sc.docs[number].cover)/whole, 1)})
		}
	}
	slices.SortFunc(best, func(a, b kb.Ranked) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
	return best[:min(len(best), kb.Depth)], nil
}

// entry returns the record of a document; nil if the store is newer than the snapshot, which
// never lasts.
func (s *snapshot) entry(number int) (*entry, error) {
	id, err := s.reader.ExternalID(binary.BigEndian.AppendUint64(nil, uint64(number)))
	if err != nil {
		return nil, err
	}
	return s.entries[id], nil
}

// docHeap has the document with the highest sum at its top.
type docHeap struct {
	scores []docScore
	docs   []int
}

func (h *docHeap) Len() int           { return len(h.docs) }
func (h *docHeap) Less(i, j int) bool { return h.scores[h.docs[i]].sum > h.scores[h.docs[j]].sum }
func (h *docHeap) Swap(i, j int)      { h.docs[i], h.docs[j] = h.docs[j], h.docs[i] }
func (h *docHeap) Push(v any)         { h.docs = append(h.docs, v.(int)) }
func (h *docHeap) Pop() any {
	last := h.docs[len(h.docs)-1]
	h.docs = h.docs[:len(h.docs)-1]
	return last
}

// selective is the share of the records below which a part of the filter is evaluated before the
// words. Above it, checking each of the best documents costs less.
const selective = 0.25

// allowed returns the documents that pass the most selective part of the filter; nil if many pass
// every part. top checks the rest of the filter, and dates.
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

// fill adds every document of the postings, and closes them.
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
