package gateway

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"voicegw/internal/auth"
	"voicegw/internal/quota"
	"voicegw/internal/user"
	"voicegw/protocol"
)

// Limits on wrong credentials from one address: the average rate and the burst.
const (
	failuresPerSecond = 10
	failureBurst      = 50
)

// callers authenticates requests. It is safe for concurrent use.
type callers struct {
	// Fixed after newCallers.
	current  *auth.Current
	console  *consoleGrants
	failures *quota.Quota[netip.Addr]
}

func newCallers(current *auth.Current) *callers {
	if current == nil {
		current = auth.Operators("")
	}
	return &callers{
		current: current, console: &consoleGrants{},
		failures: quota.New[netip.Addr](quota.Options{PerSecond: failuresPerSecond, Burst: failureBurst}),
	}
}

// refusal explains why a request may not use a route.
type refusal struct {
	status  int
	code    string
	message string
	// challenge is appended to WWW-Authenticate (RFC 6750, section 3); empty for a status without one.
	challenge string
	wait      time.Duration // until a retry may succeed; zero if none can
	reason    string        // for the log, if it differs from code
}

// wrongCredentials is the answer to all wrong credentials, regardless of the reason.
var wrongCredentials = refusal{
	status: http.StatusUnauthorized, code: "wrong_key", challenge: `, error="invalid_token"`,
	message: "The credentials in Authorization are invalid: they are not a key or token of this gateway, or have expired.",
}

// guarded passes only authorised requests to next, with the principal in the context (auth.From).
func (s *Server) guarded(a access, next http.HandlerFunc) http.HandlerFunc {
	if a.public() {
		return next
	}
	return func(w http.ResponseWriter, r *http.Request) {
		p, no := s.caller(r, a)
		if no == nil {
			no = mayUse(p, r, a)
		}
		if no == nil {
			next(w, r.WithContext(auth.With(r.Context(), p)))
			return
		}
		s.refuseCaller(w, r, no)
	}
}

// refuseCaller answers an unauthorised request.
func (s *Server) refuseCaller(w http.ResponseWriter, r *http.Request, no *refusal) {
	reason := no.reason
	if reason == "" {
		reason = no.code
	}
	s.seldom.Info("request refused", reason, "addr", s.clientAddr(r).String(), "route", r.Pattern, "status", no.status)
	if no.status == http.StatusUnauthorized || no.challenge != "" {
		w.Header().Set("WWW-Authenticate", `Bearer realm="voicegw"`+no.challenge)
	}
	if no.wait > 0 {
		retryAfter(w, no.wait+time.Second-1) // rounded up
	}
	refuse(w, shapeOf(r.URL.Path), no.status, no.code, no.message)
}

// shapeOf returns the error format of a path.
func shapeOf(path string) errorShape {
	if path == completionsPath || path == modelsPath || strings.HasPrefix(path, modelsPath+"/") {
		return openaiError
	}
	return plainError
}

// caller authenticates a request by the Authorization header and, for the console's WebSocket, the subprotocols. On a
// free route, wrong credentials count as missing, because clients of Chat Completions always send a key.
func (s *Server) caller(r *http.Request, a access) (auth.Principal, *refusal) {
	in := s.callers.current.Get()
	free := a.free && !in.Required() && (a.pattern != "POST "+completionsPath || !s.live.Load().GuardCompletions)
	secret, err := auth.ParseBearer(r.Header.Values("Authorization"))
	if err != nil && a.pattern == voicePattern {
		if key := protocol.OfferedKey(r.Header); key != "" {
			// Subprotocols appear in logs, so only consoles' tokens and single-use keys count there, not API keys or
			// users' tokens. A page cannot read why its WebSocket was refused, so an expired token counts as missing.
			if p, no := s.check(r, in, key); no == nil && (p.Kind == auth.KindConsole || p.Kind == auth.KindOperator) {
				return p, nil
			}
			err = auth.ErrNoCredentials
		}
	}
	switch {
	case !free && !in.Required() && !in.HasOperators():
		return auth.Principal{}, &refusal{status: http.StatusForbidden, code: "operators_only",
			message: "This endpoint is for operators, but this gateway has no key for them. Set api_key in its configuration."}
	case err == nil:
		p, no := s.check(r, in, secret)
		if no != nil && free {
			return in.Unauthenticated(), nil
		}
		return p, no
	case free:
		return in.Unauthenticated(), nil
	case a.pattern == voicePattern && errors.Is(err, auth.ErrNoCredentials):
		return auth.Principal{}, nil // session.start has a ticket or a resume token
	case errors.Is(err, auth.ErrBearer):
		return auth.Principal{}, s.failed(r, "form")
	default:
		return auth.Principal{}, &refusal{status: http.StatusUnauthorized, code: "key_missing",
			message: "Send a key or a token once, as \"Authorization: Bearer …\". The operator's key is the gateway's api_key " +
				"or, if that is not set, in the file operators.key of its data folder."}
	}
}

// check returns the principal of a secret. An address that has sent too many wrong ones must wait.
func (s *Server) check(r *http.Request, in *auth.Authenticator, secret string) (auth.Principal, *refusal) {
	if wait := s.callers.failures.Wait(quota.AddressKey(s.clientAddr(r))); wait > 0 {
		return auth.Principal{}, s.tooManyFailures(wait)
	}
	if p, ok := s.callers.console.opens(secret, in, time.Now()); ok {
		return p, nil
	}
	p, err := in.Check(r.Context(), secret)
	var why *auth.RefusedError
	switch {
	case err == nil:
		return p, nil
	case errors.As(err, &why):
		if why.Err != nil {
			s.opts.Logger.Debug("credentials refused", "reason", why.Reason, "error", why.Err)
		}
		return auth.Principal{}, s.failed(r, why.Reason)
	default:
		s.seldom.Info("credentials cannot be verified", "keys_away", "error", err)
		return auth.Principal{}, &refusal{status: http.StatusServiceUnavailable, code: "authentication_unavailable", wait: 5 * time.Second,
			message: "The token cannot be verified, because its issuer's keys are unavailable; try again in a moment."}
	}
}

// TooManyWrong is the reason for ignoring credentials after too many wrong ones from the address.
const TooManyWrong = "limit"

// failed counts wrong credentials and returns their refusal.
func (s *Server) failed(r *http.Request, reason string) *refusal {
	if wait := s.callers.failures.Begin(quota.AddressKey(s.clientAddr(r))); wait > 0 {
		return s.tooManyFailures(wait)
	}
	s.tellRefused(reason)
	no := wrongCredentials
	no.reason = "wrong_key: " + reason
	return &no
}

func (s *Server) tellRefused(why string) {
	if s.opts.Refused != nil {
		s.opts.Refused(why)
	}
}

func (s *Server) tooManyFailures(wait time.Duration) *refusal {
	s.tellRefused(TooManyWrong)
	return &refusal{status: http.StatusTooManyRequests, code: "limit", reason: "wrong_key: too many", wait: wait,
		message: "Too many wrong keys and tokens from your address; try again in a moment."}
}

// mayUse refuses a principal without the route's scopes.
func mayUse(p auth.Principal, r *http.Request, a access) *refusal {
	switch {
	case p.May(a.scopes), a.free && p.Unauthenticated() && !p.IsZero():
		return nil
	case a.pattern == voicePattern && (p.IsZero() || protocol.OffersTicket(r.Header)):
		return nil // the ticket decides
	}
	names := a.scopes.Names()
	return &refusal{
		status: http.StatusForbidden, code: "scope_missing", challenge: `, error="insufficient_scope", scope="` +
			strings.Join(names, " ") + `"`,
		message: "The credentials in Authorization lack the scope " + strings.Join(names, " or ") + ".",
	}
}

// isServer reports whether the caller is a trusted program, which may name users and grant scopes. A console isn't:
// it runs in a browser.
func isServer(p auth.Principal) bool { return p.Names() && p.Kind != auth.KindConsole }

// speaker returns the request's user: the caller's, the one that it names if allowed, or an anonymous one. known
// means that the user is verified, not only claimed.
func (s *Server) speaker(r *http.Request, named string) (who user.User, known bool, no *wrongName) {
	p := auth.From(r.Context())
	if named == "" {
		if self := p.Self(); !self.IsZero() && !p.Names() {
			return self, true, nil
		}
		return s.nameless(r), false, nil
	}
	who, err := user.Parse(named)
	switch {
	case err != nil:
		return who, false, &wrongName{http.StatusBadRequest, "invalid_message", "user " + err.Error() + "."}
	case p.Unauthenticated() || p.Names():
		return who, isServer(p), nil
	case who != p.Self():
		return user.User{}, false, notAllowed()
	default:
		return who, true, nil
	}
}

// userNotAllowed is the error code for naming a user that the caller may not act for.
const userNotAllowed = "user_not_allowed"

// wrongName explains what is wrong with the user that a request names.
type wrongName struct {
	status        int
	code, message string
}

func notAllowed() *wrongName {
	return &wrongName{http.StatusForbidden, userNotAllowed,
		"These credentials are for another user than the request names. Omit user; a server that acts for many users needs a " +
			"key with the scope tickets."}
}

func (no *wrongName) answer(w http.ResponseWriter, shape errorShape) {
	refuse(w, shape, no.status, no.code, no.message)
}

// mine returns the only user that the caller may see, or zero if it may see all: callers bound to a user see only
// that user, except admins.
func mine(ctx context.Context) user.User {
	p := auth.From(ctx)
	if p.May(auth.ScopeAdmin) {
		return user.User{}
	}
	return p.User
}

// sees reports whether the caller may see a user's objects.
func sees(ctx context.Context, owner string) bool {
	only := mine(ctx)
	return only.IsZero() || only.String() == owner
}
