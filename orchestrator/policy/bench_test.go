package policy

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkDecide is what a decision costs beside a Book that is full.
func BenchmarkDecide(b *testing.B) {
	full := voiceBook()
	for i := range maxAnswers {
		id := fmt.Sprintf("call_%010d", i)
		full.BeginTurn()
		full.Decide(call(id, id, "book", fmt.Sprintf(`{"who":"%d"}`, i)))
		full.Finished(id, good(`{"n":1}`), time.Millisecond)
	}
	full.BeginTurn()
	spent := full
	for i := range 3 {
		spent.Decide(call(fmt.Sprint(i), "", "rocket", ``))
	}
	for _, c := range []struct {
		name    string
		book    Book
		call    Call
		verdict Verdict
	}{
		{"first", full, call("x", "call_xxxxxxxxxx", "get", `{"id":"x"}`), Run},
		{"duplicate", full, call("x", "call_0000000099", "book", `{"who":"99"}`), Answered},
		{"business_key", full, call("x", "call_xxxxxxxxxx", "book", `{"who":"99","note":"n"}`), Answered},
		{"over_budget", spent, call("x", "call_xxxxxxxxxx", "get", `{"id":"x"}`), Answered},
		{"clamp", full, call("x", "call_xxxxxxxxxx", "search", `{"query":"x","top_k":10}`), Run},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				book := c.book
				if d := book.Decide(c.call); d.Verdict != c.verdict {
					b.Fatalf("verdict %d, want %d", d.Verdict, c.verdict)
				}
			}
		})
	}
}
