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

// Options configure a Server. Sessions is required.
type Options struct {
	// Sessions runs the voice sessions.
	Sessions *session.Manager
	// Tools returns the tools that /v1/tools lists; nil means that there is no such
	// endpoint.
	Tools func() *registry.Snapshot
	// Page serves every path that is not an endpoint; nil means 404.
	Page http.Handler
	// Hosts are the names and addresses that a request's Host may have; empty means those of
	// loopback.
	Hosts origin.Hosts
	// Origins are the foreign origins whose pages may connect.
	Origins []origin.Pattern
	// TrustedProxies are the addresses of proxies in front of the gateway: only their
	// X-Forwarded-For and X-Forwarded-Proto count.
	TrustedProxies []netip.Prefix
	// Jobs are listed and cancelled at /v1/jobs; nil means that there is no such endpoint.
	Jobs Jobs
	// Approvals are listed at /v1/approvals; nil means that there is no such endpoint.
	Approvals Approvals
	// Blocks are listed and ended at /v1/blocks; nil means that there is no such
	// endpoint.
	Blocks Blocks
	// Auth says whom the gateway lets in. Its Authenticator may be swapped at any time. Nil means that
	// there are no keys: what is not for everybody answers to nobody.
	Auth *auth.Current
	// GuardCompletions says that /v1/chat/completions requires credentials even if others are not
	// required.
	GuardCompletions bool
	// Ready returns an error while something that sessions need is missing; nil means that
	// they need nothing. /readyz calls it, for at most readyTime.
	Ready func(ctx context.Context) error
	// Lateness says whether the gateway is too late with the running sessions; new ones are
	// refused meanwhile. Nil asks the loops of the request's own listener.
	Lateness func() nonblock.Lateness
	// Overload says whether the gateway has more to do than it can; new sessions are refused
	// meanwhile, and clients come back to those that run. Nil means that it never has.
	Overload func() quota.State
	// MaxMessageBytes is the largest message that a client may send; zero means
	// protocol.MaxMessageBytes.
	MaxMessageBytes int
	// Version is shown by /healthz.
	Version string
	// Chat answers text at /v1/chat; nil means that there is no such endpoint.
	Chat TextAgent
	// Voice makes voice sessions at POST /v1/sessions and shows conversations; nil means
	// that there are no such endpoints.
	Voice Voice
	// Images are served at /v1/images/{id}; nil means that there is no such endpoint.
	Images Images
	// Simulator stands in for providers and can be told to fail; nil means that this process
	// has none, and that its endpoints are missing.
	Simulator Simulator
	// Blocked says until when a user is shut out; nil means that nobody is ever shut out.
	Blocked func(who user.User) (until time.Time, ok bool)
	// Directory and Nodes list the sessions of all gateways with a common store, and Peers ends those
	// of the others. Nil means that there are no others, or that they cannot be asked.
	Directory Directory
	Nodes     Nodes
	Peers     Peers
	// EndLost ends a voice session that no gateway runs: session.Manager.EndRecorded. It is required with Directory.
	EndLost func(ctx context.Context, found store.SessionRecord) error
	// Drain empties this gateway at POST /v1/drain; nil means that there is no such endpoint.
	Drain Drain
	// Reload reads the configuration again at POST /v1/admin/reload; its error may be a *ReloadError. It
	// may be called concurrently. Nil means that there is no such endpoint.
	Reload func() (Reloaded, error)
	// Observe is told of each request that was answered, but not of those that became WebSockets: by
	// which pattern it was routed, empty if it was not, and with which status. It may be called
	// concurrently, and must not block. Nil means nobody.
	Observe func(route string, status int, took time.Duration)
	// Refused is told of each time that wrong credentials were shown: the reason of an
	// auth.RefusedError, or [TooManyWrong]. It may be called concurrently, and must not block. Nil means
	// nobody.
	Refused func(why string)
	// Metrics answers GET /metrics, to operators; nil means that there is no such endpoint.
	Metrics http.Handler
	// Agents are shown and edited at /v1/agents; nil means that there are no such endpoints.
	Agents Agents
	// Usage is what users and keys use, and Prices the version of the price table. Nil means that
	// nothing is counted, and that there is no GET /v1/usage.
	Usage  Usage
	Prices string
	// Turns bound the messages of text conversations.
	Turns TurnLimits
	// Logger gets one line for each refusal. Nil means no logging.
	Logger *slog.Logger
}

// Server answers HTTP. Its methods may be used concurrently.
type Server struct {
	// Fixed after New.
	opts    Options // for what Settings have, live counts
	live    atomic.Pointer[Settings]
	routes  routes
	callers *callers
	seldom  *logging.Throttle
	turns   *turns
	big     *bigBodies

	// unready is the last answer of /readyz, so that the log has one line for each change and
	// not for each question.
	unready atomic.Bool
}

// New returns a Server.
func New(opts Options) *Server {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	s := &Server{opts: opts, callers: newCallers(opts.Auth), seldom: logging.NewThrottle(opts.Logger), turns: newTurns(opts.Turns), big: newBigBodies()}
	s.Reconfigure(Settings{Hosts: opts.Hosts, Origins: opts.Origins, GuardCompletions: opts.GuardCompletions, Prices: opts.Prices, Turns: opts.Turns})
	s.forPages("GET", voicePath, s.voice) // a page may read why its WebSocket does not open
	s.forPages("GET", "/v1/providers", s.providers)
	if opts.Tools != nil {
		s.handle("GET /v1/tools", s.tools)
		s.handle("GET /v1/tools/{id}", s.tool)
	}
	if opts.Chat != nil {
		s.forPages("POST", "/v1/chat", s.chat)
		s.forPages("POST", completionsPath, s.completions)
		s.forPages("GET", modelsPath, s.models)
		s.forPages("GET", modelsPath+"/{id...}", s.model)
	}
	if opts.Images != nil {
		s.handle("GET /v1/images/{id}", s.image)
	}
	s.handleOperators()
	if opts.Voice != nil {
		s.forPages("POST", sessionsPath, s.makeSession)
		s.handle("GET "+conversationsPath, s.listConversations)
		s.handle("GET "+conversationsPath+"/{id}", s.showConversation)
	}
	s.handle("GET /v1/sessions", s.listSessions)
	s.handle("GET /v1/sessions/{id}", s.showSession)
	s.handle("GET /v1/sessions/{id}/prompt", s.showPrompt)
	s.handle("DELETE /v1/sessions/{id}", s.endSession)
	s.handle("POST /v1/sessions/{id}/agent", s.switchAgent)
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

// handleOperators adds the routes for operators that need something of Options.
func (s *Server) handleOperators() {
	opts := s.opts
	if opts.Approvals != nil {
		s.handle("GET /v1/approvals", s.approvals)
	}
	if opts.Blocks != nil {
		s.handle("GET /v1/blocks", s.blocks)
		s.handle("DELETE /v1/blocks/{user}", s.unblock)
	}
	if opts.Agents != nil {
		s.handle("GET "+agentsPath, s.listAgents)
		s.handle("GET "+agentsPath+"/{id}", s.showAgent)
		s.handle("POST "+agentsPath, s.createAgent)
		s.handle("PUT "+agentsPath+"/{id}", s.replaceAgent)
		s.handle("PATCH "+agentsPath+"/{id}", s.patchAgent)
		s.handle("DELETE "+agentsPath+"/{id}", s.deleteAgent)
	}
	if opts.Jobs != nil {
		s.handle("GET "+jobsPath, s.listJobs)
		s.handle("GET "+jobsPath+"/{id}", s.showJob)
		s.handle("DELETE "+jobsPath+"/{id}", s.cancelJob)
	}
	if opts.Usage != nil {
		s.handle("GET /v1/usage", s.showUsage)
	}
	if opts.Simulator != nil {
		s.handle("GET /v1/simulator", s.listFaults)
		s.handle("POST /v1/simulator/faults", s.commitFault)
	}
	if opts.Drain != nil {
		s.handle("POST /v1/drain", s.beginDrain)
		s.handle("GET /v1/drain", s.showDrain)
	}
	if opts.Reload != nil {
		s.handle("POST /v1/admin/reload", s.reload)
	}
	if opts.Metrics != nil {
		s.handle(metricsPattern, opts.Metrics.ServeHTTP)
	}
}

// handle adds a route, for those who may use it. Its pattern has the form of http.ServeMux, and a
// row in accesses.
func (s *Server) handle(pattern string, h http.HandlerFunc) {
	s.routes.add(pattern, s.guarded(accessOf(pattern), h))
}

// voice upgrades a request to a voice session.
func (s *Server) voice(w http.ResponseWriter, r *http.Request) {
	addr := s.clientAddr(r)
	late := s.lateness(r)
	over := s.overload()
	// A session that runs already costs nothing more.
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
	// enter has checked the page, by the only rule for pages.
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

// refusedByLimit returns the limit that refuses every session of a caller. A ticket is another's.
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
		problem(w, http.StatusServiceUnavailable, "provider_unavailable", "The voice model cannot be reached at the moment; try again soon.")
	case errors.Is(err, session.ErrFull):
		retryAfter(w, 5*time.Second)
		problem(w, http.StatusServiceUnavailable, "full", "The gateway is full; try again in a moment.")
	default:
		retryAfter(w, 5*time.Second)
		problem(w, http.StatusServiceUnavailable, "draining", "The gateway is shutting down; connect to another one.")
	}
}

func retryAfter(w http.ResponseWriter, d time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int(d.Seconds())))
}

// health says that the process is alive.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{"status": "ok", "version": s.opts.Version, "sessions": s.opts.Sessions.Running()})
}

// readyTime bounds what /readyz waits for.
const readyTime = 2 * time.Second

// ready says whether new sessions are accepted.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if s.opts.Sessions.Draining() {
		s.notReady(w, map[string]any{"status": "draining", "message": "The gateway is shutting down; connect to another one."})
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
			"status": "overloaded", "message": overloadWords[over.Reason], "reason": over.Reason, "since": over.Since.UTC().Format(time.RFC3339Nano),
		})
		return
	}
	if s.opts.Ready != nil {
		ctx, cancel := context.WithTimeout(r.Context(), readyTime)
		defer cancel()
		err := s.opts.Ready(ctx)
		if err != nil && r.Context().Err() != nil {
			return // the client has gone, which says nothing about this gateway
		}
		if was := s.unready.Swap(err != nil); was != (err != nil) {
			s.opts.Logger.Warn("readiness has changed", "ready", err == nil, "error", err)
		}
		switch {
		case err != nil && runs:
			s.degraded(w)
			return
		case err != nil:
			// Anybody may ask, so the reason stands only in the log.
			s.notReady(w, map[string]any{"status": "unavailable", "message": "What sessions need is not there at the moment; the gateway's log says what."})
			return
		}
	}
	body := map[string]any{"status": "ready"}
	if len(s.callers.current.Get().Away()) > 0 {
		// Keys and tickets open sessions all the same.
		body["message"] = "Tokens of an issuer cannot be checked at the moment; the gateway's log says which."
	}
	answer(w, http.StatusOK, body)
}

// degraded says that the store is away and that sessions run here: a balancer that sent their clients to other gateways
// would end them, because those cannot find them.
func (s *Server) degraded(w http.ResponseWriter) {
	answer(w, http.StatusOK, map[string]any{
		"status": "degraded", "sessions": s.opts.Sessions.Running(),
		"message": "The store does not answer. The sessions of this gateway go on, and new ones may be refused; the gateway's log says more.",
	})
}

// notReady says why no session is accepted: at least a status as a code, and a message.
func (s *Server) notReady(w http.ResponseWriter, why map[string]any) {
	why["sessions"] = s.opts.Sessions.Running()
	retryAfter(w, 5*time.Second)
	answer(w, http.StatusServiceUnavailable, why)
}

// problem answers with an error in words.
func problem(w http.ResponseWriter, status int, code, message string) {
	answer(w, status, map[string]any{"error": map[string]any{"code": code, "message": message}})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// The client may be gone, which is not an error here.
	_ = json.NewEncoder(w).Encode(body)
}

// clip bounds what an answer or the log repeats of a request.
func clip(s string) string { return textutil.Shorten(s, 80) }

// connKey is the key under which ConnContext keeps a connection.
type connKey struct{}

// ConnContext is for http.Server.ConnContext: it lets the server reach a request's connection.
// Together with a listener of [Listen] or [ListenTLS] it lets a session write to its client without
// waiting, and keeps its send buffer small.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// Listen returns a listener whose connections do not make a writer wait, and are read by
// loops; nil: each by a goroutine of its own.
func Listen(ln net.Listener, loops *nonblock.Loops) net.Listener {
	return nonblock.Listener{Listener: ln, Loops: loops}
}

// NewLoops returns loops for the connections to clients and to models. logger is told once
// when they begin to be behind, and once when they have caught up; nil discards.
func NewLoops(logger *slog.Logger) *nonblock.Loops {
	loops := &nonblock.Loops{}
	if logger != nil {
		loops.Changed = func(late nonblock.Lateness) { logLateness(logger, late) }
	}
	return loops
}

// connOf returns the connection under a request, and under its TLS; nil if it is not one of
// package nonblock.
func connOf(ctx context.Context) *nonblock.Conn {
	c, _ := ctx.Value(connKey{}).(net.Conn)
	return nonblock.Under(c)
}
