package load

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/client/load/report"
	"voicegw/client/voice"
	"voicegw/client/wire"
	"voicegw/protocol"
)

func TestOtherEndpoints(t *testing.T) {
	for voice, want := range map[string]string{
		"ws://127.0.0.1:8080/v1/voice":           "http://127.0.0.1:8080",
		"wss://voice.example.com/gw/v1/voice/":   "https://voice.example.com/gw",
		"http://localhost/v1/voice":              "http://localhost",
		"ws://127.0.0.1:8080/other":              "",
		"ws://127.0.0.1:8080/v1/voice?x=y":       "http://127.0.0.1:8080",
		"ws://127.0.0.1:8080/v1/voice/v1/voices": "",
		"::":                                     "",
	} {
		got, err := BaseURL(voice)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", voice, got, err)
		}
	}
}

// textSide serves the gateway's other endpoints.
type textSide struct {
	t    *testing.T
	asks []string
	// answer is the raw response body, sent with status.
	status int
	answer string
}

func (s *textSide) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		s.t.Error(err)
	}
	s.asks = append(s.asks, fmt.Sprint(r.Method, " ", r.URL.Path, " ", r.Header.Get("Authorization"), " ", body["user"], ": ", body["pending_request"], body["message"]))
	if r.URL.Path == "/v1/chat" {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	w.WriteHeader(s.status)
	_, _ = w.Write([]byte(s.answer))
}

// beginning runs a caller against a gateway with this text side.
func beginning(t *testing.T, text string, side *textSide, g *gateway) (*scene, Outcome) {
	t.Helper()
	sc, err := ParseScript("script.yaml", []byte(text), wire.Wire{})
	if err != nil {
		t.Fatal(err)
	}
	side.t = t
	srv := httptest.NewServer(side)
	defer srv.Close()
	g.t, g.out, g.gone = t, make(chan protocol.Frame, 1000), make(chan struct{})
	s := &scene{T: t, c: report.New(), gate: g}
	s.set = &Settings{
		Options: Options{
			URL: "ws" + strings.TrimPrefix(srv.URL, "http") + "/v1/voice", Script: sc, InputRate: 16000, OutputRate: 24000,
			Frame: 20 * ms1, ConnectTime: 10 * time.Second, APIKey: "key",
			Dial: func(context.Context, string) (voice.Conn, error) { return g, nil },
		},
		Collector: s.c, Began: time.Now(), HTTP: srv.Client(),
	}
	return s, New(s.set, 7).Call(t.Context(), Limit{})
}

// pending answers the pending request, and then typed text.
func pending(t *testing.T) *gateway {
	return newGateway(t, func(g *gateway, m protocol.ClientMessage) {
		switch m.(type) {
		case *protocol.Start:
			g.answer(1, "The lab opens at nine.", 100*ms1)
		case *protocol.InputText:
			g.answer(2, "You are welcome.", 100*ms1)
		}
		g.ends(m, 1)
		g.ends(m, 2)
	})
}

// TestSessionWithATicket checks a ticket's request and use. The pending request is the first turn; it counts as
// no answer to speech.
func TestSessionWithATicket(t *testing.T) {
	side := &textSide{status: http.StatusCreated, answer: `{"session_id":"voice-1","ticket":"secret-ticket"}`}
	g := pending(t)
	s, outcome := beginning(t, "{microphone: false, user: 'u${session}', begin: {pending_request: 'When? ${call}', expect: {text: at nine, within: 9s}}, turns: [{type: thanks}]}", side, g)
	s.ended(outcome, Done)
	if want := "POST /v1/sessions Bearer key u7: When? 1<nil>"; len(side.asks) != 1 || side.asks[0] != want {
		t.Errorf("the requests are %q, want %q", side.asks, want)
	}
	if start := g.messages[0].msg.(*protocol.Start); start.Ticket != "secret-ticket" || start.Client.ID != "u7" {
		t.Errorf("it began with %+v", start)
	}
	for f, n := range map[report.Figure]int64{report.Ticket: 1, report.Handoff: 1, report.FirstAudio: 1, report.TextFirst: 0} {
		if got := s.c.Summary(f).Count; got != n {
			t.Errorf("%s has %d values, want %d", f.Definition().Name, got, n)
		}
	}
	s.counts(map[report.Counter]int64{report.Turns: 2, report.Answered: 2, report.Expectations: 2, report.Unmet: 0})
}

// TestSessionFromTheTextAgent checks that the text agent's answer is measured and its ticket used.
func TestSessionFromTheTextAgent(t *testing.T) {
	event := func(text string) string { return "data: " + text + "\n\n" }
	side := &textSide{status: http.StatusOK, answer: event(`{"type":"text.delta","seq":1,"item_id":"i","text":"I "}`) + event(`{"type":"text.delta","seq":2,"item_id":"i","text":"start it."}`) +
		event(`{"type":"voice_session_start","seq":3,"sessionId":"voice-1","ticket":"from-chat","url":"ws://x","expires_at":"2026-11-20T10:00:00.000Z"}`) + event(`{"type":"done","seq":4}`)}
	g := pending(t)
	s, outcome := beginning(t, "{microphone: false, begin: {chat: Start voice}, turns: [{type: thanks}]}", side, g)
	s.ended(outcome, Done)
	if start := g.messages[0].msg.(*protocol.Start); start.Ticket != "from-chat" {
		t.Errorf("it began with %+v", start)
	}
	if got := s.c.Summary(report.TextFirst).Count; got != 1 {
		t.Errorf("the first text was measured %d times", got)
	}
}

// TestNoTicket checks that the call is refused with the gateway's message.
func TestNoTicket(t *testing.T) {
	for name, c := range map[string]struct {
		begin, answer, want string
		status              int
	}{
		"blocked":    {"pending_request: x", `{"error":{"code":"blocked","message":"Come back later."}}`, "403 Forbidden blocked Come back later.", 403},
		"no gateway": {"pending_request: x", `<html>`, "the gateway answered 200 OK", 200},
		"no ticket":  {"chat: hello", "data: {\"type\":\"done\",\"seq\":1}\n\n", `the text agent gave no ticket for a voice session after "hello"`, 200},
		"no agent":   {"chat: hello", `{"error":{"code":"draining","message":"It is leaving."}}`, "draining", 503},
	} {
		t.Run(name, func(t *testing.T) {
			s, outcome := beginning(t, "{microphone: false, begin: {"+c.begin+"}, turns: [{type: thanks}]}", &textSide{status: c.status, answer: c.answer}, pending(t))
			if outcome != Broken || !strings.Contains(s.problems(), "turn 0: refused: ") || !strings.Contains(s.problems(), c.want) {
				t.Errorf("outcome %d: %s, want %q", outcome, s.problems(), c.want)
			}
			s.counts(map[report.Counter]int64{report.Refused: 1, report.Sessions: 0})
		})
	}
}

// TestIgnoredPendingRequest covers a gateway that starts the session but ignores the pending request.
func TestIgnoredPendingRequest(t *testing.T) {
	sc, err := ParseScript("script.yaml", []byte("{microphone: false, begin: {pending_request: x}, turns: [{type: thanks}]}"), wire.Wire{})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(g *gateway, m protocol.ClientMessage) {
			if _, ok := m.(*protocol.InputText); ok {
				g.answer(1, "", 100*ms1)
			}
			g.ends(m, 1)
		})
		g.out, g.gone = make(chan protocol.Frame, 1000), make(chan struct{})
		s := &scene{T: t, c: report.New(), gate: g}
		s.set = &Settings{
			Options:   Options{Script: sc, InputRate: 16000, OutputRate: 24000, Frame: 20 * ms1, ConnectTime: time.Minute},
			Collector: s.c, Began: time.Now(),
		}
		k := New(s.set, 7)
		k.calls = 1
		c := k.converse(t.Context(), g, Limit{}, ticket{"t", time.Now()})
		if got, want := s.problems(), "turn 0: failed: no answer to the pending request within 5s (line 1 of the script)"; got != want || !c.Done() {
			t.Errorf("got %s", got)
		}
		s.counts(map[report.Counter]int64{report.Failed: 1, report.Answered: 1})
	})
}
