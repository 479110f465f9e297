package talk

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/client/voice"
	"voicegw/protocol"
)

// TestDecide: which typed line answers a question.
func TestDecide(t *testing.T) {
	const early, late = -time.Second, 5 * time.Second // times of lines, relative to the question
	for name, tc := range map[string]struct {
		approval           voice.Approval
		unattended         bool
		lines              map[time.Duration]string
		ends               bool // the input, after the lines
		gone               bool // the program is stopped
		approved, answered bool
		ahead              int
		took               time.Duration
		says               string
	}{
		"--approve":             {approval: voice.ApprovalYes, approved: true, answered: true, says: "approving"},
		"--deny":                {approval: voice.ApprovalNo, answered: true, says: "declining"},
		"unattended":            {unattended: true, says: "it cannot be answered here"},
		"y":                     {lines: map[time.Duration]string{late: " Y "}, approved: true, answered: true, took: late, says: "approving"},
		"yes":                   {lines: map[time.Duration]string{late: "yes"}, approved: true, answered: true, took: late, says: "approving"},
		"anything else":         {lines: map[time.Duration]string{late: "yes please"}, answered: true, took: late, says: "declining"},
		"nothing":               {lines: map[time.Duration]string{late: ""}, answered: true, took: late, says: "declining"},
		"typed before":          {lines: map[time.Duration]string{early: "y"}, took: time.Minute, ahead: 1, says: "it has expired"},
		"typed before and then": {lines: map[time.Duration]string{early: "y", late: "n"}, answered: true, took: late, ahead: 1, says: "declining"},
		"too late":              {took: time.Minute, says: "it has expired"},
		"the end of the input":  {ends: true, says: "it cannot be answered here"},
		"stopped":               {gone: true, says: "Approve? [y/N]"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				typed := make(chan string, maxAhead)
				asked := time.Now().Add(-2 * early)
				var out bytes.Buffer
				x := &texting{o: ChatOptions{Approval: tc.approval}, canAsk: !tc.unattended, typed: typed, d: NewDisplay(&out, false), began: time.Now()}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				done := make(chan struct{}) // closed when everything is typed
				go func() {
					defer close(done)
					for _, at := range []time.Duration{early, late} {
						if line, ok := tc.lines[at]; ok {
							<-time.After(time.Until(asked.Add(at)))
							typed <- line
						}
					}
					if tc.ends {
						close(typed)
					}
				}()
				<-time.After(time.Until(asked))
				if tc.gone {
					stop()
				}
				q := &protocol.ConfirmationRequest{Token: "cf_1", Preview: "Pay", ExpiresAt: protocol.Time{Time: asked.Add(time.Minute)}}
				approved, answered := x.decide(ctx, q)
				if approved != tc.approved || answered != tc.answered || len(x.ahead) != tc.ahead || time.Since(asked) != tc.took {
					t.Errorf("approved %v, answered %v, %d lines ahead, after %s", approved, answered, len(x.ahead), time.Since(asked))
				}
				if !strings.Contains(out.String(), tc.says) {
					t.Errorf("%q is not in %q", tc.says, out.String())
				}
				<-done
			})
		})
	}
}

func TestShellQuote(t *testing.T) {
	for word, want := range map[string]string{
		"ws://127.0.0.1:8080/v1/voice": "ws://127.0.0.1:8080/v1/voice", "Zx3-_a": "Zx3-_a", "": "''", "a b": "'a b'", "$(x)'": `'$(x)'\'''`,
	} {
		if got := shellQuote(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}

// TestChatNamesItsAgentOnce: every message has the time zone, and only the first one the agent. A later one would
// take the conversation back from an agent after a handoff.
func TestChatNamesItsAgentOnce(t *testing.T) {
	var bodies []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(raw))
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, turnStream)
	}))
	defer srv.Close()
	err := Chat(t.Context(), ChatOptions{
		Client: &TextClient{BaseURL: srv.URL, Client: srv.Client()}, Agent: "billing", TimeZone: "Asia/Kolkata", Messages: []string{"Hello", "And now?"},
		In: strings.NewReader(""), Out: io.Discard, Complain: func(err error) { t.Error(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`{"time_zone":"Asia/Kolkata","message":"Hello","agent":"billing"}`, `{"conversation_id":"conv-1","time_zone":"Asia/Kolkata","message":"And now?"}`}
	if diff := cmp.Diff(want, bodies); diff != "" {
		t.Error(diff)
	}
}
