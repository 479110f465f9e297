package e2e

import (
	"slices"
	"testing"
	"time"

	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// frameTime is the audio in each of the client's and the model's frames.
const frameTime = 20 * time.Millisecond

// TestSlowToolStopsNoAudio: while a tool hangs that may take 30 s and cannot be stopped, the user is heard and the
// model speaks. The gateway delays no frame in either direction; only the audit gets the tool's late result.
func TestSlowToolStopsNoAudio(t *testing.T) {
	t.Parallel()
	overBothWires(t, setting{timed: true, speed: 1, playback: 1, chunkMS: int(frameTime.Milliseconds()), scenario: `
name: slow
rules:
  - when: {text: go}
    do:
      - call: slow
      - then: [say: Done.]
  - when: {utterance: any}
    do:
      - say: >-
          I am still waiting for something, but that does not keep me from talking to you, and so I go on talking
          for a while, and a while longer, until you have heard enough of it.
`}, func(t *testing.T, provider string, st *stack, tools *stage) {
		c := st.start(t, 16000)
		c.say(&protocol.InputText{Text: "go"})
		tools.waitBegun(t, "slow")
		c.speak(16000, phrase(16000)) // answered while the tool runs
		waitFor[*protocol.AudioStart](c)
		sent, heard := c.talkFor(3 * time.Second)
		if len(messages[*protocol.ToolEnded](c)) != 0 {
			t.Error("the tool has ended already")
		}
		st.tap.mu.Lock()
		up, down := slices.Clone(st.tap.up), slices.Clone(st.tap.down)
		st.tap.mu.Unlock()
		notHeldUp(t, "to the model", sent, since(up, sent[0]))
		notHeldUp(t, "to the client", since(down, heard[0].Add(-time.Second)), heard)
		tools.release("slow")
		r := st.audit.wait(t, "slow", 1)[0]
		if !r.OK || r.DurationMS < 3000 || provider == "gemini" && r.NotDelivered != "cancelled" {
			t.Errorf("the tool is audited as %+v", r)
		}
	})
}

// talkFor sends quiet audio in real time and takes events; it returns the times of sent and received frames.
func (c *client) talkFor(d time.Duration) (sent, heard []time.Time) {
	c.t.Helper()
	quiet := testutil.Silence(16000, frameTime)
	every := time.NewTicker(frameTime)
	defer every.Stop()
	over := time.After(d)
	for {
		select {
		case <-over:
			return sent, heard
		case <-every.C:
			sent = append(sent, time.Now())
			if err := c.conn.WriteAudio(quiet); err != nil {
				c.t.Fatal(err)
			}
		case h, ok := <-c.in:
			if !ok || h.err != nil {
				c.t.Fatalf("the connection ended; before that: %s", c.history())
			}
			c.seen = append(c.seen, h)
			if h.bytes > 0 {
				heard = append(heard, h.at)
			}
		}
	}
}

// since returns the times from then on.
func since(times []time.Time, then time.Time) []time.Time {
	i := slices.IndexFunc(times, func(t time.Time) bool { return !t.Before(then) })
	if i < 0 {
		return nil
	}
	return times[i:]
}

// notHeldUp looks for gaps after the gateway that did not exist before it.
func notHeldUp(t *testing.T, where string, front, behind []time.Time) {
	t.Helper()
	if want := int(2 * time.Second / frameTime); len(front) < want || len(behind) < want {
		t.Fatalf("%s: %d frames in front of the gateway and %d behind it, want %d at least", where, len(front), len(behind), want)
	}
	if before, after := longestGap(front), longestGap(behind); after > before {
		t.Errorf("audio %s stopped for %v; in front of the gateway its longest gap is %v", where, after, before)
	}
}

func longestGap(times []time.Time) time.Duration {
	var gap time.Duration
	for i := 1; i < len(times); i++ {
		gap = max(gap, times[i].Sub(times[i-1]))
	}
	return gap
}
