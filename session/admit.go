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

// Arrival is the information on a connection before its session.start; nil once a session runs.
type Arrival struct {
	// Ticket was offered as a subprotocol, Origin is the page's origin; either may be empty.
	Ticket, Origin string
	// Principal is the authenticated client. TicketNeeded: it may begin a session only with a ticket.
	Principal    auth.Principal
	TicketNeeded bool
	// Anonymous is the user of a client without a name. If it is not set, such a client becomes a new user.
	Anonymous user.User
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
	cancel context.CancelCauseFunc // cancels ctx; nil with it
	key    netip.Addr              // the key under which the address is counted
	exempt bool                    // from the limits per address
	guest  quota.Guest[netip.Addr] // the place in the waiting room
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

// Coming is known of a connection before its session.start.
type Coming struct {
	// Back: the client announced in its handshake that it resumes a session. Clients may resume without announcing it.
	Back bool
	// Behind: the gateway is overloaded, so the connection may only resume a session.
	Behind bool
}

// Admit admits a connection from addr to the waiting room, before its upgrade; a full room evicts another one. The
// error is ErrDraining, ErrBehind, ErrFull, ErrAddressLimit or an [*UnreachableError]; for a connection that announces
// to resume, or may because a client is absent, only ErrAddressLimit, as capacity is checked after session.start.
func (m *Manager) Admit(addr netip.Addr, how Coming) (*Admission, error) {
	a, err := m.admit(addr, how)
	if err != nil {
		m.observe(Refused{notAdmitted(err)})
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
	return m.roster.expectsClients()
}

func (m *Manager) admit(addr netip.Addr, how Coming) (*Admission, error) {
	addr = addr.Unmap()
	a := &Admission{Arrival: &Arrival{}, m: m, returns: how.Behind, addr: addr, key: quota.AddressKey(addr),
		exempt: m.options().Limits.ExemptLoopback && addr.IsLoopback()}
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

// trim drops the fields that only a waiting or carried connection needs: a session holds its Admission for hours.
func (a *Admission) trim() {
	a.evict(nil)
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	a.Arrival, a.ctx, a.cancel, a.guest.Evict = nil, nil, nil, nil
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
