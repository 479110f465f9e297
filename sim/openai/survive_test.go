package openai

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"voicegw/sim/scenario"
	"voicegw/sim/wire"
)

// TestSessionLife: the option sets the expiry of sessions and the reported time.
func TestSessionLife(t *testing.T) {
	bubble(t, wire.Options{ConnectionLife: 20 * time.Second}, func(r *rig) {
		c := r.connect("/v1/realtime?model=gpt-realtime", "Authorization", "Bearer sk-test")
		created := find(c.until("session.created"), "session.created")
		if got, want := created.num("session.expires_at"), float64(c.begun.Add(20*time.Second).Unix()); got != want {
			t.Errorf("expires_at %.0f, want %.0f", got, want)
		}
		before := c.take(20*time.Second - time.Since(c.begun) - time.Millisecond)
		if err := c.over(); err != nil || len(before) > 0 {
			t.Errorf("closed early: %v, %s", err, kinds(before))
		}
		code, reason := c.closed(2 * time.Millisecond)
		if e := find(c.take(0), "error"); code != 1001 || reason != expiredText || e.text("error.code") != "session_expired" {
			t.Errorf("closed %d %q after %v", code, reason, e)
		}
	})
	bubble(t, wire.Options{ConnectionLife: -1}, func(r *rig) {
		c := r.open()
		c.take(3 * time.Hour)
		if err := c.over(); err != nil {
			t.Errorf("a session without an end: %v", err)
		}
	})
}

// TestDeaf: speech is transcribed, but speech, text and results get no answer; a running answer continues. The utterances
// count.
func TestDeaf(t *testing.T) {
	scenario := script(t, `
rules:
  - when: {utterance: 1}
    heard: The first word.
    do: [{say: One.}]
  - when: {utterance: 2}
    heard: The second word.
    do: [{say: Two.}]
  - when: {text: any}
    do: [{say: Yes.}]
`)
	bubble(t, wire.Options{Scenario: scenario, Faults: faults(t, `{faults: [{at: turn, n: 1, do: deaf}]}`)}, func(r *rig) {
		c := r.open()
		c.send(`{"type":"session.update","session":{"type":"realtime","audio":{"input":{"transcription":{"model":"whisper-1"}}}}}`)
		c.speak(sound(200*time.Millisecond, time.Second, time.Second), true)
		first := c.take(10 * time.Second)
		if got := find(first, "response.output_audio_transcript.done").text("transcript"); got != "One." {
			t.Errorf("the answer that had begun is %q", got)
		}
		c.speak(sound(200*time.Millisecond, time.Second, time.Second), true)
		c.send(`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"Hello?"}]}}`,
			`{"type":"response.create"}`)
		later := c.take(time.Minute)
		if got := find(later, "conversation.item.input_audio_transcription.completed").text("transcript"); got != "The second word." {
			t.Errorf("the transcript is %q", got)
		}
		if all := kinds(later); strings.Contains(all, "response.") || strings.Contains(all, "error") {
			t.Errorf("a deaf session sends %s", all)
		}
	})
}

// TestAssistantAudioInHistory: the provider accepts the assistant's words only as text.
func TestAssistantAudioInHistory(t *testing.T) {
	bubble(t, wire.Options{}, func(r *rig) {
		c := r.open()
		c.until("session.created")
		for content, ok := range map[string]bool{
			`{"type":"output_text","text":"Hello."}`:                       true,
			`{"type":"output_audio","transcript":"Hello."}`:                false,
			`{"type":"output_audio","audio":"AAAA","transcript":"Hello."}`: false,
			`{"type":"audio","transcript":"Hello."}`:                       false,
			`{"type":"text","text":"Hello."}`:                              false,
		} {
			item := `{"type":"message","role":"assistant","content":[` + content + `]}`
			c.send(`{"type":"conversation.item.create","event_id":"e1","item":` + item + `}`)
			got := c.take(time.Second)
			e := find(got, "error")
			if added := find(got, "conversation.item.added").kind() != ""; added != ok {
				t.Errorf("%s: added %v, error %v", content, added, e)
			}
			if !ok && (e.text("error.code") != "invalid_value" || e.text("error.param") != "item.content[0].type" || e.text("error.event_id") != "e1" ||
				!strings.Contains(e.text("error.message"), "Supported values are: 'output_text'.")) {
				t.Errorf("%s: %v", content, e)
			}
			if !ok {
				c.send(`{"type":"response.create","response":{"conversation":"none","input":[` + item + `]}}`)
				if e := find(c.take(time.Second), "error"); e.text("error.code") != "invalid_value" {
					t.Errorf("%s as a response's input: %v", content, e)
				}
			}
		}
	})
}

// TestAFrameMeetsAnEarlierFault: a fault is injected and then a frame arrives, while the simulator is busy writing.
// Whichever of the two the loop takes first, the fault applies before the frame.
func TestAFrameMeetsAnEarlierFault(t *testing.T) {
	for range 32 { // without an order the loop takes either, so one round may pass by luck
		bubble(t, wire.Options{}, func(r *rig) {
			ws, _, err := r.dial("/v1/realtime?model=gpt-realtime")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = ws.CloseNow() }()
			synctest.Wait() // session.created waits for the client, which does not read yet
			if err := r.h.opts.Group.Inject("pipe", scenario.Fault{Kind: scenario.Close, Code: 4000}); err != nil {
				t.Fatal(err)
			}
			if err := ws.Write(context.Background(), websocket.MessageText, []byte(`{"type":"session.update","session":{"type":"realtime"}}`)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			var got []string
			for err == nil {
				var data []byte
				if _, data, err = ws.Read(context.Background()); err == nil {
					got = append(got, string(data))
				}
			}
			if code := websocket.CloseStatus(err); code != 4000 || len(got) != 1 {
				t.Errorf("%d events, closed %d: a frame was answered after the fault", len(got), code)
			}
		})
	}
}
