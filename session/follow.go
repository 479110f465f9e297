package session

import (
	"time"

	"voicegw/internal/cost"
	"voicegw/orchestrator"
	"voicegw/protocol"
)

// Follow is called when a session begins, or fails to begin through no fault of its client. It may be called
// concurrently and must not block.
type Follow func(Opening) Followed

// Opening is how a session began.
type Opening struct {
	SessionID, ConversationID, Agent string
	// Provider and Model are those of the first connection. Model is empty without a connection, both are if no
	// provider was chosen.
	Provider, Model string
	Entry           Entry
	// Parent is the span that the session belongs to, Before the session's first span on its previous node. Both may
	// be zero.
	Parent, Before protocol.TraceParent
	// The times of the connection, of session.start, of the identification, and of the session's begin or refusal.
	// Missing ones are zero.
	Came, Started, Known, Begun time.Time
	// Refused is the Reason of the [Cause]; empty if there is a session.
	Refused string
}

// Followed receives the steps of one session.
type Followed struct {
	// Take gets each step and some events, in order. It is called with a lock held, so it must not block. It may be
	// nil.
	Take func(Step)
	// Start is the session's first span, for the next node.
	Start protocol.TraceParent
}

// Step is a step of a session, or an event between steps.
type Step struct {
	At time.Time
	// In and Actions are the step. In is nil for an Event.
	In      orchestrator.Input
	Actions []orchestrator.Action
	// Nudged: a silent model was asked to answer.
	Nudged bool
	// Event is nil, Returned or Ended.
	Event Event
}

func (c *Cause) faulty() bool {
	return c.Close == protocol.CloseProviderUnavailable || c.Close == protocol.CloseInternal
}

func (g *startup) followRefused(cause *Cause) {
	if cause.faulty() {
		g.follow(g.provider, "", cause.Reason)
	}
}

// follow reports the begin of a session; refused is the reason if there is none.
func (g *startup) follow(provider, model, refused string) Followed {
	m := g.m
	tell := m.options().Follow
	if tell == nil {
		return Followed{}
	}
	o := Opening{
		SessionID: g.SessionID, Provider: provider, Model: model, Entry: g.entry, Parent: g.Parent,
		Came: g.arrivedAt, Started: g.startedAt, Known: g.knownAt, Begun: time.Now(), Refused: refused,
	}
	if g.agent != nil {
		o.Agent = g.agent.Name
	}
	if g.start != nil {
		o.ConversationID = g.start.ConversationID
	}
	if g.restoring != nil {
		o.Before, _ = protocol.ParseTraceParent(g.restoring.saved.Trace)
	}
	return tell(o)
}

// event passes an event to the session's follower. The caller must hold mu.
func (w *watcher) event(e Event) {
	if w.follower.Take != nil {
		w.follower.Take(Step{At: time.Now(), Event: e})
	}
}

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
