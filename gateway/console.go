package gateway

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"voicegw/internal/auth"
	"voicegw/internal/logging"
	"voicegw/internal/quota"
)

// Lifetimes and maximum numbers of the console's secrets; the oldest goes first.
const (
	consoleCodeLife  = 15 * time.Minute
	consoleTokenLife = 12 * time.Hour
	maxConsoleGrants = 100
)

// consoleGrants authenticates the console. A single-use code is in the fragment of a link, which browsers don't send;
// the page exchanges it for a token in its tab. So no URL or page contains the key. It isn't a cookie, because a host's
// ports share cookies. A grant ends with the credentials that requested it, or with the process. Safe for concurrent
// use.
type consoleGrants struct {
	mu     sync.Mutex // guards the fields below
	codes  grants
	tokens grants
}

type grants map[[sha256.Size]byte]grant

type grant struct {
	to    auth.Principal
	until time.Time
}

// add creates a secret of 130 random bits. It expires with the console's credentials at the latest.
func (g *grants) add(to auth.Principal, now time.Time, life time.Duration) (secret string, until time.Time) {
	if *g == nil {
		*g = grants{}
	}
	var oldest [sha256.Size]byte
	for sum, one := range *g {
		if !now.Before(one.until) {
			delete(*g, sum)
		} else if first, ok := (*g)[oldest]; !ok || one.until.Before(first.until) {
			oldest = sum
		}
	}
	if len(*g) >= maxConsoleGrants {
		delete(*g, oldest)
	}
	secret, until = rand.Text(), now.Add(life)
	if !to.Expires.IsZero() && to.Expires.Before(until) {
		until = to.Expires
	}
	logging.Made(logging.Console, secret)
	(*g)[sha256.Sum256([]byte(secret))] = grant{to, until}
	return secret, until
}

// find returns a secret's grant; false if it has expired or in no longer admits the console.
func (g grants) find(secret string, in *auth.Authenticator, now time.Time) (grant, bool) {
	one, ok := g[sha256.Sum256([]byte(secret))]
	return one, ok && now.Before(one.until) && in.Admits(one.to, now)
}

func (c *consoleGrants) newCode(by auth.Principal, now time.Time) (code string, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.codes.add(auth.ConsoleOf(by), now, consoleCodeLife)
}

func (c *consoleGrants) exchange(code string, in *auth.Authenticator, now time.Time) (token string, until time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, ok := c.codes.find(code, in, now)
	if !ok {
		return "", time.Time{}, false
	}
	delete(c.codes, sha256.Sum256([]byte(code)))
	token, until = c.tokens.add(one.to, now, consoleTokenLife)
	return token, until, true
}

func (c *consoleGrants) opens(token string, in *auth.Authenticator, now time.Time) (auth.Principal, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, ok := c.tokens.find(token, in, now)
	one.to.Expires = one.until
	return one.to, ok
}

// ConsoleCode returns a secret code that opens the console once within 15 minutes, as #code=…; empty without a key.
func (s *Server) ConsoleCode() string {
	operator, ok := s.callers.current.Get().Find(string(auth.KindOperator))
	if !ok {
		return ""
	}
	code, _ := s.callers.console.newCode(operator, time.Now())
	return code
}

// consoleCode creates a code. A console's token cannot, because it could prolong its access indefinitely.
func (s operatorAPI) consoleCode(w http.ResponseWriter, r *http.Request) *problem {
	by := auth.From(r.Context())
	if by.Kind == auth.KindConsole {
		return s.refuseCaller(w, r, &wrongCredentials)
	}
	code, until := s.callers.console.newCode(by, time.Now())
	return answer(w, http.StatusCreated, map[string]string{"code": code, "expires_at": until.UTC().Format(timeForm)})
}

const maxLoginBody = 1 << 10

func (s operatorAPI) consoleLogin(w http.ResponseWriter, r *http.Request) *problem {
	var body struct {
		Code string `json:"code"`
	}
	// The error doesn't repeat the body, which may contain a code.
	if !isJSON(r.Header.Get("Content-Type")) ||
		json.NewDecoder(http.MaxBytesReader(w, r.Body, maxLoginBody)).Decode(&body) != nil || body.Code == "" {
		return invalid(`The body must be JSON: {"code": "…"}, with Content-Type: application/json.`)
	}
	addr := quota.AddressKey(s.clientAddr(r))
	if wait := s.callers.failures.Wait(addr); wait > 0 {
		return s.refuseCaller(w, r, s.tooManyFailures(wait))
	}
	token, until, ok := s.callers.console.exchange(body.Code, s.callers.current.Get(), time.Now())
	if !ok {
		s.callers.failures.Begin(addr)
		s.seldom.Info("console refused", "wrong_code", "addr", s.clientAddr(r).String())
		return refusal(http.StatusUnauthorized, "wrong_code",
			"This link was already used, is older than 15 minutes, or its key "+
				"was revoked, or the gateway was restarted. Run voicegw console for a new one.")
	}
	s.opts.Logger.Info("console opened", "addr", s.clientAddr(r).String())
	return answer(w, http.StatusOK, map[string]string{"token": token, "expires_at": until.UTC().Format(timeForm)})
}
