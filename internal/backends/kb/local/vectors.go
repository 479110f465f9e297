package local

import (
	"context"
	"math"
	"slices"
	"sort"
	"sync"

	"voicegw/internal/backends/kb"
)

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

// scanAlone is how many rows one goroutine compares faster than two.
const scanAlone = 2000

// nearest returns the kb.Depth rows nearest to the query's vector, among those that
// pass the filter.
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
