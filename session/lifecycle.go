package session

import (
	"time"

	"voicegw/internal/cost"
)

// Lifecycle reports the begin or the final end of a session. A move to another process is neither.
type Lifecycle struct {
	SessionID, ConversationID string
	// User is the user's name; empty for an anonymous one. Principal is the ID of the principal that let the client
	// in.
	User, Principal        string
	Entry                  Entry
	Agent, Provider, Model string
	// Began is when the session began, in whichever process.
	Began time.Time
	// Over is set for a session that is over.
	Over *Over
}

// Over describes the end of a session. Its counters include earlier processes that died.
type Over struct {
	Reason    string // of a [Cause]
	CloseCode int
	At        time.Time
	Turns     int
	Cost      cost.Amount // of the whole session, on all gateways
}

// reportLifecycle reports a session; over is nil at its begin.
func (m *Manager) reportLifecycle(s *session, entry Entry, over *Over) {
	tell := m.options().Lifecycle
	if tell == nil || over == nil && entry == EntryTakeover {
		return
	}
	to := s.model.link().info()
	name := ""
	if !s.user.Anonymous() {
		name = s.user.String()
	}
	tell(Lifecycle{
		SessionID: s.id, ConversationID: s.start.ConversationID, User: name, Principal: s.principal.Value().ID, Entry: entry,
		Agent: s.agent.Load().Name, Provider: to.Provider, Model: to.Model, Began: s.startedAt, Over: over,
	})
}
