package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"voicegw/internal/audit"
	"voicegw/protocol"
	"voicegw/registry"
)

// TestEqualCallsJoin: equal concurrent calls run once, and each gets the answer, by its id or else by its name.
func TestEqualCallsJoin(t *testing.T) {
	t.Parallel()
	for name, with := range map[string]string{"with ids": "", "without ids": ", without_id: true", "with temporary ids": ", id: tmp_0123456789"} {
		t.Run(name, func(t *testing.T) {
			overBothWires(t, setting{scenario: fmt.Sprintf(`
name: joined
rules:
  - when: {text: go}
    do:
      - call: [{tool: slow%[1]s}, {tool: slow%[1]s}]
      - then: [say: Done.]
`, with)}, func(t *testing.T, provider string, st *stack, tools *stage) {
				c := st.start(t, 16000)
				c.say(&protocol.InputText{Text: "go"})
				c.toolsStarted(2)
				tools.release("slow")
				playTurn(c)
				tools.ran(t, "slow", 1)
				answers := st.tap.waitAnswers(t, 2)
				for i, a := range answers {
					if !a.envelope.OK || a.envelope.Meta.CacheHit != (i == 1) || provider == "gemini" && a.name != "slow" {
						t.Errorf("answer %d to %q %q is %s", i+1, a.id, a.name, a.envelope.Encode())
					}
				}
				if answers[1].envelope.Meta.OriginalTurn != 1 || string(answers[0].envelope.Data) != string(answers[1].envelope.Data) {
					t.Errorf("the second answer is %s, the first %s", answers[1].envelope.Encode(), answers[0].envelope.Encode())
				}
				if same := answers[0].id == answers[1].id; same != (with != "") {
					t.Errorf("the answers have the ids %q and %q", answers[0].id, answers[1].id)
				}
				ended := c.toolsEnded(2)
				if ended[0].Deduplicated || !ended[1].Deduplicated || ended[0].CallID == ended[1].CallID {
					t.Errorf("the client got %+v and %+v", ended[0], ended[1])
				}
				records := st.audit.wait(t, "slow", 2)
				for i, r := range records {
					if r.CacheHit != (i == 1) || !r.Delivered || strings.HasPrefix(r.IdempotencyKey, "provider:") != (with == "") {
						t.Errorf("record %d: %+v", i+1, r)
					}
				}
			})
		})
	}
}

// TestOneIDTwice: a call repeated while it runs gets one answer; one repeated after its answer gets the same answer
// again; with other arguments it is another call.
func TestOneIDTwice(t *testing.T) {
	t.Parallel()
	overBothWires(t, setting{scenario: `
name: one id
rules:
  - when: {text: running}
    do:
      - call: {tool: slow, repeat: 1}
      - then: [say: Done.]
  - when: {text: answered}
    do:
      - call: {tool: lookup, id: id_of_the_test_1, args: {query: a}}
      - then:
          - call: {tool: lookup, id: id_of_the_test_1, args: {query: a}}
          - then: [say: Done.]
  - when: {text: other}
    do:
      - call: {tool: lookup, id: id_of_the_test_2, args: {query: b}}
      - then:
          - call: {tool: lookup, id: id_of_the_test_2, args: {query: c}}
          - then: [say: Done.]
`}, func(t *testing.T, _ string, st *stack, tools *stage) {
		c := st.start(t, 16000)
		c.say(&protocol.InputText{Text: "running"})
		c.toolsStarted(2)
		tools.release("slow")
		playTurn(c)
		tools.ran(t, "slow", 1)
		st.tap.waitAnswers(t, 1)
		records := st.audit.wait(t, "slow", 2)
		// A call's audit line is written after its answer.
		slices.SortFunc(records, func(a, b audit.Record) int { return strings.Compare(a.CallID, b.CallID) })
		if a, b := records[0], records[1]; !a.Delivered || a.CacheHit || b.Delivered || !b.CacheHit || b.NotDelivered != "repeated" || a.IdempotencyKey != b.IdempotencyKey {
			t.Errorf("the audit has %+v and %+v", a, b)
		}
		if ended := c.toolsEnded(2); ended[0].Deduplicated || !ended[1].Deduplicated {
			t.Errorf("the client got %+v and %+v", ended[0], ended[1])
		}

		again := c.typed("answered")
		tools.ran(t, "lookup", 1)
		answers := st.tap.waitAnswers(t, 3)[1:]
		if a, b := answers[0].envelope, answers[1].envelope; a.Meta.CacheHit || !b.Meta.CacheHit || b.Meta.OriginalTurn != again.number || string(a.Data) != string(b.Data) {
			t.Errorf("the answers were %s and %s", a.Encode(), b.Encode())
		}

		if other := c.typed("other"); len(other.ended) != 2 || other.ended[1].Deduplicated {
			t.Errorf("the call with other arguments: %+v", other)
		}
		tools.ran(t, "lookup", 3)
	})
}

// TestOneBooking: name and time identify a user's action, whatever the other arguments; it runs once.
func TestOneBooking(t *testing.T) {
	t.Parallel()
	overBothWires(t, setting{scenario: `
name: booking
rules:
  - when: {text: window}
    do:
      - call: {tool: book, args: {name: Ada, time: noon, note: by the window}}
      - then: [say: Booked.]
  - when: {text: book}
    do:
      - call: {tool: book, args: {name: Ada, time: noon}}
      - then: [say: Booked.]
  - when: {text: write}
    do:
      - call: {tool: write, args: {text: hello}}
      - then: [say: Written.]
`}, func(t *testing.T, _ string, st *stack, tools *stage) {
		c := st.startAs(t, "ada")
		if first := c.typed("book").call(t); !first.OK || first.Deduplicated {
			t.Errorf("the first booking ended with %+v", first)
		}
		if again := c.typed("by the window").call(t); !again.OK || !again.Deduplicated {
			t.Errorf("the same action, requested in other words, ended with %+v", again)
		}
		other := st.startAs(t, "ada")
		if again := other.typed("book").call(t); !again.OK || !again.Deduplicated {
			t.Errorf("the same action in another session ended with %+v", again)
		}
		tools.ran(t, "book", 1)
		answers := st.tap.waitAnswers(t, 3)
		for i, a := range answers {
			if a.envelope.Meta.CacheHit != (i > 0) || i > 0 && a.envelope.Meta.OriginalTurn != 1 || string(a.envelope.Data) != string(answers[0].envelope.Data) {
				t.Errorf("answer %d is %s", i+1, a.envelope.Encode())
			}
		}
		if eve := st.startAs(t, "eve").typed("book").call(t); !eve.OK || eve.Deduplicated {
			t.Errorf("another user's booking ended with %+v", eve)
		}
		tools.ran(t, "book", 2)
		for range 2 { // without a business key, each turn is a new action
			if m := c.typed("write").call(t); !m.OK || m.Deduplicated {
				t.Errorf("writing ended with %+v", m)
			}
		}
		tools.ran(t, "write", 2)
		for _, r := range st.audit.wait(t, "book", 4) {
			if r.BusinessKey == "" || strings.Contains(r.BusinessKey, "Ada") {
				t.Errorf("the business key is in the audit as %q", r.BusinessKey)
			}
		}
	})
}

// TestFailedActions: an action that failed without side effects runs again on request; one that failed in the middle
// does not, because its state is unknown.
func TestFailedActions(t *testing.T) {
	t.Parallel()
	overBothWires(t, setting{scenario: `
name: failures
rules:
  - when: {text: '^book (?P<time>\w+) (?P<note>\w+)$'}
    do:
      - call: {tool: book, args: {name: Ada, time: "${time}", note: "${note}"}}
      - then: [say: That is how it is.]
`}, func(t *testing.T, _ string, st *stack, tools *stage) {
		c := st.start(t, 16000)
		for _, tc := range []struct {
			text    string
			failure registry.ErrorType
			partial bool
			runs    int
		}{
			{"book noon refuse", registry.ErrorPermanent, false, 1},
			{"book noon please", "", false, 2},
			{"book noon again", "", false, 2},
			{"book one break", registry.ErrorInternal, true, 3},
			{"book one please", registry.ErrorConflict, true, 3},
			{"book two please", "", false, 4},
		} {
			m := c.typed(tc.text).call(t)
			if m.OK != (tc.failure == "") {
				t.Errorf("%s: it ended with %+v", tc.text, m)
			} else if !m.OK {
				if e := errorOf(t, m); e.Type != tc.failure || e.PartialSideEffects != tc.partial {
					t.Errorf("%s: it ended with %+v", tc.text, e)
				}
			}
			tools.ran(t, "book", tc.runs)
		}
	})
}

// TestOneActionInTwoSessions: while one session runs an action, the other one gets an error, and afterwards the result.
func TestOneActionInTwoSessions(t *testing.T) {
	t.Parallel()
	overBothWires(t, setting{scenario: `
name: at the same time
rules:
  - when: {text: book}
    do:
      - call: {tool: book, args: {name: Ada, time: noon}}
      - then: [say: That is how it is.]
`}, func(t *testing.T, _ string, st *stack, tools *stage) {
		tools.hold("book")
		first, second := st.startAs(t, "ada"), st.startAs(t, "ada")
		first.say(&protocol.InputText{Text: "book"})
		tools.waitBegun(t, "book")
		e := errorOf(t, second.typed("book").call(t))
		if e.Type != registry.ErrorConflict || !e.Retryable || !e.PartialSideEffects {
			t.Errorf("the second session got %+v", e)
		}
		tools.release("book")
		if m := first.turn().call(t); !m.OK || m.Deduplicated {
			t.Errorf("the first session's call ended with %+v", m)
		}
		if m := second.typed("book").call(t); !m.OK || !m.Deduplicated {
			t.Errorf("the second session's next call ended with %+v", m)
		}
		tools.ran(t, "book", 1)
	})
}
