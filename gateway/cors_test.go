package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestCORS: the preflight answers and headers let pages of allowed origins send requests and read the answers.
func TestCORS(t *testing.T) {
	s, _ := chatServer(t, &fakeAgent{}, func(o *Options) {
		o.Hosts, o.Origins = named(t, "voice.example.org"), allow(t, "https://app.example.com")
	})
	ask := func(method, origin string, headers ...string) *http.Response {
		r := httptest.NewRequest(method, "http://voice.example.org/v1/providers", nil)
		r.Header.Set("Origin", origin)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Result()
	}
	const friend, other = "https://app.example.com", "https://evil.example"

	got := ask(http.MethodOptions, friend, "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "authorization,content-type")
	if got.StatusCode != http.StatusNoContent || got.Header.Get("Access-Control-Allow-Origin") != friend ||
		got.Header.Get("Access-Control-Allow-Methods") != "GET" || got.Header.Get("Access-Control-Allow-Headers") != "authorization,content-type" ||
		got.Header.Get("Access-Control-Max-Age") != "600" || got.Header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("a friend's question is answered %s %v", got.Status, got.Header)
	}
	if got = ask(http.MethodOptions, other, "Access-Control-Request-Method", "GET"); got.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("the preflight of another origin is answered %s %v", got.Status, got.Header)
	}
	if got = ask(http.MethodOptions, friend, "Access-Control-Request-Method", "DELETE"); got.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("an unknown method: %s %v", got.Status, got.Header)
	}

	// The headers that npm openai and the AI SDK send from a page.
	const sent = "authorization,content-type,idempotency-key,user-agent,x-stainless-arch,x-stainless-helper-method,x-stainless-retry-count"
	if got = ask(http.MethodOptions, friend, "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", sent); got.Header.Get("Access-Control-Allow-Headers") != sent || got.Header.Get("Access-Control-Allow-Origin") != friend {
		t.Errorf("the preflight of clients is answered %s %v", got.Status, got.Header)
	}
	for _, name := range []string{"x-forwarded-for", "cookie", "x-stainless", "authorization,x-secret"} {
		if got = ask(http.MethodOptions, friend, "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", name); got.Header.Get("Access-Control-Allow-Origin") != "" || got.Header.Get("Access-Control-Allow-Headers") != "" {
			t.Errorf("%s is allowed: %v", name, got.Header)
		}
	}

	got = ask(http.MethodGet, friend)
	if got.StatusCode != http.StatusOK || got.Header.Get("Access-Control-Allow-Origin") != friend || !strings.Contains(strings.Join(got.Header.Values("Vary"), ","), "Origin") ||
		!strings.Contains(got.Header.Get("Access-Control-Expose-Headers"), "Retry-After, ") {
		t.Errorf("a friend gets %s %v", got.Status, got.Header)
	}
	if got = ask(http.MethodGet, other); got.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("another origin gets %s %v", got.Status, got.Header)
	}
}

// TestWebSocketRefusalIsReadable: a page of any origin can read the answer to GET /v1/voice; one of another
// origin only learns that its origin is not allowed.
func TestWebSocketRefusalIsReadable(t *testing.T) {
	s, _ := chatServer(t, &fakeAgent{}, func(o *Options) {
		o.Hosts, o.Origins = named(t, "voice.example.org"), allow(t, "https://app.example.com")
	})
	for _, tt := range []struct {
		origin, url, readable string
		status                int
		code                  string
	}{
		{"https://app.example.com", "http://voice.example.org/v1/voice", "https://app.example.com", http.StatusUpgradeRequired, "WebSocket"},
		{"https://evil.example", "http://voice.example.org/v1/voice", "*", http.StatusForbidden, `"origin"`},
		{"https://evil.example", "http://evil.example/v1/voice", "*", http.StatusMisdirectedRequest, `"host"`},
		{"https://evil.example", "http://voice.example.org/readyz", "", http.StatusForbidden, `"origin"`},
		{"https://evil.example", "http://voice.example.org/v1/voice/", "", http.StatusForbidden, `"origin"`},
	} {
		r := httptest.NewRequest(http.MethodGet, tt.url, nil)
		r.Header.Set("Origin", tt.origin)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != tt.status || w.Header().Get("Access-Control-Allow-Origin") != tt.readable || !strings.Contains(w.Body.String(), tt.code) {
			t.Errorf("%s from %s: %d %v %s, want %d readable by %q with %s", tt.url, tt.origin, w.Code, w.Header(), w.Body, tt.status, tt.readable, tt.code)
		}
	}
}
