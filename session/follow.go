package session

import (
	"time"

	"voicegw/orchestrator"
	"voicegw/protocol"
)

// Follow is told of each session that begins, or could not through no fault of its client's, and returns what is told of its steps. It may
// be called concurrently and must not block.
type Follow func(Opening) Followed

// Opening is how a session began.
type Opening struct {
	SessionID, ConversationID, Agent string
	// Provider and Model are those of its first connection. Model is empty if there was none, both are if
	// no provider was asked.
	Provider, Model string
	Entry           Entry
	// Parent is what the session was begun for, and Before the beginning of the session on the node that has
	// run it before. Both may be zero.
	Parent, Before protocol.TraceParent
	// When the client connected, its session.start had come, it was known who it is, and the session began or
	// was refused. Those that did not happen are zero.
	Came, Started, Known, Begun time.Time
	// Refused is the reason of the [Cause] why there is no session; empty if there is one.
	Refused string
}

// Followed is what follows one session.
type Followed struct {
	// Take is told of each step, and of some events, in their order. It is called with a lock held, so it must
	// not block. Nil means that nobody is told.
	Take func(Step)
	// Start is how the beginning of the session is named, for whoever goes on with it.
	Start protocol.TraceParent
}

// Step is a step of a session, or something that happened between two.
type Step struct {
	At time.Time
	// In and Actions are what was decided, and why. In is nil if there is an Event.
	In      orchestrator.Input
	Actions []orchestrator.Action
	// Nudged says that a silent model was asked to answer.
	Nudged bool
	// Event is nil, Returned or Ended.
	Event Event
}

// faulty reports whether a session could not begin through no fault of its client's.
func (c *Cause) faulty() bool {
	return c.Close == protocol.CloseProviderUnavailable || c.Close == protocol.CloseInternal
}

// unfollowed tells whoever follows that a session could not begin, if that was not the client's fault.
func (g *startup) followRefused(cause *Cause) {
	if cause.faulty() {
		g.follow(g.provider, "", cause.Reason)
	}
}

// follow tells whoever follows that a session has begun; refused is the reason why it has not.
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
