package textmodel

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// goesBack asks with an answer that has come, and returns its message as it stands in the next
// request. turn is what else was said in the turn and after.
func goesBack(t *testing.T, p *provider, c *Client, reply Reply, turn ...Message) map[string]any {
	t.Helper()
	messages := append([]Message{{Role: RoleUser, Text: "Who?"}, {Role: RoleAssistant, Text: reply.Text, Calls: reply.Calls, Extra: reply.Extra}}, turn...)
	p.answers = append(p.answers, response{body: hello})
	if _, _, err := ask(t.Context(), c, Prompt{Messages: messages}); err != nil {
		t.Fatal(err)
	}
	sent := p.bodies[len(p.bodies)-1]["messages"].([]any)
	return sent[1].(map[string]any)
}

// one is a call in one piece, with what else stands in it.
func one(index, id, more string) string {
	return `{"index":` + index + `,"id":"` + id + `","type":"function","function":{"name":"kb_get","arguments":"{}"}` + more + `}`
}

// TestExtras: what a provider sends beside text and calls goes back on the same message and the
// same call, in whatever pieces it came.
func TestExtras(t *testing.T) {
	signed := func(s string) string { return `,"extra_content":{"google":{"thought_signature":"` + s + `"}}` }
	made := func(id, more string) string {
		return `{"id":"` + id + `","type":"function","function":{"name":"kb_get","arguments":"{}"}` + more + `}`
	}
	for name, tc := range map[string]struct{ body, want string }{
		"a signature in the chunk of its call": {
			stream(call(one("0", "call_a", signed("Ej+/QK<&>=="))), chunk(`{}`, "tool_calls")),
			`{"role":"assistant","tool_calls":[` + made("call_a", signed("Ej+/QK<&>==")) + `]}`,
		},
		"a signature before the arguments": {
			stream(call(`{"index":0,"id":"call_a","type":"function","function":{"name":"kb_get","arguments":""}`+signed("abc")+`}`), call(`{"index":0,"function":{"arguments":"{}"}}`), chunk(`{}`, "tool_calls")),
			`{"role":"assistant","tool_calls":[` + made("call_a", signed("abc")) + `]}`,
		},
		"a signature in a chunk of its own, at the end": {
			stream(call(one("0", "call_a", "")), call(`{"index":0`+signed("abc")+`}`), chunk(`{}`, "tool_calls")),
			`{"role":"assistant","tool_calls":[` + made("call_a", signed("abc")) + `]}`,
		},
		"a signature in the chunk of the end": {
			stream(call(one("0", "call_a", "")), chunk(`{"tool_calls":[{"index":0`+signed("abc")+`}]}`, "tool_calls")),
			`{"role":"assistant","tool_calls":[` + made("call_a", signed("abc")) + `]}`,
		},
		"parallel calls, signed each": {
			stream(call(one("0", "call_a", signed("a")), one("1", "call_b", "")), call(`{"index":1`+signed("b")+`}`), chunk(`{}`, "tool_calls")),
			`{"role":"assistant","tool_calls":[` + made("call_a", signed("a")) + `,` + made("call_b", signed("b")) + `]}`,
		},
		"parallel calls of one index, the first signed": {
			stream(call(one("0", "call_a", signed("a"))), call(one("0", "call_b", "")), chunk(`{}`, "tool_calls")),
			`{"role":"assistant","tool_calls":[` + made("call_a", signed("a")) + `,` + made("call_b", "") + `]}`,
		},
		"a message that is signed at its end": {
			stream(text("Ada."), chunk(`{"content":""`+signed("m")+`}`, "stop")),
			`{"role":"assistant","content":"Ada."` + signed("m") + `}`,
		},
		"a whole message": {
			whole(`{"role":"assistant","content":null,"reasoning_content":"Hm.","tool_calls":[`+made("call_a", signed("abc"))+`]}`, `"tool_calls"`),
			`{"role":"assistant","reasoning_content":"Hm.","tool_calls":[` + made("call_a", signed("abc")) + `]}`,
		},
		"objects in pieces": {
			stream(call(one("0", "call_a", `,"extra_content":{"google":{"a":1},"x":{"y":[1]}}`)), call(`{"index":0,"extra_content":{"google":{"thought_signature":"s","a":""},"z":null}}`), chunk(`{}`, "tool_calls")),
			`{"role":"assistant","tool_calls":[` + made("call_a", `,"extra_content":{"google":{"a":1,"thought_signature":"s"},"x":{"y":[1]},"z":null}`) + `]}`,
		},
		"LiteLLM's signature": {
			stream(call(one("0", "call_a", `,"provider_specific_fields":{"thought_signature":"abc"}`)), chunk(`{}`, "tool_calls")),
			`{"role":"assistant","tool_calls":[` + made("call_a", `,"provider_specific_fields":{"thought_signature":"abc"}`) + `]}`,
		},
		"thoughts in pieces, with a call": {
			stream(chunk(`{"reasoning_content":"First "}`, ""), chunk(`{"reasoning_content":"<that>.","content":null}`, ""), chunk(`{"reasoning_content":null,"content":""}`, ""), call(one("0", "call_a", "")), chunk(`{}`, "tool_calls")),
			`{"role":"assistant","reasoning_content":"First <that>.","tool_calls":[` + made("call_a", "") + `]}`,
		},
		"thoughts without a call": {
			stream(chunk(`{"reasoning_content":"Hm."}`, ""), text("Ada."), chunk(`{}`, "stop")),
			`{"role":"assistant","content":"Ada."}`,
		},
		"OpenRouter's blocks": {
			stream(
				chunk(`{"reasoning":"One","reasoning_details":[{"type":"reasoning.text","text":"One","format":"f","index":0}]}`, ""),
				chunk(`{"reasoning":" two","reasoning_details":[{"type":"reasoning.text","text":" two","signature":null,"index":0}]}`, ""),
				chunk(`{"reasoning_details":[{"type":"reasoning.text","signature":"sig==","index":0},{"type":"reasoning.encrypted","data":"xyz","index":1}]}`, ""),
				call(one("0", "call_a", "")), chunk(`{}`, "tool_calls")),
			`{"role":"assistant","reasoning_details":[{"type":"reasoning.text","text":"One two","format":"f","signature":"sig==","index":0},{"type":"reasoning.encrypted","data":"xyz","index":1}],"tool_calls":[` + made("call_a", "") + `]}`,
		},
		"vLLM's thoughts": {
			stream(chunk(`{"reasoning":"Hm."}`, ""), call(one("0", "call_a", "")), chunk(`{}`, "tool_calls")),
			`{"role":"assistant","reasoning":"Hm.","tool_calls":[` + made("call_a", "") + `]}`,
		},
		"what nobody wants back": {
			stream(chunk(`{"content":"Ada.","audio":null,"surprise":{"a":1}}`, ""), chunk(`{}`, "stop")),
			`{"role":"assistant","content":"Ada."}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &provider{answers: []response{{body: tc.body}}}
			c := p.client(t, Options{})
			reply, deltas, err := ask(t.Context(), c, Prompt{})
			if err != nil {
				t.Fatal(err)
			}
			if said := strings.Join(deltas, ""); said != reply.Text || strings.Contains(said, "Hm.") || strings.Contains(said, "First") {
				t.Errorf("told was %q", said)
			}
			if diff := cmp.Diff(object(t, tc.want), any(goesBack(t, p, c, reply))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestThoughtsOfEarlierTurns: those of a turn with calls go back with all its messages, also in
// later turns; those of a turn without do not.
func TestThoughtsOfEarlierTurns(t *testing.T) {
	p := &provider{answers: []response{{body: stream(chunk(`{"reasoning_content":"Hm."}`, ""), text("Ada."), chunk(`{}`, "stop"))}}}
	c := p.client(t, Options{})
	reply, _, err := ask(t.Context(), c, Prompt{})
	if err != nil {
		t.Fatal(err)
	}
	calls := []Message{
		{Role: RoleAssistant, Calls: []ToolCall{{ID: "call_a", Name: "kb_get", Args: json.RawMessage(`{}`)}}}, {Role: RoleTool, CallID: "call_a", Text: "{}"}}
	next := Message{Role: RoleUser, Text: "And?"}
	if got := goesBack(t, p, c, reply, append([]Message{next}, calls...)...); got["reasoning_content"] != nil {
		t.Errorf("of a turn without calls: %v", got)
	}
	if got := goesBack(t, p, c, reply, append(calls, next)...); got["reasoning_content"] != "Hm." {
		t.Errorf("of a turn with calls: %v", got)
	}
}

// TestExtrasAreOneModels: another model, or another server, is not sent what it does not know;
// a field that no provider wants back is left out.
func TestExtrasAreOneModels(t *testing.T) {
	p := &provider{answers: []response{{body: stream(text("Ada."), chunk(`{"extra_content":{"a":1}}`, "stop"))}}}
	reply, _, err := ask(t.Context(), p.client(t, Options{}), Prompt{})
	if err != nil || len(reply.Extra) == 0 {
		t.Fatal(err)
	}
	for name, o := range map[string]Options{"model": {Model: "other"}, "server": {BaseURL: "http://other.test/v1"}} {
		if got := goesBack(t, p, p.client(t, o), reply); got["extra_content"] != nil {
			t.Errorf("another %s: %v", name, got)
		}
	}
	reply.Extra = json.RawMessage(`[1]`)
	if got := goesBack(t, p, p.client(t, Options{}), reply); len(got) != 2 {
		t.Errorf("%v", got)
	}
}

// TestExtrasAreBounded: a provider cannot fill the memory with what nobody reads.
func TestExtrasAreBounded(t *testing.T) {
	thoughts := chunk(`{"reasoning_content":"`+strings.Repeat("a", 100<<10)+`"}`, "")
	p := &provider{answers: []response{{body: stream(thoughts, thoughts, thoughts, thoughts, thoughts, thoughts, text("Ada."), chunk(`{}`, "stop"))}}}
	_, _, err := ask(t.Context(), p.client(t, Options{Retries: -1}), Prompt{})
	if err == nil || !strings.Contains(err.Error(), "the answer's extra fields") || strings.Contains(err.Error(), "aaa") {
		t.Errorf("%.200v", err)
	}
}

// FuzzExtras: whatever comes in whatever pieces, what is kept is JSON that can go back.
func FuzzExtras(f *testing.F) {
	f.Add(`{"extra_content":{"a":{"b":"c"}}}`, `{"extra_content":{"a":{"b":"","d":1}}}`)
	f.Add(`{"reasoning_details":[{"index":0,"type":"t","text":"a"}]}`, `{"reasoning_details":[{"index":0,"type":"t","text":"b","signature":"s"},1]}`)
	f.Add(`{"reasoning_content":"a","reasoning":1}`, `{"reasoning_content":null,"reasoning":"b","extra_content":"x"}`)
	f.Add(`[]`, `{"extra_content":`)
	f.Fuzz(func(t *testing.T, first, second string) {
		var of fields
		of.take(messageExtras, first)
		of.take(messageExtras, second)
		c := &Client{options: Options{BaseURL: "http://provider.test/v1", Model: "m"}}
		packed := (&answer{from: c.from()}).pack(of)
		if len(of) == 0 {
			return
		}
		if !json.Valid(packed) {
			t.Fatalf("%q", packed)
		}
		for name, value := range c.unpack(packed, messageExtras, true) {
			if raw, err := json.Marshal(value); err != nil || string(raw) == "null" {
				t.Errorf("%s: %q %v", name, raw, err)
			}
		}
	})
}
