package session

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"voicegw/protocol"

	"voicegw/internal/auth"
	"voicegw/internal/quota"
	"voicegw/internal/user"
)

// Arrival is what is known of a connection before its session.start. It may be set until Start, and is
// nil once a session runs.
type Arrival struct {
	// Ticket is the ticket that the client offered as a subprotocol, Origin the origin of its
	// page; either may be empty.
	Ticket, Origin string
	// Principal is who the client has shown to be. If TicketNeeded is set, it may begin a session only
	// with a ticket.
	Principal    auth.Principal
	TicketNeeded bool
	// Anonymous is the user of a client that gives no name. If it is not set, such a client is a new
	// user, connected to no other.
	Anonymous user.User
	// Parent is the span of the client's own that it begins the session for; zero without one.
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
	// ErrBehind: the gateway takes no new session because it is late, and there is no session that
	// a client may come back to.
	ErrBehind = errors.New("the gateway is behind")
)

// Admission admits one connection: first to the waiting room and, once its session.start has
// arrived, to a session's place. The caller must pass it to Manager.Start or Release it.
type Admission struct {
	*Arrival

	// Fixed after Admit.
	m       *Manager
	addr    netip.Addr
	carried bool // another node carries the client
	// returns is set if the connection may only come back to a session.
	returns bool
	// ctx is done when the connection must leave the waiting room; its cause is a *Cause. It is nil once
	// a session runs; see settle.
	ctx func() context.Context

	once sync.Once

	// Guarded by Manager.mu.
	cancel context.CancelCauseFunc // cancels ctx; nil with it
	key    netip.Addr              // the key under which the address is counted
	exempt bool                    // from the limits per address
	guest  quota.Guest[netip.Addr] // its place in the waiting room
	placed bool                    // it has a session's place
	counts bool                    // it counts for its address
	id     string                  // the session's id; empty before Start
	phase  Phase
	since  time.Time // when the phase began
}

// UnreachableError means that no provider can be reached at the moment.
type UnreachableError struct {
	RetryIn time.Duration // when the next session may try
}

// Error describes the error.
func (e *UnreachableError) Error() string { return "no provider can be reached" }

// Coming is how a connection comes, as far as that is known before its session.start.
type Coming struct {
	// Back means that the client says in its handshake that it comes back to a session. Without it, it may
	// come back all the same.
	Back bool
	// Behind means that the gateway is behind or overloaded: the connection may only come back to a session, and is
	// refused if its session.start asks for a new one.
	Behind bool
}

// Admit admits a connection from addr to the waiting room, before it is upgraded. If the room is
// full, another connection must leave it. The error is ErrDraining, ErrBehind, ErrFull, ErrAddressLimit or an
// [*UnreachableError]. If the connection may come back to a session, only ErrAddressLimit is returned, for
// connections that come too fast: whether there is a place is decided when session.start has come. It may if the
// client says so, or if a client is away whose session this node runs or could take.
func (m *Manager) Admit(addr netip.Addr, how Coming) (*Admission, error) {
	a, err := m.admit(addr, how)
	if err != nil {
		m.observe(Refused{notAdmitted(err)})
	}
	return a, err
}

// back reports whether a connection may come back to a session. The caller must hold mu.
func (m *Manager) mayResume(how Coming) bool {
	if m.options().Policy.ResumeGrace <= 0 {
		return false
	}
	if how.Back {
		return len(m.roster.all()) > 0 || m.options().Cluster != nil
	}
	return m.roster.expectsClients()
}

func (m *Manager) admit(addr netip.Addr, how Coming) (*Admission, error) {
	addr = addr.Unmap()
	a := &Admission{Arrival: &Arrival{}, m: m, returns: how.Behind, addr: addr, key: quota.AddressKey(addr), exempt: m.options().Limits.ExemptLoopback && addr.IsLoopback()}
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
	a.guest = quota.Guest[netip.Addr]{Key: a.key, Exempt: a.exempt, Evict: func() { evict(causeCrowded) }}
	if out := m.waiting.Enter(&a.guest); out != nil {
		out.Evict()
	}
	m.admitted[a] = struct{}{}
	a.phase, a.since = PhaseAdmitted, time.Now()
	return a, nil
}

// seat takes a session's place for a client that has sent session.start. It returns nil, or why
// there is no place.
func (a *Admission) takePlace() *Cause {
	m := a.m
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting.Leave(&a.guest)
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

// settle drops what only a connection needs that waits or is carried: a session holds its Admission for
// hours.
func (a *Admission) trim() {
	a.evict(nil)
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	a.Arrival, a.ctx, a.cancel, a.guest.Evict = nil, nil, nil, nil
}

// evict has the connection leave, unless a session runs over it.
func (a *Admission) evict(why error) {
	a.m.mu.Lock()
	cancel := a.cancel
	a.m.mu.Unlock()
	if cancel != nil {
		cancel(why)
	}
}

// Release gives the place back. It may be called more than once.
func (a *Admission) Release() {
	a.once.Do(func() {
		m := a.m
		a.evict(nil) // so that the parent context releases it
		m.mu.Lock()
		m.waiting.Leave(&a.guest)
		delete(m.admitted, a)
		if a.placed {
			m.running--
			a.uncount()
		}
		m.signalDrained()
		m.mu.Unlock()
	})
}

// rest closes idle and empty once the drain need not wait any more. Connections that come later, and
// may still come back to a session, open neither again. The caller must hold mu.
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

// vacate records that the session's client is away: the session keeps its place, but no address has
// it. It does nothing for a nil Admission, nor once the place was released.
func (a *Admission) vacate() {
	if a == nil {
		return
	}
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	a.uncount()
	a.m.roster.watchBlocks()
}

// move records that the session's client has come back over another connection. The session counts
// for that address from now on, unless the address already has as many as it may: a client that
// comes back is not refused.
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
