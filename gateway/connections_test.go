package gateway

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"voicegw/protocol"
	"voicegw/session"
)

// bounded runs a gateway on a real socket with a limit of connections.
func bounded(t *testing.T, l ConnectionLimits) (*httptest.Server, *BoundListener, *session.Manager) {
	t.Helper()
	m, err := session.NewManager(sessionOptions())
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(New(Options{Sessions: m, Chat: &fakeAgent{}}))
	srv.Config.ConnContext = ConnContext
	bound := Bound(srv.Listener, l)
	srv.Listener = Listen(bound, nil)
	srv.Start()
	t.Cleanup(func() {
		m.Close()
		srv.Close()
	})
	return srv, bound, m
}

func (l *BoundListener) inside() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.room.Len()
}

// TestSilentConnectionsMakeRoom: hundreds of connections with no data, half a header or half a body make room for others,
// and a running session is not closed for them.
func TestSilentConnectionsMakeRoom(t *testing.T) {
	for name, first := range map[string]string{
		"nothing":       "",
		"half a header": "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: ",
		"half a body":   "POST /v1/chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
	} {
		t.Run(name, func(t *testing.T) {
			srv, bound, m := bounded(t, ConnectionLimits{AtOnce: 20, PerAddress: 10})
			addr := srv.Listener.Addr().String()
			talks := dialStarted(t, srv.URL)
			defer talks.Abort()
			var silent []net.Conn
			for range 300 {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				io.WriteString(c, first) // it may be closed already
				silent = append(silent, c)
			}
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			resp, err := client.Get(srv.URL + "/healthz")
			if err != nil {
				t.Fatalf("an honest request: %v", err)
			}
			resp.Body.Close()
			for _, c := range silent[:len(silent)-10] {
				io.Copy(io.Discard, c) // waits until the gateway has closed it
			}
			if n := bound.inside(); n > 10 {
				t.Errorf("%d connections are held, want at most 10", n)
			}
			say(t, talks, &protocol.Ping{T: 1})
			if m, ok := hear(t, talks).(*protocol.Pong); !ok {
				t.Errorf("the session that runs was answered %+v", m)
			}
			if m.Running() != 1 {
				t.Errorf("%d sessions run", m.Running())
			}
		})
	}
}

// TestAddressLimitExemptions: trusted proxies, and this machine where it is exempt, have no limit per address.
func TestAddressLimitExemptions(t *testing.T) {
	loopback := netip.MustParsePrefix("127.0.0.0/8")
	for name, tc := range map[string]struct {
		limits ConnectionLimits
		want   int
	}{
		"loopback": {ConnectionLimits{AtOnce: 20, PerAddress: 10}, 10},
		"exempt":   {ConnectionLimits{AtOnce: 20, PerAddress: 10, ExemptLoopback: true}, 20},
		"a proxy":  {ConnectionLimits{AtOnce: 20, PerAddress: 10, Exempt: []netip.Prefix{loopback}}, 20},
	} {
		ln, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		bound := Bound(ln, tc.limits)
		for range 30 {
			c, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			s, err := bound.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
		}
		if n := bound.inside(); n != tc.want {
			t.Errorf("%s: %d connections are held, want %d", name, n, tc.want)
		}
		ln.Close()
	}
}

// TestTwoEnds: a request with Content-Length and Transfer-Encoding gets 400 and its connection is closed; neither it nor
// the following bytes are processed.
func TestTwoEnds(t *testing.T) {
	srv, bound, _ := bounded(t, ConnectionLimits{})
	ask := func(text string) []string {
		c, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, text)
		var codes []string
		for r := bufio.NewReader(c); ; {
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				return codes
			}
			io.Copy(io.Discard, resp.Body)
			codes = append(codes, resp.Status[:3])
		}
	}
	const last = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
	body := func(head string) string {
		return "POST /v1/chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + head + "\r\n"
	}
	chunks := "10\r\n{\"message\":\"hi\"}\r\n0\r\n\r\n"
	for name, tc := range map[string]struct {
		text string
		want string
	}{
		"chunks":         {body("Transfer-Encoding: chunked\r\n") + chunks + last, "200 200"},
		"a length":       {body("Content-Length: 16\r\n") + `{"message":"hi"}` + last, "200 200"},
		"both":           {body("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n") + chunks + last, "400"},
		"two lengths":    {body("Content-Length: 4\r\nContent-Length: 16\r\n") + `{"message":"hi"}` + last, "400"},
		"a folded line":  {body("X: a\r\n b\r\n") + last, "400"},
		"smuggled along": {body("Content-Length: 16\r\n") + `{"message":"hi"}` + body("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n") + chunks + last, ""},
	} {
		got := strings.Join(ask(tc.text), " ")
		if tc.want != "" && got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
		if tc.want == "" && strings.Count(got, "200") > 1 {
			t.Errorf("%s: it was carried out: %q", name, got)
		}
	}
	if n := bound.inside(); n > 6 {
		t.Errorf("%d connections are held", n)
	}
}
