package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"voicegw/internal/auth"
	"voicegw/internal/quota"
	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/registry/spec"
)

// Limits on wrong credentials from one address: the average rate and the burst.
const (
	failuresPerSecond = 10
	failureBurst      = 50
)

type callers struct {
	current  *auth.Current
	console  consoleGrants
	failures *quota.Quota[netip.Addr]
}

// wrongCredentials is the answer to all wrong credentials, regardless of the reason.
var wrongCredentials = problem{
	status: http.StatusUnauthorized, code: "wrong_key", challenge: `, error="invalid_token"`,
	message: "The credentials in Authorization are invalid: they are not a key or token of this gateway, or have expired.",
}

// guarded passes only authorised requests to next, with the principal in the context (auth.From).
func (s *Server) guarded(a access, next handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !a.public() {
			var p auth.Principal
			var no *problem
			ctx := r.Context()
			if a.realtime {
				p, ctx, no = realtimeAPI{s}.realtimeCaller(r, a)
			} else {
				p, no = s.caller(r, a)
			}
			if no == nil {
				no = mayUse(p, r, a)
			}
			if no != nil {
				s.refuseCaller(w, r, no).answer(w, r)
				return
			}
			r = r.WithContext(auth.With(ctx, p))
		}
		if no := next(w, r); no != nil {
			no.answer(w, r)
		}
	}
}

func (s *Server) refuseCaller(w http.ResponseWriter, r *http.Request, no *problem) *problem {
	s.seldom.Info("request refused", cmp.Or(no.reason, no.code), "addr", s.clientAddr(r).String(), "route",
		r.Pattern, "status", no.status)
	if no.status == http.StatusUnauthorized || no.challenge != "" {
		w.Header().Set("WWW-Authenticate", `Bearer realm="voicegw"`+no.challenge)
	}
	return no
}

// isFree reports whether a route needs no credentials at present. Wrong credentials then count as missing, because
// clients of OpenAI's APIs always send a key.
func (s *Server) isFree(a access) bool {
	return a.free && !s.callers.current.Get().Required() &&
		(a.pattern != "POST "+completionsPath || !s.live.Load().GuardCompletions)
}

// caller authenticates by Authorization and, for the console's WebSocket, the subprotocols.
func (s *Server) caller(r *http.Request, a access) (auth.Principal, *problem) {
	in := s.callers.current.Get()
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
	return s.authenticated(r, a, secret, err)
}

// authenticated returns the principal of credentials; err is the error of reading them.
func (s *Server) authenticated(r *http.Request, a access, secret string, err error) (auth.Principal, *problem) {
	in, free := s.callers.current.Get(), s.isFree(a)
	switch {
	case !free && !in.Required() && !in.HasOperators():
		return auth.Principal{}, &problem{status: http.StatusForbidden, code: "operators_only",
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
		return auth.Principal{}, &problem{status: http.StatusUnauthorized, code: "key_missing",
			message: "Send a key or a token once, as \"Authorization: Bearer …\". The operator's key is the gateway's api_key " +
				"or, if that is not set, in the file operators.key of its data folder."}
	}
}

// check returns the principal of a secret. An address that has sent too many wrong ones must wait.
func (s *Server) check(r *http.Request, in *auth.Authenticator, secret string) (auth.Principal, *problem) {
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
		return auth.Principal{}, &problem{status: http.StatusServiceUnavailable, code: "authentication_unavailable",
			wait:    5 * time.Second,
			message: "The token cannot be verified, because its issuer's keys are unavailable; try again in a moment."}
	}
}

// TooManyWrong is the reason for ignoring credentials after too many wrong ones from the address.
const TooManyWrong = "limit"

func (s *Server) failed(r *http.Request, reason string) *problem {
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

func (s *Server) tooManyFailures(wait time.Duration) *problem {
	s.tellRefused(TooManyWrong)
	return &problem{status: http.StatusTooManyRequests, code: "limit", reason: "wrong_key: too many",
		wait:    wait + time.Second - 1, // rounded up
		message: "Too many wrong keys and tokens from your address; try again in a moment."}
}

func mayUse(p auth.Principal, r *http.Request, a access) *problem {
	switch {
	case p.May(a.scopes), a.free && p.Unauthenticated() && !p.IsZero():
		return nil
	case a.pattern == voicePattern && (p.IsZero() || protocol.OffersTicket(r.Header)):
		return nil // the ticket decides
	}
	names := a.scopes.Names()
	return &problem{
		status: http.StatusForbidden, code: "scope_missing", challenge: `, error="insufficient_scope", scope="` +
			strings.Join(names, " ") + `"`,
		message: "The credentials in Authorization lack the scope " + strings.Join(names, " or ") + ".",
	}
}

// isServer reports whether the caller is a trusted program. A console isn't: it runs in a browser.
func isServer(p auth.Principal) bool { return p.Names() && p.Kind != auth.KindConsole }

// speaker returns the caller, the user that it names if allowed, or an anonymous one. known means verified, not only
// claimed.
func (s *Server) speaker(r *http.Request, named string) (who user.User, known bool, no *problem) {
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
		return who, false, invalid("user " + err.Error() + ".")
	case p.Unauthenticated() || p.Names():
		return who, isServer(p), nil
	case who != p.Self():
		return user.User{}, false, notAllowed()
	default:
		return who, true, nil
	}
}

const userNotAllowed = "user_not_allowed"

func notAllowed() *problem {
	return refusal(http.StatusForbidden, userNotAllowed,
		"These credentials are for another user than the request names. Omit user; a server that acts for many users needs a "+
			"key with the scope tickets.")
}

// mine returns the only user that the caller may see, or zero: callers bound to a user see only that user, except
// admins.
func mine(ctx context.Context) user.User {
	p := auth.From(ctx)
	if p.May(auth.ScopeAdmin) {
		return user.User{}
	}
	return p.User
}

func sees(ctx context.Context, owner string) bool {
	only := mine(ctx)
	return only.IsZero() || only.String() == owner
}

func scopesProblem(scopes []string) string {
	if len(scopes) > spec.MaxScopes {
		return fmt.Sprintf("scopes has %d entries; at most %d are allowed.", len(scopes), spec.MaxScopes)
	}
	for i, scope := range scopes {
		if !spec.ValidScope(scope) {
			return fmt.Sprintf("scopes[%d] must be 1 to %d letters, digits or . _ : / -.", i, spec.MaxScopeBytes)
		}
	}
	return ""
}

func grantsOf(r *http.Request, named []string) []string {
	all := slices.Clone(named)
	for _, scope := range auth.From(r.Context()).Granted() {
		if !slices.Contains(all, scope) {
			all = append(all, scope)
		}
	}
	return all
}

// grantProblem: clients cannot grant scopes to themselves.
func grantProblem(r *http.Request, scopes []string) *problem {
	if len(scopes) == 0 || isServer(auth.From(r.Context())) {
		return nil
	}
	return refusal(http.StatusForbidden, "scopes_not_allowed",
		"Only trusted servers may grant scopes. Omit them, or send a key with the scope tickets, or the gateway's "+
			"api_key, "+
			"as \"Authorization: Bearer …\".")
}
