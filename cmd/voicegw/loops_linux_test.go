package main

import (
	"runtime"
	"strings"
	"testing"

	"voicegw/protocol"
)

// TestLoopsHearAll: on both wires, neither the connection to a client nor that to its model
// has a goroutine: loops hear them. A transport that was made without loops would have one.
func TestLoopsHearAll(t *testing.T) {
	t.Parallel()
	r := start(t, "--set", "limits.exempt_loopback=true", "--set", "drain_timeout=1s")
	for _, provider := range []string{"gemini", "openai"} {
		c := r.phone(t, provider)
		c.say(&protocol.InputText{ID: "t1", Text: "search"}) // so that both sides are heard
		hear[*protocol.TurnStarted](c)
		p := make([]byte, 4<<20)
		stacks := string(p[:runtime.Stack(p, true)])
		if !strings.Contains(stacks, "nonblock.(*loop).run(") || strings.Contains(stacks, "nonblock.(*reader).run(") {
			t.Errorf("%s: a connection is not heard by a loop:\n%s", provider, stacks)
		}
	}
}
