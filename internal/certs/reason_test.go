package certs

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"voicegw/internal/testutil"
)

// refusingAuthority is an authority (RFC 8555) that cannot reach the host.
func refusingAuthority(t *testing.T) *httptest.Server {
	t.Helper()
	var mu sync.Mutex
	tried := false
	var srv *httptest.Server
	srv = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		w.Header().Set("Replay-Nonce", "nonce")
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		say := func(status int, format string, args ...any) {
			w.WriteHeader(status)
			fmt.Fprintf(w, strings.ReplaceAll(format, "URL", srv.URL), args...)
		}
		const name = `"identifier":{"type":"dns","value":"voice.example.com"}`
		switch r.URL.Path {
		case "/":
			say(200, `{"newNonce":"URL/nonce","newAccount":"URL/account","newOrder":"URL/order","revokeCert":"URL/revoke","keyChange":"URL/key"}`)
		case "/nonce":
			say(200, "")
		case "/account":
			w.Header().Set("Location", srv.URL+"/account/1")
			say(201, `{"status":"valid"}`)
		case "/order":
			w.Header().Set("Location", srv.URL+"/order/1")
			say(201, `{"status":"pending","identifiers":[{"type":"dns","value":"voice.example.com"}],"authorizations":["URL/authz"],"finalize":"URL/finalize"}`)
		case "/challenge":
			tried = true
			say(200, `{"type":"tls-alpn-01","url":"URL/challenge","token":"t","status":"pending"}`)
		case "/authz":
			if tried {
				say(200, `{"status":"invalid",`+name+`,"challenges":[{"type":"tls-alpn-01","url":"URL/challenge","token":"t","status":"invalid","error":{"type":"urn:ietf:params:acme:error:connection","detail":"192.0.2.1: Connection refused","status":400}}]}`)
				tried = false
				return
			}
			say(200, `{"status":"pending",`+name+`,"challenges":[{"type":"tls-alpn-01","url":"URL/challenge","token":"t","status":"pending"}]}`)
		default:
			say(404, `{}`)
		}
	}))
	t.Cleanup(srv.Close)
	return srv
}

// TestReasonIsLogged: when the authority cannot check a host, the log has the reason.
func TestReasonIsLogged(t *testing.T) {
	srv := refusingAuthority(t)
	var mu sync.Mutex
	var text strings.Builder
	log := slog.New(slog.NewTextHandler(writer(func(b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return text.Write(b)
	}), nil))
	s, err := Open(Options{Logger: log, ACME: &ACME{Hosts: []string{"voice.example.com"}, Directory: srv.URL, Cache: t.TempDir(), Client: srv.Client()}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	said := func() string {
		mu.Lock()
		defer mu.Unlock()
		return text.String()
	}
	testutil.WaitUntil(t, "the order has failed", func() bool { return strings.Contains(said(), "cannot order certificate") })
	if !strings.Contains(said(), "the certificate authority reports: tls-alpn-01: connection: 192.0.2.1: Connection refused") {
		t.Errorf("the log has %s", said())
	}
	cancel()
	running.Wait()
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// FuzzReason: for any answer of the authority, a reason belongs to a host.
func FuzzReason(f *testing.F) {
	f.Add([]byte(`{"status":"invalid","identifiers":[{"value":"A.example"}],"error":{"type":"urn:ietf:params:acme:error:rateLimited","detail":"later"}}`))
	f.Add([]byte(`{"identifier":{"value":"a.example"},"challenges":[{"type":"x","error":null},{"type":"y","error":{"detail":"no"}}]}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if host, why := reasonIn(body); (host == "") != (why == "") {
			t.Errorf("%q: %q", host, why)
		}
	})
}
