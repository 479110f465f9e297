package textmodel

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// call is a piece of a tool call on the wire.
func call(pieces ...string) string {
	return chunk(`{"tool_calls":[`+strings.Join(pieces, ",")+`]}`, "")
}

func calls(names ...string) []ToolCall {
	var out []ToolCall
	for i := 0; i+2 < len(names); i += 3 {
		out = append(out, ToolCall{ID: names[i], Name: names[i+1], Args: []byte(names[i+2])})
	}
	return out
}

// TestAnswers: the replies for the wire's forms, OpenAI's own and those of compatible servers.
func TestAnswers(t *testing.T) {
	role := chunk(`{"role":"assistant","content":"","refusal":null}`, "")
	for name, tc := range map[string]struct {
		body   string
		want   Reply
		deltas []string
	}{
		"text": {
			body:   stream(role, text("Hel"), text("lo"), text(" 你好"), chunk(`{}`, "stop"), usageChunk),
			want:   Reply{Text: "Hello 你好", Usage: Usage{Input: 21, Cached: 16, Output: 7}},
			deltas: []string{"Hel", "lo", " 你好"},
		},
		"without the end mark": {
			body: lines(role, text("Hello"), chunk(`{}`, "stop")),
			want: Reply{Text: "Hello"}, deltas: []string{"Hello"},
		},
		"with comments, names of events and CR LF": {
			body: ": keepalive\r\n\r\nevent: message\r\ndata: " + text("Hello") + "\r\n\r\n: more\r\n\r\ndata:" + chunk(`{}`, "stop") + "\r\n\r\ndata: [DONE]\r\n\r\n",
			want: Reply{Text: "Hello"}, deltas: []string{"Hello"},
		},
		"the end in the chunk of the last text": {
			body: stream(chunk(`{"content":"Hello"}`, "stop")),
			want: Reply{Text: "Hello"}, deltas: []string{"Hello"},
		},
		"two calls with one id": {
			body: stream(call(`{"index":0,"id":"call_a","function":{"name":"a","arguments":"{}"}}`, `{"index":1,"id":"call_a","function":{"name":"b","arguments":"{}"}}`), chunk(`{}`, "tool_calls")),
			want: Reply{Calls: calls("call_a", "a", "{}", "call_a_1", "b", "{}")},
		},
		"usage in the last chunk with a choice": {
			body: stream(text("Hi"), strings.Replace(chunk(`{}`, "stop"), `"choices"`, `"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4},"choices"`, 1)),
			want: Reply{Text: "Hi", Usage: Usage{Input: 3, Output: 1}}, deltas: []string{"Hi"},
		},
		"usage that grows with each chunk": {
			body: stream(
				strings.Replace(text("Hi"), `"choices"`, `"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4},"choices"`, 1),
				strings.Replace(chunk(`{}`, "stop"), `"choices"`, `"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5},"choices"`, 1)),
			want: Reply{Text: "Hi", Usage: Usage{Input: 3, Output: 2}}, deltas: []string{"Hi"},
		},
		"cut at the length limit": {
			body: stream(text("and th"), chunk(`{}`, "length")),
			want: Reply{Text: "and th", Cut: true}, deltas: []string{"and th"},
		},
		"withheld by the filter": {
			body: stream(chunk(`{}`, "content_filter")),
			want: Reply{Refused: true},
		},
		"a refusal": {
			body: stream(role, chunk(`{"refusal":"I can't "}`, ""), chunk(`{"refusal":"do that."}`, ""), chunk(`{}`, "stop")),
			want: Reply{Text: "I can't do that.", Refused: true}, deltas: []string{"I can't do that."},
		},
		"another choice": {
			body: stream(text("Hello"), strings.Replace(text("No"), `"index":0`, `"index":1`, 1), chunk(`{}`, "stop")),
			want: Reply{Text: "Hello"}, deltas: []string{"Hello"},
		},
		"nothing": {
			body: stream(role, chunk(`{}`, "stop")),
			want: Reply{},
		},
		"a call": {
			body: stream(
				chunk(`{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_aaaaaaaa","type":"function","function":{"name":"kb_search","arguments":""}}]}`, ""),
				call(`{"index":0,"function":{"arguments":"{\"query\":"}}`), call(`{"index":0,"function":{"arguments":"\"lab\"}"}}`),
				chunk(`{}`, "tool_calls")),
			want: Reply{Calls: calls("call_aaaaaaaa", "kb_search", `{"query":"lab"}`)},
		},
		"text, then calls": {
			body: stream(text("One moment."), call(`{"index":0,"id":"call_a","type":"function","function":{"name":"kb_get","arguments":"{}"}}`), chunk(`{}`, "tool_calls")),
			want: Reply{Text: "One moment.", Calls: calls("call_a", "kb_get", `{}`)}, deltas: []string{"One moment."},
		},
		"parallel calls, one after another": {
			body: stream(
				call(`{"index":0,"id":"call_a","type":"function","function":{"name":"kb_search","arguments":""}}`), call(`{"index":0,"function":{"arguments":"{\"query\":\"a\"}"}}`),
				call(`{"index":1,"id":"call_b","type":"function","function":{"name":"kb_get","arguments":""}}`), call(`{"index":1,"function":{"arguments":"{\"ids\":[]}"}}`),
				chunk(`{}`, "tool_calls")),
			want: Reply{Calls: calls("call_a", "kb_search", `{"query":"a"}`, "call_b", "kb_get", `{"ids":[]}`)},
		},
		"parallel calls, interleaved": {
			body: stream(
				call(`{"index":0,"id":"call_a","type":"function","function":{"name":"one","arguments":"{\"a\":"}}`, `{"index":1,"id":"call_b","type":"function","function":{"name":"two","arguments":"{\"b\":"}}`),
				call(`{"index":1,"function":{"arguments":"2}"}}`), call(`{"index":0,"function":{"arguments":"1}"}}`),
				chunk(`{}`, "tool_calls")),
			want: Reply{Calls: calls("call_a", "one", `{"a":1}`, "call_b", "two", `{"b":2}`)},
		},
		"the index 0 for all, with new ids": {
			body: stream(
				call(`{"index":0,"id":"call_a","type":"function","function":{"name":"one","arguments":"{\"a\":"}}`), call(`{"index":0,"function":{"arguments":"1}"}}`),
				call(`{"index":0,"id":"call_b","type":"function","function":{"name":"two","arguments":"{\"b\":2}"}}`),
				chunk(`{}`, "tool_calls")),
			want: Reply{Calls: calls("call_a", "one", `{"a":1}`, "call_b", "two", `{"b":2}`)},
		},
		"the id in every piece": {
			body: stream(
				call(`{"index":0,"id":"call_a","type":"function","function":{"name":"one","arguments":"{\"a\":"}}`),
				call(`{"index":0,"id":"call_a","type":"function","function":{"arguments":"1}"}}`), chunk(`{}`, "tool_calls")),
			want: Reply{Calls: calls("call_a", "one", `{"a":1}`)},
		},
		"complete calls in one chunk, without an index": {
			body: stream(call(`{"id":"call_a","type":"function","function":{"name":"one","arguments":"{}"}}`, `{"id":"call_b","type":"function","function":{"name":"one","arguments":"{\"b\":2}"}}`), chunk(`{}`, "tool_calls")),
			want: Reply{Calls: calls("call_a", "one", `{}`, "call_b", "one", `{"b":2}`)},
		},
		"no ids": {
			body: stream(call(`{"index":0,"function":{"name":"one","arguments":"{}"}}`), call(`{"index":1,"function":{"name":"two","arguments":"{}"}}`), chunk(`{}`, "tool_calls")),
			want: Reply{Calls: calls("call_0", "one", `{}`, "call_1", "two", `{}`)},
		},
		"complete calls with neither index nor id": {
			body: stream(call(`{"function":{"name":"one","arguments":"{}"}}`, `{"function":{"name":"one","arguments":"{\"b\":2}"}}`), chunk(`{}`, "stop")),
			want: Reply{Calls: calls("call_0", "one", `{}`, "call_1", "one", `{"b":2}`)},
		},
		"the name in every piece": {
			body: stream(call(`{"index":0,"function":{"name":"one","arguments":"{\"a\""}}`), call(`{"index":0,"function":{"name":"one","arguments":":1}"}}`), chunk(`{}`, "tool_calls")),
			want: Reply{Calls: calls("call_0", "one", `{"a":1}`)},
		},
		"arguments that are not JSON": {
			body: stream(call(`{"index":0,"id":"call_a","function":{"name":"one","arguments":"{\"a\":"}}`), chunk(`{}`, "length")),
			want: Reply{Cut: true, Calls: calls("call_a", "one", `{"a":`)},
		},
		"a complete JSON answer": {
			body: whole(`{"role":"assistant","content":"Hello"}`, `"stop"`),
			want: Reply{Text: "Hello", Usage: Usage{Input: 3, Output: 1}}, deltas: []string{"Hello"},
		},
		"a complete JSON answer with calls": {
			body: whole(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_a","type":"function","function":{"name":"one","arguments":"{}"}},{"id":"call_b","type":"function","function":{"name":"two","arguments":"{\"b\":2}"}}]}`, `"tool_calls"`),
			want: Reply{Usage: Usage{Input: 3, Output: 1}, Calls: calls("call_a", "one", `{}`, "call_b", "two", `{"b":2}`)},
		},
		"a complete JSON answer without a finish_reason": {
			body: whole(`{"content":"Hello"}`, `null`),
			want: Reply{Text: "Hello", Usage: Usage{Input: 3, Output: 1}}, deltas: []string{"Hello"},
		},
		"a complete message in an event": {
			body: stream(whole(`{"role":"assistant","content":"Hello"}`, `"stop"`)),
			want: Reply{Text: "Hello", Usage: Usage{Input: 3, Output: 1}}, deltas: []string{"Hello"},
		},
		"content in parts": {
			body: stream(chunk(`{"content":[{"type":"text","text":"Hel"},{"type":"thinking","thinking":[]},{"type":"text","text":"lo"}]}`, ""), chunk(`{"content":{"type":"text","text":"!"}}`, ""), chunk(`{}`, "stop")),
			want: Reply{Text: "Hello!"}, deltas: []string{"Hello", "!"},
		},
		"a complete JSON answer in parts": {
			body: whole(`{"content":[{"type":"output_text","text":"Hello"}]}`, `"stop"`),
			want: Reply{Text: "Hello", Usage: Usage{Input: 3, Output: 1}}, deltas: []string{"Hello"},
		},
		"no finish_reason, and the end mark": {
			body: stream(text("Hello")),
			want: Reply{Text: "Hello"}, deltas: []string{"Hello"},
		},
		"no finish_reason after a call, and the end mark": {
			body: stream(call(`{"index":0,"id":"call_a","function":{"name":"one","arguments":"{}"}}`)),
			want: Reply{Calls: calls("call_a", "one", `{}`)},
		},
		"arguments as an object": {
			body: stream(call(`{"index":0,"id":"call_a","function":{"name":"one","arguments":{"a":1}}}`), chunk(`{}`, "tool_calls")),
			want: Reply{Calls: calls("call_a", "one", `{"a":1}`)},
		},
		"a null error": {
			body: stream(strings.Replace(text("Hello"), `"choices"`, `"error":null,"choices"`, 1), chunk(`{}`, "stop")),
			want: Reply{Text: "Hello"}, deltas: []string{"Hello"},
		},
		"no function_call": {
			body: stream(chunk(`{"content":"Hello","function_call":null,"tool_calls":null}`, "stop")),
			want: Reply{Text: "Hello"}, deltas: []string{"Hello"},
		},
		"no arguments": {
			body: stream(call(`{"index":0,"id":"call_a","function":{"name":"one"}}`), chunk(`{}`, "tool_calls")),
			want: Reply{Calls: calls("call_a", "one", ``)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &provider{answers: []response{{body: tc.body}}}
			reply, deltas, err := ask(t.Context(), p.client(t, Options{}), Prompt{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, reply); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.deltas, deltas); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestEndOfAnAnswer: a finished answer is complete even if the connection then breaks or the server leaves it open, and
// usage that arrived counts.
func TestEndOfAnAnswer(t *testing.T) {
	for name, a := range map[string]response{
		"it breaks":                   {body: lines(text("Hello"), chunk(`{}`, "stop")), cut: true},
		"it remains open":             {body: lines(text("Hello"), chunk(`{}`, "stop")), hang: true},
		"it remains open after usage": {body: lines(text("Hello"), chunk(`{}`, "stop"), usageChunk), hang: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &provider{answers: []response{a}}
			began := time.Now()
			reply, _, err := ask(t.Context(), p.client(t, Options{}), Prompt{})
			if err != nil || reply.Text != "Hello" || (reply.Usage.Input == 21) != strings.Contains(a.body, "usage") {
				t.Errorf("%s: %+v %v", name, reply, err)
			}
			if took := time.Since(began); took > linger {
				t.Errorf("%s: the answer is delayed for %v", name, took)
			}
			<-time.After(linger) // of the bubble's clock: nothing is left
		})
	}
}

// FuzzStream: any answer of a provider gives a reply or an error, the deltas are the text of the reply, nothing is longer
// than the limits, and nothing panics.
func FuzzStream(f *testing.F) {
	f.Add(stream(text("Hello"), chunk(`{}`, "stop"), usageChunk))
	f.Add(stream(call(`{"index":0,"id":"call_a","function":{"name":"one","arguments":"{}"}}`), chunk(`{}`, "tool_calls")))
	f.Add(stream(call(`{"function":{"name":"one","arguments":"{}"}}`, `{"function":{"name":"one"}}`), chunk(`{}`, "stop")))
	f.Add(stream(chunk(`{"refusal":"no"}`, "stop")))
	f.Add(lines(`{"error":{"message":"overloaded"}}`))
	f.Add(whole(`{"content":[{"type":"text","text":"Hello"}]}`, `"stop"`))
	f.Add(stream(whole(`{"tool_calls":[{"function":{"name":"one","arguments":{}}}]}`, `null`)))
	f.Add(`[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}]`)
	f.Add("event: error\ndata: {\"message\":\"overloaded\"}\n\n")
	f.Add("<html>")
	f.Add("data: {\n\ndata: []\n\n: x\ndata: [DONE]\n\n")
	f.Fuzz(func(t *testing.T, body string) {
		p := &provider{answers: []response{{body: body}}}
		reply, deltas, err := ask(t.Context(), p.client(t, Options{Retries: -1}), Prompt{})
		if err != nil {
			return
		}
		if said := strings.Join(deltas, ""); said != reply.Text {
			t.Errorf("the deltas are %q, the reply is %q", said, reply.Text)
		}
		if len(reply.Text) > maxText || len(reply.Calls) > maxCalls {
			t.Errorf("%d bytes, %d calls", len(reply.Text), len(reply.Calls))
		}
		for _, c := range reply.Calls {
			if c.ID == "" {
				t.Error("a call without a name")
			}
		}
	})
}
