package session

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// roster lists the sessions that run on this node and checks on their clients. It may be used concurrently. Its
// lock may be taken with the Manager's held.
type roster struct {
	options func() *Options // fixed

	mu       sync.Mutex // guards the following fields
	sessions map[string]*session
	taking   map[string]bool // ids of sessions that are being taken over
	lost     int             // the sessions without a node, when EndLost looked last

	blockWatch *time.Timer // fires the next checkBlocks; nil if no client is absent
	keepAlive  *time.Timer // fires the next checkClients; nil if no session runs
}

// get returns the session with that id; nil if it does not run here.
func (r *roster) get(id string) *session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sessions[id]
}

// visit is get for a caller that holds the session: it must call visitors.Done.
func (r *roster) visit(id string) *session {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sessions[id]
	if s != nil {
		s.visitors.Add(1)
	}
	return s
}

func (r *roster) all() []*session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.sessions))
}

func (r *roster) add(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sessions[s.id] = s
	r.watchClients()
}

func (r *roster) remove(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sessions, s.id)
}

func (r *roster) away() []*session {
	return slices.DeleteFunc(r.all(), func(s *session) bool { return s.client.attachment() != nil })
}

// take records that this node takes a session over, unless it does so already. leave ends that.
func (r *roster) take(id string) (leave func(), first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taking[id] {
		return nil, false
	}
	r.taking[id] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.taking, id)
	}, true
}

func (r *roster) isTaking(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taking[id]
}

func (r *roster) setLost(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost = n
}

func (r *roster) expectsClients() bool {
	r.mu.Lock()
	lost := r.lost
	r.mu.Unlock()
	return lost > 0 || len(r.away()) > 0
}

const (
	// keepAliveEvery is the interval between checks of all clients. The other two durations are multiples of it.
	keepAliveEvery = 5 * time.Second
	// pingAfter is how long a connection may be silent in either direction before the client gets a
	// WebSocket ping. It is well below the 60 s after which nginx closes a silent connection
	// (proxy_read_timeout, https://nginx.org/en/docs/http/ngx_http_proxy_module.html, read 2026-11-29).
	pingAfter = 25 * time.Second
	// lostAfter is how long a client may send nothing, not even a pong, before its connection counts
	// as lost.
	lostAfter = 60 * time.Second
)

// watchClients starts the timer of checkClients. The caller must hold mu.
func (r *roster) watchClients() {
	if r.keepAlive == nil {
		r.keepAlive = time.AfterFunc(keepAliveEvery, r.checkClients)
	}
}

// checkClients keeps the clients' connections open and detaches clients that do not answer. One timer serves all
// sessions, so an idle session needs none.
func (r *roster) checkClients() {
	for _, s := range r.all() {
		if a := s.client.attachment(); a != nil && !a.conn.KeepAlive(int(pingAfter/keepAliveEvery), int(lostAfter/keepAliveEvery)) {
			a.lost(causeGone)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keepAlive = nil
	if len(r.sessions) > 0 {
		r.watchClients()
	}
}

// blockCheck is the interval between checks for locked-out users whose client is absent.
const blockCheck = time.Second

// watchBlocks starts the timer of checkBlocks, after a client was lost.
func (r *roster) watchBlocks() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.options().Blocked != nil && r.blockWatch == nil {
		r.blockWatch = time.AfterFunc(blockCheck, r.checkBlocks)
	}
}

// checkBlocks ends the sessions whose user was locked out while the client was away.
func (r *roster) checkBlocks() {
	away := r.away()
	for _, s := range away {
		if until, ok := r.options().Blocked(s.user); ok {
			s.end(blocked(until))
		}
	}
	r.mu.Lock()
	r.blockWatch = nil
	r.mu.Unlock()
	if len(away) > 0 {
		r.watchBlocks()
	}
}
