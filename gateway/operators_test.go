package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/session"
	"voicegw/store"
)

// fakeBlocks is a list of blocked users in memory.
type fakeBlocks struct {
	until map[string]time.Time
	err   error
	asked int
}

func (b *fakeBlocks) List() []store.Block {
	b.asked++
	var list []store.Block
	for user, until := range b.until {
		list = append(list, store.Block{User: user, Until: until})
	}
	slices.SortFunc(list, func(x, y store.Block) int { return strings.Compare(x.User, y.User) })
	return list
}

func (b *fakeBlocks) Unblock(_ context.Context, user string) (bool, error) {
	b.asked++
	_, ok := b.until[user]
	delete(b.until, user)
	return ok, b.err
}

// testKey is the api_key of servers in tests.
const testKey = "0123456789abcdef-hush"

// ask sends a request to the server without a socket. By default it comes from 127.0.0.1 to localhost and shows testKey;
// change changes it.
func ask(s *Server, method, path string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.Host, r.RemoteAddr = "localhost:8080", "127.0.0.1:40000"
	r.Header.Set("Authorization", "Bearer "+testKey)
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	checkError(w)
	return w
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Add(name, value) }
}

func host(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }

func from(addr string) func(*http.Request) { return func(r *http.Request) { r.RemoteAddr = addr } }

// noKey removes the key from a request.
func noKey(r *http.Request) { r.Header.Del("Authorization") }

// publicRoutes are the routes that need no operator; all others do.
var publicRoutes = []string{
	"GET /v1/realtime", "OPTIONS /v1/realtime", "GET /openai/v1/realtime", "OPTIONS /openai/v1/realtime", "GET /realtime", "OPTIONS /realtime",
	"OPTIONS /v1/realtime/client_secrets", "OPTIONS /openai/v1/realtime/client_secrets", "OPTIONS /v1/realtime/sessions", "OPTIONS /v1/realtime/calls",
	"GET /v1/realtime", "OPTIONS /v1/realtime", "GET /openai/v1/realtime", "OPTIONS /openai/v1/realtime", "GET /realtime", "OPTIONS /realtime",
	"OPTIONS /v1/sessions", "GET /v1/voice", "OPTIONS /v1/voice", "GET /v1/providers", "OPTIONS /v1/providers", "GET /v1/tools", "GET /v1/tools/{id}", "POST /v1/chat", "OPTIONS /v1/chat",
	"POST /mcp", "OPTIONS /mcp", "/mcp", "POST /v1/chat/completions", "OPTIONS /v1/chat/completions", "GET /v1/models", "GET /v1/models/{id...}", "OPTIONS /v1/models/{id...}", "OPTIONS /v1/models", "GET /v1/images/{id}",
	"POST /v1/console/login", "/v1/confirmations/{token...}", "GET /healthz", "GET /readyz", "OPTIONS /readyz", "/v1/", "/",
	"POST /v1/phone/twilio/voice", "GET /v1/phone/twilio", "POST /v1/phone/telnyx/voice", "GET /v1/phone/telnyx",
	"POST /v1/phone/vonage/voice", "GET /v1/phone/vonage", // carriers sign them
}

// TestNoKeyNoAccess: without a key no operator's endpoint answers, neither to a program on this machine, nor to the page,
// nor through a proxy without headers, which looks like such a program. If the gateway has no key, no credentials open
// them.
func TestNoKeyNoAccess(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*http.Request)
		key    string
		status int
		code   string
	}{
		"a program":               {noKey, testKey, 401, "key_missing"},
		"a proxy without headers": {func(r *http.Request) { noKey(r); r.Host = "127.0.0.1:8080" }, testKey, 401, "key_missing"},
		"a proxy with headers":    {func(r *http.Request) { noKey(r); r.Header.Set("X-Forwarded-For", "10.0.0.1") }, testKey, 401, "key_missing"},
		"over IPv6":               {func(r *http.Request) { noKey(r); r.Host, r.RemoteAddr = "[::1]:8080", "[::1]:40000" }, testKey, 401, "key_missing"},
		"its own page":            {func(r *http.Request) { noKey(r); r.Header.Set("Origin", "http://localhost:8080") }, testKey, 401, "key_missing"},
		"a wrong key":             {header("Authorization", "x"), testKey, 401, "key_missing"},
		"where there is no key":   {noKey, "", 403, "operators_only"},
		"a key for no lock":       {nil, "", 403, "operators_only"},
		"an empty key, no lock":   {func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") }, "", 403, "operators_only"},
	} {
		s := everyRoute(t, func(o *Options) { o.Auth = operators(tc.key) })
		asked := 0
		for _, pattern := range s.routes.patterns {
			if slices.Contains(publicRoutes, pattern) {
				continue
			}
			asked++
			if w := visit(s, pattern, tc.change); w.Code != tc.status || !strings.Contains(w.Body.String(), tc.code) {
				t.Errorf("%s: %s: %d %s", name, pattern, w.Code, w.Body)
			}
		}
		if asked < 10 {
			t.Errorf("only %d routes are for operators", asked)
		}
	}
}

// TestOperatorsWithAKey: the key alone decides, for a request from any address.
func TestOperatorsWithAKey(t *testing.T) {
	const key = testKey
	far := func(r *http.Request) {
		r.RemoteAddr, r.Host = "192.168.1.7:40000", "gateway.example"
		r.Header.Set("X-Forwarded-For", "10.0.0.1")
		r.Header.Set("Authorization", "bearer "+key)
	}
	for name, tc := range map[string]struct {
		change func(*http.Request)
		code   string // of the refusal; empty for a request that passes
	}{
		"shown":             {header("Authorization", "Bearer "+key), ""},
		"shown from afar":   {far, ""},
		"not shown":         {nil, "key_missing"},
		"shown in a query":  {func(r *http.Request) { r.URL.RawQuery = "api_key=" + key }, "key_missing"},
		"wrong":             {header("Authorization", "Bearer 0123456789abcdef-husk"), "wrong_key"},
		"its beginning":     {header("Authorization", "Bearer 0123456789abcdef"), "wrong_key"},
		"longer":            {header("Authorization", "Bearer "+key+"x"), "wrong_key"},
		"empty":             {header("Authorization", "Bearer "), "wrong_key"},
		"no scheme":         {header("Authorization", key), "wrong_key"},
		"of another scheme": {header("Authorization", "Basic "+key), "wrong_key"},
		"shown twice":       {func(r *http.Request) { r.Header["Authorization"] = []string{"Bearer " + key, "Bearer " + key} }, "key_missing"},
	} {
		t.Run(name, func(t *testing.T) {
			blocks := &fakeBlocks{}
			w := ask(New(Options{Blocks: blocks, Auth: operators(key), Settings: Settings{Hosts: named(t, "gateway.example")}}), "GET", "/v1/blocks", func(r *http.Request) {
				noKey(r)
				if tc.change != nil {
					tc.change(r)
				}
			})
			if tc.code == "" {
				if w.Code != http.StatusOK || blocks.asked != 1 {
					t.Errorf("%d %s", w.Code, w.Body)
				}
				return
			}
			if w.Code != http.StatusUnauthorized || blocks.asked != 0 || !strings.Contains(w.Body.String(), tc.code) ||
				!strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Bearer") {
				t.Errorf("%d %s %v, the store was asked %d times", w.Code, w.Body, w.Header(), blocks.asked)
			}
			if strings.Contains(w.Body.String(), "hush") {
				t.Errorf("the key is shown: %s", w.Body)
			}
		})
	}
}

// TestBlocksAreListedAndEnded: blocks are listed and ended, with any user name.
func TestBlocksAreListedAndEnded(t *testing.T) {
	until := time.Date(2026, 11, 20, 12, 0, 0, 5_600_000, time.FixedZone("", 3600))
	blocks := &fakeBlocks{until: map[string]time.Time{"mallory": until, "a/b c?#%": until, "..": until}}
	s := New(Options{Blocks: blocks, Auth: operators(testKey)})

	type line struct{ User, Until string }
	var list struct{ Blocks []line }
	if err := json.Unmarshal(ask(s, "GET", "/v1/blocks", nil).Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	const reply = "2026-11-20T11:00:00.005Z"
	if diff := cmp.Diff([]line{{"..", reply}, {"a/b c?#%", reply}, {"mallory", reply}}, list.Blocks); diff != "" {
		t.Error(diff)
	}
	for _, user := range []string{"mallory", url.PathEscape("a/b c?#%"), "%2E%2E"} {
		if w := ask(s, "DELETE", "/v1/blocks/"+user, nil); w.Code != http.StatusNoContent || w.Body.Len() != 0 {
			t.Errorf("%s: %d %s", user, w.Code, w.Body)
		}
		if w := ask(s, "DELETE", "/v1/blocks/"+user, nil); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "not_blocked") {
			t.Errorf("%s once more: %d %s", user, w.Code, w.Body)
		}
	}
	if w := ask(s, "GET", "/v1/blocks", nil); w.Body.String() != "{\"blocks\":[]}\n" {
		t.Errorf("without blocked users: %s", w.Body)
	}
	if w := ask(s, "DELETE", "/v1/blocks/mallory", noKey); w.Code != http.StatusUnauthorized {
		t.Errorf("ending without the key: %d", w.Code)
	}
}

// TestABlockThatCannotBeEnded: the client may try again, and the answer does not show the store's error.
func TestABlockThatCannotBeEnded(t *testing.T) {
	s := New(Options{Auth: operators(testKey), Blocks: &fakeBlocks{err: errors.New("nats://store.internal is gone")}})
	w := ask(s, "DELETE", "/v1/blocks/mallory", nil)
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" ||
		!strings.Contains(w.Body.String(), "store_unavailable") || strings.Contains(w.Body.String(), "internal") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestWithoutBlocks: a gateway without a store has no such endpoint.
func TestWithoutBlocks(t *testing.T) {
	if w := ask(New(Options{}), "GET", "/v1/blocks", nil); w.Code != http.StatusNotFound {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestReadiness: if a requirement of sessions is missing, the gateway is not ready; the answer does not say why, and the
// log says it once.
func TestReadiness(t *testing.T) {
	m, err := session.NewManager(sessionOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var log strings.Builder
	var missing error
	s := New(Options{Sessions: m, Logger: logTo(&log), Ready: func(ctx context.Context) error {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("the question has no deadline")
		}
		return missing
	}})
	for _, step := range []struct {
		err  error
		want int
	}{{nil, 200}, {errors.New("nats is gone"), 503}, {errors.New("nats is gone"), 503}, {nil, 200}} {
		missing = step.err
		w := ask(s, "GET", "/readyz", from("192.168.1.7:1"))
		if w.Code != step.want || strings.Contains(w.Body.String(), "nats") || (w.Code == 503) != (w.Header().Get("Retry-After") != "") {
			t.Errorf("%v: %d %s", step.err, w.Code, w.Body)
		}
	}
	if got := strings.Count(log.String(), "readiness changed"); got != 2 || !strings.Contains(log.String(), "nats is gone") {
		t.Errorf("the log has %d changes:\n%s", got, log.String())
	}
}
