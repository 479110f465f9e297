package downlink

import (
	"sync"
	"sync/atomic"
)

// The limits of a Budget in bytes: everything kept for absent clients, and sent audio that is not yet confirmed.
const (
	budgetAll  = 192 << 20
	budgetKept = 64 << 20
)

// Budget counts the memory that all sessions keep for clients that may return: sent audio, and everything queued for
// absent clients. It may be used concurrently. Its lock comes before a Queue's.
type Budget struct {
	all, kept int64 // the bounds, in bytes; fixed

	waiting    atomic.Int64 // bytes that wait for absent clients
	keptChunks atomic.Int64 // chunks of audio that was sent

	mu   sync.Mutex // guards the following field
	away []*Queue
}

// NewBudget returns a Budget with the default limits.
func NewBudget() *Budget { return &Budget{all: budgetAll, kept: budgetKept} }

// take reserves one chunk. It returns false if none is left.
func (h *Budget) take() bool {
	if h.keptChunks.Add(1)*chunkSize > h.kept {
		h.keptChunks.Add(-1)
		return false
	}
	return true
}

func (h *Budget) give(chunks int) { h.keptChunks.Add(-int64(chunks)) }

func (h *Budget) full() bool { return h.waiting.Load()+h.keptChunks.Load()*chunkSize > h.all }

func (h *Budget) leave(d *Queue) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.away = append(h.away, d)
}

func (h *Budget) join(d *Queue) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, other := range h.away {
		if other == d {
			h.away = append(h.away[:i], h.away[i+1:]...)
			break
		}
	}
	if len(h.away) == 0 {
		h.away = nil
	}
}

func (h *Budget) shrink() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for range h.away {
		if !h.full() {
			return
		}
		d := h.away[0]
		d.shed()
		copy(h.away, h.away[1:])
		h.away[len(h.away)-1] = d // it has nothing to lose for a while
	}
}

// chunk is a block of sent audio.
type chunk [chunkSize]byte

const chunkSize = 8 << 10

var chunks = sync.Pool{New: func() any { return new(chunk) }}
