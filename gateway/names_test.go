package gateway

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"voicegw/internal/user"
)

// doors are the endpoints at which a request names a user, each with its answer to an invalid name. session.start is
// another one: session.TestNamesAreChecked.
var doors = map[string]struct {
	field string
	ask   func(name string) *http.Request
}{
	"POST /v1/chat": {"user ", func(name string) *http.Request {
		return naming("/v1/chat", map[string]any{"message": "x", "user": name})
	}},
	"POST /v1/chat, with messages": {"user ", func(name string) *http.Request {
		return naming("/v1/chat", map[string]any{"user": name, "messages": []any{map[string]string{"role": "user", "content": "x"}}})
	}},
	"POST /v1/chat/completions": {"user ", func(name string) *http.Request {
		return naming("/v1/chat/completions", map[string]any{"user": name, "messages": []any{map[string]string{"role": "user", "content": "x"}}})
	}},
	"POST /v1/sessions": {"user ", func(name string) *http.Request {
		return naming("/v1/sessions", map[string]any{"user": name})
	}},
	"DELETE /v1/blocks/{user}": {"The user in the path ", func(name string) *http.Request {
		return httptest.NewRequest(http.MethodDelete, "/v1/blocks/"+url.PathEscape(name), nil)
	}},
}

func naming(path string, body map[string]any) *http.Request {
	text, _ := json.Marshal(body) // only strings: it cannot fail
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(string(text)))
	r.Header.Set("Content-Type", "application/json")
	return r
}

// TestEveryEndpointChecksNames: each endpoint refuses an invalid name, with a text that names the field, before its
// handler runs.
func TestEveryEndpointChecksNames(t *testing.T) {
	for door, d := range doors {
		for _, name := range []string{strings.Repeat("x", user.MaxBytes+1), "a\x01b", "a\u200bb", "\u202eada", "a\U000e0041", " ", "\u0301", "a\ue000"} {
			a := &fakeAgent{}
			s, _ := chatServer(t, a, func(o *Options) { o.Voice, o.Blocks, o.Auth = &desk{}, &fakeBlocks{}, operators(testKey) })
			r := d.ask(name)
			r.Header.Set("Authorization", "Bearer "+testKey)
			r.Host, r.RemoteAddr = "localhost:8080", "127.0.0.1:40000"
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			code, message := problemOf(t, w)
			if w.Code != http.StatusBadRequest || code != "invalid_message" || !strings.HasPrefix(message, d.field) {
				t.Errorf("%s: %.20q: %d %s %q", door, name, w.Code, code, message)
			}
			if len(a.requests()) != 0 {
				t.Errorf("%s: the agent got %.20q", door, name)
			}
		}
	}
}

// TestOneUserInEveryForm: a block applies to all forms of a name.
func TestOneUserInEveryForm(t *testing.T) {
	for _, name := range []string{"ada", " ada", "ａｄａ"} {
		a := &fakeAgent{}
		s, _ := chatServer(t, a, nil)
		send(s, "/v1/chat", `{"message":"x","user":"`+name+`"}`, nil)
		if got := a.requests(); len(got) != 1 || got[0].User != user.Must("ada") {
			t.Errorf("%q: %+v", name, got)
		}
	}
}

// TestAnonymousUsersBehindAProxy: without a name, each request through an untrusted proxy is a new user, not the proxy.
func TestAnonymousUsersBehindAProxy(t *testing.T) {
	a := &fakeAgent{}
	s, _ := chatServer(t, a, nil)
	for range 2 {
		send(s, "/v1/chat", `{"message":"x"}`, header("X-Forwarded-For", "203.0.113.9"))
	}
	send(s, "/v1/chat", `{"message":"x"}`, nil)
	got := a.requests()
	if len(got) != 3 || got[0].User == got[1].User || got[0].User.String() == "192.0.2.7" || got[2].User.String() != "192.0.2.7" {
		t.Errorf("%+v", got)
	}
	for _, r := range got {
		if !r.User.Anonymous() {
			t.Errorf("%s has a name", r.User)
		}
	}
}
