package local

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"voicegw/internal/backends/kb"
)

func TestDotIsTheSumOfProducts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for n := range 40 {
		a, b := make([]float32, n), make([]float32, n)
		want := 0.0
		for i := range a {
			a[i], b[i] = r.Float32()-0.5, r.Float32()-0.5
			want += float64(a[i]) * float64(b[i])
		}
		if got := float64(dot(a, b)); math.Abs(got-want) > 1e-5 {
			t.Errorf("%d numbers: %v, not %v", n, got, want)
		}
	}
}

// TestNearestIsExact: the two goroutines find the same records as a complete sort, with equal scores ordered by id.
func TestNearestIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	var rows []*entry
	for i := range 5000 {
		v := []float32{float32(r.IntN(5)) - 2, float32(r.IntN(5)) - 2, 1}
		rows = append(rows, &entry{record: kb.Record{ID: fmt.Sprintf("doc:%05d", i), Type: kb.TypeDoc}, vector: normalized(v)})
	}
	query := normalized([]float32{0.3, -0.7, 0.5})
	var want []kb.Ranked
	for _, e := range rows {
		if c := dot(e.vector, query); c > 0 {
			want = append(want, kb.Ranked{ID: e.record.ID, Score: min(float64(c), 1)})
		}
	}
	slices.SortFunc(want, func(a, b kb.Ranked) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID)) })
	got, err := nearest(t.Context(), rows, newFilter(&kb.Query{}), query)
	if err != nil || !slices.Equal(got, want[:kb.Depth]) {
		t.Errorf("%v\nis not %v, %v", got, want[:kb.Depth], err)
	}
	none, err := nearest(t.Context(), rows, newFilter(&kb.Query{Types: []kb.Type{kb.TypeLink}}), query)
	if err != nil || len(none) != 0 {
		t.Errorf("%v passed the filter, %v", none, err)
	}
}
