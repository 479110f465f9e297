package gateway

import (
	"bytes"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"voicegw/internal/nonblock"
	"voicegw/internal/quota"
	"voicegw/protocol"
	"voicegw/session"
)

// TestBehindTakesNoSession: while the gateway is behind, /readyz reports it with its start and lateness, and new sessions
// are refused with the same text; afterwards it takes them again.
func TestBehindTakesNoSession(t *testing.T) {
	var late atomic.Pointer[nonblock.Lateness]
	srv, _ := startWith(t, session.Limits{}, func(o *Options) { o.Lateness = func() nonblock.Lateness { return *late.Load() } })
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, l := range []nonblock.Lateness{{Behind: true, Since: since, Longest: 7100 * time.Millisecond}, {}} {
		late.Store(&l)
		for _, path := range []string{"/readyz", "/v1/voice"} {
			resp, body := get(t, srv.URL+path)
			refused := resp.StatusCode == 503 && resp.Header.Get("Retry-After") != ""
			for _, word := range []string{`"behind"`, "7.1 s late", "since 2026-01-02T03:04:05Z", "no new session"} {
				refused = refused && strings.Contains(body, word)
			}
			if refused != l.Behind {
				t.Errorf("behind %t, %s: %d %s", l.Behind, path, resp.StatusCode, body)
			}
		}
	}
}

// TestBehindLetsClientsResume: while the gateway is behind, a client resumes its session after a broken connection; one
// with a wrong token or a new session is refused.
func TestBehindLetsClientsResume(t *testing.T) {
	var late atomic.Pointer[nonblock.Lateness]
	late.Store(&nonblock.Lateness{})
	opts := sessionOptions()
	opts.Policy.ResumeGrace = time.Minute
	srv, m := startOf(t, opts, func(o *Options) { o.Lateness = func() nonblock.Lateness { return *late.Load() } })
	begin := func(back *protocol.Resume) (*protocol.Conn, protocol.ServerMessage) {
		t.Helper()
		c, err := protocol.Dial(t.Context(), srv.URL+"/v1/voice", protocol.DialOptions{Back: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Abort)
		say(t, c, &protocol.Start{InputRate: 16000, OutputRate: 24000, Resume: back})
		return c, hear(t, c)
	}
	first, m1 := begin(nil)
	was, ok := m1.(*protocol.SessionStarted)
	if !ok || was.ResumeToken == "" {
		t.Fatalf("the gateway answered %+v", m1)
	}
	first.Abort()
	late.Store(&nonblock.Lateness{Behind: true, Since: time.Now(), Longest: 7 * time.Second})
	for name, tc := range map[string]struct {
		back *protocol.Resume
		code string
		end  websocket.StatusCode
	}{
		"a new session": {nil, protocol.CodeLimit, protocol.CloseTryLater},
		"a wrong token": {&protocol.Resume{SessionID: was.SessionID, Token: "wrong"}, protocol.CodeResumeRefused, protocol.CloseTicket},
	} {
		c, reply := begin(tc.back)
		if e, ok := reply.(*protocol.Error); !ok || e.Code != tc.code {
			t.Fatalf("%s is answered with %+v", name, reply)
		}
		if _, err := c.Read(); protocol.CloseStatus(err) != tc.end {
			t.Errorf("%s ends with %v", name, err)
		}
	}
	_, reply := begin(&protocol.Resume{SessionID: was.SessionID, Token: was.ResumeToken, LastSeq: was.Seq})
	if back, ok := reply.(*protocol.SessionStarted); !ok || !back.Resumed || back.SessionID != was.SessionID || m.Running() != 1 {
		t.Errorf("the gateway answered %+v, and %d sessions run", reply, m.Running())
	}
}

// TestLatenessIsLogged: the log has the numbers when lateness begins and when it ends.
func TestLatenessIsLogged(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	l := nonblock.Lateness{Behind: true, Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Longest: 7100 * time.Millisecond}
	for _, word := range []string{"behind: ", "caught up: "} {
		logLateness(logger, l)
		for _, w := range []string{word, "late_ms=7100", "since=2026-01-02T03:04:05"} {
			if !strings.Contains(log.String(), w) {
				t.Errorf("the log lacks %q: %s", w, log.String())
			}
		}
		log.Reset()
		l.Behind = false
	}
}

// TestOverloadedTakesNoSession: while memory is short or the store is unreachable, /readyz and the handshake report it,
// and a client of a running session resumes.
func TestOverloadedTakesNoSession(t *testing.T) {
	var over atomic.Pointer[quota.State]
	over.Store(&quota.State{})
	opts := sessionOptions()
	opts.Policy.ResumeGrace = time.Minute
	srv, _ := startOf(t, opts, func(o *Options) { o.Overload = func() quota.State { return *over.Load() } })
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, is := range []quota.State{{Reason: quota.Memory, Since: since}, {Reason: quota.Store, Since: since}, {}} {
		over.Store(&is)
		for path, says := range map[string]string{"/readyz": "2026-01-02T03:04:05Z", "/v1/voice": "no new session"} {
			resp, body := get(t, srv.URL+path)
			refused := resp.StatusCode == 503 && resp.Header.Get("Retry-After") != "" && strings.Contains(body, `"overloaded"`) && strings.Contains(body, says)
			if refused != is.Over() {
				t.Errorf("%s, %s: %d %s", is.Reason, path, resp.StatusCode, body)
			}
		}
	}
	begin := func(back *protocol.Resume) protocol.ServerMessage {
		t.Helper()
		c, err := protocol.Dial(t.Context(), srv.URL+"/v1/voice", protocol.DialOptions{Back: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Abort)
		say(t, c, &protocol.Start{InputRate: 16000, OutputRate: 24000, Resume: back})
		return hear(t, c)
	}
	was, ok := begin(nil).(*protocol.SessionStarted)
	if !ok {
		t.Fatal("no session has begun")
	}
	over.Store(&quota.State{Reason: quota.Memory, Since: since})
	for reason, want := range map[quota.Reason]int{quota.Memory: 503, quota.Store: 200} {
		over.Store(&quota.State{Reason: reason, Since: since})
		if resp, body := get(t, srv.URL+"/readyz"); resp.StatusCode != want || want == 200 && !strings.Contains(body, `"degraded"`) {
			t.Errorf("a gateway that runs a session and lacks its %s is %d %s", reason, resp.StatusCode, body)
		}
		if resp, body := get(t, srv.URL+"/v1/voice"); resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
			t.Errorf("its handshake, without its %s: %d %s", reason, resp.StatusCode, body)
		}
	}
	over.Store(&quota.State{Reason: quota.Memory, Since: since})
	if refused, ok := begin(nil).(*protocol.Error); !ok || refused.Code != protocol.CodeLimit {
		t.Errorf("a new session: %+v", refused)
	}
	if back, ok := begin(&protocol.Resume{SessionID: was.SessionID, Token: was.ResumeToken}).(*protocol.SessionStarted); !ok || !back.Resumed {
		t.Errorf("a client that resumes: %+v", back)
	}
}
