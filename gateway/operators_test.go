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

	"voicegw/capability"
	"voicegw/session"
)

// fakeBlocks shuts out those whom it holds.
type fakeBlocks struct {
	until map[string]time.Time
	err   error
	asked int
}

func (b *fakeBlocks) List(context.Context) ([]capability.Block, error) {
	b.asked++
	var list []capability.Block
	for user, until := range b.until {
		list = append(list, capability.Block{User: user, Until: until})
	}
	slices.SortFunc(list, func(x, y capability.Block) int { return strings.Compare(x.User, y.User) })
	return list, b.err
}

func (b *fakeBlocks) Unblock(_ context.Context, user string) (bool, error) {
	b.asked++
	_, ok := b.until[user]
	delete(b.until, user)
	return ok, b.err
}

// ask sends a request to the server without a socket. It comes from 127.0.0.1 to
// localhost, unless change says otherwise.
func ask(s *Server, method, path string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.Host, r.RemoteAddr = "localhost:8080", "127.0.0.1:40000"
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Add(name, value) }
}

func host(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }

func from(addr string) func(*http.Request) { return func(r *http.Request) { r.RemoteAddr = addr } }

// TestOperatorsWithoutAKey: programs on this machine are let in, and nothing that only
// looks like one. What is refused does not reach the store, and is told what to do.
func TestOperatorsWithoutAKey(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*http.Request)
		word   string // of the refusal; empty for a request that passes
	}{
		"a program":                  {nil, ""},
		"a program, by address":      {host("127.0.0.1:8080"), ""},
		"a program, over IPv6":       {func(r *http.Request) { r.Host, r.RemoteAddr = "[::1]:8080", "[::1]:40000" }, ""},
		"a program, without a port":  {host("localhost"), ""},
		"IPv6 without a port":        {host("[::1]"), ""},
		"an address in IPv6's form":  {from("[::ffff:127.0.0.1]:40000"), ""},
		"a key nobody asked for":     {header("Authorization", "Bearer x"), ""},
		"the gateway's own page":     {header("Origin", "http://localhost:8080"), ""},
		"a page's own fetch":         {header("Sec-Fetch-Site", "same-origin"), ""},
		"typed into a browser":       {header("Sec-Fetch-Site", "none"), ""},
		"another machine":            {from("192.168.1.7:40000"), "own machine"},
		"another machine over IPv6":  {from("[2001:db8::1]:40000"), "own machine"},
		"no address at all":          {from("@"), "own machine"},
		"under a name that is named": {host("gateway.example:8080"), "asked as localhost"},
		"a page that is named":       {header("Origin", "https://app.example"), "another origin"},
		"through a proxy":            {header("X-Forwarded-For", "192.168.1.7"), "X-Forwarded-For"},
		"through a standard proxy":   {header("Forwarded", "for=192.168.1.7"), "Forwarded"},
		"through a proxy that signs": {header("Via", "1.1 proxy"), "Via"},
	} {
		t.Run(name, func(t *testing.T) {
			blocks := &fakeBlocks{}
			w := ask(New(Options{Blocks: blocks, Hosts: named(t, "gateway.example"), Origins: allow(t, "https://app.example")}), "GET", "/v1/blocks", tc.change)
			if tc.word == "" {
				if w.Code != http.StatusOK || blocks.asked != 1 {
					t.Errorf("%d %s", w.Code, w.Body)
				}
				return
			}
			if w.Code != http.StatusForbidden || blocks.asked != 0 {
				t.Errorf("%d, the store was asked %d times", w.Code, blocks.asked)
			}
			for _, word := range []string{tc.word, "operators_only", "Set api_key"} {
				if !strings.Contains(w.Body.String(), word) {
					t.Errorf("the refusal does not hold %q: %s", word, w.Body)
				}
			}
		})
	}
}

// TestOperatorsWithAKey: the key alone decides, wherever a request comes from.
func TestOperatorsWithAKey(t *testing.T) {
	const key = "0123456789abcdef-hush"
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
			w := ask(New(Options{Blocks: blocks, APIKey: key, Hosts: named(t, "gateway.example")}), "GET", "/v1/blocks", tc.change)
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

// TestBlocksAreListedAndEnded: whatever a user is called.
func TestBlocksAreListedAndEnded(t *testing.T) {
	until := time.Date(2026, 11, 20, 12, 0, 0, 5_600_000, time.FixedZone("", 3600))
	blocks := &fakeBlocks{until: map[string]time.Time{"mallory": until, "a/b c?#%": until, "..": until}}
	s := New(Options{Blocks: blocks})

	var list struct{ Blocks []blockLine }
	if err := json.Unmarshal(ask(s, "GET", "/v1/blocks", nil).Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	const told = "2026-11-20T11:00:00.005Z"
	if diff := cmp.Diff([]blockLine{{"..", told}, {"a/b c?#%", told}, {"mallory", told}}, list.Blocks); diff != "" {
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
		t.Errorf("when nobody is left: %s", w.Body)
	}
	if w := ask(s, "DELETE", "/v1/blocks/mallory", from("192.168.1.7:1")); w.Code != http.StatusForbidden {
		t.Errorf("ending from another machine: %d", w.Code)
	}
}

// TestBlocksThatCannotBeRead: the client may try again, and learns nothing of the store.
func TestBlocksThatCannotBeRead(t *testing.T) {
	s := New(Options{Blocks: &fakeBlocks{err: errors.New("nats://store.internal is gone")}})
	for _, method := range []string{"GET /v1/blocks", "DELETE /v1/blocks/mallory"} {
		method, path, _ := strings.Cut(method, " ")
		w := ask(s, method, path, nil)
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" ||
			!strings.Contains(w.Body.String(), "store_unavailable") || strings.Contains(w.Body.String(), "internal") {
			t.Errorf("%s: %d %s", method, w.Code, w.Body)
		}
	}
}

// TestWithoutBlocks: a gateway without a store has no such endpoint.
func TestWithoutBlocks(t *testing.T) {
	if w := ask(New(Options{}), "GET", "/v1/blocks", nil); w.Code != http.StatusNotFound {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestReadyAsks: what sessions need and cannot have makes the gateway not ready, and
// nothing of it is told to whoever asks; the log tells it once.
func TestReadyAsks(t *testing.T) {
	m, err := session.NewManager(sessionOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var log strings.Builder
	var missing error
	s := New(Options{Sessions: m, Logger: logTo(&log), Ready: func(ctx context.Context) error {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("nothing bounds the question")
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
	if got := strings.Count(log.String(), "readiness has changed"); got != 2 || !strings.Contains(log.String(), "nats is gone") {
		t.Errorf("the log tells of %d changes:\n%s", got, log.String())
	}
}
