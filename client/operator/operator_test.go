package operator

import (
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"voicegw/internal/textutil"
)

func TestBaseURL(t *testing.T) {
	for _, tc := range []struct{ given, listen, want string }{
		{"", "127.0.0.1:8080", "http://127.0.0.1:8080"},
		{"", ":80", "http://127.0.0.1:80"},
		{"", "0.0.0.0:80", "http://127.0.0.1:80"},
		{"", "[::]:80", "http://[::1]:80"},
		{"", "localhost:80", "http://localhost:80"},
		{"", "127.0.0.1:0", ""},
		{"https://a.example/voice/", "127.0.0.1:0", "https://a.example/voice"},
		{"ws://a.example:80/v1/voice", "", "http://a.example:80"},
		{"wss://a.example/v1/voice", "", "https://a.example"},
		{"a.example:80", "", ""}, {"ftp://a.example", "", ""}, {"http://", "", ""}, {"http://me:hush@a.example", "", ""},
		{"http://a.example?key=hush", "", ""}, {"http://a.example/%zz", "", ""},
	} {
		got, err := BaseURL(tc.given, "http", tc.listen)
		if got != tc.want || (err == nil) != (tc.want != "") || err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("BaseURL(%q, %q) = %q, %v", tc.given, tc.listen, got, err)
		}
	}
}

func TestSegmentAndQuoteOdd(t *testing.T) {
	for text, want := range map[string][2]string{
		"mallory": {"mallory", "mallory"}, "a/b c": {"a%2Fb%20c", "a/b c"}, ".": {"%2E", "."}, "..": {"%2E%2E", ".."}, "a.b": {"a.b", "a.b"},
		"Zoë": {"Zo%C3%AB", "Zoë"}, "\x1b[2J": {"%1B%5B2J", `"\x1b[2J"`}, "a\tb": {"a%09b", `"a\tb"`}, "a\xff": {"a%FF", `"a\xff"`},
		"\u202eb": {"%E2%80%AEb", `"\u202eb"`},
	} {
		if got := [2]string{segment(text), textutil.Quote(text)}; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestClientTrust: a key is sent only to its own address, and a response from any server reaches the terminal as plain
// text.
//
// Both servers have ports from the system, so another program that remembers an old server may call them. Only requests
// that this client can have sent count.
func TestClientTrust(t *testing.T) {
	mine := "/" + rand.Text()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == mine || r.Header.Get("Authorization") == "Bearer hush" {
			t.Errorf("the request was redirected: %s", r.URL)
		}
	}))
	defer elsewhere.Close()
	answer := func(w http.ResponseWriter, status int, code, message string) {
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"code": code, "message": message}})
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, ok := strings.CutPrefix(r.URL.Path, mine)
		if !ok {
			http.NotFound(w, r)
			return
		}
		if r.Header.Get("Authorization") != "Bearer hush" {
			t.Errorf("%s got the key %q", r.URL, r.Header.Get("Authorization"))
		}
		switch path {
		case "/redirect":
			http.Redirect(w, r, elsewhere.URL+mine, http.StatusFound)
		case "/terminal":
			answer(w, 403, "operators_only", "no\x1b[2J")
		case "/old":
			answer(w, 404, "not_found", "x")
		case "/html":
			io.WriteString(w, "<html>")
		}
	}))
	defer srv.Close()
	o := New(srv.URL+mine, "hush", nil)
	defer o.Close()
	for path, want := range map[string]string{
		"/redirect": "is not a voicegw gateway (status 302", "/terminal": `answers 403: "no\x1b[2J"`, "/old": "has no endpoint /old", "/html": "is not a voicegw gateway (status 200",
	} {
		var out struct{}
		err := o.Ask(t.Context(), http.MethodGet, path, &out)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestTimeout covers a gateway that does not answer.
func TestTimeout(t *testing.T) {
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer srv.Close()
	defer close(release)
	o := New(srv.URL, "", nil)
	defer o.Close()
	if o.http.Timeout != askTime {
		t.Errorf("the timeout is %s", o.http.Timeout)
	}
	o.http.Timeout = 50 * time.Millisecond
	if err := o.Ask(t.Context(), http.MethodGet, "/", nil); err == nil || !strings.Contains(err.Error(), "is unreachable") {
		t.Errorf("%v", err)
	}
}
