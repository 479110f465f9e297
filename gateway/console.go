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

// How long the console's secrets live, and how many of each may exist; the oldest goes first.
const (
	consoleCodeLife  = 15 * time.Minute
	consoleTokenLife = 12 * time.Hour
	maxConsoleGrants = 100
)

// consoleGrants let the console in. A code goes into the fragment of a link, which browsers
// never send; the page removes it from its address and exchanges it, once, for a token, which
// it keeps in its tab and shows as operators show the key. So the key itself stands in no
// address and no page, and a link in a history or a terminal opens nothing afterwards.
//
// It is not a cookie: cookies are shared by all ports of a host, so every other server on this
// machine would receive it.
//
// A grant ends with the credentials with which it was asked for. All grants are gone when the process ends. The
// methods may be used concurrently.
type consoleGrants struct {
	mu     sync.Mutex // guards the following fields
	codes  grants
	tokens grants
}

// grants maps the hash of each secret to what it grants.
type grants map[[sha256.Size]byte]grant

// grant lets a console in.
type grant struct {
	// to is the console: it has the Mark and the end of the credentials with which it was asked for.
	to    auth.Principal
	until time.Time
}

// add makes a secret of 130 random bits, of letters and digits. It ends with the credentials of the console, or
// before.
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

// find returns what a secret grants; false if it has ended, or if in does not admit the console any more.
func (g grants) find(secret string, in *auth.Authenticator, now time.Time) (grant, bool) {
	one, ok := g[sha256.Sum256([]byte(secret))]
	return one, ok && now.Before(one.until) && in.Admits(one.to, now)
}

// newCode makes a code for a console of the principal by.
func (c *consoleGrants) newCode(by auth.Principal, now time.Time) (code string, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.codes.add(auth.ConsoleOf(by), now, consoleCodeLife)
}

// exchange uses a code up.
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

// opens returns the console that a token lets in. It expires with the token.
func (c *consoleGrants) opens(token string, in *auth.Authenticator, now time.Time) (auth.Principal, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, ok := c.tokens.find(token, in, now)
	one.to.Expires = one.until
	return one.to, ok
}

// ConsoleCode returns a new code that opens the console once, within the next 15 minutes, as
// the fragment "#code=…" of the page's address; empty if there is no key. It is a secret.
func (s *Server) ConsoleCode() string {
	operator, ok := s.callers.current.Get().Find(string(auth.KindOperator))
	if !ok {
		return ""
	}
	code, _ := s.callers.console.newCode(operator, time.Now())
	return code
}

// consoleCode makes a code. A console's token cannot make one, or access would never end.
func (s *Server) consoleCode(w http.ResponseWriter, r *http.Request) {
	by := auth.From(r.Context())
	if by.Kind == auth.KindConsole {
		s.refuseCaller(w, r, &wrongCredentials)
		return
	}
	code, until := s.callers.console.newCode(by, time.Now())
	answer(w, http.StatusCreated, map[string]string{"code": code, "expires_at": until.UTC().Format(timeForm)})
}

// maxLoginBody bounds the body of a login, in bytes.
const maxLoginBody = 1 << 10

// consoleLogin exchanges a code for a token.
func (s *Server) consoleLogin(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Code string `json:"code"`
	}
	// The body is not repeated in the error: it may hold a code.
	if !isJSON(r.Header.Get("Content-Type")) || json.NewDecoder(http.MaxBytesReader(w, r.Body, maxLoginBody)).Decode(&body) != nil || body.Code == "" {
		problem(w, http.StatusBadRequest, "invalid_message", `The body must be JSON: {"code": "…"}, with Content-Type: application/json.`)
		return
	}
	addr := quota.AddressKey(s.clientAddr(r))
	if wait := s.callers.failures.Wait(addr); wait > 0 {
		s.refuseCaller(w, r, s.tooManyFailures(wait))
		return
	}
	token, until, ok := s.callers.console.exchange(body.Code, s.callers.current.Get(), time.Now())
	if !ok {
		s.callers.failures.Begin(addr)
		s.seldom.Info("console refused", "wrong_code", "addr", s.clientAddr(r).String())
		problem(w, http.StatusUnauthorized, "wrong_code", "This link has been used, is older than 15 minutes, or is of another run of the gateway, or the key that made it is not valid any more; voicegw console makes a new one.")
		return
	}
	s.opts.Logger.Info("console opened", "addr", s.clientAddr(r).String())
	answer(w, http.StatusOK, map[string]string{"token": token, "expires_at": until.UTC().Format(timeForm)})
}
