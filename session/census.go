package session

import (
	"time"
)

// Census counts a Manager's sessions at one moment.
type Census struct {
	// Sessions are the running sessions, Most is their limit.
	Sessions, Most int
	// Attached and Detached count the sessions with and without a client by provider, and Linked those with a
	// connection to the model. Each has an entry for every configured provider; other providers' sessions count under
	// their names.
	Attached, Detached, Linked map[string]int
	// Backlog is the longest audio queued for one client.
	Backlog time.Duration
	// Waiting connections have not sent session.start; Carried ones belong to sessions of other nodes.
	Waiting, Carried int
	Draining         bool
}

// Census takes no lock of a step, so no session waits for it. The counts may change while it runs.
func (m *Manager) Census() Census {
	c := Census{Most: m.options().Limits.Sessions, Attached: map[string]int{}, Detached: map[string]int{}, Linked: map[string]int{}}
	for name := range m.options().Transports {
		c.Attached[name], c.Detached[name], c.Linked[name] = 0, 0, 0
	}
	all := m.roster.all()
	m.mu.Lock()
	c.Sessions, c.Carried, c.Draining = m.running, m.carrying, m.draining
	c.Waiting = max(len(m.admitted)-m.running-m.carrying, 0)
	m.mu.Unlock()
	for _, s := range all {
		l := s.model.link()
		who := l.info().Provider
		if s.client.attachment() == nil {
			c.Detached[who]++
		} else {
			c.Attached[who]++
		}
		if !l.isOver.Load() {
			c.Linked[who]++
		}
		c.Backlog = max(c.Backlog, s.down.Backlog())
	}
	return c
}
