package e2e

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/audio"
	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// localModels are the simulator's local servers.
var localModels = []string{"localai", "speech-to-speech", "nemotron", "vllm-omni"}

// TestLocalServers: a conversation with each local server, without a key: speech, a tool, typed text, an interruption,
// a lost connection. It has no cost, and no setting is refused.
func TestLocalServers(t *testing.T) {
	t.Parallel()
	for _, model := range localModels {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			tools := newStage(t)
			st := newStack(t, "openai", setting{tools: tools.box, model: model, speed: 20, firstAudioMS: 10, scenario: `
name: local
rules:
  - when: {utterance: 1}
    heard: My colour is blue.
    do:
      - say: I will keep that in mind.
  - when: {text: rounds}
    do:
      - call: {tool: lookup, args: {query: a}}
      - then:
          - say: That is what I have found.
  - when: {text: colour, remembers: 'colour is (\w+)'}
    do: [{say: "It is ${1}."}]
  - when: {text: talk}
    do:
      - say: I will now talk for quite a long time, so that there is something to interrupt, and I will not stop before I am told to.
  - when: {text: leave}
    do: [{say: Until later.}, {end: {code: 1011}}]
  - when: {utterance: any}
    do: [{say: "Yes?"}]
`})
			c := st.start(t, 16000)
			c.speak(16000, phrase(16000))
			heardTurn(c, 1, "My colour is blue.", "I will keep that in mind.")
			if p := c.typed("rounds"); !p.call(t).OK || !strings.Contains(p.said, "what I have found") {
				t.Errorf("the tool's turn: %+v", p)
			}
			c.say(&protocol.InputText{Text: "talk"})
			item := waitFor[*protocol.AudioStart](c).ItemID
			var heard int64
			for heard < 500 {
				heard += audio.MS(24000, c.next().bytes)
			}
			c.speak(16000, testutil.SpeechLike(16000, time.Second, 5))
			if flush := waitFor[*protocol.AudioFlush](c); flush.ItemID != item || flush.Reason != "user_speech" {
				t.Errorf("%s was flushed because of %s", flush.ItemID, flush.Reason)
			}
			c.say(&protocol.Playback{ItemID: item, PlayedMS: 500, Done: true})
			c.speak(16000, testutil.Silence(16000, 1500*time.Millisecond))
			if next := waitFor[*protocol.AudioStart](c); next.ItemID == item {
				t.Errorf("%s speaks again after its flush", item)
			}
			nothingAfterFlush(t, c.seen, item)
			playTurn(c)

			if p := c.typed("leave"); p.said != "Until later." {
				t.Errorf("before the connection ends: %q", p.said)
			}
			if p := c.typed("which colour"); p.said != "It is blue." {
				t.Errorf("after a lost connection: %q", p.said)
			}
			c.say(&protocol.End{})
			if code, errs := c.ended(); code != protocol.CloseDone || len(errs) != 0 {
				t.Errorf("closed with %d after %v", code, errs)
			}
			st.manager.Close()
			if log := st.log.String(); !strings.Contains(log, `"cost_usd_micros":0,"unpriced":0,`) || strings.Contains(log, "the model reported a problem") {
				t.Errorf("the log:\n%s", log)
			}
		})
	}
}

// TestLocalServerLoads: a model that needs a minute and a half to load answers the first message.
func TestLocalServerLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStack(t, "openai", setting{timed: true, model: "localai", speed: 20, faults: "faults: [{at: event, event: session.created, do: delay, for: 90s}]"})
		c := st.connect(t)
		began := time.Now()
		c.say(&protocol.Start{InputRate: 16000, OutputRate: 24000})
		waitFor[*protocol.SessionStarted](c)
		if took := time.Since(began); took < 90*time.Second || took > 100*time.Second {
			t.Errorf("the session began after %s", took)
		}
		if p := c.typed("hello"); p.status != "completed" {
			t.Errorf("%+v", p)
		}
	})
}

// TestLocalServerLoadsAgain: a server that ends during a call loads its model again for a minute. Messages in that time
// fail as after any long outage, and the session continues.
func TestLocalServerLoadsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStack(t, "openai", setting{timed: true, model: "localai", speed: 20,
			faults: "faults: [{at: time, after: 10s, connection: 1, do: drop}, {at: event, event: session.created, connection: 2, do: delay, for: 60s}]"})
		c := st.start(t, 16000)
		if p := c.typed("hello"); p.status != "completed" {
			t.Errorf("%+v", p)
		}
		<-time.After(15 * time.Second)
		c.say(&protocol.InputText{Text: "are you there?"})
		for h := c.next(); ; h = c.next() {
			if e, ok := h.msg.(*protocol.Error); ok {
				if e.Code != protocol.CodeNoAnswer || !e.Retryable {
					t.Errorf("the error %+v", e)
				}
				break
			}
		}
		<-time.After(time.Minute)
		if p := c.typed("hello again"); p.status != "completed" {
			t.Errorf("%+v", p)
		}
	})
}

// TestLocalServerCannotLoad: after attempts for the whole connection timeout, the client gets a retryable error, and
// the log has the reason.
func TestLocalServerCannotLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStack(t, "openai", setting{timed: true, model: "localai-broken"})
		c := st.connect(t)
		c.say(&protocol.Start{InputRate: 16000, OutputRate: 24000})
		if _, errs := c.ended(); len(errs) != 1 || errs[0].Code != protocol.CodeProviderUnavailable || !errs[0].Retryable {
			t.Errorf("the client got %v", errs)
		}
		if log := st.log.String(); !strings.Contains(log, "model_load_error") || !strings.Contains(log, "Failed to load the model localai-broken") {
			t.Errorf("the log:\n%s", log)
		}
	})
}
