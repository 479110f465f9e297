package openai

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"voicegw/sim/wire"
)

const weatherTool = `"tools":[{"type":"function","name":"get_weather","description":"Look up the weather for a city.","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}]`

func (c *client) ask(text string) {
	c.send(fmt.Sprintf(say, text), `{"type":"response.create"}`)
}

// callsOf are the finished calls of a list of events as name(arguments)/id.
func callsOf(list []received) (calls, ids []string) {
	for _, e := range list {
		if e.kind() == "response.output_item.done" && e.text("item.type") == "function_call" {
			calls = append(calls, e.text("item.name")+"("+strings.Join(strings.Fields(e.text("item.arguments")), "")+") "+e.text("item.status"))
			ids = append(ids, e.text("item.call_id"))
		}
	}
	return calls, ids
}

func TestParallelCallsAndTheirResults(t *testing.T) {
	bubble(t, wire.Options{}, func(r *rig) {
		c := r.open()
		c.send(update(weatherTool))
		c.ask("What is the weather in London and Paris?")
		calls, ids := callsOf(c.until(done))
		if fmt.Sprint(calls) != `[get_weather({"city":"London"}) completed get_weather({"city":"Paris"}) completed]` || ids[0] == ids[1] {
			t.Fatalf("calls %v %v", calls, ids)
		}
		// The server never continues without a request.
		for i, id := range ids {
			c.send(fmt.Sprintf(`{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":%q,"output":"Result %d."}}`, id, i))
		}
		if got := c.take(3 * time.Second); kinds(got) != "conversation.item.added conversation.item.done conversation.item.added conversation.item.done" {
			t.Errorf("got %s", kinds(got))
		}
		c.send(`{"type":"response.create"}`)
		if words := find(c.until(done), "response.output_audio_transcript.done").text("transcript"); words != "Result 0. Result 1." {
			t.Errorf("answer %q", words)
		}
		if r.stats.Calls.Load() != 2 || r.stats.Results.Load() != 2 {
			t.Error("calls and results were not counted")
		}
	})
}

// TestSpeechDuringACallIsAnswered: the user's words during a tool call are answered after the calls that its result
// causes.
func TestSpeechDuringACallIsAnswered(t *testing.T) {
	s := script(t, `
rules:
  - when: {text: start}
    do: [{call: a}, {then: [{call: b}, {then: [{say: Both are done.}]}]}]
  - when: {text: meanwhile}
    do: [{say: I have not forgotten you.}]
`)
	bubble(t, wire.Options{Scenario: s}, func(r *rig) {
		c := r.open()
		c.ask("start")
		result := func(id string) {
			c.send(fmt.Sprintf(`{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":%q,"output":"x"}}`, id))
		}
		_, ids := callsOf(c.until(done))
		c.send(fmt.Sprintf(say, "meanwhile"))
		result(ids[0])
		c.send(`{"type":"response.create"}`)
		calls, ids := callsOf(c.until(done))
		if fmt.Sprint(calls) != "[b({}) completed]" {
			t.Fatalf("calls %v", calls)
		}
		result(ids[0])
		c.send(`{"type":"response.create"}`)
		if words := find(c.until(done), "response.output_audio_transcript.done").text("transcript"); words != "Both are done. I have not forgotten you." {
			t.Errorf("the transcript is %q", words)
		}
	})
}

func TestToolChoice(t *testing.T) {
	bubble(t, wire.Options{}, func(r *rig) {
		c := r.open()
		c.send(update(weatherTool + `,"tool_choice":"none"`))
		c.ask("What is the weather in London?")
		if calls, _ := callsOf(c.until(done)); calls != nil {
			t.Errorf("none: %v", calls)
		}
		c.send(fmt.Sprintf(say, "Hello"), `{"type":"response.create","response":{"tool_choice":"required"}}`)
		if calls, _ := callsOf(c.until(done)); len(calls) != 1 {
			t.Errorf("required: %v", calls)
		}
		c.send(fmt.Sprintf(say, "Hello"), `{"type":"response.create","response":{"tools":[{"type":"function","name":"wave"}],"tool_choice":{"type":"function","name":"wave"}}}`)
		if calls, _ := callsOf(c.until(done)); fmt.Sprint(calls) != "[wave({}) completed]" {
			t.Errorf("named: %v", calls)
		}
	})
}

// TestSecondGeneration: as recorded, gpt-realtime-2.1 counts reasoning tokens in a session without tools, and limits
// follow.
func TestSecondGeneration(t *testing.T) {
	bubble(t, wire.Options{}, func(r *rig) {
		c := r.connect("/v1/realtime?model=gpt-realtime-2.1")
		details := func() map[string]any {
			c.ask("Hello")
			got := append(c.until(done), c.take(100*time.Millisecond)...)
			if find(got, "rate_limits.updated").text("rate_limits.0.name") != "tokens" || find(got, "response.output_item.added").text("item.phase") != "final_answer" {
				t.Errorf("got %s", kinds(got))
			}
			m, _ := find(got, done).at("response.usage.output_token_details").(map[string]any)
			return m
		}
		if m := details(); m["reasoning_tokens"] == nil || m["reasoning_tokens"].(float64) >= m["text_tokens"].(float64) {
			t.Errorf("without tools: %v", m)
		}
		c.send(update(weatherTool))
		if m := details(); m["reasoning_tokens"] != nil || len(m) != 2 {
			t.Errorf("with tools: %v", m)
		}
	})
}

func TestScriptedCalls(t *testing.T) {
	s := script(t, `
rules:
  - when: {text: twice}
    do:
      - call: {tool: a, repeat: 2}
  - when: {text: anonymous}
    do:
      - say: One moment.
      - call: {tool: a, without_id: true}
  - when: {text: named}
    do:
      - call: {tool: a, id: call_of_the_test}
  - when: {text: late}
    do:
      - say: You will see.
      - call: {tool: a, args: {x: 1}, late: 3s}
`)
	for _, model := range []string{"gpt-realtime", "gpt-realtime-2.1"} {
		bubble(t, wire.Options{Scenario: s}, func(r *rig) {
			c := r.connect("/v1/realtime?model=" + model)
			c.ask("twice")
			if _, ids := callsOf(c.until(done)); len(ids) != 3 || ids[0] != ids[1] || ids[1] != ids[2] || ids[0] == "" {
				t.Errorf("repeated: %q", ids)
			}
			for range 2 {
				c.ask("named")
				if _, ids := callsOf(c.until(done)); len(ids) != 1 || ids[0] != "call_of_the_test" {
					t.Errorf("with an id: %q", ids)
				}
			}
			c.ask("anonymous")
			got := c.until(done)
			if _, ids := callsOf(got); len(ids) != 1 || ids[0] != "" {
				t.Errorf("without id: %q", ids)
			}
			phase := find(got, "response.output_item.added").text("item.phase")
			if (phase == "commentary") != (model == "gpt-realtime-2.1") {
				t.Errorf("%s: phase %q", model, phase)
			}
			if n := count(got, "response.output_item.done"); n != 2 {
				t.Errorf("%d items are done", n)
			}
			c.ask("late")
			if calls, _ := callsOf(c.until(done)); calls != nil {
				t.Errorf("too early: %v", calls)
			}
			c.take(2500 * time.Millisecond)
			if calls, _ := callsOf(c.until(done)); len(calls) != 1 {
				t.Errorf("late: %v", calls)
			}
		})
	}
}

func TestScriptedStepsInOneAnswer(t *testing.T) {
	s := script(t, `
rules:
  - when: {text: steps}
    do:
      - say: First.
      - wait: 2s
      - silence: 500ms
      - say: Second.
      - end: {code: 4002, reason: enough}
  - when: {text: nothing}
    do: nothing
`)
	bubble(t, wire.Options{Scenario: s}, func(r *rig) {
		c := r.open()
		c.ask("nothing")
		if got := c.until(done); strings.Contains(kinds(got), "output_item") || got[len(got)-1].text("response.status") != "completed" {
			t.Errorf("nothing: %s", kinds(got))
		}
		c.ask("steps")
		got := c.until(done)
		if words := find(got, "response.output_audio_transcript.done").text("transcript"); words != "First. Second." {
			t.Errorf("the transcript is %q", words)
		}
		var gap time.Duration
		for i := 1; i < len(got); i++ {
			gap = max(gap, got[i].when-got[i-1].when)
		}
		if gap < 2*time.Second {
			t.Errorf("the longest pause is %v", gap)
		}
		if code, reason := c.closed(time.Second); code != 4002 || reason != "enough" {
			t.Errorf("closed %d %q", code, reason)
		}
	})
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name, script string
		check        func(*testing.T, *rig, *client)
	}{
		{"delay", `{faults: [{at: event, event: response.created, do: delay, for: 3s}]}`, func(t *testing.T, _ *rig, c *client) {
			c.ask("hi")
			got := c.until(done)
			for _, e := range got {
				if e.kind() == created && e.when < 3*time.Second {
					t.Errorf("response.created at %v", e.when)
				}
			}
			if !strings.Contains(kinds(got), "response.created response.output_item.added") {
				t.Errorf("the order changed: %s", kinds(got))
			}
		}},
		{"drop", `{faults: [{at: chunk, n: 2, do: drop}]}`, func(t *testing.T, _ *rig, c *client) {
			c.ask("hi")
			if code, _ := c.closed(5 * time.Second); code != 1006 {
				t.Errorf("closed %d", code)
			}
			if n := count(c.take(0), "response.output_audio.delta"); n != 1 {
				t.Errorf("%d chunks", n)
			}
		}},
		{"close", `{faults: [{at: turn, n: 2, do: close, code: 1011, reason: out of order}]}`, func(t *testing.T, _ *rig, c *client) {
			c.ask("hi")
			c.until(done)
			c.ask("hi")
			if code, reason := c.closed(5 * time.Second); code != 1011 || reason != "out of order" {
				t.Errorf("closed %d %q", code, reason)
			}
		}},
		{"goaway", `{faults: [{at: time, after: 10s, do: goaway, for: 5s}]}`, func(t *testing.T, _ *rig, c *client) {
			c.take(14 * time.Second)
			if code, _ := c.closed(2 * time.Second); code != 1001 || find(c.take(0), "error").text("error.code") != "session_expired" {
				t.Errorf("closed %d", code)
			}
		}},
		{"expire", `{faults: [{at: setup, do: expire, code: 1011}]}`, func(t *testing.T, _ *rig, c *client) {
			if code, reason := c.closed(time.Second); code != 1011 || reason != expiredText {
				t.Errorf("closed %d %q", code, reason)
			}
		}},
		{"duplicate_call", `{faults: [{at: call, do: duplicate_call}]}`, func(t *testing.T, _ *rig, c *client) {
			c.ask("call")
			if _, ids := callsOf(c.until(done)); len(ids) != 2 || ids[0] != ids[1] {
				t.Errorf("calls %q", ids)
			}
		}},
		{"late_call", `{faults: [{at: call, do: late_call, for: 2s}]}`, func(t *testing.T, _ *rig, c *client) {
			c.ask("call")
			if _, ids := callsOf(c.until(done)); len(ids) != 0 {
				t.Errorf("calls %q", ids)
			}
			if _, ids := callsOf(c.until(done)); len(ids) != 1 {
				t.Errorf("late calls %q", ids)
			}
		}},
		{"cancel_call", `{faults: [{at: call, do: cancel_call}, {at: call, n: 2, do: cancel_call, for: 2s}]}`, func(t *testing.T, _ *rig, c *client) {
			for range 2 {
				c.ask("call")
				got := c.until(done)
				if calls, _ := callsOf(got); len(calls) != 1 || !strings.HasSuffix(calls[0], "incomplete") {
					t.Errorf("calls %q", calls)
				}
				if got[len(got)-1].text("response.status") != "cancelled" {
					t.Errorf("%v", got[len(got)-1])
				}
			}
		}},
		{"missing_id", `{faults: [{at: call, do: missing_id}]}`, func(t *testing.T, _ *rig, c *client) {
			c.ask("call")
			if _, ids := callsOf(c.until(done)); len(ids) != 1 || ids[0] != "" {
				t.Errorf("calls %q", ids)
			}
		}},
		{"unknown_event", `{faults: [{at: setup, do: unknown_event, unknown: something.new}]}`, func(t *testing.T, _ *rig, c *client) {
			if got := c.take(time.Second); kinds(got) != "session.created something.new" {
				t.Errorf("got %s", kinds(got))
			}
		}},
		{"malformed", `{faults: [{at: event, event: session.updated, do: malformed}]}`, func(t *testing.T, _ *rig, c *client) {
			c.send(update(`"instructions":"x"`), update(`"instructions":"y"`))
			if got := c.take(time.Second); kinds(got) != "session.created (not json) session.updated" {
				t.Errorf("got %s", kinds(got))
			}
		}},
		{"silence", `{faults: [{at: chunk, n: 2, do: silence, for: 30s}]}`, func(t *testing.T, _ *rig, c *client) {
			c.ask("hi")
			if got := c.take(29 * time.Second); count(got, "response.output_audio.delta") != 1 || count(got, done) != 0 {
				t.Errorf("got %s", kinds(got))
			}
			c.take(2 * time.Second)
			c.send(`{"type":"input_audio_buffer.clear"}`)
			if got := c.take(time.Second); kinds(got) != "input_audio_buffer.cleared" {
				t.Errorf("afterwards %s", kinds(got))
			}
		}},
		{"slow_read", `{faults: [{at: setup, do: slow_read, for: 1s}]}`, func(t *testing.T, _ *rig, c *client) {
			for range 3 {
				c.send(`{"type":"input_audio_buffer.clear"}`)
			}
			c.until("input_audio_buffer.cleared")
			c.until("input_audio_buffer.cleared")
			if got := c.until("input_audio_buffer.cleared"); got[0].when < 2*time.Second {
				t.Errorf("three frames were read in %v", got[0].when)
			}
		}},
		{"quota", `{faults: [{at: chunk, n: 3, do: quota}]}`, func(t *testing.T, _ *rig, c *client) {
			c.ask("hi")
			got := c.until(done)
			if e := got[len(got)-1]; e.text("response.status") != "failed" || e.text("response.status_details.error.code") != "insufficient_quota" {
				t.Errorf("%v", e)
			}
		}},
		{"jitter on every frame", `{faults: [{at: frame, probability: 0.5, do: delay, for: 1ms, jitter: 50ms}]}`, func(t *testing.T, r *rig, c *client) {
			c.ask("hi")
			if got := c.until(done); !strings.HasSuffix(kinds(got), "response.output_item.done response.done") || r.stats.Faults.Load() == 0 {
				t.Errorf("%d faults, %s", r.stats.Faults.Load(), kinds(got))
			}
		}},
		{"only the second connection", `{faults: [{at: setup, connection: 2, do: close}]}`, func(t *testing.T, r *rig, c *client) {
			if code, _ := r.open().closed(time.Second); code != 1011 {
				t.Errorf("the second one: %d", code)
			}
			c.ask("hi")
			c.until(done)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := script(t, `{rules: [{when: {text: call}, do: [{call: a}]}, {when: {text: any}, do: [{say: This is an answer of some length.}]}]}`)
			bubble(t, wire.Options{Scenario: s, Faults: faults(t, c.script)}, func(r *rig) {
				c.check(t, r, r.open())
			})
		})
	}
}

// TestFaultsAtEveryEvent: a fault may come at any event, also in the middle of a group of them.
func TestFaultsAtEveryEvent(t *testing.T) {
	for _, event := range []string{
		"session.created", "session.updated", "conversation.item.added", "conversation.item.done", created, "response.output_item.added",
		"response.content_part.added", "response.output_audio_transcript.delta", "response.output_audio.delta", "response.output_audio.done",
		"response.output_audio_transcript.done", "response.content_part.done", "response.output_item.done",
		"response.function_call_arguments.delta", "response.function_call_arguments.done", done, "input_audio_buffer.cleared", "error",
	} {
		for i, do := range []string{"quota", "cancel_call", "expire", "close"} {
			for _, model := range []string{"gpt-realtime", "gpt-realtime-2.1"}[i%2 : i%2+1] {
				s := script(t, `{rules: [{when: {text: any}, do: [{say: One moment.}, {call: [a, {tool: b, repeat: 1}]}, {then: [{say: Done.}]}]}]}`)
				bubble(t, wire.Options{Scenario: s, Faults: faults(t, fmt.Sprintf(`{faults: [{at: event, event: %s, do: %s, limit: 0}]}`, event, do))}, func(r *rig) {
					c := r.connect("/v1/realtime?model=" + model)
					for _, e := range []string{update(`"instructions":"x"`), fmt.Sprintf(say, "go"), `{"type":"response.create"}`, `{"type":"input_audio_buffer.clear"}`, `{}`} {
						// The connection may be over already.
						_ = c.ws.Write(context.Background(), websocket.MessageText, []byte(e))
					}
					got := c.take(20 * time.Second)
					if n := count(got, created) - count(got, done); n != 0 && do != "close" && do != "expire" {
						t.Errorf("%s at %s: %d responses have no end", do, event, n)
					}
				})
			}
		}
	}
}

func TestFaultsAtConnect(t *testing.T) {
	bubble(t, wire.Options{Faults: faults(t, `
faults:
  - {at: connect, connection: 1, do: drop}
  - {at: connect, connection: 2, do: delay, for: 5s}
  - {at: connect, connection: 3, do: close, code: 1013, reason: try again}
  - {at: connect, connection: 4, do: quota}
`)}, func(r *rig) {
		if _, _, err := r.dial("/v1/realtime?model=gpt-realtime"); err == nil {
			t.Error("the first connection was made")
		}
		begun := time.Now()
		r.open()
		if took := time.Since(begun); took != 5*time.Second {
			t.Errorf("the second took %v", took)
		}
		if code, reason := r.open().closed(time.Second); code != 1013 || reason != "try again" {
			t.Errorf("the third: %d %q", code, reason)
		}
		c := r.open()
		c.ask("hi")
		if got := c.until(done); got[len(got)-1].text("response.status") != "failed" {
			t.Errorf("the fourth: %v", got[len(got)-1])
		}
	})
}

func TestTheServerEnds(t *testing.T) {
	bubble(t, wire.Options{Speed: 1}, func(r *rig) {
		c := r.open()
		c.ask("tell me a story")
		c.until("response.output_audio.delta")
		if err := r.h.opts.Group.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if code, _ := c.closed(time.Second); code != 1001 {
			t.Errorf("closed %d", code)
		}
		if n := r.stats.Open.Load(); n != 0 {
			t.Errorf("%d are open", n)
		}
		// A late result gets an error.
		if code, _ := r.open().closed(time.Second); code != 1001 {
			t.Errorf("a late connection: %d", code)
		}
	})
}

func TestTheSameSeedGivesTheSameSession(t *testing.T) {
	var runs [2]string
	for i := range runs {
		bubble(t, wire.Options{Seed: 42}, func(r *rig) {
			c := r.open()
			c.ask("Hello")
			var b strings.Builder
			for _, e := range c.until(done) {
				b.Write(e.raw)
			}
			runs[i] = b.String()
		})
	}
	if runs[0] != runs[1] {
		t.Error("two runs with one seed differ")
	}
}

// TestMCPTools: tools of MCP servers are echoed, and have no other effect.
func TestMCPTools(t *testing.T) {
	bubble(t, wire.Options{}, func(r *rig) {
		c := r.open()
		c.take(time.Millisecond)
		const server = `{"type":"mcp","server_label":"docs","server_url":"https://docs.example/mcp"}`
		c.send(`{"type":"session.update","session":{"type":"realtime","tools":[` + server + `]}}`)
		if got := c.take(time.Millisecond); kinds(got) != "session.updated" || !strings.Contains(string(got[0].raw), server) {
			t.Errorf("got %s", kinds(got))
		}
	})
}
