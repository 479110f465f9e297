package local

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"sync"
	"time"

	"voicegw/internal/backends/kb"
)

// Search implements kb.Index.
func (x *Index) Search(ctx context.Context, q kb.Query) (kb.Results, error) {
	began := time.Now()
	if err := q.Check(); err != nil {
		return kb.Results{}, err
	}
	s, err := x.begin()
	if err != nil {
		return kb.Results{}, err
	}
	defer x.calls.Done()
	q.Limit = cmp.Or(q.Limit, kb.DefaultLimit)
	f := newFilter(&q)

	// The lookup of words runs during the call of the Embedder. The goroutine sends once; nothing closes the channel.
	vector := make(chan []float32, 1)
	go func() { vector <- x.queryVector(ctx, s, q.Text) }()
	wordings, terms, err := x.wordings(ctx, s, &q, f)
	query := <-vector
	if err != nil {
		return kb.Results{}, searchError(err)
	}
	results := kb.Results{Hybrid: query != nil, Degraded: query == nil && x.options.Embedder != nil}
	var near []kb.Ranked
	if query != nil {
		if near, err = nearest(ctx, s.rows, f, query); err != nil {
			return kb.Results{}, searchError(err)
		}
	}
	if err := ctx.Err(); err != nil {
		return kb.Results{}, searchError(err)
	}
	results.Hits = x.ranker.Fuse(wordings, near, q.Limit, s.record)
	for i := range results.Hits {
		results.Hits[i].Snippet = x.ranker.Snippet(results.Hits[i].Record.Text, q.Text, terms)
	}
	results.Took = time.Since(began)
	return results, nil
}

// wordings ranks the records by the words of the question and of its alternatives, and returns the terms of the search.
func (x *Index) wordings(ctx context.Context, s *snapshot, q *kb.Query, f *filter) ([]kb.Wording, map[string]bool, error) {
	var synonyms *kb.Synonyms
	if x.options.Synonyms != nil {
		synonyms = x.options.Synonyms()
	}
	all := kb.Wordings(q, synonyms)
	terms := map[string]bool{}
	for i := range all {
		groups := x.words.expand(x.ranker, all[i].Text, len(s.entries), synonyms)
		for _, g := range groups {
			for _, one := range g.variants {
				terms[one.term] = true
			}
		}
		var err error
		if all[i].Ranked, err = s.bestWords(ctx, groups, f, maxVisits/len(all)); err != nil {
			return nil, nil, err
		}
	}
	return all, terms, nil
}

func searchError(err error) error { return fmt.Errorf("kb/local: search: %w", err) }

// queryVector embeds the query; nil if vectors take no part.
func (x *Index) queryVector(ctx context.Context, s *snapshot, text string) []float32 {
	if x.query == nil || len(s.rows) == 0 {
		return nil
	}
	vector := x.query.Query(ctx, text, s.dimensions())
	if vector == nil {
		return nil
	}
	return normalized(vector)
}

// filter is a query whose text does not matter.
type filter struct {
	kb.Query
	from, to int64 // Query.Range
}

func newFilter(q *kb.Query) *filter {
	f := &filter{Query: *q}
	f.Tags = kb.NormalizeTags(q.Tags)
	f.from, f.to = q.Range()
	return f
}

func (f *filter) passes(e *entry) bool {
	r := &e.record
	return (len(f.Namespaces) == 0 || slices.Contains(f.Namespaces, r.Namespace)) &&
		(len(f.Types) == 0 || slices.Contains(f.Types, r.Type)) &&
		(len(f.Authors) == 0 || overlap(f.Authors, r.Authors)) &&
		(len(f.Categories) == 0 || overlap(f.Categories, r.Categories)) &&
		e.updated >= f.from && e.updated <= f.to &&
		!slices.ContainsFunc(f.Tags, func(tag string) bool { return !slices.Contains(r.Tags, tag) })
}

func overlap(some, others []string) bool {
	return slices.ContainsFunc(others, func(one string) bool { return slices.Contains(some, one) })
}

func norm(v []float32) float64 {
	sum := 0.0
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	return math.Sqrt(sum)
}

func normalized(v []float32) []float32 {
	scale := float32(1 / norm(v))
	out := make([]float32, len(v))
	for i, f := range v {
		out[i] = f * scale
	}
	return out
}

const scanners = 2

const scanAlone = 2000 // how many rows one goroutine compares faster than two

// nearest returns the kb.Depth rows nearest to the query's vector, among those that pass the filter.
func nearest(ctx context.Context, rows []*entry, f *filter, query []float32) ([]kb.Ranked, error) {
	goroutines := scanners
	if len(rows) < scanAlone {
		goroutines = 1
	}
	best := make([][]kb.Ranked, goroutines)
	size := (len(rows) + goroutines - 1) / goroutines
	var wg sync.WaitGroup
	for part := range goroutines {
		chunk := rows[min(part*size, len(rows)):min((part+1)*size, len(rows))]
		wg.Go(func() { best[part] = scan(ctx, chunk, f, query) })
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return kb.Best(slices.Concat(best...)), nil
}

// scan returns the kb.Depth nearest rows, nearest first, equal ones in the order of rows, which is that of ids.
func scan(ctx context.Context, rows []*entry, f *filter, query []float32) []kb.Ranked {
	best := make([]kb.Ranked, 0, kb.Depth+1)
	for i, e := range rows {
		if i%4096 == 0 && ctx.Err() != nil {
			return nil
		}
		if len(e.vector) != len(query) || !f.passes(e) {
			continue
		}
		cosine := min(float64(dot(e.vector, query)), 1)
		if cosine <= 0 || len(best) == kb.Depth && cosine <= best[kb.Depth-1].Score {
			continue
		}
		at := sort.Search(len(best), func(i int) bool { return best[i].Score < cosine })
		best = slices.Insert(best, at, kb.Ranked{ID: e.record.ID, Score: cosine})
		best = best[:min(len(best), kb.Depth)]
	}
	return best
}

// dot returns the dot product of two vectors of the same length, in eight sums so that the
// processor need not wait for each addition.
func dot(a, b []float32) float32 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for len(a) >= 8 && len(b) >= 8 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		s4 += a[4] * b[4]
		s5 += a[5] * b[5]
		s6 += a[6] * b[6]
		s7 += a[7] * b[7]
		a, b = a[8:], b[8:]
	}
	for i := range min(len(a), len(b)) {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7
}
