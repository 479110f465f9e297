package session

import (
	"time"

	"voicegw/internal/cost"
)

// Lifecycle tells, with names, that a session has begun, or that it is over and goes on nowhere. That a
// session moves to another process is neither.
type Lifecycle struct {
	SessionID, ConversationID string
	// User is the user's name, empty for one without. Principal is the ID of whoever has let the client in.
	User, Principal        string
	Entry                  Entry
	Agent, Provider, Model string
	// Began is when the session began, also if that was in another process.
	Began time.Time
	// Over is set for a session that is over.
	Over *Over
}

// Over is what is known of a session that is over: its counters are those of this process, and of those before
// that have died.
type Over struct {
	Reason    string // of a [Cause]
	CloseCode int
	At        time.Time
	Turns     int
	Cost      cost.Amount // of the whole session, on every gateway that has had it
}

// tellOf tells of a session; over is nil for one that has begun.
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
