// Package gateway is the HTTP side of voicegw: routes, admission, health and the console.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"voicegw/gateway/phone"
	"voicegw/internal/agent"
	"voicegw/internal/auth"
	"voicegw/internal/logging"
	"voicegw/internal/nonblock"
	"voicegw/internal/origin"
	"voicegw/internal/quota"
	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/session"
	"voicegw/store"
)

// Options configures a Server. Sessions is required. Without an optional backend, its routes don't exist.
type Options struct {
	Sessions *session.Manager
	Tools    func() *registry.Snapshot
	// Page serves all paths without an endpoint; nil means 404.
	Page http.Handler
	Settings
	// TrustedProxies are the proxies with a trusted X-Forwarded-For and X-Forwarded-Proto.
	TrustedProxies []netip.Prefix
	Jobs           Jobs
	Approvals      Approvals
	Blocks         Blocks
	// Auth authenticates callers. Nil means that there are no keys, so only public routes can be used.
	Auth *auth.Current
	// Ready returns an error while sessions cannot run, within readyTime. Nil means always ready.
	Ready func(ctx context.Context) error
	// Lateness says whether the gateway is too late for new sessions. Nil asks the loops of the request's listener.
	Lateness func() nonblock.Lateness
	// Overload returns the overload state; it refuses new sessions, not returning clients. Nil means never.
	Overload        func() quota.State
	MaxMessageBytes int
	Version         string
	Chat            TextAgent
	MCP             MCP
	Voice           Voice
	Phone           *phone.Server
	Images          Images
	Simulator       Simulator
	Blocked         func(who user.User) (until time.Time, ok bool)
	// Directory and Nodes list the sessions of all gateways, Peers controls those of others. Nil without a cluster.
	Directory Directory
	Nodes     Nodes
	Peers     Peers
	// EndLost ends a session without a gateway: session.Manager.EndRecorded. Required with Directory.
	EndLost func(ctx context.Context, found store.SessionRecord) error
	Drain   Drain
	// Reload serves POST /v1/admin/reload. Its error may be a *ReloadError. Safe for concurrent use.
	Reload func() (Reloaded, error)
	// Observe is called for each answered request, except WebSockets, with its route's pattern. It must not block. May
	// be nil.
	Observe func(route string, status int, took time.Duration)
	// Refused gets the reason for wrong credentials (auth.RefusedError, [TooManyWrong]). It must not block. May be nil.
	Refused func(why string)
	Metrics http.Handler
	Agents  *agent.Catalog // serves /v1/agents
	Usage   Usage          // for limits and GET /v1/usage
	Logger  *slog.Logger
}

// Server is the HTTP server. It is safe for concurrent use.
type Server struct {
	// Fixed after New.
	opts    Options // live has the current Settings
	live    atomic.Pointer[Settings]
	routes  routes
	callers callers
	seldom  *logging.Throttle
	turns   turns
	big     bigBodies

	// unready is the last answer of /readyz, so that only changes are logged.
	unready atomic.Bool
}

// New returns a Server.
func New(opts Options) *Server {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	s := &Server{opts: opts, seldom: logging.NewThrottle(opts.Logger), callers: callers{
		current:  cmp.Or(opts.Auth, auth.Operators("")),
		failures: quota.New[netip.Addr](quota.Options{PerSecond: failuresPerSecond, Burst: failureBurst}),
	}}
	s.big.all, s.big.byAddr = make(chan struct{}, maxBigBodies), quota.New[netip.Addr](quota.Options{AtOnce: maxBigOfOne})
	s.turns = turns{all: quota.New[struct{}](quota.Options{}), byAddr: quota.New[string](quota.Options{}),
		byUser: quota.New[string](quota.Options{})}
	s.Reconfigure(opts.Settings)
	s.addRoutes()
	return s
}

type operatorAPI struct{ *Server }

func (s *Server) voice(w http.ResponseWriter, r *http.Request) *problem {
	admission, no := s.admit(w, r, session.Coming{Back: protocol.ComesBack(r.Header)})
	if no != nil {
		return no
	}
	conn, err := protocol.Accept(w, r, protocol.AcceptOptions{AnyOrigin: true, MaxMessageBytes: s.opts.MaxMessageBytes})
	if s.upgrade(r, admission, err) {
		admission.Ticket = conn.Ticket()
		s.opts.Sessions.Start(admission, conn)
	}
	return nil
}

func (s *Server) notAdmitted(addr netip.Addr, err error) *problem {
	s.seldom.Info("session refused", err.Error(), "addr", addr.String())
	var away *session.UnreachableError
	switch {
	case errors.Is(err, session.ErrAddressLimit):
		return refusal(http.StatusTooManyRequests, "limit",
			"Too many sessions from your address; end one, or try again in a moment.").after(time.Second)
	case errors.As(err, &away):
		return refusal(http.StatusServiceUnavailable, "provider_unavailable",
			"The voice model is unavailable; try again soon.").after(away.RetryIn + time.Second - 1) // rounded up
	case errors.Is(err, session.ErrFull):
		return refusal(http.StatusServiceUnavailable, "full",
			"The gateway is full; try again in a moment.").after(5 * time.Second)
	default:
		return draining("connect to another gateway")
	}
}

// draining is the problem of a gateway that takes nothing new.
func draining(advice string) *problem {
	return refusal(http.StatusServiceUnavailable, protocol.CodeDraining,
		"The gateway is shutting down; "+advice+".").after(5 * time.Second)
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) *problem {
	return answer(w, http.StatusOK, map[string]any{"status": "ok", "version": s.opts.Version,
		"sessions": s.opts.Sessions.Running()})
}

const readyTime = 2 * time.Second

func (s *Server) ready(w http.ResponseWriter, r *http.Request) *problem {
	if s.opts.Sessions.Draining() {
		return s.notReady(w, "draining", "The gateway is shutting down; connect to another gateway.", nil)
	}
	if late := s.lateness(r); late.Behind {
		return s.notReady(w, "behind", behindWords(late), map[string]any{
			"late_ms": late.Longest.Milliseconds(), "since": late.Since.UTC().Format(time.RFC3339Nano),
		})
	}
	over := s.overload()
	runs := s.opts.Sessions.Running() > 0
	switch {
	case over.Reason == quota.Store && runs:
		return s.degraded(w)
	case over.Over():
		return s.notReady(w, "overloaded", overloadWords[over.Reason], map[string]any{
			"reason": over.Reason, "since": over.Since.UTC().Format(time.RFC3339Nano),
		})
	}
	if s.opts.Ready != nil {
		ctx, cancel := context.WithTimeout(r.Context(), readyTime)
		defer cancel()
		err := s.opts.Ready(ctx)
		if err != nil && r.Context().Err() != nil {
			return nil // the client is gone, which says nothing about the gateway
		}
		if was := s.unready.Swap(err != nil); was != (err != nil) {
			s.opts.Logger.Warn("readiness changed", "ready", err == nil, "error", err)
		}
		switch {
		case err != nil && runs:
			return s.degraded(w)
		case err != nil:
			// The endpoint is public, so only the log has the reason.
			return s.notReady(w, "unavailable", "Not ready: a dependency is unavailable; see the gateway's log.", nil)
		}
	}
	body := map[string]any{"status": "ready"}
	if len(s.callers.current.Get().Away()) > 0 {
		body["message"] = "Tokens of an issuer cannot be verified; see the gateway's log."
	}
	return answer(w, http.StatusOK, body)
}

// degraded answers without a store. A balancer must not move the clients: other gateways cannot find the sessions.
func (s *Server) degraded(w http.ResponseWriter) *problem {
	return answer(w, http.StatusOK, map[string]any{
		"status": "degraded", "sessions": s.opts.Sessions.Running(),
		"message": "The store is unavailable. Sessions on this gateway continue, but new ones may be refused; see the gateway's log.",
	})
}

func (s *Server) notReady(w http.ResponseWriter, status, message string, more map[string]any) *problem {
	body := map[string]any{"status": status, "message": message, "sessions": s.opts.Sessions.Running()}
	maps.Copy(body, more)
	retryAfter(w, 5*time.Second)
	return answer(w, http.StatusServiceUnavailable, body)
}

type connKey struct{}

// ConnContext is for http.Server.ConnContext: it gives the server access to a request's connection.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// Listen returns a listener with nonblocking writes, read by loops or, if nil, by a goroutine for each connection.
func Listen(ln net.Listener, loops *nonblock.Loops) net.Listener {
	return nonblock.Listener{Listener: ln, Loops: loops}
}

// NewLoops returns loops for connections. logger, if not nil, gets a line when they fall behind or catch up.
func NewLoops(logger *slog.Logger) *nonblock.Loops {
	loops := &nonblock.Loops{}
	if logger != nil {
		loops.Changed = func(late nonblock.Lateness) { logLateness(logger, late) }
	}
	return loops
}

// Settings are the options that may change while the Server runs.
type Settings struct {
	// Hosts are the allowed values of a request's Host; empty means those of loopback.
	Hosts   origin.Hosts
	Origins []origin.Pattern
	// GuardCompletions requires credentials for /v1/chat/completions even if other routes need none.
	GuardCompletions bool
	Prices           string // the version of the price table
	Turns            TurnLimits
}

// Reconfigure applies settings to future requests. It must not run concurrently with itself.
func (s *Server) Reconfigure(to Settings) {
	s.turns.limit(to.Turns)
	s.live.Store(&to)
}
