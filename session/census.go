package session

import (
	"time"
)

// Census counts what a Manager has at one moment.
type Census struct {
	// Sessions are the running sessions, and Most is how many there may be.
	Sessions, Most int
	// Attached counts the sessions of each provider whose client is here, Detached those whose
	// client is away, and Linked those that have a connection to the model. Each has an entry for
	// each configured provider; a session of any other provider counts under its name.
	Attached, Detached, Linked map[string]int
	// Backlog is the most audio that waits for one client.
	Backlog time.Duration
	// Waiting are connections that have not sent session.start, Carried those whose session another
	// node runs.
	Waiting, Carried int
	Draining         bool
}

// Census takes a census. It takes no lock that a step holds, so no session waits for it. What it
// counts may change while it counts.
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
