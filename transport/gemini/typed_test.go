package gemini

import (
	"encoding/json"
	"strings"
	"testing"

	"voicegw/transport"
)

// TestTypedWhileAToolRuns: 2.5 closes the connection on text while it waits for a tool, so text typed then is sent after
// the results, or when the calls are withdrawn.
func TestTypedWhileAToolRuns(t *testing.T) {
	const one = `{"toolCall":{"functionCalls":[{"id":"a","name":"wait","args":{}}]}}`
	const both = `{"toolCall":{"functionCalls":[{"id":"a","name":"wait","args":{}},{"id":"b","name":"wait","args":{"n":1}}]}}`
	say := func(text string) transport.Command { return transport.UserText{Text: text} }
	result := func(call string) transport.Command {
		return transport.ToolResult{Call: call, Output: json.RawMessage(`{"ok":true}`)}
	}
	const held = `{"clientContent":{"turns":[{"role":"user","parts":[{"text":"stop"}]},{"role":"user","parts":[{"text":"go on"}]}],"turnComplete":true}}`
	for _, tt := range []struct {
		name, calls string
		events      int
		sends       []transport.Command
		withdrawn   string
		want        []string
	}{
		{"a result", one, 2, []transport.Command{say("stop"), say("go on"), result("call_1")}, "", []string{`{"toolResponse"`, held}},
		{"the last of two results", both, 3, []transport.Command{say("stop"), result("call_1"), say("go on"), result("call_2")}, "", []string{`{"toolResponse"`, `{"toolResponse"`, held}},
		{"withdrawn calls", both, 3, []transport.Command{say("stop"), say("go on")}, `{"toolCallCancellation":{"ids":["a","b"]}}`, []string{held}},
		{"no call", "", 0, []transport.Command{say("stop")}, "", []string{`{"clientContent":{"turns":[{"role":"user","parts":[{"text":"stop"}]}],"turnComplete":true}}`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, peer := newProvider(t).connect(transport.Setup{})
			if tt.calls != "" {
				peer.send(tt.calls)
				recv(t, c, tt.events)
			}
			for _, cmd := range tt.sends {
				if err := c.Send(t.Context(), cmd); err != nil {
					t.Fatal(err)
				}
			}
			if tt.withdrawn != "" {
				peer.send(tt.withdrawn)
				recv(t, c, 1)
			}
			for _, want := range tt.want {
				if got := peer.next(); !strings.HasPrefix(got, want) {
					t.Errorf("the provider was sent %s, want %s", got, want)
				}
			}
		})
	}
}

// TestTypedIsBounded: a user cannot fill the memory during a hanging tool.
func TestTypedIsBounded(t *testing.T) {
	c := offline(t, model25)
	c.calls.add("a", "wait", 1, true)
	if _, err := c.encode(nil, transport.UserText{Text: strings.Repeat("x", maxTyped)}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.encode(nil, transport.UserText{Text: "x"}); err == nil {
		t.Error("unlimited text is held")
	}
}
