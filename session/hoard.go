package session

import (
	"sync"
	"sync/atomic"
)

// What all sessions of a process together may keep for clients that may come back, in bytes of
// memory. A session counts what it keeps of the audio that it has sent (hoardKept at most in all)
// and, while its client is away, everything that waits for the client.
const (
	hoardAll  = 192 << 20
	hoardKept = 64 << 20
)

// hoard counts what all sessions keep for clients that may come back. It may be used concurrently.
// Its lock comes before a downlink's.
type hoard struct {
	all, kept int64 // the bounds, in bytes; fixed

	waiting    atomic.Int64 // bytes that wait for clients that are away
	keptChunks atomic.Int64 // chunks of audio that was sent

	mu   sync.Mutex // guards the following field
	away []*downlink
}

func newHoard() *hoard { return &hoard{all: hoardAll, kept: hoardKept} }

// take takes room for one chunk, or reports that no room is left.
func (h *hoard) take() bool {
	if h.keptChunks.Add(1)*chunkSize > h.kept {
		h.keptChunks.Add(-1)
		return false
	}
	return true
}

// give returns the room of chunks.
func (h *hoard) give(chunks int) { h.keptChunks.Add(-int64(chunks)) }

// full reports whether more is kept than may be.
func (h *hoard) full() bool { return h.waiting.Load()+h.keptChunks.Load()*chunkSize > h.all }

// leave records that the client of d is away, join that it is not.
func (h *hoard) leave(d *downlink) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.away = append(h.away, d)
}

func (h *hoard) join(d *downlink) {
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

// shrink drops the audio that waits for clients that are away, longest away first, until the hoard
// is within its bound.
func (h *hoard) shrink() {
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

// chunk is a piece of audio that was sent.
type chunk [chunkSize]byte

const chunkSize = 8 << 10

var chunks = sync.Pool{New: func() any { return new(chunk) }}
