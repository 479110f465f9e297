package gateway

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"voicegw/internal/auth"
	"voicegw/internal/logging"
	"voicegw/internal/testutil"
	"voicegw/internal/user"
	"voicegw/protocol"
)

// TestEveryRouteHasARow: each route says who may use it; only those of CORS preflights are added without.
func TestEveryRouteHasARow(t *testing.T) {
	s := everyRoute(t, nil)
	for _, pattern := range s.routes.patterns {
		if a := s.routes.access[pattern]; a.pattern != pattern || strings.HasPrefix(pattern, "OPTIONS ") && !a.public() {
			t.Errorf("%s has the row %+v", pattern, a)
		}
	}
	if len(s.routes.access) != len(s.routes.patterns) {
		t.Errorf("%d routes have %d rows", len(s.routes.patterns), len(s.routes.access))
	}
}

// accessLine matches a line of a list in docs/authentication.md: scopes and their routes.
var accessLine = regexp.MustCompile("(?m)^- (.*?): (`(?:[A-Z]+ )?/.*)$")

// TestAccessIsDocumented compares the lists in docs/authentication.md with the code.
func TestAccessIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/authentication.md")
	if err != nil {
		t.Fatal(err)
	}
	reply := map[string]string{}
	_, section, _ := strings.Cut(string(page), "\n## Every route\n")
	section, _, _ = strings.Cut(section, "\n## ")
	free, closed, _ := strings.Cut(strings.ReplaceAll(section, "\n  ", " "), "\nAlways with credentials:\n")
	for without, list := range map[string]string{"yes": free, "no": closed} {
		for _, line := range accessLine.FindAllStringSubmatch(list, -1) {
			for route := range strings.SplitSeq(line[2], ", ") {
				reply[strings.Trim(route, "`")] = strings.ReplaceAll(line[1], "`", "") + "; " + without
			}
		}
	}
	for pattern, a := range everyRoute(t, nil).routes.access {
		if strings.HasPrefix(pattern, "OPTIONS ") {
			continue
		}
		scopes, without := strings.Join(a.scopes.Names(), ", "), "no"
		switch {
		case a.public():
			scopes, without = "everybody", "yes"
		case a.free:
			without = "yes"
		}
		if got, want := reply[a.pattern], scopes+"; "+without; got != want {
			t.Errorf("docs/authentication.md: %s has %q; it is %q", a.pattern, got, want)
		}
		delete(reply, a.pattern)
	}
	if len(reply) > 0 {
		t.Errorf("docs/authentication.md lists unknown routes: %v", slices.Sorted(maps.Keys(reply)))
	}
	for _, name := range auth.ScopeNames() {
		if !strings.Contains(string(page), "\n| `"+name+"` |") {
			t.Errorf("docs/authentication.md lacks the scope %s", name)
		}
	}
}

// tokenSecret signs the issuer's tokens in these tests.
var tokenSecret = []byte(strings.Repeat("a secret of tests ", 2))

// tokenFor is a token of a user with scopes.
func tokenFor(who, scopes string, change func(jwt.MapClaims)) string {
	claims := jwt.MapClaims{"iss": "tests", "aud": "voicegw", "sub": who, "scope": scopes, "exp": time.Now().Add(time.Hour).Unix()}
	if change != nil {
		change(claims)
	}
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(tokenSecret)
	if err != nil {
		panic(err)
	}
	testutil.Made(logging.APIKey, text)
	return text
}

// callersOf are the credentials of a gateway in these tests, by name.
type callersOf struct {
	current *auth.Current
	secrets map[string]string
	scopes  map[string]auth.Scopes // of the valid credentials
}

// everyCaller makes a gateway's credentials: a key for each scope, users with tokens, operators, and invalid ones.
func everyCaller(t *testing.T) callersOf {
	t.Helper()
	c := callersOf{secrets: map[string]string{"anonymous": "", "operator": testKey}}
	o := auth.Options{OperatorKey: testKey, Issuers: []auth.Issuer{{
		Name: "tests", Issuer: "tests", Audience: []string{"voicegw"}, Secret: tokenSecret, ScopesClaim: "scope", Scopes: auth.AllScopes, Leeway: time.Second,
	}}}
	add := func(name string, k auth.Key) {
		key := auth.NewAPIKey()
		k.ID, k.Name, k.Hash = key.ID(), "k", key.Hash()
		o.Keys = append(o.Keys, k)
		c.secrets[name] = key.Reveal()
	}
	for _, name := range auth.ScopeNames() {
		scope, _, _ := auth.ParseAccess([]string{name})
		add("key:"+name, auth.Key{Scopes: scope})
		c.secrets["user:"+name] = tokenFor("ada", name, nil)
	}
	add("key of ada", auth.Key{Scopes: auth.ScopeVoice | auth.ScopeChat, User: user.Must("ada")})
	add("wrong: a key that has ended", auth.Key{Scopes: auth.AllScopes, Expires: time.Unix(1, 0)})
	c.secrets["user without scopes"] = tokenFor("ada", "openid", nil)
	foreignKey := auth.NewAPIKey().Reveal()
	c.secrets["wrong: a key of elsewhere"] = foreignKey
	c.secrets["wrong: another secret"] = c.secrets["key:admin"][:13] + foreignKey[13:]
	c.secrets["wrong: nonsense"] = "nonsense"
	hour := func(name string, d time.Duration) func(jwt.MapClaims) {
		return func(m jwt.MapClaims) { m[name] = time.Now().Add(d).Unix() }
	}
	c.secrets["wrong: a token that has ended"] = tokenFor("ada", "admin", hour("exp", -time.Hour))
	c.secrets["wrong: a token before its time"] = tokenFor("ada", "admin", hour("nbf", time.Hour))
	c.secrets["wrong: a token for another service"] = tokenFor("ada", "admin", func(m jwt.MapClaims) { m["aud"] = "x" })
	c.secrets["wrong: a token of another issuer"] = tokenFor("ada", "admin", func(m jwt.MapClaims) { m["iss"] = "x" })
	none, err := jwt.NewWithClaims(jwt.SigningMethodNone, jwt.MapClaims{"iss": "tests", "aud": "voicegw", "sub": "ada", "scope": "admin", "exp": 1 << 40}).SignedString(jwt.UnsafeAllowNoneSignatureType)
	if err != nil {
		t.Fatal(err)
	}
	c.secrets["wrong: a token without a signature"] = none
	a, err := auth.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	c.current, c.scopes = auth.Only(a), map[string]auth.Scopes{}
	for name, secret := range c.secrets {
		if p, err := a.Check(t.Context(), secret); err == nil {
			c.scopes[name] = p.Scopes
		}
	}
	return c
}

// TestRouteAccess requests every route as every caller over a socket, and with every method as some callers. The table
// alone determines the result: a caller with a scope is let in, one with another gets 403, and one without valid
// credentials 401.
func TestRouteAccess(t *testing.T) {
	callers := everyCaller(t)
	s := everyRoute(t, func(o *Options) { o.Auth, o.TrustedProxies = callers.current, proxies() })
	srv := httptest.NewServer(s)
	defer srv.Close()
	cells, allowed := 0, 0
	for name, secret := range callers.secrets {
		for pattern, a := range s.routes.access {
			if strings.HasPrefix(pattern, "OPTIONS ") {
				continue
			}
			_, path, _ := strings.Cut(" "+a.pattern, "/")
			own, _, _ := strings.Cut(a.pattern, " ")
			path = "/" + strings.NewReplacer("{id...}", "x", "{id}", "x", "{user}", "x", "{token...}", "x").Replace(path)
			for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
				if method != own && method != "GET" && !slices.Contains([]string{"anonymous", "key:voice", "user:inspect", "operator"}, name) {
					continue
				}
				cells++
				r, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, strings.NewReader("{}"))
				if err != nil {
					t.Fatal(err)
				}
				r.Host = "localhost"
				r.Header.Set("Content-Type", "application/json")
				// Each request has its own address because failures are limited by address.
				r.Header.Set("X-Forwarded-For", fmt.Sprintf("198.51.%d.%d", cells/250, cells%250))
				if secret != "" {
					r.Header.Set("Authorization", "Bearer "+secret)
				}
				_, pattern := s.routes.mux.Handler(r)
				got, body := statusOf(t, srv, r)
				want := expected(s.routes.access[pattern], name, callers)
				if pattern == voicePattern && want != http.StatusForbidden && !strings.HasPrefix(name, "wrong") {
					want = 0 // the error is that it is not a WebSocket; see TestVoiceAccess
				}
				if strings.Contains(pattern, " /v1/phone/") && s.routes.access[pattern].public() {
					want = http.StatusForbidden // the carrier's signature decides
				}
				if ok := got != 401 && got != 403 && got != 429; ok != (want == 0) || !ok && got != want {
					t.Errorf("%s: %s %s (%s): %d %s, want %d", name, method, path, pattern, got, body, want)
				}
				if want == 0 {
					allowed++
				}
			}
		}
	}
	if cells < 1500 || allowed < 500 || allowed > cells*9/10 {
		t.Errorf("%d of %d cells are allowed", allowed, cells)
	}
}

// expected is the status of a refusal; 0 if the caller is let in.
func expected(a access, name string, callers callersOf) int {
	scopes := callers.scopes[name]
	switch {
	case a.public(), scopes&(a.scopes|auth.ScopeAdmin) != 0:
		return 0
	case name == "anonymous" || strings.HasPrefix(name, "wrong"):
		return http.StatusUnauthorized
	default:
		return http.StatusForbidden
	}
}

// statusOf sends a request, and checks the content of each refusal.
func statusOf(t *testing.T, srv *httptest.Server, r *http.Request) (int, string) {
	t.Helper()
	resp, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	challenge := resp.Header.Get("WWW-Authenticate")
	if resp.StatusCode == 401 && !strings.HasPrefix(challenge, `Bearer realm="voicegw"`) ||
		resp.StatusCode == 403 && !strings.HasPrefix(r.URL.Path, "/v1/phone/") && !strings.Contains(challenge, `error="insufficient_scope", scope="`) {
		t.Errorf("%s %s: %d with the challenge %q: %s", r.Method, r.URL, resp.StatusCode, challenge, body)
	}
	return resp.StatusCode, string(body)
}

// TestVoiceAccess opens a WebSocket as every caller: one with the scope voice is let in, one with another gets 403,
// invalid credentials get 401, and a caller without credentials needs a ticket.
func TestVoiceAccess(t *testing.T) {
	callers := everyCaller(t)
	opts := sessionOptions()
	opts.Handoffs = inspecting{}
	srv, _ := startOf(t, opts, func(o *Options) { o.Auth, o.TrustedProxies = callers.current, proxies() })
	for name, secret := range callers.secrets {
		for _, ticket := range []string{"", "plain"} {
			header := http.Header{"X-Forwarded-For": {"198.51.100." + fmt.Sprint(len(name))}}
			if secret != "" {
				header.Set("Authorization", "Bearer "+secret)
			}
			got := speaks(t, srv, protocol.DialOptions{Header: header, Ticket: ticket})
			want := "speaks"
			switch {
			case strings.HasPrefix(name, "wrong"):
				want = "401"
			case ticket != "" || callers.scopes[name]&(auth.ScopeVoice|auth.ScopeAdmin) != 0:
			case name == "anonymous":
				want = fmt.Sprint(int(protocol.CloseTicket))
			default:
				want = "403"
			}
			if got != want {
				t.Errorf("%s, ticket %q: %s, want %s", name, ticket, got, want)
			}
		}
	}
}

// speaks opens a session, and returns "speaks", the status of a failed handshake, or the close code.
func speaks(t *testing.T, srv *httptest.Server, o protocol.DialOptions) string {
	t.Helper()
	c, err := protocol.Dial(t.Context(), srv.URL+"/v1/voice", o)
	if err != nil {
		return regexp.MustCompile(`\d{3}`).FindString(err.Error())
	}
	defer c.Abort()
	say(t, c, &protocol.Start{InputRate: 16000, OutputRate: 24000})
	if _, started := hear(t, c).(*protocol.SessionStarted); started {
		say(t, c, &protocol.End{})
		for {
			if _, err := c.Read(); err != nil {
				return "speaks"
			}
		}
	}
	_, err = c.Read()
	return fmt.Sprint(int(protocol.CloseStatus(err)))
}

// TestNoOracle: the answers to all invalid credentials are identical to the byte, so no caller learns which keys exist.
func TestNoOracle(t *testing.T) {
	callers := everyCaller(t)
	s := everyRoute(t, func(o *Options) { o.Auth = callers.current })
	answers := map[string][]string{}
	for name, secret := range callers.secrets {
		if strings.HasPrefix(name, "wrong") {
			w := ask(s, "GET", "/v1/sessions", bearer(secret))
			said := fmt.Sprint(w.Code, w.Header(), w.Body)
			answers[said] = append(answers[said], name)
		}
	}
	if len(answers) != 1 {
		t.Errorf("there are %d answers: %q", len(answers), answers)
	}
}

// TestFailuresAreLimited: an address may show wrong credentials 50 times, then ten times a second; further requests with
// credentials, even valid ones, are refused unchecked. Other addresses are not affected.
func TestFailuresAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		callers := everyCaller(t)
		var log strings.Builder
		s := everyRoute(t, func(o *Options) { o.Auth, o.Logger = callers.current, logTo(&log) })
		eve := from("192.0.2.66:1")
		try := func(secret string, who func(*http.Request)) *httptest.ResponseRecorder {
			return ask(s, "GET", "/v1/sessions", func(r *http.Request) { who(r); bearer(secret)(r) })
		}
		refused, late := 0, 0
		for range failureBurst * 4 {
			switch w := try(callers.secrets["wrong: another secret"], eve); w.Code {
			case http.StatusUnauthorized:
				refused++
			case http.StatusTooManyRequests:
				if late++; w.Header().Get("Retry-After") != "1" {
					t.Errorf("%v", w.Header())
				}
			default:
				t.Fatalf("%d %s", w.Code, w.Body)
			}
		}
		if refused != failureBurst || late != failureBurst*3 {
			t.Errorf("%d were refused, %d too many", refused, late)
		}
		if w := try(testKey, eve); w.Code != http.StatusTooManyRequests {
			t.Errorf("the right key from that address: %d", w.Code)
		}
		if w := send(s, "/v1/console/login", `{"code":"x"}`, eve); w.Code != http.StatusTooManyRequests {
			t.Errorf("a console's code from that address: %d", w.Code)
		}
		if w := try(testKey, from("192.0.2.67:1")); w.Code != http.StatusOK {
			t.Errorf("another address: %d %s", w.Code, w.Body)
		}
		if w := ask(s, "GET", "/healthz", eve); w.Code != http.StatusOK {
			t.Errorf("a public route: %d", w.Code)
		}
		wait(time.Second / failuresPerSecond)
		if w := try(testKey, eve); w.Code != http.StatusOK {
			t.Errorf("a tenth of a second later: %d", w.Code)
		}
		if text := log.String(); strings.Count(text, "\n") > 20 || !strings.Contains(text, "192.0.2.66") {
			t.Errorf("%d lines: %.2000s", strings.Count(text, "\n"), text)
		}
	})
}

// TestAuthenticatorIsSwapped: from the moment of a swap the old keys are refused and the new ones accepted, while
// requests continue.
func TestAuthenticatorIsSwapped(t *testing.T) {
	one, two := everyCaller(t), everyCaller(t)
	s := everyRoute(t, func(o *Options) { o.Auth, o.TrustedProxies = one.current, proxies() })
	try := func(c callersOf) int { return ask(s, "GET", "/v1/sessions", bearer(c.secrets["key:inspect"])).Code }
	if try(one) != 200 || try(two) != 401 {
		t.Error("before")
	}
	one.current.Swap(two.current.Get())
	if try(one) != 401 || try(two) != 200 {
		t.Error("after")
	}
}

// TestReadyWithoutAnIssuer: a gateway with an unreachable issuer is ready, because keys and tickets work, and reports
// that tokens do not.
func TestReadyWithoutAnIssuer(t *testing.T) {
	a, err := auth.New(auth.Options{Transport: unreachable{}, Issuers: []auth.Issuer{{
		Name: "far", Issuer: "far", Audience: []string{"voicegw"}, JWKS: "https://far.example/keys",
	}}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	s := everyRoute(t, func(o *Options) { o.Auth = auth.Only(a) })
	if w := ask(s, "GET", "/readyz", noKey); w.Code != 200 || !strings.Contains(w.Body.String(), "Tokens") || strings.Contains(w.Body.String(), "far") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	token := "eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.eyJpc3MiOiJmYXIifQ.AAAA"
	if w := ask(s, "GET", "/v1/sessions", bearer(token)); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "5" {
		t.Errorf("a token: %d %s", w.Code, w.Body)
	}
}

// unreachable is a network without hosts.
type unreachable struct{}

func (unreachable) RoundTrip(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }
