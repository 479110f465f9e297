package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/testutil"
	"voicegw/protocol"
	"voicegw/session"
)

// linkLimits are the gateway's own limits in tests of the connection to the model, which have fake time.
var linkLimits = session.Limits{ConnectTimeout: 10 * time.Second}

const linkScenario = `
name: links
rules:
  - when: {text: 'colour is (\w+)'}
    do: [{say: Noted.}]
  - when: {text: 'what is my colour', remembers: '^user: .*colour is (\w+)'}
    do: [{say: "It is ${1}."}]
  - when: {text: 'what is my colour'}
    do: [{say: I do not know.}]
  - when: {text: story}
    do: [{say: Once upon a time there was a gateway that lost its provider in the middle of a sentence and nobody was any the wiser for it.}]
  - when: {text: 'go on from where'}
    do: [{say: And so it went on.}]
  - when: {text: 'waiting for an answer', remembers: ['user: what is my colour', '^user: My colour is (\w+)']}
    do: [{say: "It is ${1}."}]
  - when: {text: 'called book before'}
    do: [{say: It is booked.}]
  - when: {text: go}
    do:
      - call: slow
      - then: [say: Done.]
  - when: {text: book}
    do:
      - call: {tool: book, args: {name: Ada, time: "8"}}
      - then: [say: Booked.]
  - when: {utterance: any}
    do: [{say: I heard you.}]
`

// linkLine is a log line about a connection to the model.
type linkLine struct {
	Time     time.Time
	Msg      string
	Reason   string
	How      string
	Provider string
	Calls    int
	Deferred bool
}

// links returns the log of replaced connections: why each ended, and how the next one learned the conversation.
func (st *stack) links(t *testing.T) (given []linkLine, how []string) {
	t.Helper()
	for line := range strings.Lines(st.log.String()) {
		var l linkLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		switch l.Msg {
		case "the model's connection is replaced":
			given = append(given, l)
		case "the model's connection was replaced":
			how = append(how, l.How)
		}
	}
	return given, how
}

// replaced waits for the start of the n-th replacement and returns its log.
func (st *stack) replaced(t *testing.T, n int) linkLine {
	t.Helper()
	for range 100_000 {
		if given, _ := st.links(t); len(given) >= n {
			return given[n-1]
		}
		<-time.After(10 * time.Millisecond) // in the bubble
	}
	t.Fatalf("no connection was replaced: %s", st.log.String())
	return linkLine{}
}

// reply is the result of a question.
type reply struct {
	words  string
	status string // of the turn; empty if the session ended
	errors string // their codes
	gap    time.Duration
}

// asks sends a text and takes events until its turn ends.
func (c *client) asks(text string) reply {
	c.t.Helper()
	c.say(&protocol.InputText{Text: text})
	return c.answer()
}

// answer takes events until a turn or the session ends.
func (c *client) answer() (r reply) {
	c.t.Helper()
	words, order := map[string]string{}, []string{}
	var last time.Time // of a frame of the current item
	for {
		h := c.next()
		switch m := h.msg.(type) {
		case *protocol.AudioStart, *protocol.AudioEnd:
			last = time.Time{}
		case *protocol.Transcript:
			if m.Role == "assistant" {
				if words[m.ID] == "" {
					order = append(order, m.ID)
				}
				words[m.ID] = m.Text
			}
		case *protocol.Error:
			r.errors += m.Code
		case *protocol.TurnEnded:
			r.status = m.Status
		}
		if h.bytes > 0 {
			if !last.IsZero() {
				r.gap = max(r.gap, h.at.Sub(last))
			}
			last = h.at
		}
		if r.status != "" || h.err != nil {
			for _, id := range order {
				r.words += words[id]
			}
			return r
		}
	}
}

// listens takes events for d.
func (c *client) listens(d time.Duration) {
	c.t.Helper()
	over := time.After(d)
	for {
		select {
		case h := <-c.in:
			c.seen = append(c.seen, h)
			if h.err != nil {
				c.t.Fatalf("the connection ended: %v; before that: %s", h.err, c.history())
			}
		case <-over:
			return
		}
	}
}

// reconnections counts the client's notices about the model's connection.
func (c *client) reconnections() int { return len(messages[*protocol.ProviderReconnecting](c)) }

// overLinks runs a test of the connection to the model on these wires, in bubbles.
func overLinks(t *testing.T, wires []string, set setting, test func(t *testing.T, provider string, st *stack, tools *stage)) {
	t.Helper()
	for _, provider := range wires {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				set, tools := set, newStageOn(t, nil)
				set.timed, set.scenario, set.limits, set.tools, set.firstAudioMS = true, linkScenario, linkLimits, tools.box, 100
				set.policy.NudgeAfter, set.policy.NoAnswerAfter = 10*time.Second, 15*time.Second
				test(t, provider, newStack(t, provider, set), tools)
			})
		})
	}
}

// TestPlannedReplacementShowsNothing (S9): a connection is replaced between two turns, while the user begins to speak,
// and is due during an answer. The new connection takes 400 ms each time. The client notices nothing: no gap, no
// notice, and everything is answered.
func TestPlannedReplacementShowsNothing(t *testing.T) {
	t.Parallel()
	overLinks(t, providers, setting{
		connectionLife: time.Minute, goAwayAfter: 50 * time.Second, playback: 1,
		faults: "faults: [{at: connect, connection: 2, do: delay, for: 400ms}, {at: connect, connection: 3, do: delay, for: 400ms}]",
	}, func(t *testing.T, provider string, st *stack, _ *stage) {
		c := st.start(t, 16000)
		if r := c.asks("My colour is blue."); r.status != "completed" {
			t.Fatalf("%+v", r)
		}
		if first := st.replaced(t, 1); first.Reason != "expiring" {
			t.Errorf("%+v", first)
		}
		c.says(t, testutil.SpeechLike(16000, time.Second, 5)) // the new connection is not ready yet
		if r := c.answer(); r.status != "completed" || r.errors != "" || r.words != "I heard you." {
			t.Errorf("speech during the replacement: %+v", r)
		}
		c.listens(time.Until(st.replaced(t, 1).Time.Add(48 * time.Second))) // the next one is due soon
		if r := c.asks("a story"); r.status != "completed" || r.errors != "" || r.gap > 300*time.Millisecond {
			t.Errorf("the answer during which it was due: %+v", r)
		}
		// The client still plays the received audio.
		arrived := c.seen[slices.IndexFunc(c.seen, func(h happening) bool { m, ok := h.msg.(*protocol.AudioEnd); return ok && m.Turn == 3 })].at
		second := st.replaced(t, 2)
		if second.Time.Before(arrived) || second.Reason != "expiring" {
			t.Errorf("%+v, and the answer had arrived at %v", second, arrived)
		}
		if r := c.asks("What is my colour?"); r.words != "It is blue." || r.errors != "" {
			t.Errorf("after two replacements: %+v", r)
		}
		if n := c.reconnections(); n > 0 {
			t.Errorf("the client got %d notices", n)
		}
	})
}

// says sends audio in real time, with a second of silence after it.
func (c *client) says(t *testing.T, pcm []byte) {
	t.Helper()
	pcm = append(append(testutil.Silence(16000, 200*time.Millisecond), pcm...), testutil.Silence(16000, time.Second)...)
	for len(pcm) > 0 {
		n := min(640, len(pcm))
		if err := c.conn.WriteAudio(pcm[:n]); err != nil {
			t.Fatal(err)
		}
		pcm = pcm[n:]
		<-time.After(20 * time.Millisecond) // in the bubble
	}
}

// TestNoReplacementDuringACall (S10): the connection is due during a tool call. It is replaced after the answer was
// heard or, if the tool does not end in time, at the last moment; both times the result is delivered.
func TestNoReplacementDuringACall(t *testing.T) {
	t.Parallel()
	overLinks(t, providers, setting{connectionLife: 3 * time.Minute, goAwayAfter: 150 * time.Second, playback: 1}, func(t *testing.T, provider string, st *stack, tools *stage) {
		c := st.start(t, 16000)
		opened := time.Now()
		c.listens(2*time.Minute + 25*time.Second) // at the earliest 5 s before it is due
		c.say(&protocol.InputText{Text: "go"})
		tools.waitBegun(t, "slow")
		c.listens(12 * time.Second)
		if given, _ := st.links(t); len(given) > 0 {
			t.Fatalf("%+v while the tool ran", given[0])
		}
		tools.release("slow")
		if r := c.answer(); r.words != "Done." || r.status != "completed" {
			t.Errorf("the answer with the result: %+v", r)
		}
		first := st.replaced(t, 1)
		if first.Calls > 0 || !first.Deferred || first.Time.Sub(opened) < 2*time.Minute+37*time.Second {
			t.Errorf("it was replaced as %+v, %v after the beginning", first, first.Time.Sub(opened))
		}
		tools.hold("slow")
		c.listens(time.Until(first.Time.Add(2*time.Minute + 25*time.Second)))
		c.say(&protocol.InputText{Text: "go"})
		tools.waitBegun(t, "slow")
		second := st.replaced(t, 2)
		if age := second.Time.Sub(first.Time); second.Calls != 1 || age < 2*time.Minute+45*time.Second || age > 3*time.Minute {
			t.Errorf("with a tool that does not end it was replaced as %+v at the age of %v", second, age)
		}
		if n := c.reconnections(); n > 0 {
			t.Errorf("the client got %d notices", n)
		}
		tools.release("slow")
		if r := c.answer(); r.status != "completed" || r.errors != "" {
			t.Errorf("the answer with the result of a call that has lost its connection: %+v", r)
		}
	})
}
