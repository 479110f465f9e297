package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"
	"voicegw/internal/auth"
	"voicegw/internal/logging"
	"voicegw/internal/meter"
	"voicegw/internal/nonblock"
	"voicegw/internal/origin"
	"voicegw/internal/quota"
	"voicegw/internal/textutil"
	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/session"
	"voicegw/store"
)

// Options configures a Server. Sessions is required. Without an optional backend, its routes don't exist.
type Options struct {
	Sessions *session.Manager
	// Tools returns the tools for /v1/tools; optional.
	Tools func() *registry.Snapshot
	// Page serves all paths without an endpoint; nil means 404.
	Page http.Handler
	// Hosts are the allowed values of a request's Host; empty means those of loopback.
	Hosts origin.Hosts
	// Origins are the foreign origins with pages that may connect.
	Origins []origin.Pattern
	// TrustedProxies are the proxies with a trusted X-Forwarded-For and X-Forwarded-Proto.
	TrustedProxies []netip.Prefix
	// Jobs serves /v1/jobs; optional.
	Jobs Jobs
	// Approvals serves /v1/approvals; optional.
	Approvals Approvals
	// Blocks serves /v1/blocks; optional.
	Blocks Blocks
	// Auth authenticates callers; its Authenticator may be swapped at any time. Nil means that there are no keys, so
	// only public routes can be used.
	Auth *auth.Current
	// GuardCompletions requires credentials for /v1/chat/completions even if other routes need none.
	GuardCompletions bool
	// Ready returns an error while sessions cannot run. /readyz calls it for at most readyTime. Nil means always
	// ready.
	Ready func(ctx context.Context) error
	// Lateness says whether the gateway is too late with the running sessions; new ones are
	// refused meanwhile. Nil asks the loops of the request's own listener.
	Lateness func() nonblock.Lateness
	// Overload returns the overload state. Under overload new sessions are refused, but clients can return to running
	// ones. Nil means never overloaded.
	Overload func() quota.State
	// MaxMessageBytes limits a client's message; zero means protocol.MaxMessageBytes.
	MaxMessageBytes int
	// Version is shown by /healthz.
	Version string
	// Chat serves /v1/chat; optional.
	Chat TextAgent
	// Voice creates voice sessions at POST /v1/sessions and serves conversations; optional.
	Voice Voice
	// Images serves /v1/images/{id}; optional.
	Images Images
	// Simulator simulates providers and serves /v1/simulator; optional.
	Simulator Simulator
	// Blocked returns the end of a user's block; nil means that no user is ever blocked.
	Blocked func(who user.User) (until time.Time, ok bool)
	// Directory and Nodes list the sessions of all gateways with a common store, and Peers controls those of the
	// others. Nil without a cluster.
	Directory Directory
	Nodes     Nodes
	Peers     Peers
	// EndLost ends a session without a gateway: session.Manager.EndRecorded. Required with Directory.
	EndLost func(ctx context.Context, found store.SessionRecord) error
	// Drain serves /v1/drain; optional.
	Drain Drain
	// Reload serves POST /v1/admin/reload; optional. Its error may be a *ReloadError. It must be safe for concurrent
	// use.
	Reload func() (Reloaded, error)
	// Observe is called for each answered request, except WebSockets, with its route's pattern (empty without one)
	// and its status. It must not block and must be safe for concurrent use. May be nil.
	Observe func(route string, status int, took time.Duration)
	// Refused is called for wrong credentials, with the reason of an auth.RefusedError or [TooManyWrong]. It must not
	// block and must be safe for concurrent use. May be nil.
	Refused func(why string)
	// Metrics serves GET /metrics; optional.
	Metrics http.Handler
	// Agents serves /v1/agents; optional.
	Agents Agents
	// Usage counts the usage of users and keys for limits and GET /v1/usage; optional. Prices is the version of the
	// price table.
	Usage  Usage
	Prices string
	// Turns limits the messages of text conversations.
	Turns TurnLimits
	// Logger gets a line for each refusal. Nil disables logging.
	Logger *slog.Logger
}

// Server is the HTTP server. It is safe for concurrent use.
type Server struct {
	// Fixed after New.
	opts    Options // live has the current Settings
	live    atomic.Pointer[Settings]
	routes  routes
	callers *callers
	seldom  *logging.Throttle
	turns   *turns
	big     *bigBodies

	// unready is the last answer of /readyz, so that only changes are logged.
	unready atomic.Bool
}

// New returns a Server.
func New(opts Options) *Server {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	s := &Server{opts: opts, callers: newCallers(opts.Auth), seldom: logging.NewThrottle(opts.Logger),
		turns: newTurns(opts.Turns), big: newBigBodies()}
	s.Reconfigure(Settings{Hosts: opts.Hosts, Origins: opts.Origins, GuardCompletions: opts.GuardCompletions,
		Prices: opts.Prices, Turns: opts.Turns})
	s.forPages("GET", voicePath, s.voice) // a page may read why its WebSocket fails
	s.forPages("GET", "/v1/providers", s.providers)
	if opts.Tools != nil {
		s.handle("GET /v1/tools", s.tools)
		s.handle("GET /v1/tools/{id}", s.tool)
	}
	if opts.Chat != nil {
		agent := chatAPI{s}
		s.forPages("POST", "/v1/chat", agent.chat)
		s.forPages("POST", completionsPath, agent.completions)
		s.forPages("GET", modelsPath, agent.models)
		s.forPages("GET", modelsPath+"/{id...}", agent.model)
	}
	if opts.Images != nil {
		s.handle("GET /v1/images/{id}", s.image)
	}
	s.handleOperators()
	if opts.Voice != nil {
		s.forPages("POST", sessionsPath, s.makeSession)
	}
	s.handle("POST /v1/console/codes", s.consoleCode)
	s.handle("POST /v1/console/login", s.consoleLogin)
	s.handle("POST /v1/confirmations", s.confirm)
	s.handle("/v1/confirmations/{token...}", confirmationMoved)
	s.handle("GET /healthz", s.health)
	s.forPages("GET", "/readyz", s.ready)
	s.handle("/v1/", func(w http.ResponseWriter, r *http.Request) {
		problem(w, http.StatusNotFound, "not_found", "There is no endpoint "+r.Method+" "+clip(r.URL.Path)+".")
	})
	if opts.Page != nil {
		s.handle("/", opts.Page.ServeHTTP)
	}
	return s
}

// operatorAPI has the handlers for operators.
type operatorAPI struct{ *Server }

// handleOperators adds the operators' routes.
func (s *Server) handleOperators() {
	opts, agents, operators := s.opts, agentAPI{s}, operatorAPI{s}
	s.handle("GET /v1/sessions", operators.listSessions)
	s.handle("GET /v1/sessions/{id}", operators.showSession)
	s.handle("GET /v1/sessions/{id}/prompt", operators.showPrompt)
	s.handle("DELETE /v1/sessions/{id}", operators.endSession)
	s.handle("POST /v1/sessions/{id}/agent", operators.switchAgent)
	if opts.Voice != nil {
		s.handle("GET "+conversationsPath, operators.listConversations)
		s.handle("GET "+conversationsPath+"/{id}", operators.showConversation)
	}
	if opts.Approvals != nil {
		s.handle("GET /v1/approvals", operators.approvals)
	}
	if opts.Blocks != nil {
		s.handle("GET /v1/blocks", operators.blocks)
		s.handle("DELETE /v1/blocks/{user}", operators.unblock)
	}
	if opts.Agents != nil {
		s.handle("GET "+agentsPath, agents.listAgents)
		s.handle("GET "+agentsPath+"/{id}", agents.showAgent)
		s.handle("POST "+agentsPath, agents.createAgent)
		s.handle("PUT "+agentsPath+"/{id}", agents.replaceAgent)
		s.handle("PATCH "+agentsPath+"/{id}", agents.patchAgent)
		s.handle("DELETE "+agentsPath+"/{id}", agents.deleteAgent)
	}
	if opts.Jobs != nil {
		s.handle("GET "+jobsPath, operators.listJobs)
		s.handle("GET "+jobsPath+"/{id}", operators.showJob)
		s.handle("DELETE "+jobsPath+"/{id}", operators.cancelJob)
	}
	if opts.Usage != nil {
		s.handle("GET /v1/usage", operators.showUsage)
	}
	if opts.Simulator != nil {
		s.handle("GET /v1/simulator", operators.listFaults)
		s.handle("POST /v1/simulator/faults", operators.commitFault)
	}
	if opts.Drain != nil {
		s.handle("POST /v1/drain", operators.beginDrain)
		s.handle("GET /v1/drain", operators.showDrain)
	}
	if opts.Reload != nil {
		s.handle("POST /v1/admin/reload", operators.reload)
	}
	if opts.Metrics != nil {
		s.handle(metricsPattern, opts.Metrics.ServeHTTP)
	}
}

// handle adds a route, which must have a row in accesses.
func (s *Server) handle(pattern string, h http.HandlerFunc) {
	s.routes.add(pattern, s.guarded(accessOf(pattern), h))
}

// voice upgrades a request to a voice session.
func (s *Server) voice(w http.ResponseWriter, r *http.Request) {
	addr := s.clientAddr(r)
	late := s.lateness(r)
	over := s.overload()
	// A running session adds no load.
	admission, err := s.opts.Sessions.Admit(addr, session.Coming{Back: protocol.ComesBack(r.Header), Behind: late.Behind || over.Over()})
	switch {
	case errors.Is(err, session.ErrBehind):
		s.busy(w, addr, late, over)
		return
	case err != nil:
		s.refuse(w, addr, err)
		return
	}
	p := auth.From(r.Context())
	if no := s.refusedByLimit(r, p); no != nil {
		admission.Release()
		s.limited(w, r, no, plainError)
		return
	}
	// enter has already checked the page.
	opts := protocol.AcceptOptions{AnyOrigin: true, MaxMessageBytes: s.opts.MaxMessageBytes}
	conn, err := protocol.Accept(w, r, opts)
	if err != nil {
		admission.Release()
		s.seldom.Info("connection refused", "handshake", "addr", addr.String(), "error", err)
		return
	}
	client, _ := r.Context().Value(connKey{}).(net.Conn)
	if under := nonblock.Under(client); under != nil {
		limitSendBuffer(under)
	}
	upgraded(client)
	admission.Ticket, admission.Origin, admission.Anonymous = conn.Ticket(), pageOf(r), s.nameless(r)
	admission.Principal, admission.TicketNeeded, admission.Parent = p, !p.May(auth.ScopeVoice), parentOf(r)
	s.opts.Sessions.Start(admission, conn)
}

// refusedByLimit returns the limit that refuses all sessions of a caller, except one with a ticket.
func (s *Server) refusedByLimit(r *http.Request, p auth.Principal) *meter.Refusal {
	if !p.May(auth.ScopeVoice) || protocol.OffersTicket(r.Header) {
		return nil
	}
	return s.opts.Sessions.Refuses(p)
}

// refuse answers a request that was not admitted.
func (s *Server) refuse(w http.ResponseWriter, addr netip.Addr, err error) {
	s.seldom.Info("session refused", err.Error(), "addr", addr.String())
	var away *session.UnreachableError
	switch {
	case errors.Is(err, session.ErrAddressLimit):
		retryAfter(w, time.Second)
		problem(w, http.StatusTooManyRequests, "limit", "Too many sessions from your address; end one, or try again in a moment.")
	case errors.As(err, &away):
		retryAfter(w, away.RetryIn+time.Second-1) // rounded up
		problem(w, http.StatusServiceUnavailable, "provider_unavailable", "The voice model is unavailable; try again soon.")
	case errors.Is(err, session.ErrFull):
		retryAfter(w, 5*time.Second)
		problem(w, http.StatusServiceUnavailable, "full", "The gateway is full; try again in a moment.")
	default:
		retryAfter(w, 5*time.Second)
		problem(w, http.StatusServiceUnavailable, "draining", "The gateway is shutting down; connect to another gateway.")
	}
}

func retryAfter(w http.ResponseWriter, d time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int(d.Seconds())))
}

// health reports that the process is alive.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{"status": "ok", "version": s.opts.Version, "sessions": s.opts.Sessions.Running()})
}

const readyTime = 2 * time.Second

// ready reports whether new sessions are accepted.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if s.opts.Sessions.Draining() {
		s.notReady(w, map[string]any{"status": "draining", "message": "The gateway is shutting down; connect to another gateway."})
		return
	}
	if late := s.lateness(r); late.Behind {
		s.notReady(w, map[string]any{
			"status": "behind", "message": behindWords(late),
			"late_ms": late.Longest.Milliseconds(), "since": late.Since.UTC().Format(time.RFC3339Nano),
		})
		return
	}
	over := s.overload()
	runs := s.opts.Sessions.Running() > 0
	switch {
	case over.Reason == quota.Store && runs:
		s.degraded(w)
		return
	case over.Over():
		s.notReady(w, map[string]any{
			"status": "overloaded", "message": overloadWords[over.Reason], "reason": over.Reason,
			"since": over.Since.UTC().Format(time.RFC3339Nano),
		})
		return
	}
	if s.opts.Ready != nil {
		ctx, cancel := context.WithTimeout(r.Context(), readyTime)
		defer cancel()
		err := s.opts.Ready(ctx)
		if err != nil && r.Context().Err() != nil {
			return // the client is gone, which says nothing about the gateway
		}
		if was := s.unready.Swap(err != nil); was != (err != nil) {
			s.opts.Logger.Warn("readiness changed", "ready", err == nil, "error", err)
		}
		switch {
		case err != nil && runs:
			s.degraded(w)
			return
		case err != nil:
			// The endpoint is public, so only the log has the reason.
			s.notReady(w, map[string]any{"status": "unavailable",
				"message": "Not ready: a dependency is unavailable; see the gateway's log."})
			return
		}
	}
	body := map[string]any{"status": "ready"}
	if len(s.callers.current.Get().Away()) > 0 {
		// Keys and tickets still open sessions.
		body["message"] = "Tokens of an issuer cannot be verified; see the gateway's log."
	}
	answer(w, http.StatusOK, body)
}

// degraded answers while the store is unavailable and sessions run here. A balancer must not move their clients,
// because other gateways cannot find the sessions.
func (s *Server) degraded(w http.ResponseWriter) {
	answer(w, http.StatusOK, map[string]any{
		"status": "degraded", "sessions": s.opts.Sessions.Running(),
		"message": "The store is unavailable. Sessions on this gateway continue, but new ones may be refused; see the gateway's log.",
	})
}

// notReady answers why no session is accepted.
func (s *Server) notReady(w http.ResponseWriter, why map[string]any) {
	why["sessions"] = s.opts.Sessions.Running()
	retryAfter(w, 5*time.Second)
	answer(w, http.StatusServiceUnavailable, why)
}

// problem answers with an error.
func problem(w http.ResponseWriter, status int, code, message string) {
	answer(w, status, map[string]any{"error": map[string]any{"code": code, "message": message}})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// The client may be gone.
	_ = json.NewEncoder(w).Encode(body)
}

// clip shortens a request's text for an answer or the log.
func clip(s string) string { return textutil.Shorten(s, 80) }

// connKey is the context key of a connection.
type connKey struct{}

// ConnContext is for http.Server.ConnContext: it gives the server access to a request's connection. With a listener
// of [Listen] or [ListenTLS], sessions can write without blocking, and the send buffer stays small.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// Listen returns a listener with nonblocking writes, read by loops or, if nil, by a goroutine for each connection.
func Listen(ln net.Listener, loops *nonblock.Loops) net.Listener {
	return nonblock.Listener{Listener: ln, Loops: loops}
}

// NewLoops returns loops for the connections to clients and models. logger gets a line when they fall behind or catch
// up; it may be nil.
func NewLoops(logger *slog.Logger) *nonblock.Loops {
	loops := &nonblock.Loops{}
	if logger != nil {
		loops.Changed = func(late nonblock.Lateness) { logLateness(logger, late) }
	}
	return loops
}

// connOf returns the nonblock connection under a request and its TLS, or nil.
func connOf(ctx context.Context) *nonblock.Conn {
	c, _ := ctx.Value(connKey{}).(net.Conn)
	return nonblock.Under(c)
}

// Settings are the options that may change while the Server runs; see [Options].
type Settings struct {
	Hosts            origin.Hosts
	Origins          []origin.Pattern
	GuardCompletions bool
	Prices           string
	Turns            TurnLimits
}

// Reconfigure applies settings to future requests. Connections and messages above lower limits continue. It must not
// run concurrently with itself.
func (s *Server) Reconfigure(to Settings) {
	to.Turns = to.Turns.withDefaults()
	s.turns.limit(to.Turns)
	s.live.Store(&to)
}
