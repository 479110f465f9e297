package session

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"voicegw/internal/logging"
	"voicegw/internal/meter"
	"voicegw/internal/quota"
	"voicegw/internal/textutil"
	"voicegw/orchestrator"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/session/downlink"
	"voicegw/session/handoff"
	"voicegw/transport"
)

// Manager admits, counts and ends sessions. It may be used concurrently.
type Manager struct {
	// now has the current options: Reconfigure replaces them.
	now atomic.Pointer[Options]

	// Fixed after NewManager.
	ctx      func() context.Context // ends with all sessions; its cause is a *Cause
	cancel   context.CancelCauseFunc
	attempts resumeAttempts
	places   *quota.Quota[netip.Addr]
	throttle *logging.Throttle
	// closeIdle and closeEmpty close the channels below, once.
	closeIdle, closeEmpty func()
	breakers              breakers
	// observe receives events without a session. observers has a receiver for each provider's attempts to connect.
	observe   func(Event)
	observers map[string]func(Event)

	roster roster

	mu       sync.Mutex // guards the following fields
	draining bool
	admitted map[*Admission]struct{} // sessions, and connections that wait to become one
	running  int                     // number of sessions
	waiting  *quota.Room[netip.Addr] // connections that have not sent session.start
	carrying int                     // number of clients carried to other nodes
	moved    int                     // number of sessions handed over since the drain began
	idle     chan struct{}           // closed in a drain when no session runs and no client is carried
	empty    chan struct{}           // closed in a drain when admitted is empty
}

// NewManager returns a Manager. It refuses unknown providers.
func NewManager(opts Options) (*Manager, error) {
	opts = opts.withDefaults()
	opts.budget, opts.looked = downlink.NewBudget(), new(atomic.Int64)
	if _, ok := opts.Transports[opts.Provider]; !ok {
		return nil, fmt.Errorf("session: the provider %q is unknown; the known ones are %s", opts.Provider,
			strings.Join(slices.Sorted(maps.Keys(opts.Transports)), ", "))
	}
	m := &Manager{
		places:   quota.New[netip.Addr](quota.Options{AtOnce: opts.Limits.PerAddress, PerSecond: opts.Limits.NewPerSecond}),
		waiting:  quota.NewRoom[netip.Addr](opts.Limits.Waiting, opts.Limits.WaitingPerAddress),
		throttle: logging.NewThrottle(opts.Logger), admitted: make(map[*Admission]struct{}),
		idle: make(chan struct{}), empty: make(chan struct{}),
	}
	m.now.Store(&opts)
	m.roster.options, m.roster.sessions, m.roster.taking = m.options, make(map[string]*session), make(map[string]bool)
	if _, ok := opts.Transports[opts.Fallback]; !ok && opts.Fallback != "" {
		return nil, fmt.Errorf("session: the fallback %q is an unknown provider; the known ones are %s", opts.Fallback,
			strings.Join(slices.Sorted(maps.Keys(opts.Transports)), ", "))
	}
	m.breakers = make(breakers, len(opts.Transports))
	for name := range opts.Transports {
		m.breakers[name] = new(breaker)
	}
	m.observe, m.observers = m.options().Observe("", ""), m.options().watchers()
	ctx, cancel := context.WithCancelCause(context.Background())
	m.closeIdle, m.closeEmpty = sync.OnceFunc(func() { close(m.idle) }), sync.OnceFunc(func() { close(m.empty) })
	m.ctx = func() context.Context { return ctx }
	m.cancel = cancel
	return m, nil
}

// Running returns the number of running sessions. Clients that have not sent session.start do not count.
func (m *Manager) Running() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.running
}

// Draining reports whether Drain was called, so that new sessions are refused.
func (m *Manager) Draining() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.draining
}

// Start runs a session over c, which it owns, on its own goroutines, and releases the admission afterwards.
func (m *Manager) Start(a *Admission, c Client) {
	// The handler's stack and request are freed at once, and the startup's when the session runs.
	go func() {
		g := &startup{m: m, admission: a, arrivedAt: time.Now(),
			Ticket: handoff.Ticket{SessionID: "voice-" + strings.ToLower(rand.Text())}, addr: a.addr.String()}
		a.setPhase(PhaseOpening, g.SessionID)
		s := g.begin(a, c)
		if s == nil {
			g.leave()
			a.Release()
			return
		}
		m.concludeWhenDone(a, s, g)
	}()
}

func (m *Manager) concludeWhenDone(a *Admission, s *session, g *startup) {
	a.setPhase(PhaseRunning, g.SessionID)
	a.trim()
	came, entry, leave := g.arrivedAt, g.entry, g.leaving() // g itself is not kept
	s.whenDone(func() {
		defer close(s.left)
		defer a.Release()
		defer leave()
		defer s.place.Leave() // before the end of the drain, which closes the places
		m.conclude(a, s, came, entry)
	})
}

// begin returns nil if the client was refused or has resumed a running session, but a taken session like a new one.
func (g *startup) begin(a *Admission, c Client) *session {
	g.logger, g.all = g.options().Logger.With("session_id", g.SessionID), g.options().snapshot()
	var cause *Cause
	var model transport.Conn
	g.start, cause = g.readStart(a, c)
	g.startedAt = time.Now()
	if cause == nil && (g.start.Resume != nil || a.carried) {
		return g.resume(a, c)
	}
	if cause == nil {
		model, cause = g.open(a)
	}
	logger, start := g.logger, g.start
	if cause != nil {
		g.m.throttle.Info("session refused", cause.Reason, "session_id", g.SessionID, "addr", a.addr.String())
		g.refuse(c, cause)
		return nil
	}
	s, err := newSession(g, g.options(), c, model)
	if err != nil {
		logger.Error("cannot start session", "error", err)
		if err := model.Close(); err != nil {
			logger.Debug("closing the model's connection", "error", err)
		}
		g.refuse(c, causeInternal)
		return nil
	}
	s.event(g.started())
	to := s.model.link().info()
	logger.Info("session started", "provider", to.Provider, "model", to.Model, "addr", a.addr.String(),
		"input_rate", start.InputRate, "output_rate", start.OutputRate, "connect_ms", time.Since(g.arrivedAt).Milliseconds(),
		"client", clientName(start))
	g.m.reportLifecycle(s, g.entry, nil)
	token := g.m.enroll(s)
	g.m.publish(s, g)
	s.begin(token)
	return s
}

func (m *Manager) enroll(s *session) (token string) {
	if s.opts.Policy.ResumeGrace <= 0 {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	token = s.client.tokens.next("")
	if m.options().Cluster != nil {
		s.place = m.options().Cluster.Enter(s.record())
	}
	return token
}

func (g *startup) refuse(c Client, cause *Cause) {
	g.m.observe(Refused{cause.Reason})
	if cause.Close == protocol.CloseProviderUnavailable || cause.Close == protocol.CloseInternal {
		g.follow(transport.Info{Provider: g.provider}, cause.Reason)
	}
	refuse(c, cause)
}

func (m *Manager) publish(s *session, g *startup) {
	s.watch.follower = g.follow(s.model.link().info(), "")
	m.roster.add(s)
	if ctx := m.ctx(); ctx.Err() != nil {
		s.end(causeOf(context.Cause(ctx))) // endAll may have missed it
	}
	s.place.WhenLost(func() { s.end(causeTaken) })
	s.usage.meter.Watch(func(is meter.State) {
		s.dispatch(orchestrator.Spending{Near: is >= meter.Near, Over: is == meter.Spent})
	})
	if g.WhenLost != nil {
		g.WhenLost(s.voiceLost)
	}
}

func (m *Manager) conclude(a *Admission, s *session, came time.Time, entry Entry) {
	a.setPhase(PhaseEnding, s.id)
	cause := s.finish()
	m.roster.remove(s)
	a.setPhase(PhaseSettling, s.id)
	s.settle()
	if cause == causeMoving || cause == causeUnreached {
		m.mu.Lock()
		m.moved++
		m.mu.Unlock()
	}
	sum := m.auditCost(s, came, cause)
	stats := s.model.link().conn.Stats()
	s.model.link().reportSkipped()
	ended := Ended{Reason: cause.Reason, Lasted: time.Since(came)}
	s.mu.Lock()
	s.watch.sumSound(s)
	s.watch.event(ended)
	s.mu.Unlock()
	if !cause.continues() {
		m.reportLifecycle(s, entry, cause)
	}
	s.event(ended)
	s.log().Info("session ended", "reason", cause.Reason, "close_code", int(cause.Close),
		"duration_ms", time.Since(came).Milliseconds(), "audio_in_ms", s.mic.clock.ms(),
		"turns", locked(s, func() int { return s.state.Turns() }),
		"cost_usd_micros", int64(sum.Micros), "unpriced", sum.Unpriced, "uplink_dropped_bytes", s.up.droppedBytes(),
		"flushed_bytes", s.down.FlushedBytes(),
		"unknown_events", stats.UnknownEvents, "malformed_events", stats.MalformedEvents)
}

func (o *Options) snapshot() *registry.Snapshot {
	if o.Tools == nil {
		return nil
	}
	return o.Tools()
}

func (m *Manager) endAll(cause *Cause) {
	m.cancel(cause)
	all := m.roster.all()
	for _, s := range all {
		s.end(cause)
	}
}

func clientName(start *startMessage) string {
	if start.Client == nil {
		return ""
	}
	return strings.TrimSpace(clip(start.Client.Name) + " " + clip(start.Client.Version))
}

func clip(s string) string { return textutil.Shorten(s, 64) }

// roster lists the sessions here and checks on their clients. Its lock may be taken with the Manager's held.
type roster struct {
	options func() *Options // fixed
	lost    atomic.Int64    // the sessions without a node, when EndLost looked last

	mu       sync.Mutex // guards the following fields
	sessions map[string]*session
	taking   map[string]bool // ids of sessions that are being taken over

	blockWatch *time.Timer // fires the next checkBlocks; nil if no client is absent
	keepAlive  *time.Timer // fires the next checkClients; nil if no session runs
}

func (r *roster) get(id string) *session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sessions[id]
}

// visit is get for a caller that holds the session: it must call visitors.Done.
func (r *roster) visit(id string) *session {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sessions[id]
	if s != nil {
		s.visitors.Add(1)
	}
	return s
}

func (r *roster) all() []*session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.sessions))
}

func (r *roster) add(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sessions[s.id] = s
	r.watchClients()
}

func (r *roster) remove(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sessions, s.id)
}

func (r *roster) away() []*session {
	return slices.DeleteFunc(r.all(), func(s *session) bool { return s.client.attachment() != nil })
}

// take records that this node takes a session over, unless it does so already. leave ends that.
func (r *roster) take(id string) (leave func(), first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taking[id] {
		return nil, false
	}
	r.taking[id] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.taking, id)
	}, true
}

func (r *roster) isTaking(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taking[id]
}

const (
	// keepAliveEvery is the interval between checks of all clients. The other two durations are multiples of it.
	keepAliveEvery = 5 * time.Second
	// pingAfter is how long a connection may be silent in either direction before the client gets a
	// WebSocket ping. It is well below the 60 s after which nginx closes a silent connection
	// (proxy_read_timeout, https://nginx.org/en/docs/http/ngx_http_proxy_module.html, read 2026-11-29).
	pingAfter = 25 * time.Second
	// lostAfter is how long a client may send nothing, not even a pong, before its connection counts as lost.
	lostAfter = 60 * time.Second
)

// watchClients starts the timer of checkClients. The caller must hold mu.
func (r *roster) watchClients() {
	if r.keepAlive == nil {
		r.keepAlive = time.AfterFunc(keepAliveEvery, r.checkClients)
	}
}

// checkClients pings clients and detaches silent ones. One timer serves all sessions, so an idle one needs none.
func (r *roster) checkClients() {
	for _, s := range r.all() {
		if a := s.client.attachment(); a != nil && !a.conn.KeepAlive(int(pingAfter/keepAliveEvery), int(lostAfter/keepAliveEvery)) {
			a.lost(causeGone)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keepAlive = nil
	if len(r.sessions) > 0 {
		r.watchClients()
	}
}

// blockCheck is the interval between checks for locked-out users whose client is absent.
const blockCheck = time.Second

// watchBlocks starts the timer of checkBlocks, after a client was lost.
func (r *roster) watchBlocks() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.options().Blocked != nil && r.blockWatch == nil {
		r.blockWatch = time.AfterFunc(blockCheck, r.checkBlocks)
	}
}

func (r *roster) checkBlocks() {
	away := r.away()
	for _, s := range away {
		if cause := r.options().blocked(s.user); cause != nil {
			s.end(cause)
		}
	}
	r.mu.Lock()
	r.blockWatch = nil
	r.mu.Unlock()
	if len(away) > 0 {
		r.watchBlocks()
	}
}
