package local

import (
	"cmp"
	"container/heap"
	"context"
	"math"
	"slices"
	"sync"

	"voicegw/backends/kb"
)

func norm(v []float32) float64 {
	sum := 0.0
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	return math.Sqrt(sum)
}

// normalized returns a copy of v with length 1.
func normalized(v []float32) []float32 {
	scale := float32(1 / norm(v))
	out := make([]float32, len(v))
	for i, f := range v {
		out[i] = f * scale
	}
	return out
}

// scanners is how many goroutines compare the vectors of one search.
const scanners = 2

// scanAlone is how many rows one goroutine compares faster than two.
const scanAlone = 2000

// nearest returns the kb.Depth rows nearest to the query's vector, among those that
// pass the filter.
func nearest(ctx context.Context, rows []*entry, f *filter, query []float32, least float64) ([]kb.Ranked, error) {
	parts := scanners
	if len(rows) < scanAlone {
		parts = 1
	}
	best := make([]nearHeap, parts)
	size := (len(rows) + parts - 1) / parts
	var wg sync.WaitGroup
	for part := range parts {
		chunk := rows[min(part*size, len(rows)):min((part+1)*size, len(rows))]
		wg.Go(func() { best[part] = scan(ctx, chunk, f, query, float32(least)) })
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	all := slices.Concat(best...)
	slices.SortFunc(all, func(a, b near) int {
		return cmp.Or(cmp.Compare(b.cosine, a.cosine), cmp.Compare(a.id, b.id))
	})
	all = all[:min(len(all), kb.Depth)]
	out := make([]kb.Ranked, len(all))
	for i, n := range all {
		out[i] = kb.Ranked{ID: n.id, Score: min(float64(n.cosine), 1)}
	}
	return out, nil
}

func scan(ctx context.Context, rows []*entry, f *filter, query []float32, least float32) nearHeap {
	best := make(nearHeap, 0, kb.Depth+1)
	for i, e := range rows {
		if i%4096 == 0 && ctx.Err() != nil {
			return nil
		}
		if len(e.vector) != len(query) || !f.passes(e) {
			continue
		}
		cosine := dot(e.vector, query)
		if cosine <= 0 || cosine < least || len(best) == kb.Depth && cosine <= best[0].cosine {
			continue
		}
		heap.Push(&best, near{cosine: cosine, id: e.record.ID})
		if len(best) > kb.Depth {
			heap.Pop(&best)
		}
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

type near struct {
	cosine float32
	id     string
}

// nearHeap has the most distant row at its top. Rows come in the order of their ids, so among
// equals the first ones stay.
type nearHeap []near

func (h nearHeap) Len() int           { return len(h) }
func (h nearHeap) Less(i, j int) bool { return h[i].cosine < h[j].cosine }
func (h nearHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *nearHeap) Push(v any)        { *h = append(*h, v.(near)) }
func (h *nearHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
