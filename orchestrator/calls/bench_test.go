package calls

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"voicegw/registry/spec"
)

// BenchmarkDecide measures a decision in a conversation with the maximum of remembered answers.
func BenchmarkDecide(b *testing.B) {
	full := New(toolbox(), &Rules{Tools: Policy{Mode: spec.ModeVoice}, Prefix: "c"})
	called := func(c *Calls, id, tool, args string) []Action {
		return c.Called(time.Time{}, Called{Turn: 1, Provider: id, Tool: tool, Args: json.RawMessage(args)})
	}
	for i := range 100 {
		full.Book().BeginTurn()
		called(&full, fmt.Sprintf("call_%010d", i), "book", fmt.Sprintf(`{"who":"%d"}`, i))
		full.Finished(Finished{Call: fmt.Sprint("c", i+1), Envelope: good(`{"n":1}`)})
	}
	full.Book().BeginTurn()
	spent := full.Clone()
	for range 3 {
		called(&spent, "", "rocket", ``)
	}
	for _, c := range []struct {
		name           string
		calls          Calls
		id, tool, args string
		runs           bool
	}{
		{"first", full, "call_xxxxxxxxxx", "get", `{"id":"x"}`, true},
		{"duplicate", full, "call_0000000099", "book", `{"who":"99"}`, false},
		{"business_key", full, "call_xxxxxxxxxx", "book", `{"who":"99","note":"n"}`, false},
		{"over_budget", spent, "call_xxxxxxxxxx", "get", `{"id":"x"}`, false},
		{"clamp", full, "call_xxxxxxxxxx", "search", `{"query":"x","top_k":10}`, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				one := c.calls.Clone()
				do := called(&one, c.id, c.tool, c.args)
				if _, ran := do[len(do)-1].(Run); ran != c.runs {
					b.Fatalf("it ran: %t, want %t", ran, c.runs)
				}
			}
		})
	}
}
