package e2e

import (
	"encoding/json"
	"slices"
	"testing"

	"voicegw/internal/testutil"
	"voicegw/protocol"
	"voicegw/registry"
)

// given is an answer to a tool call on the provider's wire.
type given struct {
	id       string // the provider's, empty for a call without one
	name     string // of the tool; OpenAI's wire has none
	envelope registry.Envelope
}

// answersIn returns the answers to tool calls in a message to the provider.
func answersIn(t testing.TB, m map[string]any) []given {
	t.Helper()
	var out []given
	add := func(id, name string, answer any) {
		text, ok := answer.(string)
		if !ok {
			raw, err := json.Marshal(answer)
			if err != nil {
				t.Fatal(err)
			}
			text = string(raw)
		}
		g := given{id: id, name: name}
		if err := json.Unmarshal([]byte(text), &g.envelope); err != nil {
			t.Fatalf("the answer to %s %s is not an envelope: %v: %s", id, name, err, text)
		}
		out = append(out, g)
	}
	if r, ok := m["toolResponse"].(map[string]any); ok {
		list, _ := r["functionResponses"].([]any)
		for _, e := range list {
			f, _ := e.(map[string]any)
			id, _ := f["id"].(string)
			name, _ := f["name"].(string)
			add(id, name, f["response"])
		}
	}
	if item, ok := m["item"].(map[string]any); ok && item["type"] == "function_call_output" {
		id, _ := item["call_id"].(string)
		add(id, "", item["output"])
	}
	return out
}

// answers returns the answers to tool calls so far, in order.
func (tp *tap) answers(t testing.TB) []given {
	t.Helper()
	var out []given
	for _, m := range tp.all() {
		out = append(out, answersIn(t, m)...)
	}
	return out
}

// waitAnswers waits for this many answers and fails for more.
func (tp *tap) waitAnswers(t testing.TB, many int) []given {
	t.Helper()
	var got []given
	testutil.WaitUntil(t, "the answers of the tools", func() bool {
		got = tp.answers(t)
		return len(got) >= many
	})
	if len(got) > many {
		t.Fatalf("%d answers were given, want %d: %+v", len(got), many, got)
	}
	return got
}

// toolsOff counts the requests for an answer with tools switched off, on OpenAI's wire only.
func (tp *tap) toolsOff() int {
	n := 0
	for _, m := range tp.all() {
		r, _ := m["response"].(map[string]any)
		if m["type"] == "response.create" && r["tool_choice"] == "none" {
			n++
		}
	}
	return n
}

// passage is a turn from the client's view.
type passage struct {
	number  int
	status  string
	started []*protocol.ToolStarted
	ended   []*protocol.ToolEnded
	asked   []*protocol.ConfirmationRequest
	// spoke means that audio arrived after the last tool's end.
	spoke bool
	// said is the answer's text so far.
	said string
}

// call returns the end of the turn's only call.
func (p passage) call(t testing.TB) *protocol.ToolEnded {
	t.Helper()
	if len(p.started) != 1 || len(p.ended) != 1 || p.started[0].CallID != p.ended[0].CallID {
		t.Fatalf("turn %d began %d calls and ended %d, want one", p.number, len(p.started), len(p.ended))
	}
	return p.ended[0]
}

// typed sends a text and takes the turn to its end.
func (c *client) typed(text string) passage {
	c.t.Helper()
	c.say(&protocol.InputText{Text: text})
	return c.turn()
}

// turn takes the next turn to its end, with instant playback. Every started call must end, and every completed turn
// must end in speech.
func (c *client) turn() passage {
	c.t.Helper()
	p := passage{number: waitFor[*protocol.TurnStarted](c).Turn}
	texts, order := map[string]string{}, []string(nil)
	for p.status == "" {
		h := c.next()
		p.spoke = p.spoke || h.bytes > 0
		switch m := h.msg.(type) {
		case *protocol.TurnStarted:
			c.t.Fatalf("turn %d begins before turn %d has ended", m.Turn, p.number)
		case *protocol.ToolStarted:
			p.started = append(p.started, m)
		case *protocol.ToolEnded:
			p.ended, p.spoke = append(p.ended, m), false
		case *protocol.ConfirmationRequest:
			p.asked = append(p.asked, m)
		case *protocol.Transcript:
			if m.Role == "assistant" {
				if !slices.Contains(order, m.ID) {
					order = append(order, m.ID)
				}
				texts[m.ID] = m.Text
			}
		case *protocol.AudioEnd:
			c.say(&protocol.Playback{ItemID: m.ItemID, PlayedMS: m.AudioMS, Done: true})
		case *protocol.TurnEnded:
			if m.Turn == p.number {
				p.status = m.Status
			}
		case *protocol.Error:
			c.t.Fatalf("the gateway reported %s: %s; before that: %s", m.Code, m.Message, c.history())
		}
		if h.err != nil {
			c.t.Fatalf("the connection ended: %v; before that: %s", h.err, c.history())
		}
	}
	for _, id := range order {
		p.said += texts[id]
	}
	if p.status == "completed" && !p.spoke {
		c.t.Errorf("turn %d has completed without speech: %s", p.number, c.history())
	}
	return p
}

// errorOf returns a call's error for the client.
func errorOf(t testing.TB, m *protocol.ToolEnded) registry.Error {
	t.Helper()
	var e registry.Error
	if m.OK {
		t.Fatalf("%s (%s) has succeeded", m.Tool, m.CallID)
	}
	if err := json.Unmarshal(m.Error, &e); err != nil {
		t.Fatalf("the error of %s: %v: %s", m.Tool, err, m.Error)
	}
	return e
}

// toolsEnded waits until this many calls have ended.
func (c *client) toolsEnded(many int) []*protocol.ToolEnded {
	c.t.Helper()
	for {
		if got := messages[*protocol.ToolEnded](c); len(got) >= many {
			return got
		}
		waitFor[*protocol.ToolEnded](c)
	}
}

// toolsStarted waits until this many calls have begun.
func (c *client) toolsStarted(many int) []*protocol.ToolStarted {
	c.t.Helper()
	for {
		if got := messages[*protocol.ToolStarted](c); len(got) >= many {
			return got
		}
		waitFor[*protocol.ToolStarted](c)
	}
}
