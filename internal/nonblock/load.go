package nonblock

import (
	"slices"
	"sync/atomic"
	"time"
)

// Load says how much loops have to do.
type Load struct {
	// Busy is the share of its time that each loop has worked, from 0 to 1, in its last second or so.
	Busy []float64
	// Rounds counts the rounds of all loops by how long they took: Rounds[i] took at most
	// RoundBounds()[i], and the last one has the others. Nothing that has come for a connection waits
	// longer than a round for its turn. RoundTime is how long all of them took together.
	Rounds    []uint64
	RoundTime time.Duration
}

// RoundBounds returns the upper bounds of Load.Rounds, but for the last.
func RoundBounds() []time.Duration { return slices.Clone(roundBounds[:]) }

var roundBounds = [...]time.Duration{
	time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, time.Second, 2 * time.Second,
}

// rounds counts rounds. It may be used concurrently; adding allocates nothing.
type rounds struct {
	count [len(roundBounds) + 1]atomic.Uint64
	time  atomic.Int64 // ns
}

func (r *rounds) add(took time.Duration) {
	i := 0
	for i < len(roundBounds) && took > roundBounds[i] {
		i++
	}
	r.count[i].Add(1)
	r.time.Add(int64(took))
}

// Lateness says how far Loops are behind with reading. The zero value means that they are not.
type Lateness struct {
	// Behind says that a round takes seconds, or that one did less than 5 s ago. Data for the
	// connections waits in the kernel meanwhile, and more connections would make it worse.
	Behind bool
	// Since is when the first of those rounds began.
	Since time.Time
	// Longest is how long the longest of them has taken so far.
	Longest time.Duration
}
