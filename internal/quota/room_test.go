package quota

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestARoomNeverOverflows, whoever comes and goes in whatever order.
func TestARoomNeverOverflows(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		r := NewRoom[int](1+rng.IntN(8), 1+rng.IntN(4))
		inside := map[*Member[int]]bool{}
		for range 300 {
			if rng.IntN(3) == 0 {
				for a := range inside {
					r.Leave(a)
					r.Leave(a)
					delete(inside, a)
					break
				}
				continue
			}
			a := &Member[int]{Key: rng.IntN(6)}
			if out := r.Enter(a); out != nil {
				if !inside[out] {
					t.Fatalf("seed %d: one that is not inside had to leave", seed)
				}
				delete(inside, out)
			}
			inside[a] = true
			count := map[int]int{}
			for a := range inside {
				count[a.Key]++
			}
			if r.Len() != len(inside) || len(inside) > r.most || fmt.Sprint(count) != fmt.Sprint(r.byKey) {
				t.Fatalf("seed %d: %d of %d inside, %v, want %v", seed, r.Len(), r.most, r.byKey, count)
			}
			for addr, n := range count {
				if n > r.perKey {
					t.Fatalf("seed %d: %d of %d", seed, n, addr)
				}
			}
		}
	}
}
