package gateway

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"
)

// guard decides who may use the endpoints for operators: a caller who shows the key, or a token
// that a console was given for a code. The address of a request proves nothing: a proxy on this
// machine need not say that it is one.
type guard struct {
	// Fixed after newGuard. The key is kept and compared as its hash, so that the comparison
	// takes the same time for every secret of every length.
	hasKey  bool
	key     [sha256.Size]byte
	console *consoleGrants
}

func newGuard(key string) guard {
	return guard{hasKey: key != "", key: sha256.Sum256([]byte(key)), console: &consoleGrants{}}
}

// refusal says why a request may not use an endpoint for operators.
type refusal struct {
	status  int
	code    string
	message string
}

// check returns nil for a request that may pass. No refusal reveals anything about the key.
func (g guard) check(r *http.Request) *refusal { return g.shows(r, true) }

// checkKey is check for the key alone, without the tokens of consoles.
func (g guard) checkKey(r *http.Request) *refusal { return g.shows(r, false) }

func (g guard) shows(r *http.Request, tokens bool) *refusal {
	if !g.hasKey {
		return &refusal{http.StatusForbidden, "operators_only", "This endpoint is for operators, and this gateway has no key for them. Set api_key in its configuration."}
	}
	shown := r.Header.Values("Authorization")
	if len(shown) != 1 {
		return &refusal{http.StatusUnauthorized, "key_missing", "Show the gateway's api_key as \"Authorization: Bearer …\"; where none is configured, it is in the file operators.key of its data folder."}
	}
	scheme, secret, _ := strings.Cut(shown[0], " ")
	secret = strings.TrimLeft(secret, " ")
	if !strings.EqualFold(scheme, "Bearer") || !g.opens(secret, tokens) {
		return &refusal{http.StatusUnauthorized, "wrong_key", "What stands in Authorization is neither the gateway's api_key nor the token of a console, or the token has ended."}
	}
	return nil
}

// opens says whether a secret is the key or, if tokens count, the token of a console.
func (g guard) opens(secret string, tokens bool) bool {
	if !g.hasKey || secret == "" {
		return false
	}
	sum := sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(sum[:], g.key[:]) == 1 || tokens && g.console.opens(secret, time.Now())
}

// forOperators passes to next only the requests that guard lets in. Every endpoint that shows
// or changes something of other users uses it.
func (s *Server) forOperators(next http.HandlerFunc) http.HandlerFunc {
	return s.guarded(s.guard.check, next)
}

// forMetrics passes to next only the requests that may read the metrics: those of operators. It is the
// one place that decides it.
func (s *Server) forMetrics(next http.HandlerFunc) http.HandlerFunc { return s.forOperators(next) }

func (s *Server) guarded(check func(*http.Request) *refusal, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		no := check(r)
		if no == nil {
			next(w, r)
			return
		}
		s.seldom.Info("operator's request refused", no.code, "addr", s.clientAddr(r).String(), "route", r.Pattern)
		if no.status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Bearer realm="voicegw"`)
		}
		problem(w, no.status, no.code, no.message)
	}
}
