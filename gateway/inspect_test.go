package gateway

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/session"
	"voicegw/session/handoff"
)

// TestSubprotocolsCarryNoTokens: of the credentials for Authorization, only the operators' key and a console's token are
// valid as a subprotocol, however short the others are.
func TestSubprotocolsCarryNoTokens(t *testing.T) {
	callers := everyCaller(t)
	m, err := session.NewManager(sessionOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	server := New(Options{Sessions: m, Auth: callers.current})
	srv := httptest.NewServer(server)
	defer srv.Close()
	console, _, _ := server.callers.console.exchange(server.ConsoleCode(), callers.current.Get(), time.Now())
	short := tokenFor("a", "voice", nil)
	if len(short) > protocol.MaxTicketBytes {
		t.Fatalf("the token has %d bytes, and could not be shown", len(short))
	}
	for name, tc := range map[string]struct {
		secret string
		opens  bool
	}{
		"a console": {console, true}, "operators": {testKey, true}, "a token": {short, false}, "a key": {callers.secrets["key:voice"], false}, "an admin's key": {callers.secrets["key:admin"], false},
	} {
		c, err := protocol.Dial(t.Context(), srv.URL+"/v1/voice", protocol.DialOptions{Key: tc.secret})
		if err != nil {
			t.Fatal(err)
		}
		say(t, c, &protocol.Start{InputRate: 16000, OutputRate: 24000})
		if _, started := hear(t, c).(*protocol.SessionStarted); started != tc.opens {
			t.Errorf("%s opens a session: %t", name, started)
		}
		c.Abort()
	}
}

// TestInspectAccess: a client may inspect its session with the key, a console's token, or a ticket that grants it. Other
// clients may talk.
func TestInspectAccess(t *testing.T) {
	const foreign = "https://app.example"
	one := func(name, value string) http.Header { return http.Header{name: {value}} }
	for name, tc := range map[string]struct {
		token  string // sent as a subprotocol; "TOKEN" is a valid one
		ticket string // "granted" or "plain"; empty means no ticket
		header func(host string) http.Header
		host   string
		want   bool
	}{
		"a program on this machine":           {},
		"the gateway's own page":              {header: func(host string) http.Header { return one("Origin", "http://"+host) }},
		"through a proxy":                     {header: func(string) http.Header { return one("X-Forwarded-For", "203.0.113.7") }},
		"under a name of its own":             {host: "gateway.example"},
		"a program that shows the key":        {header: func(string) http.Header { return one("Authorization", "Bearer "+testKey) }, want: true},
		"one that shows another":              {header: func(string) http.Header { return one("Authorization", "Bearer husk") }},
		"a console with its token":            {token: "TOKEN", header: func(host string) http.Header { return one("Origin", "http://"+host) }, want: true},
		"a console with another":              {token: "husk"},
		"the key as a subprotocol":            {token: testKey, want: true},
		"a ticket that grants it":             {ticket: "granted", want: true},
		"a ticket that grants it, to a page":  {ticket: "granted", header: func(string) http.Header { return one("Origin", foreign) }, want: true},
		"a ticket that does not":              {ticket: "plain"},
		"a ticket that does not, and the key": {ticket: "plain", token: "TOKEN", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			opts := sessionOptions()
			opts.Handoffs = inspecting{}
			m, err := session.NewManager(opts)
			if err != nil {
				t.Fatal(err)
			}
			server := New(Options{Sessions: m, Auth: operators(testKey), Settings: Settings{Hosts: named(t, "gateway.example"), Origins: allow(t, "https://app.example")}})
			srv := httptest.NewServer(server)
			defer srv.Close()
			defer m.Close()
			client := &http.Client{Transport: renamed(tc.host)}
			defer client.CloseIdleConnections()
			dial := protocol.DialOptions{Ticket: tc.ticket, Client: client}
			if dial.Key = tc.token; tc.token == "TOKEN" {
				dial.Key, _, _ = server.callers.console.exchange(server.ConsoleCode(), server.callers.current.Get(), time.Now())
			}
			if tc.header != nil {
				dial.Header = tc.header(srv.Listener.Addr().String())
			}
			for _, asks := range []bool{false, true} {
				c, err := protocol.Dial(t.Context(), srv.URL+"/v1/voice", dial)
				if err != nil {
					t.Fatal(err)
				}
				say(t, c, &protocol.Start{InputRate: 16000, OutputRate: 24000, Inspect: asks})
				started, ok := hear(t, c).(*protocol.SessionStarted)
				if !ok || started.Inspect != (asks && tc.want) {
					t.Errorf("asks %t, and is granted %+v", asks, started)
				}
				say(t, c, &protocol.End{})
				_, shown := hear(t, c).(*protocol.InspectState)
				if shown != (asks && tc.want) {
					t.Errorf("asks %t, and is shown the inside: %t", asks, shown)
				}
				c.Abort()
			}
		})
	}
}

// renamed sends another host name, as a browser does after DNS rebinding.
func renamed(host string) http.RoundTripper {
	inner := &http.Transport{DisableKeepAlives: true}
	if host == "" {
		return inner
	}
	return asHost{inner, host}
}

type asHost struct {
	*http.Transport
	host string
}

func (a asHost) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Host = a.host
	return a.Transport.RoundTrip(r)
}

// inspecting is a desk with one ticket that lets its client inspect.
type inspecting struct{ session.Handoffs }

func (inspecting) Redeem(_ context.Context, secret, _ string) (handoff.Ticket, error) {
	return handoff.Ticket{SessionID: "voice-1", User: user.Must("ada"), Inspect: secret == "granted"}, nil
}
