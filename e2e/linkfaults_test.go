package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// linkFault is a fault of the model's connection that the conversation survives.
type linkFault struct {
	name    string
	wires   []string // nil for both
	faults  string   // the fault script's entries
	how     []string // how each new connection learned the conversation
	notices int      // notices to the client about the connection
	maybe   bool     // or none: the pauses between attempts are random
}

// leaves announces the end of the first connection, or closes it on wires without announcements.
const leaves = "{at: time, after: 10s, connection: 1, do: goaway, for: 30s}, "

var linkFaults = []linkFault{
	{name: "refuse_resume 1007", wires: []string{"gemini"}, faults: leaves + "{at: setup, connection: 2, do: refuse_resume, code: 1007}", how: []string{"replayed"}},
	{name: "refuse_resume 1008", wires: []string{"gemini"}, faults: leaves + "{at: setup, connection: 2, do: refuse_resume, code: 1008}", how: []string{"replayed"}},
	{name: "refuse_resume 1011", wires: []string{"gemini"}, faults: leaves + "{at: setup, connection: 2, do: refuse_resume, code: 1011}", how: []string{"replayed"}},
	{name: "resumed", wires: []string{"gemini"}, faults: leaves + "{at: time, after: 1h, do: drop}", how: []string{"resumed"}},
	{name: "amnesia", wires: []string{"gemini"}, faults: leaves + "{at: setup, connection: 2, do: amnesia}", how: []string{"resumed", "replayed"}},
	{name: "deaf", wires: []string{"gemini"}, faults: leaves + "{at: setup, connection: 2, do: deaf}", how: []string{"resumed", "replayed"}, notices: 1},
	{name: "late_handle", wires: []string{"gemini"}, faults: leaves + "{at: setup, connection: 1, do: late_handle, for: 1m}", how: []string{"replayed"}},
	{name: "no_handle", wires: []string{"gemini"}, faults: leaves + "{at: setup, connection: 1, do: no_handle}", how: []string{"replayed"}},
	{name: "busy_handle", wires: []string{"gemini"}, faults: leaves + "{at: setup, connection: 1, do: busy_handle}", how: []string{"resumed"}},
	{name: "drop", faults: "{at: time, after: 10s, connection: 1, do: drop}", how: []string{"*"}},
	{name: "close 1011", faults: "{at: time, after: 10s, connection: 1, do: close, code: 1011}", how: []string{"*"}},
	{name: "dial 500", faults: "{at: time, after: 10s, connection: 1, do: drop}, {at: connect, connection: 2, do: http_error, code: 500}, {at: connect, connection: 3, do: drop}", how: []string{"*"}, notices: 1, maybe: true},
	{name: "dial 429", faults: "{at: time, after: 10s, connection: 1, do: drop}, {at: connect, connection: 2, do: http_error, code: 429}", how: []string{"*"}},
	{name: "slow setup", faults: "{at: time, after: 10s, connection: 1, do: drop}, {at: connect, connection: 2, do: delay, for: 8s}", how: []string{"*"}, notices: 1},
	{name: "no setup", faults: "{at: time, after: 10s, connection: 1, do: drop}, {at: connect, connection: 2, do: silence}", how: []string{"*"}, notices: 1},
}

// TestLinkFaults: after a fault between two turns, the model knows the conversation on the next connection, and the
// client gets notices only of long outages, and no error.
func TestLinkFaults(t *testing.T) {
	t.Parallel()
	for _, f := range linkFaults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			wires := f.wires
			if wires == nil {
				wires = providers
			}
			overLinks(t, wires, setting{playback: 1, faults: "faults: [" + f.faults + "]"}, func(t *testing.T, provider string, st *stack, _ *stage) {
				c := st.start(t, 16000)
				if r := c.asks("My colour is blue."); r.words != "Noted." {
					t.Fatalf("%+v", r)
				}
				st.replaced(t, 1)
				c.listens(20 * time.Second) // for faults that take time
				asked := time.Now()
				if r := c.asks("What is my colour?"); r.words != "It is blue." || r.errors != "" || r.status != "completed" {
					t.Errorf("after it: %+v", r)
				}
				if took := time.Since(asked); took > 30*time.Second {
					t.Errorf("the answer took %v", took)
				}
				_, how := st.links(t)
				if len(how) != len(f.how) || f.how[0] != "*" && !slices.Equal(how, f.how) {
					t.Errorf("the new connections were %v, want %v", how, f.how)
				}
				if n := c.reconnections(); n != f.notices && !(f.maybe && n == 0) {
					t.Errorf("the client got %d notices, want %d: %s", n, f.notices, c.history())
				}
			})
		})
	}
}

// TestLossInMidAnswer: the connection breaks while the model speaks. The received part plays and ends, the answer
// continues on the next connection, and the turn is completed.
func TestLossInMidAnswer(t *testing.T) {
	t.Parallel()
	overLinks(t, providers, setting{playback: 1, speed: 1, faults: "faults: [{at: chunk, connection: 1, turn: 1, n: 8, do: drop}]"}, func(t *testing.T, provider string, st *stack, _ *stage) {
		c := st.start(t, 16000)
		r := c.asks("a story")
		if r.status != "completed" || r.errors != "" || !strings.HasPrefix(r.words, "Once upon") || !strings.HasSuffix(r.words, "And so it went on.") {
			t.Errorf("%+v", r)
		}
		starts, ends := messages[*protocol.AudioStart](c), messages[*protocol.AudioEnd](c)
		if len(starts) != len(ends) || ends[0].AudioMS < 100 {
			t.Errorf("%d answers began and %d ended, the first with %d ms", len(starts), len(ends), ends[0].AudioMS)
		}
		if _, how := st.links(t); len(how) != 1 {
			t.Errorf("new connections: %v", how)
		}
		if n := c.reconnections(); n != 1 {
			t.Errorf("the client got %d notices", n)
		}
	})
}

// TestLossWhileTheUserSpeaks: the connection breaks during the user's speech. The next one gets the speech from its
// beginning and answers once, without a notice to the client.
func TestLossWhileTheUserSpeaks(t *testing.T) {
	t.Parallel()
	overLinks(t, providers, setting{playback: 1, faults: "faults: [{at: time, after: 10s, connection: 1, do: drop}]"}, func(t *testing.T, _ string, st *stack, _ *stage) {
		c := st.start(t, 16000)
		c.listens(9 * time.Second)
		c.says(t, testutil.SpeechLike(16000, 2*time.Second, 5))
		if r := c.answer(); r.words != "I heard you." || r.status != "completed" || r.errors != "" {
			t.Errorf("%+v", r)
		}
		if given, how := st.links(t); len(given) != 1 || len(how) != 1 {
			t.Errorf("given up %+v, and then %v", given, how)
		}
		var heard string // reported by the new connection's model
		for _, m := range messages[*protocol.Transcript](c) {
			if m.Role == "user" {
				heard = m.Text
			}
		}
		if !strings.Contains(heard, "(speech, 2.") {
			t.Errorf("the model heard %q of 2 s", heard)
		}
		if n := c.reconnections(); n > 0 {
			t.Errorf("the client got %d notices", n)
		}
	})
}

// TestLossStorm: a provider with connections that keep breaking ends the session with a typed error within a minute of
// the first loss.
func TestLossStorm(t *testing.T) {
	t.Parallel()
	overLinks(t, providers, setting{playback: 1, faults: "faults: [{at: time, after: 5s, do: drop}]"}, func(t *testing.T, _ string, st *stack, _ *stage) {
		c := st.start(t, 16000)
		began := time.Now()
		code, errs := c.ended()
		if code != protocol.CloseProviderLost {
			t.Errorf("closed %d", code)
		}
		if len(errs) != 1 || errs[0].Code != "provider_lost" || !errs[0].Retryable {
			t.Errorf("errors %+v", errs)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("it took %v", took)
		}
	})
}

// unreachable refuses all connections of a wire after the first ones.
func unreachable(provider string, from int) string {
	var all []string
	for n := from; n < from+40; n++ {
		all = append(all, fmt.Sprintf("{at: connect, api: %s, connection: %d, do: http_error, code: 503}", map[string]string{"gemini": "live", "openai": "realtime"}[provider], n))
	}
	return strings.Join(all, ", ")
}

// TestFailover: the provider dies while a tool books a table. The other one continues: it knows the conversation,
// reports the result, and the table is booked once.
func TestFailover(t *testing.T) {
	t.Parallel()
	for i, provider := range providers {
		other := providers[1-i]
		api := map[string]string{"gemini": "live", "openai": "realtime"}[provider]
		overLinks(t, []string{provider}, setting{
			playback: 1, fallback: other,
			faults: fmt.Sprintf("faults: [{at: time, after: 10s, api: %s, connection: 1, do: drop}, %s]", api, unreachable(provider, 2)),
		}, func(t *testing.T, _ string, st *stack, tools *stage) {
			tools.hold("book")
			c := st.start(t, 16000)
			if r := c.asks("My colour is blue."); r.words != "Noted." {
				t.Fatalf("%+v", r)
			}
			c.say(&protocol.InputText{Text: "book a table"})
			tools.waitBegun(t, "book")
			st.replaced(t, 1)
			c.listens(5 * time.Second)
			tools.release("book")
			if r := c.answer(); r.words != "It is booked." || r.status != "completed" || r.errors != "" {
				t.Errorf("the answer of the other provider: %+v", r)
			}
			if r := c.asks("What is my colour?"); r.words != "It is blue." {
				t.Errorf("knowledge of the other provider: %+v", r)
			}
			if r := c.asks("book a table"); r.status != "completed" {
				t.Errorf("asked again: %+v", r)
			}
			if n := len(tools.runs("book")); n != 1 {
				t.Errorf("the table was booked %d times", n)
			}
			if !strings.Contains(st.log.String(), `"msg":"another provider takes over","session_id":"`) || !strings.Contains(st.log.String(), `"to":"`+other+`"`) {
				t.Error("the log does not name the fallback provider")
			}
		})
	}
}

// TestBreaker: after repeated failures to reach the provider, the gateway refuses new connections with 503 and a retry
// time; then it allows one attempt, and after that all.
func TestBreaker(t *testing.T) {
	t.Parallel()
	overLinks(t, providers, setting{playback: 1, faults: "faults: [" + unreachable("openai", 1) + ", " + unreachable("gemini", 1) + "]"}, func(t *testing.T, provider string, st *stack, _ *stage) {
		for range 3 {
			c := st.connect(t)
			c.say(&protocol.Start{InputRate: 16000, OutputRate: 24000})
			if _, errs := c.ended(); len(errs) != 1 || !errs[0].Retryable {
				t.Fatalf("errors %+v", errs)
			}
		}
		refused := func() (int, string) {
			conn, resp, err := websocket.Dial(t.Context(), st.url+"/v1/voice", &websocket.DialOptions{HTTPClient: st.client, Subprotocols: []string{protocol.Subprotocol}})
			if err == nil {
				_ = conn.CloseNow()
			}
			return resp.StatusCode, resp.Header.Get("Retry-After")
		}
		if status, after := refused(); status != http.StatusServiceUnavailable || after != "10" {
			t.Errorf("while the provider rests: %d, Retry-After %q", status, after)
		}
		<-time.After(4 * time.Second)
		if status, after := refused(); status != http.StatusServiceUnavailable || after != "6" {
			t.Errorf("4 s later: %d, Retry-After %q", status, after)
		}
		<-time.After(7 * time.Second)
		if status, _ := refused(); status != http.StatusSwitchingProtocols {
			t.Errorf("after the rest: %d", status)
		}
	})
}
