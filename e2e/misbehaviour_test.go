package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"voicegw/internal/testutil"
	"voicegw/orchestrator"
	"voicegw/protocol"
	"voicegw/session"
)

// stillWorks checks that the gateway accepts a new session and answers a ping in it.
func stillWorks(t *testing.T, st *stack) {
	t.Helper()
	c := st.start(t, 16000)
	c.say(&protocol.Ping{T: 1})
	waitFor[*protocol.Pong](c)
	c.say(&protocol.End{})
	if code, _ := c.ended(); code != protocol.CloseDone {
		t.Errorf("the session after it closed with %d", code)
	}
}

// TestProviderRefuses checks the client's error if the provider refuses the gateway.
func TestProviderRefuses(t *testing.T) {
	t.Parallel()
	refuse := func(status int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	}
	silent := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mute := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ws, err := websocket.Accept(w, r, nil); err == nil {
			defer ws.CloseNow()
			for {
				if _, _, err := ws.Read(context.Background()); err != nil {
					return
				}
			}
		}
	})
	for _, provider := range providers {
		for _, tc := range []struct {
			name   string
			set    setting
			reason string
		}{
			{"unauthorized", setting{provider: refuse(401)}, "provider_refused"},
			{"forbidden", setting{provider: refuse(403)}, "provider_refused"},
			{"not found", setting{provider: refuse(404)}, "provider_refused"},
			{"unavailable", setting{provider: refuse(503)}, "provider_unavailable"},
			{"too many", setting{provider: refuse(429)}, ""},
			{"silent", setting{provider: silent}, "provider_unavailable"},
			{"mute after the handshake", setting{provider: mute}, "provider_unavailable"},
			{"an invalid key", setting{key: "invalid-0123456789"}, ""},
			{"an expired key", setting{key: "expired-0123456789"}, ""},
		} {
			t.Run(provider+" "+tc.name, func(t *testing.T) {
				t.Parallel()
				tc.set.limits.ConnectTimeout = 1500 * time.Millisecond
				st := newStack(t, provider, tc.set)
				c := st.connect(t)
				c.say(&protocol.Start{InputRate: 16000, OutputRate: 24000})
				code, errs := c.ended()
				if code != protocol.CloseProviderUnavailable || len(errs) != 1 || errs[0].Code != protocol.CodeProviderUnavailable {
					t.Errorf("closed with %d after %v", code, errs)
				}
				if tc.reason != "" && !strings.Contains(st.log.String(), tc.reason) {
					t.Errorf("the log does not say %s", tc.reason)
				}
			})
		}
	}
}

// refusals are each provider's close codes for permanent refusals. After other codes, the session continues on another
// connection.
var refusals = map[string][]int{"gemini": {1007}, "openai": {1007, 3000, 4000}}

// TestProviderCloses: a permanent refusal ends the session with 4001 and a message. After any other close code the turn
// is answered over another connection. Neither affects the gateway.
func TestProviderCloses(t *testing.T) {
	t.Parallel()
	for _, provider := range providers {
		for _, code := range []int{1000, 1001, 1007, 1008, 1011, 3000, 4000} {
			t.Run(fmt.Sprint(provider, " ", code), func(t *testing.T) {
				t.Parallel()
				st := newStack(t, provider, setting{firstAudioMS: 10, faults: fmt.Sprintf(`
faults:
  - {at: chunk, n: 1, connection: 1, do: close, code: %d, reason: a reason}
`, code)})
				opened := time.Now()
				c := st.start(t, 16000)
				c.say(&protocol.InputText{Text: "tell me a story"})
				if !slices.Contains(refusals[provider], code) {
					continues(c)
					return
				}
				h := c.next()
				for ; h.err == nil; h = c.next() {
					if _, replaced := h.msg.(*protocol.ProviderReconnecting); replaced && time.Since(opened) > 10*time.Second {
						t.Skip("this machine is too busy: after 10 s, the refusal does not end the session")
					}
				}
				got, errs := protocol.CloseStatus(h.err), messages[*protocol.Error](c)
				if got != protocol.CloseProviderUnavailable || len(errs) == 0 || errs[len(errs)-1].Code != protocol.CodeProviderUnavailable {
					t.Errorf("closed with %d after %v", got, errs)
				}
				stillWorks(t, st)
			})
		}
	}
}

// continues waits until the model's connection was replaced and the turn was answered.
func continues(c *client) {
	c.t.Helper()
	if m := waitFor[*protocol.ProviderReconnected](c); m.Reason != "lost" || m.How != "replayed" {
		c.t.Errorf("the connection was restored with %+v", m)
	}
	playTurn(c)
}

// TestProviderFaults checks the client's view of the simulator's faults.
func TestProviderFaults(t *testing.T) {
	t.Parallel()
	for _, provider := range providers {
		for _, tc := range []struct {
			name, fault string
			survives    bool   // the connection stays; otherwise it is replaced and the turn completes
			logged      string // in the log line of its end
		}{
			{"drops the connection", "{at: chunk, n: 2, connection: 1, do: drop}", false, ""},
			{"sends garbage", "{at: chunk, n: 2, connection: 1, do: malformed}", true, `"malformed_events":1`},
			{"sends an unknown event", "{at: chunk, n: 2, connection: 1, do: unknown_event}", true, `"unknown_events":1`},
			{"expires", "{at: chunk, n: 2, connection: 1, do: expire}", false, ""},
			{"delays", "{at: chunk, n: 2, connection: 1, do: delay, for: 300ms}", true, ""},
			{"reads slowly", "{at: setup, connection: 1, do: slow_read, for: 50ms}", true, ""},
		} {
			t.Run(provider+" "+tc.name, func(t *testing.T) {
				t.Parallel()
				st := newStack(t, provider, setting{firstAudioMS: 10, speed: 20, faults: "faults:\n  - " + tc.fault})
				c := st.start(t, 16000)
				c.say(&protocol.InputText{Text: "hello"})
				if tc.survives {
					playTurn(c)
				} else {
					continues(c)
				}
				stillWorks(t, st)
				c.close()
				st.manager.Close()
				if !strings.Contains(st.log.String(), tc.logged) {
					t.Errorf("the log does not say %s", tc.logged)
				}
			})
		}
	}
}

// playTurn takes a turn to its end, with instant playback.
func playTurn(c *client) {
	c.t.Helper()
	for {
		switch m := c.next().msg.(type) {
		case *protocol.AudioEnd:
			c.say(&protocol.Playback{ItemID: m.ItemID, PlayedMS: m.AudioMS, Done: true})
		case *protocol.TurnEnded:
			if m.Status != "completed" {
				c.t.Errorf("the turn ended %s", m.Status)
			}
			return
		}
	}
}

// TestModelSaysNothing checks invariant 2: a turn without an answer ends with an error.
func TestModelSaysNothing(t *testing.T) {
	t.Parallel()
	for _, provider := range providers {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			st := newStack(t, provider, setting{
				faults: "faults:\n  - {at: turn, n: 1, connection: 1, do: silence}",
				policy: orchestrator.Policy{NudgeAfter: 200 * time.Millisecond, NoAnswerAfter: 600 * time.Millisecond},
			})
			c := st.start(t, 16000)
			c.say(&protocol.InputText{Text: "hello?"})
			for {
				h := c.next()
				if e, ok := h.msg.(*protocol.Error); ok && e.Code == protocol.CodeNoAnswer {
					break
				}
			}
			if end := waitFor[*protocol.TurnEnded](c); end.Status != "failed" {
				t.Errorf("the turn ended %s", end.Status)
			}
		})
	}
}

// TestBadClients: a client's mistakes over a socket do not affect other clients.
func TestBadClients(t *testing.T) {
	t.Parallel()
	st := newStack(t, "gemini", setting{speed: 50, firstAudioMS: 10})
	hurried := newStack(t, "gemini", setting{limits: session.Limits{StartTimeout: time.Second}, speed: 50, firstAudioMS: 10})
	for _, tc := range []struct {
		name string
		do   func(t *testing.T, c *client)
		code websocket.StatusCode
	}{
		{"sends audio first", func(t *testing.T, c *client) { c.speak(16000, make([]byte, 640)) }, protocol.CloseBadProtocol},
		{"sends no JSON", func(t *testing.T, c *client) { mustWrite(t, c, "hello") }, protocol.CloseBadProtocol},
		{"sends 5 MB", func(_ *testing.T, c *client) {
			// The gateway closes it during the write, which may fail.
			_ = c.conn.WriteAudio(make([]byte, 5<<20))
		}, protocol.CloseTooBig},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := st.connect(t)
			tc.do(t, c)
			if code, _ := c.ended(); code != tc.code {
				t.Errorf("closed with %d, want %d", code, tc.code)
			}
			stillWorks(t, st)
		})
	}
	t.Run("says nothing", func(t *testing.T) {
		if code, _ := hurried.connect(t).ended(); code != protocol.CloseStartTimeout {
			t.Errorf("closed with %d, want %d", code, protocol.CloseStartTimeout)
		}
		stillWorks(t, st)
	})
	t.Run("vanishes", func(t *testing.T) {
		c := st.start(t, 16000)
		c.conn.Abort()
		testutil.WaitUntil(t, "the session is over", func() bool { return st.manager.Running() == 0 })
	})
	t.Run("stops reading", func(t *testing.T) {
		slow := newStack(t, "gemini", setting{limits: session.Limits{SlowClient: time.Second}, speed: 50, firstAudioMS: 10})
		conn, err := protocol.Dial(t.Context(), slow.url+"/v1/voice", protocol.DialOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Abort()
		for _, m := range []protocol.ClientMessage{&protocol.Start{InputRate: 16000, OutputRate: 48000}, &protocol.InputText{Text: "tell me a story"}} {
			text, err := protocol.EncodeClient(m)
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.WriteText(text); err != nil {
				t.Fatal(err)
			}
		}
		for range 60 { // fills the socket, with any size of the kernel's buffers
			text, err := protocol.EncodeClient(&protocol.InputText{Text: "tell me a story"})
			if err != nil {
				t.Fatal(err)
			}
			if conn.WriteText(text) != nil {
				break
			}
		}
		testutil.WaitUntil(t, "the slow client is gone", func() bool { return slow.manager.Running() == 0 })
		stillWorks(t, slow)
	})
}

func mustWrite(t *testing.T, c *client, text string) {
	t.Helper()
	if err := c.conn.WriteText([]byte(text)); err != nil {
		t.Fatal(err)
	}
}
