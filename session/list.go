package session

import (
	"cmp"
	"slices"
	"time"

	"voicegw/orchestrator"
)

// Running is a session as an operator sees it.
type Running struct {
	ID, User, Agent string
	// ConversationID is the conversation that it goes on with; empty for none.
	ConversationID  string
	Provider, Model string
	// StartedAt is UTC.
	StartedAt time.Time
	// Turn is how many turns there have been.
	Turn  int
	Phase orchestrator.Phase
}

// Sessions lists those that run on this node, the oldest first.
func (m *Manager) Sessions() []Running {
	m.mu.Lock()
	all := make([]*session, 0, len(m.sessions))
	for _, s := range m.sessions {
		all = append(all, s)
	}
	m.mu.Unlock()
	list := make([]Running, 0, len(all))
	for _, s := range all {
		list = append(list, s.running())
	}
	slices.SortFunc(list, func(a, b Running) int {
		return cmp.Or(a.StartedAt.Compare(b.StartedAt), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// Session returns the session of that id, if it runs on this node.
func (m *Manager) Session(id string) (Running, bool) {
	m.mu.Lock()
	s := m.sessions[id]
	m.mu.Unlock()
	if s == nil {
		return Running{}, false
	}
	return s.running(), true
}

// Agent is the name of the agent that clients speak with.
func (m *Manager) Agent() string { return m.opts.Agent.Name }

func (s *session) running() Running {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Running{
		ID: s.id, User: s.user, Agent: s.opts.Agent.Name, ConversationID: s.start.ConversationID,
		Provider: s.info.Provider, Model: s.info.Model, StartedAt: s.startedAt, Turn: s.state.Turns(), Phase: s.state.Phase(),
	}
}
