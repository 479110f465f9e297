package traces

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestDecisions is the table of sampling decisions.
func TestDecisions(t *testing.T) {
	low, high := [16]byte{15: 1}, [16]byte{8: 0xff}
	for _, c := range []struct {
		name  string
		trace [16]byte
		ratio float64
		facts facts
		want  Decision
	}{
		{"an ordinary turn", high, 0.1, facts{first: time.Second}, NotKept},
		{"one that is drawn", low, 0.1, facts{}, KeptRatio},
		{"none is drawn", low, 0, facts{}, NotKept},
		{"all are drawn", high, 1, facts{}, KeptRatio},
		{"a failed one", high, 0, facts{failed: true, tool: true, odd: true, first: time.Minute, caller: true}, KeptFailed},
		{"a tool that failed", high, 0, facts{tool: true, odd: true, first: time.Minute, caller: true}, KeptTool},
		{"a slow one", high, 0, facts{first: 2001 * time.Millisecond, odd: true, caller: true}, KeptSlow},
		{"not slow enough", high, 0, facts{first: 2 * time.Second}, NotKept},
		{"an odd one", high, 0, facts{odd: true, caller: true}, KeptOdd},
		{"the caller samples it", high, 0, facts{caller: true}, KeptCaller},
	} {
		if got := newSampler(c.ratio, 2*time.Second).decide(c.trace, c.facts); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestRatio: the share of sampled traces is the configured ratio, and a trace sampled at a low ratio is also sampled at a
// higher one.
func TestRatio(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	few, many := newSampler(0.1, time.Second), newSampler(0.3, time.Second)
	const all = 100_000
	n, m := 0, 0
	for range all {
		var id [16]byte
		for i := range id {
			id[i] = byte(r.Uint32())
		}
		if few.drawn(id) {
			n++
			if !many.drawn(id) {
				t.Fatalf("%x is drawn at 0.1 and not at 0.3", id)
			}
		}
		if many.drawn(id) {
			m++
		}
	}
	if n < all*9/100 || n > all*11/100 || m < all*29/100 || m > all*31/100 {
		t.Errorf("%d and %d of %d are drawn", n, m, all)
	}
}
