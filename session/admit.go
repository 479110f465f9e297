package session

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"voicegw/internal/auth"
	"voicegw/internal/quota"
	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/session/handoff"
	"voicegw/store"
)

// Arrival is the information on a connection before its session.start; nil once a session runs.
type Arrival struct {
	// Ticket was offered as a subprotocol, Origin is the page's origin; either may be empty.
	Ticket, Origin string
	// Principal is the authenticated client. TicketNeeded: it may begin a session only with a ticket.
	Principal    auth.Principal
	TicketNeeded bool
	// Anonymous is the user of a client without a name. If it is not set, such a client becomes a new user.
	Anonymous user.User
	// Redeem redeems the client secret that Principal had; nil without one.
	Redeem func(ctx context.Context) (handoff.Ticket, error)
	// Parent is the client's span; zero without one.
	Parent protocol.TraceParent
}

// The errors of Admit.
var (
	// ErrDraining: the gateway is shutting down.
	ErrDraining = errors.New("the gateway is shutting down")
	// ErrFull: the maximum number of sessions is running.
	ErrFull = errors.New("the gateway is full")
	// ErrAddressLimit: the client's address has too many sessions, or starts them too fast.
	ErrAddressLimit = errors.New("too many sessions from this address")
	// ErrBehind: the gateway is overloaded, and no client may be returning.
	ErrBehind = errors.New("the gateway is behind")
)

// Admission admits a connection to the waiting room, then to a session's place. It must be Started or Released.
type Admission struct {
	*Arrival

	// Fixed after Admit.
	m       *Manager
	addr    netip.Addr
	carried bool // another node carries the client
	// returns: the connection may only resume a session.
	returns bool
	// ctx is done when the connection must leave the waiting room; its cause is a *Cause. It is nil once a session runs.
	ctx func() context.Context

	once sync.Once

	// Guarded by Manager.mu.
	cancel context.CancelCauseFunc  // cancels ctx; nil with it
	key    netip.Addr               // the key under which the address is counted
	exempt bool                     // from the limits per address
	member quota.Member[netip.Addr] // the place in the waiting room
	placed bool                     // it has a session's place
	counts bool                     // it counts for its address
	id     string                   // the session's id; empty before Start
	phase  Phase
	since  time.Time // when the phase began
}

// UnreachableError means that no provider can be reached at the moment.
type UnreachableError struct {
	RetryIn time.Duration // when the next session may try
}

// Error describes the error.
func (e *UnreachableError) Error() string { return "no provider can be reached" }

// Coming is known of a connection before its session.start.
type Coming struct {
	// Back: the client announced in its handshake that it resumes a session. Clients may resume without announcing it.
	Back bool
	// Trusted: a carrier of many users, which has proved who it is, so the limits of an address do not apply.
	Trusted bool
	// Behind: the gateway is overloaded, so the connection may only resume a session.
	Behind bool
}

// Admit admits a connection from addr to the waiting room, before its upgrade; a full room evicts another one. The
// error is ErrDraining, ErrBehind, ErrFull, ErrAddressLimit or an [*UnreachableError]; for a connection that announces
// to resume, or may because a client is absent, only ErrAddressLimit, as capacity is checked after session.start.
func (m *Manager) Admit(addr netip.Addr, how Coming) (*Admission, error) {
	a, err := m.admit(addr, how)
	if err != nil {
		m.observe(Refused{cmp.Or(notAdmitted[err], causeUnavailable.Reason)})
	}
	return a, err
}

// mayResume reports whether a connection may resume a session. The caller must hold mu.
func (m *Manager) mayResume(how Coming) bool {
	if m.options().Policy.ResumeGrace <= 0 {
		return false
	}
	if how.Back {
		return len(m.roster.all()) > 0 || m.options().Cluster != nil
	}
	return m.roster.lost.Load() > 0 || len(m.roster.away()) > 0
}

func (m *Manager) admit(addr netip.Addr, how Coming) (*Admission, error) {
	addr = addr.Unmap()
	a := &Admission{Arrival: &Arrival{}, m: m, returns: how.Behind, addr: addr, key: quota.AddressKey(addr),
		exempt: how.Trusted || m.options().Limits.ExemptLoopback && addr.IsLoopback()}
	in, reachable := m.breakers.reachable()
	m.mu.Lock()
	defer m.mu.Unlock()
	var refused error
	switch {
	case m.draining:
		refused = ErrDraining
	case how.Behind:
		refused = ErrBehind
	case m.running >= m.options().Limits.Sessions:
		refused = ErrFull
	case !reachable:
		refused = &UnreachableError{RetryIn: in}
	case !a.exempt && !m.places.Room(a.key):
		refused = ErrAddressLimit
	}
	switch {
	case refused != nil && !m.mayResume(how):
		return nil, refused
	case !a.exempt && m.places.Begin(a.key) > 0:
		return nil, ErrAddressLimit
	}
	ctx, evict := context.WithCancelCause(m.ctx())
	a.ctx, a.cancel = func() context.Context { return ctx }, evict
	a.member = quota.Member[netip.Addr]{Key: a.key, Exempt: a.exempt, Evict: func() { evict(causeCrowded) }}
	if out := m.waiting.Enter(&a.member); out != nil {
		out.Evict()
	}
	m.admitted[a] = struct{}{}
	a.phase, a.since = PhaseAdmitted, time.Now()
	return a, nil
}

func (a *Admission) takePlace() *Cause {
	m := a.m
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting.Leave(&a.member)
	switch {
	case m.draining:
		return causeShutdown
	case m.running >= m.options().Limits.Sessions:
		return causeFull
	case !a.exempt && !m.places.Take(a.key):
		return causeTooMany
	}
	a.placed, a.counts = true, !a.exempt
	m.running++
	return nil
}

// trim drops the fields that only a waiting or carried connection needs: a session holds its Admission for hours.
func (a *Admission) trim() {
	a.evict(nil)
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	a.Arrival, a.ctx, a.cancel, a.member.Evict = nil, nil, nil, nil
}

func (a *Admission) evict(why error) {
	a.m.mu.Lock()
	cancel := a.cancel
	a.m.mu.Unlock()
	if cancel != nil {
		cancel(why)
	}
}

// Release returns the place. It may be called more than once.
func (a *Admission) Release() {
	a.once.Do(func() {
		m := a.m
		a.evict(nil) // so that the parent context releases it
		m.mu.Lock()
		m.waiting.Leave(&a.member)
		delete(m.admitted, a)
		if a.placed {
			m.running--
			a.uncount()
		}
		m.signalDrained()
		m.mu.Unlock()
	})
}

// Later connections open neither channel again. The caller must hold mu.
func (m *Manager) signalDrained() {
	if !m.draining {
		return
	}
	if m.running == 0 && m.carrying == 0 {
		m.closeIdle()
	}
	if len(m.admitted) == 0 {
		m.closeEmpty()
	}
}

// uncount stops counting a session for its address. The caller must hold Manager.mu.
func (a *Admission) uncount() {
	if a.counts {
		a.m.places.Give(a.key)
		a.counts = false
	}
}

// vacate: without a client the session counts for no address. It does nothing for a nil Admission, nor after Release.
func (a *Admission) vacate() {
	if a == nil {
		return
	}
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	a.uncount()
	a.m.roster.watchBlocks()
}

// transferTo: the session counts for the returning client's address, unless that is at its limit.
func (a *Admission) transferTo(to *Admission) {
	if a == nil {
		return
	}
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	a.uncount()
	a.key, a.exempt = to.key, to.exempt
	a.counts = a.placed && !a.exempt && a.m.places.Take(a.key)
}

// Cluster publishes sessions, carries clients to other nodes and takes sessions over. It may be used concurrently.
type Cluster interface {
	// Enter records a session and sets the record's Node, Epoch and State. It does not wait for the store.
	Enter(r store.SessionRecord) Place
	// Carry connects a client with its session's node until it is gone; false, with c unused, if no node takes it.
	Carry(ctx context.Context, v Visitor, c Client) (carried bool)
	// Take makes this node the owner of a session without a node, if [Visitor.Opens]. The error is that of Opens, wraps
	// ErrNoSession, ErrElsewhere or store.ErrUnavailable, or describes unreadable data.
	Take(ctx context.Context, v Visitor) (*Taken, error)
	// Lost returns the sessions without a node. The error wraps store.ErrUnavailable.
	Lost(ctx context.Context) ([]Lost, error)
	// Adopt makes this node the owner of a session without a node, to end it. found is its record. The error wraps
	// ErrNoSession, ErrElsewhere or store.ErrUnavailable, or describes unreadable data.
	Adopt(ctx context.Context, found store.SessionRecord) (*Taken, error)
}

// The errors of Cluster.Take.
var (
	// ErrNoSession: the session does not exist, or the visitor may not resume it. The two are indistinguishable.
	ErrNoSession = errors.New("session: no session that this client may resume")
	// ErrElsewhere: another node runs the session.
	ErrElsewhere = errors.New("session: another node runs the session")
)

// Taken is a session that this node has taken over.
type Taken struct {
	Place Place
	// Record has the new epoch.
	Record store.SessionRecord
	// Checkpoint is the previous owner's newest; zero if the store has none.
	Checkpoint store.Checkpoint
}

// Place is a session's entry in the directory. Its methods may be called concurrently; only Keep, Give and Return wait.
type Place interface {
	// Update calls change at once; the result is written soon, in the order of the calls.
	Update(change func(*store.SessionRecord))
	// Written returns a channel that closes when the present changes are durable, or when no more writes follow.
	Written() <-chan struct{}
	// Note writes a checkpoint soon. It sets SessionID and Epoch; the slices must not change any more.
	Note(c store.Checkpoint)
	// Keep writes the noted checkpoint. After nil it is durable, or no other node can take the session. The error wraps
	// store.ErrUnavailable, store.ErrTooBig or store.ErrFenced, or the session was handed over.
	Keep(ctx context.Context) error
	// Give writes a checkpoint and releases the session for any node; after nil, nothing is written any more.
	// store.ErrFenced: another node has the session. After other errors Give can be called again.
	Give(ctx context.Context, c store.Checkpoint) error
	// Return releases a taken session unchanged. It waits until ctx is done; after an error, the release follows later.
	Return(ctx context.Context) error
	// Sure reports whether no other node can have taken the session; see [store.Owned.Sure].
	Sure() bool
	// WhenLost calls f on its own goroutine when another node has taken the session, but not after Give or Leave.
	WhenLost(f func())
	// Leave records that the session is over, unless it was handed over.
	Leave()
	// End records that a handed-over session is over. It changes nothing if another node has taken it.
	End()
}

// noPlace is the Place of a session that only this node knows.
type noPlace struct{}

var written = func() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}()

var errNoPlace = errors.New("session: no other node can continue the session")

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

// Visitor is a client that wants to resume a session of another node.
type Visitor struct {
	// Start is its session.start. Its Resume is not nil.
	Start *protocol.Start
	Addr  netip.Addr
	// Origin is the origin of its page; empty if it is not a page.
	Origin string
	// Anonymous is the user of a client without a name.
	Anonymous user.User
	// Principal is the authenticated client.
	Principal auth.Principal
}

// AdmitCarried admits a client that another node carries here, to resume a session. That node has checked the limits.
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

// carry returns when the client is gone, or false if no node has its session; the client then waits for an answer.
func (m *Manager) carry(a *Admission, c Client, start *startMessage) (carried bool) {
	if m.options().Cluster == nil || a.carried {
		return false
	}
	m.mu.Lock()
	m.waiting.Leave(&a.member)
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

func (a *Admission) visitor(start *startMessage) Visitor {
	return Visitor{Start: start, Addr: a.addr, Origin: a.Origin, Anonymous: a.Anonymous, Principal: a.Principal}
}

func clientID(start *startMessage) string {
	if start.Client == nil {
		return ""
	}
	return start.Client.ID
}

func movable(p Place) bool { return p != noPlace{} }

func (s *session) record() store.SessionRecord {
	info, who := s.model.link().info(), s.principal.Value()
	r := store.SessionRecord{
		ID: s.id, User: s.user.String(), Conversation: s.start.ConversationID, Provider: info.Provider, Model: info.Model,
		Agent: s.agent.Load().Name, AgentVersion: s.agent.Load().Version,
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
