package session

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"voicegw/registry"
)

// Manager admits sessions, counts them and ends them. It may be used by any
// number of goroutines.
type Manager struct {
	// Fixed after NewManager.
	opts   Options
	ctx    func() context.Context // the parent of all sessions
	endAll context.CancelCauseFunc
	wg     sync.WaitGroup // all sessions

	mu       sync.Mutex // guards the following fields
	draining bool
	running  int
	byAddr   map[netip.Addr]*addrCount
	sessions map[string]*session // that run, by id
	idle     chan struct{}       // closed by release when the last session ends while draining
}

// addrCount is what one address has running, and how fast it begins new ones.
type addrCount struct {
	running int
	newOnes *rate.Limiter
}

// The refusals of Admit.
var (
	// ErrDraining: the gateway is shutting down.
	ErrDraining = errors.New("the gateway is shutting down")
	// ErrFull: as many sessions run as may.
	ErrFull = errors.New("the gateway is full")
	// ErrAddressLimit: the client's address has too many sessions, or begins them
	// too fast.
	ErrAddressLimit = errors.New("too many sessions from this address")
)

// NewManager returns a Manager. It refuses options with which no session could
// run.
func NewManager(opts Options) (*Manager, error) {
	opts = opts.withDefaults()
	if _, ok := opts.Transports[opts.Provider]; !ok {
		return nil, fmt.Errorf("session: the provider %q is none of %s", opts.Provider, strings.Join(slices.Sorted(maps.Keys(opts.Transports)), ", "))
	}
	m := &Manager{opts: opts, byAddr: make(map[netip.Addr]*addrCount), sessions: make(map[string]*session), idle: make(chan struct{})}
	ctx, cancel := context.WithCancelCause(context.Background())
	m.ctx = func() context.Context { return ctx }
	m.endAll = cancel
	return m, nil
}

// Running returns how many sessions run.
func (m *Manager) Running() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.running
}

// Draining says whether new sessions are refused because of Drain.
func (m *Manager) Draining() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.draining
}

// Admission is a place for one session. Use it with Manager.Start, or Release it.
type Admission struct {
	// Ticket is what the client has offered as a subprotocol, Origin the origin of the
	// page that it is part of; both empty for none. They may be set until Start.
	Ticket, Origin string
	// MayInspect lets the client look inside its session, if it asks to. It may be set
	// until Start.
	MayInspect bool

	m    *Manager
	addr netip.Addr
	once sync.Once
}

// Admit takes a place for a session from addr, before its connection is upgraded.
// The error is ErrDraining, ErrFull or ErrAddressLimit.
func (m *Manager) Admit(addr netip.Addr) (*Admission, error) {
	addr = addr.Unmap()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.draining {
		return nil, ErrDraining
	}
	if m.running >= m.opts.Limits.Sessions {
		return nil, ErrFull
	}
	c := m.byAddr[addr]
	if c == nil {
		n := m.opts.Limits.NewPerSecond
		c = &addrCount{newOnes: rate.NewLimiter(rate.Limit(n), n)}
		m.byAddr[addr] = c
		m.forgetIdle()
	}
	if m.opts.Limits.CountLoopback || !addr.IsLoopback() {
		if c.running >= m.opts.Limits.PerAddress || !c.newOnes.Allow() {
			return nil, ErrAddressLimit
		}
	}
	c.running++
	m.running++
	m.wg.Add(1)
	return &Admission{m: m, addr: addr}, nil
}

// maxAddresses is how many addresses are remembered before idle ones are
// forgotten.
const maxAddresses = 4096

// forgetIdle forgets addresses with nothing running and a full allowance. mu is
// held.
func (m *Manager) forgetIdle() {
	if len(m.byAddr) < maxAddresses {
		return
	}
	for addr, c := range m.byAddr {
		if c.running == 0 && c.newOnes.Tokens() >= float64(c.newOnes.Burst()) {
			delete(m.byAddr, addr)
		}
	}
}

// Release gives the place back. It may be called more than once.
func (a *Admission) Release() {
	a.once.Do(func() {
		m := a.m
		m.mu.Lock()
		m.running--
		if c := m.byAddr[a.addr]; c != nil {
			c.running--
		}
		if m.draining && m.running == 0 {
			close(m.idle)
		}
		m.mu.Unlock()
		m.wg.Done()
	})
}

// Start runs a session over c, on goroutines of its own, and releases the
// admission when it is over. It takes c over.
func (m *Manager) Start(a *Admission, c Client) {
	// The handler's stack and request are freed at once; those of the opening when the
	// session runs, which then is at most the two goroutines that read.
	go func() {
		g := &guest{came: time.Now(), id: "voice-" + strings.ToLower(rand.Text()), addr: a.addr.String()}
		leave := func() {
			g.leave()
			a.Release()
		}
		s := m.begin(a, c, g)
		if s == nil {
			leave()
			return
		}
		s.whenDone(func() {
			defer leave()
			m.conclude(s, g)
		})
	}()
}

// begin opens a session and lets it run; nil if that cannot be, and the client knows why.
func (m *Manager) begin(a *Admission, c Client, g *guest) *session {
	g.logger = m.opts.Logger.With("session_id", g.id)
	tools := m.snapshot()
	model, cause := m.open(a, c, g, tools)
	logger, start := g.logger, g.start
	if cause != nil {
		logger.Info("session refused", "reason", cause.Reason, "addr", a.addr.String())
		turnAway(c, cause)
		return nil
	}
	s, err := newSession(m.ctx(), g, &m.opts, c, model, tools)
	if err != nil {
		logger.Error("session could not begin", "error", err)
		if err := model.Close(); err != nil {
			logger.Debug("closing the model's connection", "error", err)
		}
		turnAway(c, causeInternal)
		return nil
	}
	logger.Info("session started", "provider", s.info.Provider, "model", s.info.Model, "addr", a.addr.String(),
		"input_rate", start.InputRate, "output_rate", start.OutputRate, "connect_ms", time.Since(g.came).Milliseconds(),
		"client", clientName(start))
	m.note(s)
	s.begin()
	return s
}

// conclude ends a session that is over, and waits until nothing is left of it.
func (m *Manager) conclude(s *session, g *guest) {
	cause := s.finish()
	m.forget(s)
	s.settle()
	stats := s.model.Stats()
	s.logger.Info("session ended", "reason", cause.Reason, "close_code", int(cause.Close),
		"duration_ms", time.Since(g.came).Milliseconds(), "audio_in_ms", s.clock.ms(), "turns", s.turns(),
		"uplink_dropped_bytes", s.up.droppedBytes(), "flushed_bytes", s.down.flushedBytes(),
		"unknown_events", stats.UnknownEvents, "malformed_events", stats.MalformedEvents)
}

// snapshot is the registry's as it is now; nil if there are no tools.
func (m *Manager) snapshot() *registry.Snapshot {
	if m.opts.Tools == nil {
		return nil
	}
	return m.opts.Tools()
}

// Drain refuses new sessions from now on, lets the running ones go on until ctx is
// done, ends those that are left with "server_shutdown", and returns when none is
// left. Calling it again with a shorter ctx shortens the wait.
func (m *Manager) Drain(ctx context.Context) {
	m.mu.Lock()
	if !m.draining {
		m.draining = true
		if m.running == 0 {
			close(m.idle)
		}
	}
	m.mu.Unlock()
	select {
	case <-m.idle:
	case <-ctx.Done():
	}
	m.endAll(causeShutdown)
	// Tools that cannot be stopped have a little time left.
	m.opts.Executor.Close()
	m.wg.Wait()
}

// note and forget keep the sessions that an answer of the API can be brought to.
func (m *Manager) note(s *session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sessions[s.id] = s
}

func (m *Manager) forget(s *session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sessions, s.id)
}

// Close ends all sessions at once and waits for them.
func (m *Manager) Close() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	m.Drain(ctx)
}

func (s *session) turns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Turns()
}

// clientName is what a client calls itself, for the log.
func clientName(start *startMessage) string {
	if start.Client == nil {
		return ""
	}
	return strings.TrimSpace(clip(start.Client.Name) + " " + clip(start.Client.Version))
}

// clip bounds what a client writes into our log.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
