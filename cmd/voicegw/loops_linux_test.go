package main

import (
	"runtime"
	"strings"
	"testing"

	"voicegw/protocol"
)

// TestLoopsReadAll: on both wires, loops read the connections to clients and to models, without a goroutine per
// connection. Only a transport created without loops would have one.
func TestLoopsReadAll(t *testing.T) {
	t.Parallel()
	r := start(t, "--set", "limits.exempt_loopback=true", "--set", "drain_timeout=1s")
	for _, provider := range []string{"gemini", "openai"} {
		c := r.phone(t, provider)
		c.say(&protocol.InputText{ID: "t1", Text: "search"}) // so that both sides have traffic
		hear[*protocol.TurnStarted](c)
		p := make([]byte, 4<<20)
		stacks := string(p[:runtime.Stack(p, true)])
		if !strings.Contains(stacks, "nonblock.(*loop).run(") || strings.Contains(stacks, "nonblock.(*reader).run(") {
			t.Errorf("%s: no loop reads a connection:\n%s", provider, stacks)
		}
	}
}
