package session

import "time"

const (
	// keepAliveEvery is how often the Manager looks at the connections of all clients. The other two
	// durations are multiples of it.
	keepAliveEvery = 5 * time.Second
	// pingAfter is how long a connection may be silent in either direction before the client gets a
	// WebSocket ping. It is well below the 60 s after which nginx closes a silent connection
	// (proxy_read_timeout, https://nginx.org/en/docs/http/ngx_http_proxy_module.html, read 2026-11-29).
	pingAfter = 25 * time.Second
	// lostAfter is how long a client may send nothing, not even a pong, before its connection counts
	// as lost.
	lostAfter = 60 * time.Second
)

// watchClients makes sure that checkClients runs soon. The caller must hold mu.
func (m *Manager) watchClients() {
	if m.keepAlive == nil {
		m.keepAlive = time.AfterFunc(keepAliveEvery, m.checkClients)
	}
}

// checkClients keeps the connections of all clients open, and detaches the clients that do not
// answer. One timer serves all sessions: an idle session needs no timer of its own for it.
func (m *Manager) checkClients() {
	for _, a := range m.clients() {
		if !a.conn.KeepAlive(int(pingAfter/keepAliveEvery), int(lostAfter/keepAliveEvery)) {
			a.lost(causeGone)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keepAlive = nil
	if len(m.sessions) > 0 {
		m.watchClients()
	}
}

// clients returns the attachments of all sessions that have a client.
func (m *Manager) clients() []*attachment {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]*attachment, 0, len(m.sessions))
	for _, s := range m.sessions {
		if a := s.client.attachment(); a != nil {
			all = append(all, a)
		}
	}
	return all
}
