package gemini

import (
	"sync"
	"time"
)

// Handles live 2 h on the Developer API and 24 h on Vertex
// (https://ai.google.dev/gemini-api/docs/live-session; not verified).
const (
	handleLife       = 2 * time.Hour
	handleLifeVertex = 24 * time.Hour
	// maxHandles bounds the registry; the oldest handles are dropped first.
	maxHandles = 10_000
)

// registry maps resumption handles to snapshots of conversations. It may be used concurrently.
type registry struct {
	mu      sync.Mutex // guards the following fields
	handles map[string]held
	order   []string
	taken   map[*origin]bool // owned by an open connection
}

type held struct {
	snap    snapshot
	expires time.Time
}

func (r *registry) adopt(c *conversation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken[c.origin] = true
}

func (r *registry) release(c *conversation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.taken, c.origin)
}

func (r *registry) put(handle string, c *conversation, expires time.Time) {
	snap := c.snapshot()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handles[handle] = held{snap, expires}
	r.order = append(r.order, handle)
	if over := len(r.order) - maxHandles; over > 0 {
		for _, old := range r.order[:over] {
			delete(r.handles, old)
		}
		r.order = append(r.order[:0:0], r.order[over:]...)
	}
}

// resume gives a new connection the conversation as it was when the handle was issued: what came later is forgotten. A
// handle may be used again. An unknown handle is closed 1008; one of a conversation that an open connection has is
// closed 1011; one of another model is an invalid argument (the first two as reported in aicc2025/sip-to-ai#14 and
// livekit/agents; the last because the documentation forbids changing the model).
func (r *registry) resume(handle, model string, now time.Time) (*conversation, *closeError) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, ok := r.handles[handle]
	switch {
	case !ok || now.After(h.expires):
		return nil, policy(reasonSessionNotFound)
	case r.taken[h.snap.origin]:
		return nil, internal(reasonInternal)
	case h.snap.origin.model != model:
		return nil, invalid(reasonInvalidArgument)
	}
	r.taken[h.snap.origin] = true
	return h.snap.resumed(), nil
}
