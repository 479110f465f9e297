package session

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"voicegw/internal/auth"
	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/store"
)

// Cluster makes this node's sessions known to other nodes and to this one's next start, carries
// clients to sessions that run on other nodes, and takes sessions over whose node is gone. Its
// methods may be called concurrently.
type Cluster interface {
	// Enter records a session that begins here. It does not wait: a session begins while the store
	// is away as well. Node, Epoch and State of the record are set by Enter.
	Enter(r store.SessionRecord) Place
	// Carry connects a client with the node that runs its session. It returns true once the client
	// is gone, and false, with c as it was, if no node takes the client. It returns when ctx is done.
	Carry(ctx context.Context, v Visitor, c Client) (carried bool)
	// Take makes this node the owner of a session whose node is gone or has given it up, if the
	// visitor may come back to it; see [Visitor.Opens]. The error is that of Opens, or wraps
	// ErrNoSession, ErrElsewhere or store.ErrUnavailable, or says what cannot be read.
	Take(ctx context.Context, v Visitor) (*Taken, error)
	// Lost returns the sessions that no node runs. The error wraps store.ErrUnavailable.
	Lost(ctx context.Context) ([]Lost, error)
	// Adopt makes this node the owner of a session that no node runs, to end it. found is its record as it
	// was found. The error wraps ErrNoSession, ErrElsewhere or store.ErrUnavailable, or says what cannot be
	// read.
	Adopt(ctx context.Context, found store.SessionRecord) (*Taken, error)
}

// The errors of Cluster.Take.
var (
	// ErrNoSession: there is no such session, or the visitor may not come back to it. The two
	// cannot be told apart.
	ErrNoSession = errors.New("session: no session that this client may come back to")
	// ErrElsewhere: a node runs the session, or another one has just taken it.
	ErrElsewhere = errors.New("session: another node runs the session")
)

// Taken is a session that this node has taken over.
type Taken struct {
	Place Place
	// Record is the session's record at its new epoch.
	Record store.SessionRecord
	// Checkpoint is the newest one that the previous owner wrote. If the store has no checkpoint of
	// the session, it is the zero Checkpoint, with an empty SessionID.
	Checkpoint store.Checkpoint
}

// Place is a session's place in the directory. Its methods may be called concurrently; only Keep,
// Give and Return wait.
type Place interface {
	// Update changes the session's record: change is called at once, and what it has changed is
	// written soon, in the order of the calls.
	Update(change func(*store.SessionRecord))
	// Written returns a channel that is closed when what was changed until now is durable or, because
	// nothing more is written, never will be. While the store is away it stays open.
	Written() <-chan struct{}
	// Note has a checkpoint written soon. SessionID and Epoch are set by Note; the slices must not
	// change any more.
	Note(c store.Checkpoint)
	// Keep writes now what was noted and waits. The newest checkpoint that was noted before is durable when
	// Keep returns nil, or no other node can take the session. The error wraps store.ErrUnavailable,
	// store.ErrTooBig or store.ErrFenced, or the session was given up.
	Keep(ctx context.Context) error
	// Give writes a checkpoint and gives the session up: any node may take it then. Both are durable
	// when Give returns nil, and nothing is written after them. store.ErrFenced: another node has the
	// session. After any other error the session is still this node's, as far as the store has answered, and
	// Give can be called again.
	Give(ctx context.Context, c store.Checkpoint) error
	// Return gives up, as it was, a session that was taken and cannot go on here: any node may take it then.
	// It waits for the store no longer than ctx is valid; after an error it is done when the store answers.
	// Nothing else is written.
	Return(ctx context.Context) error
	// Sure reports whether no other node can have taken the session; see [store.Owned.Sure].
	Sure() bool
	// WhenLost calls f, on a goroutine of its own, once another node has taken the session. It does
	// not call f after Give or Leave.
	WhenLost(f func())
	// Leave records that the session is over, unless it was given up.
	Leave()
	// End records that a session is over although it was given up. If another node has taken it since,
	// nothing changes.
	End()
}

// nowhere is the place of a session that no other node may know.
type noPlace struct{}

// written is what Written returns where nothing waits.
var written = func() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}()

var errNoPlace = errors.New("session: no other node can go on with the session")

func (noPlace) Update(func(*store.SessionRecord))            {}
func (noPlace) Written() <-chan struct{}                     { return written }
func (noPlace) Note(store.Checkpoint)                        {}
func (noPlace) Keep(context.Context) error                   { return nil }
func (noPlace) Give(context.Context, store.Checkpoint) error { return errNoPlace }
func (noPlace) Return(context.Context) error                 { return errNoPlace }
func (noPlace) Sure() bool                                   { return true }
func (noPlace) WhenLost(func())                              {}
func (noPlace) Leave()                                       {}
func (noPlace) End()                                         {}

// Visitor is a client that wants to come back to a session that this node does not run.
type Visitor struct {
	// Start is its session.start. Its Resume is not nil.
	Start *protocol.Start
	Addr  netip.Addr
	// Origin is the origin of its page; empty if it is not a page.
	Origin string
	// Anonymous is the user of a client that gives no name.
	Anonymous user.User
	// Principal is what the client has shown who it is.
	Principal auth.Principal
}

// AdmitCarried admits a client that another node carries here. That node has held it to the limits
// per address, and it may only come back to a session of this node.
func (m *Manager) AdmitCarried(v Visitor) *Admission {
	ctx, evict := context.WithCancelCause(m.ctx())
	a := &Admission{
		Arrival: &Arrival{Origin: v.Origin, Principal: v.Principal, Anonymous: v.Anonymous},
		m:       m, addr: v.Addr.Unmap(), exempt: true, carried: true, ctx: func() context.Context { return ctx }, cancel: evict,
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.admitted[a] = struct{}{}
	a.phase, a.since = PhaseAdmitted, time.Now()
	return a
}

// carry takes a client to the node that runs its session, and returns when the client is gone. It
// reports false if there is no such node; then the client still waits for an answer.
func (m *Manager) carry(a *Admission, c Client, start *startMessage) (carried bool) {
	if m.options().Cluster == nil || a.carried {
		return false
	}
	m.mu.Lock()
	m.waiting.Leave(&a.guest)
	m.carrying++
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.carrying--
		m.signalDrained()
	}()
	a.setPhase(PhaseCarried, start.Resume.SessionID)
	return m.options().Cluster.Carry(a.ctx(), a.visitor(start), c)
}

// visitor describes a client for other nodes.
func (a *Admission) visitor(start *startMessage) Visitor {
	return Visitor{Start: start, Addr: a.addr, Origin: a.Origin, Anonymous: a.Anonymous, Principal: a.Principal}
}

// clientID returns the name that the client gave its user when the session began.
func clientID(start *startMessage) string {
	if start.Client == nil {
		return ""
	}
	return start.Client.ID
}

// movable reports whether another node could go on with the session.
func movable(p Place) bool { return p != noPlace{} }

// record returns what other nodes may know of the session when it begins.
func (s *session) record() store.SessionRecord {
	info, who := s.model.link().info(), s.principal.Value()
	r := store.SessionRecord{
		ID: s.id, User: s.user.String(), Conversation: s.start.ConversationID, Provider: info.Provider, Model: info.Model, Agent: s.agent.Load().Name, AgentVersion: s.agent.Load().Version,
		StartedAt: s.startedAt, Origin: s.origin, ToolsVersion: s.toolsVersion(), Versions: s.tools.Load().Drawn(),
		InputRate: s.start.InputRate, OutputRate: s.start.OutputRate, Manual: manual(s.start), Voice: s.start.Voice, Inspect: s.inspect,
		Vouched: s.vouched, Scopes: s.scopes, ClientID: clientID(s.start), TimeZone: s.start.TimeZone,
		Principal: who.ID, Entry: string(who.Kind), Mark: who.Mark, PrincipalExpires: who.Expires,
	}
	if longest := s.opts.Policy.MaxLength; longest > 0 {
		r.EndsAt = s.startedAt.Add(longest)
	}
	s.client.tokens.writeTo(&r)
	return r
}
