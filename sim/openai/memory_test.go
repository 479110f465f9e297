package openai

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"voicegw/sim/wire"
)

const memoryScenario = `
rules:
  - when: {utterance: any}
    heard: Tell me a story.
    do: [{say: "Once upon a time a heron stood in a pond and waited for the rain to end at last."}]
  - when: {text: 'what do you remember'}
    do: [{say: "${memory}"}]
  - when: {text: 'my colour\?', remembers: '^user: .*colour is (\w+)'}
    do: [{say: "It is ${1}."}]
  - when: {text: look}
    do: [{call: {tool: look_up, args: {q: tea}}}, {then: [{say: It is tea.}]}]
  - when: {text: any}
    do: [{say: Noted.}]
`

// answer sends a text and returns the text of the answer.
func (c *client) answer(text string) string {
	c.t.Helper()
	c.send(`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"`+text+`"}]}}`,
		`{"type":"response.create"}`)
	return find(c.until("response.done"), "response.output_text.done").text("text")
}

func inText(c *client) *client {
	c.send(`{"type":"session.update","session":{"type":"realtime","output_modalities":["text"]}}`)
	return c
}

// TestMemoryOfAReplay: the model remembers the items that a client creates, in their order, with calls and results, and
// neither answers nor repeats them.
func TestMemoryOfAReplay(t *testing.T) {
	bubble(t, wire.Options{Scenario: script(t, memoryScenario)}, func(r *rig) {
		c := inText(r.open())
		if got := c.answer("My colour?"); got != "Noted." {
			t.Errorf("without a history: %q", got)
		}
		c = inText(r.open())
		for _, item := range []string{
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"My colour is blue."}]}`,
			`{"type":"function_call","call_id":"c1","name":"look_up","arguments":"{}"}`,
			`{"type":"function_call_output","call_id":"c1","output":"tea"}`,
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Blue, and"}]}`,
			`{"type":"message","role":"system","content":[{"type":"input_text","text":"It goes on."}]}`,
		} {
			c.send(`{"type":"conversation.item.create","item":` + item + `}`)
		}
		if got := c.answer("My colour?"); got != "It is blue." {
			t.Errorf("about the colour the model says %q", got)
		}
		want := "user: My colour is blue. | call: look_up {} | result: look_up tea | model: Blue, and | system: It goes on. | user: My colour? | model: It is blue."
		if got := c.answer("What do you remember?"); got != want {
			t.Errorf("the model remembers\n%s, want\n%s", got, want)
		}
		c.send(`{"type":"response.create","response":{"conversation":"none","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"My colour is red."}]},` +
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"What do you remember?"}]}]}}`)
		if got := find(c.until("response.done"), "response.output_text.done").text("text"); got != "user: My colour is red." {
			t.Errorf("outside the conversation the model remembers %q", got)
		}
	})
}

// TestMemoryOfItsOwnSession: the model remembers speech as it understood it, with or without a transcription, and a
// truncated answer only up to the truncation.
func TestMemoryOfItsOwnSession(t *testing.T) {
	bubble(t, wire.Options{Scenario: script(t, memoryScenario)}, func(r *rig) {
		c := r.open()
		c.speak(sound(200*time.Millisecond, time.Second, time.Second), true)
		events := c.take(30 * time.Second)
		said := find(events, "response.output_audio_transcript.done")
		if said.text("transcript") == "" {
			t.Fatalf("no answer: %s", kinds(events))
		}
		c.send(fmt.Sprintf(`{"type":"conversation.item.truncate","item_id":%q,"content_index":0,"audio_end_ms":1500}`, said.text("item_id")))
		c.until("conversation.item.truncated")
		inText(c)
		c.answer("look")
		id := ""
		c.mu.Lock()
		for _, e := range c.all {
			if call := e.text("call_id"); call != "" {
				id = call
			}
		}
		c.mu.Unlock()
		c.send(`{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"`+id+`","output":"tea"}}`, `{"type":"response.create"}`)
		c.until("response.done")
		got := c.answer("What do you remember?")
		heard, rest, _ := strings.Cut(strings.TrimPrefix(got, "user: Tell me a story. | model: "), " | ")
		if !strings.HasPrefix(said.text("transcript"), heard) || heard == "" || strings.Contains(heard, "at last") {
			t.Errorf("of the truncated answer the model remembers %q, of all %q", heard, got)
		}
		if want := `user: look | call: look_up {"q":"tea"} | result: look_up tea | model: It is tea.`; strings.Join(strings.Fields(rest), "") != strings.Join(strings.Fields(want), "") {
			t.Errorf("after it the model remembers %q, want %q", rest, want)
		}
	})
}
