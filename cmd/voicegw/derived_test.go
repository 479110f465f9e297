package main

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"voicegw/internal/auth"
	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// post sends a request with credentials, and decodes a successful answer.
func post(t *testing.T, addr, path, key, body string, answer any) (status int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil && answer != nil && resp.StatusCode < 300 {
		err = json.Unmarshal(data, answer)
	}
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

// speaks starts a session and returns it after session.started; nil if the gateway refuses it.
func speaks(t *testing.T, addr, ticket string, o protocol.DialOptions) *protocol.Conn {
	t.Helper()
	c, err := protocol.Dial(t.Context(), "ws://"+addr+"/v1/voice", o)
	if err != nil {
		return nil
	}
	t.Cleanup(c.Abort)
	say(t, c, &protocol.Start{InputRate: 24000, OutputRate: 24000, Ticket: ticket})
	for {
		f, err := c.Read()
		if err != nil {
			return nil
		}
		if strings.Contains(string(f.Data), `"session.started"`) {
			return c
		}
	}
}

// TestDerivedAccessEndsWithItsKey: after the operators' key changes, or an admin's key is removed, all access derived
// from it ends on every gateway: its sessions, also those of tickets and consoles, and its unused tokens, codes and
// tickets.
func TestDerivedAccessEndsWithItsKey(t *testing.T) {
	t.Parallel()
	nats := startNATS(t, &natsserver.Options{Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	file := filepath.Join(t.TempDir(), "voicegw.yaml")
	admin := auth.NewAPIKey()
	adminsKey := fmt.Sprintf("auth:\n  keys:\n    admin: {id: %q, sha256: %q, scopes: [admin]}\n", admin.ID(), admin.Hash())
	write := func(operator string, keys string) {
		t.Helper()
		if err := os.WriteFile(file, []byte("api_key: "+operator+"\n"+keys), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const before, after = "the-operators-key-before", "the-operators-key-after"
	write(before, adminsKey)
	var gateways [2]*running
	for i := range gateways {
		addr, err := testutil.FreeAddr()
		if err != nil {
			t.Fatal(err)
		}
		gateways[i] = start(t, "--config", file, "--set", "store.url="+nats.ClientURL(), "--set", "cluster.listen="+addr,
			"--set", "cluster.url=http://"+addr, "--set", "cluster.secret=a-secret-that-all-gateways-have-in-common")
	}
	here, there := gateways[0].addr, gateways[1].addr
	type made struct {
		sessions      map[string]*protocol.Conn
		token, code   string // of a console
		ticket        string // not used yet
		consoleTicket string // not used yet
	}
	open := func(key string) (m made) {
		t.Helper()
		var offer struct{ Ticket string }
		ticket := func(key string) string {
			t.Helper()
			if status := post(t, here, "/v1/sessions", key, `{"user":"ada"}`, &offer); status != http.StatusCreated {
				t.Fatalf("a ticket: %d", status)
			}
			return offer.Ticket
		}
		code := func() string {
			t.Helper()
			var answer struct{ Code string }
			if status := post(t, here, "/v1/console/codes", key, "", &answer); status != http.StatusCreated {
				t.Fatalf("a code: %d", status)
			}
			return answer.Code
		}
		var console struct{ Token string }
		if status := post(t, here, "/v1/console/login", "", `{"code":"`+code()+`"}`, &console); status != http.StatusOK {
			t.Fatalf("a console: %d", status)
		}
		m = made{token: console.Token, code: code(), ticket: ticket(key), consoleTicket: ticket(console.Token), sessions: map[string]*protocol.Conn{
			"its own":                          speaks(t, here, "", protocol.DialOptions{Header: http.Header{"Authorization": {"Bearer " + key}}}),
			"a console's":                      speaks(t, here, "", protocol.DialOptions{Key: console.Token}),
			"of a ticket":                      speaks(t, here, ticket(key), protocol.DialOptions{}),
			"of a ticket, elsewhere":           speaks(t, there, ticket(key), protocol.DialOptions{}),
			"of a console's ticket":            speaks(t, here, ticket(console.Token), protocol.DialOptions{}),
			"of a console's ticket, elsewhere": speaks(t, there, ticket(console.Token), protocol.DialOptions{}),
		}}
		for name, c := range m.sessions {
			if c == nil {
				t.Fatalf("a session %s does not begin", name)
			}
		}
		return m
	}
	ended := func(m made) {
		t.Helper()
		for name, c := range m.sessions {
			if _, last := closedWith(c); !strings.Contains(last, "operator_ended") {
				t.Errorf("a session %s ends with %s", name, last)
			}
		}
		for name, status := range map[string]int{
			"a console's token": post(t, here, "/v1/sessions", m.token, `{"user":"ada"}`, nil),
			"a console's code":  post(t, here, "/v1/console/login", "", `{"code":"`+m.code+`"}`, nil),
		} {
			if status != http.StatusUnauthorized {
				t.Errorf("%s: %d", name, status)
			}
		}
		for name, ticket := range map[string]string{"a ticket": m.ticket, "a console's ticket": m.consoleTicket} {
			if speaks(t, there, ticket, protocol.DialOptions{}) != nil {
				t.Errorf("%s opens a session on another gateway", name)
			}
		}
	}
	reloads := 0
	reload := func(ends int) {
		t.Helper()
		reloads++
		for _, r := range gateways {
			r.reloads <- syscall.SIGHUP
		}
		n := 0
		for _, r := range gateways {
			testutil.WaitUntil(t, "configuration reloaded", func() bool { return strings.Count(r.err.String(), `"msg":"configuration reloaded`) >= reloads })
			n += strings.Count(r.err.String(), "ending a session with revoked credentials")
		}
		if n != ends {
			t.Errorf("%d sessions ended, want %d", n, ends)
		}
	}
	ofOperator, ofAdmin := open(before), open(admin.Reveal())
	write(after, adminsKey)
	reload(6)
	ended(ofOperator)
	for name, c := range ofAdmin.sessions {
		say(t, c, &protocol.Ping{T: 7})
		var pong protocol.Pong
		if next(t, c, "pong", &pong); pong.T != 7 {
			t.Errorf("the admin's session %s ended", name)
		}
	}
	write(after, "auth:\n  keys:\n    other: {id: bbbbbbbb, sha256: \""+strings.Repeat("2", 64)+"\", scopes: [voice]}\n")
	reload(12)
	ended(ofAdmin)
}

// TestWithdrawnSignerEndsSessions: the session of a token ends soon after its issuer withdraws the signing key, without a
// reload.
func TestWithdrawnSignerEndsSessions(t *testing.T) {
	t.Parallel()
	signers := []signer{newSigner(t), newSigner(t)}
	token := func(n int) string {
		part := base64.RawURLEncoding.EncodeToString
		text := part(fmt.Appendf(nil, `{"alg":"EdDSA","kid":"%d"}`, n)) + "." + part(fmt.Appendf(nil, `{"iss":"https://id.example.com","aud":"voice","sub":"ada","scope":"voice","exp":%d}`, time.Now().Add(time.Hour).Unix()))
		return text + "." + part(ed25519.Sign(signers[n].key, []byte(text)))
	}
	var current atomic.Int64
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := current.Load()
		x := base64.RawURLEncoding.EncodeToString(signers[n].key.Public().(ed25519.PublicKey))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"%d","use":"sig","x":%q}]}`, n, x)
	}))
	defer issuer.Close()
	file := filepath.Join(t.TempDir(), "voicegw.yaml")
	text := "auth:\n  jwt:\n    people:\n      issuer: https://id.example.com\n      audience: [voice]\n      jwks_url: " + issuer.URL + "\n      algs: [EdDSA]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, "--config", file)
	bearer := func(n int) protocol.DialOptions {
		return protocol.DialOptions{Header: http.Header{"Authorization": {"Bearer " + token(n)}}}
	}
	var goes *protocol.Conn
	testutil.WaitUntil(t, "the issuer has its keys", func() bool { goes = speaks(t, r.addr, "", bearer(0)); return goes != nil })
	current.Store(1)
	stays := speaks(t, r.addr, "", bearer(1)) // the unknown kid makes the gateway fetch the keys
	if stays == nil {
		t.Fatal("a token of the new key is refused")
	}
	r.sweeps <- time.Now()
	if _, last := closedWith(goes); !strings.Contains(last, "operator_ended") {
		t.Errorf("the session of the withdrawn key ends with %s", last)
	}
	say(t, stays, &protocol.Ping{T: 7})
	var pong protocol.Pong
	next(t, stays, "pong", &pong)
}
