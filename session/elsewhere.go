package session

import (
	"context"
	"net/netip"
	"time"

	"voicegw/internal/user"
	"voicegw/protocol"
)

// Cluster makes this node's sessions known to other nodes, and carries clients to sessions that
// run on others. Its methods may be called concurrently.
type Cluster interface {
	// Enter records a session that begins here, and returns a function to call once it is over.
	// Neither waits.
	Enter(e Entry) (leave func())
	// Carry connects a client with the node that runs its session. It returns true once the client
	// is gone, and false, with c as it was, if no node takes the client. It returns when ctx is done.
	Carry(ctx context.Context, v Visitor, c Client) bool
}

// Entry is what other nodes may know of a session.
type Entry struct {
	ID             string
	User           user.User
	ConversationID string
	Provider       string
	Model          string
	Agent          string
	StartedAt      time.Time
	// EndsAt is when its longest time is over; zero if it has no limit.
	EndsAt time.Time
	// Origin is the only origin whose pages may come back to it; empty for any client.
	Origin       string
	ToolsVersion string
}

// Visitor is a client that wants to come back to a session which this node does not run.
type Visitor struct {
	// Start is its session.start. Its Resume is not nil.
	Start *protocol.Start
	Addr  netip.Addr
	// Origin is the origin of its page; empty if it is not a page.
	Origin string
	// Anonymous is the user of a client that gives no name.
	Anonymous  user.User
	MayInspect bool
}

// AdmitCarried admits a client that another node carries here. That node has held it to the limits
// per address, and it may only come back to a session of this node.
func (m *Manager) AdmitCarried(v Visitor) *Admission {
	ctx, evict := context.WithCancelCause(m.ctx())
	a := &Admission{
		Origin: v.Origin, MayInspect: v.MayInspect, Anonymous: v.Anonymous,
		m: m, addr: v.Addr.Unmap(), exempt: true, carried: true, ctx: func() context.Context { return ctx }, evict: evict,
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.admitted[a] = struct{}{}
	a.phase, a.since = PhaseAdmitted, time.Now()
	return a
}

// carry takes a client to the node that runs its session, and returns when the client is gone. It
// reports false if there is no such node; then the client still waits for an answer.
func (m *Manager) carry(a *Admission, c Client, start *startMessage) bool {
	if m.opts.Cluster == nil || a.carried {
		return false
	}
	m.mu.Lock()
	m.waiting.Leave(&a.guest)
	m.mu.Unlock()
	a.is(PhaseCarried, start.Resume.SessionID)
	return m.opts.Cluster.Carry(m.ctx(), Visitor{Start: start, Addr: a.addr, Origin: a.Origin, Anonymous: a.Anonymous, MayInspect: a.MayInspect}, c)
}

// register makes a session known to other nodes. It returns a function to call once it is over.
func (m *Manager) register(s *session) (leave func()) {
	if m.opts.Cluster == nil || m.opts.Policy.ResumeGrace <= 0 {
		return func() {}
	}
	info := s.linked.Load().info
	e := Entry{
		ID: s.id, User: s.user, ConversationID: s.start.ConversationID, Provider: info.Provider, Model: info.Model, Agent: s.opts.Agent.Name,
		StartedAt: s.startedAt, Origin: s.origin, ToolsVersion: s.toolsVersion(),
	}
	if longest := m.opts.Policy.MaxLength; longest > 0 {
		e.EndsAt = s.startedAt.Add(longest)
	}
	return m.opts.Cluster.Enter(e)
}
