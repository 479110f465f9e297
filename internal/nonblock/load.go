package nonblock

import (
	"slices"
	"sync/atomic"
	"time"
)

// Load is the load of loops.
type Load struct {
	// Busy is each loop's share of working time, from 0 to 1, in its last window.
	Busy []float64
	// Rounds is a histogram of the durations of all rounds: Rounds[i] took at most RoundBounds()[i], and the last one
	// counts the longer ones. Data for a connection waits at most a round for its turn.
	Rounds    []uint64
	RoundTime time.Duration // the sum of the durations
}

// RoundBounds returns the upper bounds of Load.Rounds, except the last, which has none.
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

// Lateness describes how far Loops are behind with reading. The zero value means that they are not.
type Lateness struct {
	// Behind means that a round takes seconds, or that one did less than 5 s ago. Data for the connections waits in the
	// kernel, and more connections would make it worse.
	Behind  bool
	Since   time.Time     // the start of the first of those rounds
	Longest time.Duration // the duration of the longest of them so far
}
