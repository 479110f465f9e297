package sim

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestStream: the order and the keys of chunks are those of the provider.
func TestStream(t *testing.T) {
	for _, c := range []struct{ name, said, more, want string }{
		{"text", "count", ``, `
0 {"role":"assistant","content":"","refusal":null}
0 {"content":"a"}
0 {"content":" b"}
0 {"content":" c"}
0 {"content":" d"}
0 {"content":" e"}
0 {"content":" f"}
0 {} stop
data: [DONE]
`},
		{"usage, and a limit", "count", `,"max_tokens":2,"stream_options":{"include_usage":true}`, `
0 {"role":"assistant","content":"","refusal":null}
0 {"content":"a"}
0 {"content":" b"}
0 {} length
usage 2
data: [DONE]
`},
		{"a stop sequence within a word", "pause", `,"stop":["he"]`, `
0 {"role":"assistant","content":"","refusal":null}
0 {"content":"Now"}
0 {"content":" t"}
0 {} stop
data: [DONE]
`},
		{"a call alone", "without", `,` + declared, `
0 {"role":"assistant","content":null,"tool_calls":[{"index":0,"type":"function","function":{"name":"weather","arguments":""}}],"refusal":null}
0 {"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}
0 {} tool_calls
data: [DONE]
`},
		{"a call sent twice", "twice", `,` + declared, `
0 {"role":"assistant","content":null,"refusal":null}
0 {"tool_calls":[{"index":0,"id":"call_x","type":"function","function":{"name":"weather","arguments":""}}]}
0 {"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}
0 {"tool_calls":[{"index":1,"id":"call_x","type":"function","function":{"name":"weather","arguments":""}}]}
0 {"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]}
0 {} tool_calls
data: [DONE]
`},
		{"a line before a call", "one", `,` + declared, `
0 {"role":"assistant","content":"","refusal":null}
0 {"content":"One"}
0 {"content":" moment."}
0 {"tool_calls":[{"index":0,"id":"call_fixed","type":"function","function":{"name":"weather","arguments":""}}]}
0 {"tool_calls":[{"index":0,"function":{"arguments":"{\""}}]}
0 {"tool_calls":[{"index":0,"function":{"arguments":"city"}}]}
0 {"tool_calls":[{"index":0,"function":{"arguments":"\":\""}}]}
0 {"tool_calls":[{"index":0,"function":{"arguments":"Paris"}}]}
0 {"tool_calls":[{"index":0,"function":{"arguments":"\"}"}}]}
0 {} tool_calls
data: [DONE]
`},
		{"a refusal", "decline", ``, `
0 {"role":"assistant","content":null,"refusal":null}
0 {"refusal":"I"}
0 {"refusal":" may"}
0 {"refusal":" not"}
0 {"refusal":" say."}
0 {} stop
data: [DONE]
`},
		{"an empty answer, twice", "nothing", `,"n":2`, `
0 {"role":"assistant","content":"","refusal":null}
0 {} stop
1 {"role":"assistant","content":"","refusal":null}
1 {} stop
data: [DONE]
`},
		{"an error in the middle", "late", ``, `
0 {"role":"assistant","content":"","refusal":null}
0 {"content":"Now"}
error {"message":"The server had an error while processing your request. Sorry about that!","type":"server_error","param":null,"code":null}
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := show(t, ask(fast(t, ""), c.said, `,"stream":true`+c.more))
			if diff := cmp.Diff(strings.TrimPrefix(c.want, "\n"), got); diff != "" {
				t.Errorf("stream (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFaultsOfAStream: faults of the script at each place of a stream.
func TestFaultsOfAStream(t *testing.T) {
	for _, c := range []struct{ name, faults, want string }{
		{"malformed", `{at: event, event: chat.completion.chunk, do: malformed}`, "data: {\"id\":\"chatcmpl-"},
		{"unknown", `{at: chunk, n: 2, do: unknown_event}`, "event: sim.unknown\ndata: {\"object\":\"sim.unknown\",\"choices\":[]}\n0 {\"content\":\" b\"}"},
		{"quota", `{at: chunk, n: 2, do: quota}`, "0 {\"content\":\"a\"}\nerror {\"message\":\"You exceeded your current quota"},
		{"status at an event", `{at: event, event: "[DONE]", do: http_error, code: 429}`, "stop\nerror {\"message\":\"Rate limit reached"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := show(t, ask(fast(t, "faults: ["+c.faults+"]"), "count", `,"stream":true`))
			if !strings.Contains(got, c.want) {
				t.Errorf("%q is missing in\n%s", c.want, got)
			}
		})
	}
}

func TestFaultsOfCalls(t *testing.T) {
	h := fast(t, "faults: [{at: call, n: 1, do: duplicate_call}, {at: call, n: 2, do: missing_id}, {at: call, do: cancel_call}, {at: call, do: late_call, for: 1s}]")
	got := wholeAnswer(t, ask(h, "parallel", ","+declared)).Choices[0].Message.ToolCalls
	if len(got) != 3 || got[0].ID != got[1].ID || got[0].ID == "" || got[2].ID != "" {
		t.Errorf("%+v", got)
	}
	if n := h.opts.Stats.Faults.Load(); n != 2 {
		t.Errorf("%d faults were committed", n)
	}
}

// TestFaultsBeforeTheAnswer: a refusal by a fault is a plain answer, with the time to retry.
func TestFaultsBeforeTheAnswer(t *testing.T) {
	h := fast(t, "faults: [{at: connect, api: chat, connection: 2, do: http_error, code: 429, for: 700ms}, {at: setup, api: images, do: drop}]")
	w := ask(h, "overload", "")
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "2" || w.Header().Get("Retry-After-Ms") != "1500" || !strings.Contains(w.Body.String(), "Come back later.") {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if w = ask(h, "count", ""); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), `"code":"rate_limit_exceeded"`) {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if w = ask(h, "count", ""); w.Code != http.StatusOK {
		t.Errorf("the third request: %d %s", w.Code, w.Body)
	}
}
