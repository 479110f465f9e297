package wire

import (
	"maps"
	"sync"

	"voicegw/sim/fault"
)

// FaultCounts counts injected faults by their kind. The zero value is ready to use; it may be
// used concurrently.
type FaultCounts struct {
	mu     sync.Mutex // guards the following field
	counts map[fault.Kind]int64
}

func (c *FaultCounts) add(k fault.Kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = make(map[fault.Kind]int64)
	}
	c.counts[k]++
}

// All returns a copy of the counts. A kind that never occurred is missing.
func (c *FaultCounts) All() map[fault.Kind]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

// Committed counts a fault.
func (s *Stats) Committed(k fault.Kind) {
	s.Faults.Add(1)
	s.FaultsBy.add(k)
}
