package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"voicegw/internal/audit"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/document"
)

// overBothWires runs a test on each provider's wire, with the tools of a stage.
func overBothWires(t *testing.T, set setting, test func(t *testing.T, provider string, st *stack, tools *stage)) {
	t.Helper()
	for _, provider := range providers {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			set := set
			if set.speed == 0 {
				set.speed, set.playback = 50, 50
			}
			set.firstAudioMS = 10
			if set.timed {
				synctest.Test(t, func(t *testing.T) {
					tools := newStageOn(t, nil)
					set.tools = tools.box
					test(t, provider, newStack(t, provider, set), tools)
				})
				return
			}
			tools := newStage(t)
			set.tools = tools.box
			test(t, provider, newStack(t, provider, set), tools)
		})
	}
}

// count is one line of an account.
type count struct{ Used, Limit int }

// account is meta.budget, and budget of the audit.
type account struct{ Retrieval, Total count }

func accountOf(t testing.TB, raw json.RawMessage) account {
	t.Helper()
	var a account
	if err := json.Unmarshal(raw, &a); err != nil {
		t.Fatalf("no account: %v: %s", err, raw)
	}
	return a
}

// types returns the error types of answers, empty for successes.
func types(answers []given) []registry.ErrorType {
	var out []registry.ErrorType
	for _, a := range answers {
		var e registry.ErrorType
		if a.envelope.Error != nil {
			e = a.envelope.Error.Type
		}
		out = append(out, e)
	}
	return out
}

// TestFourCallsInOneTurn: calls of one message are decided in order; those over the budget get advice, and the turn
// ends with speech.
func TestFourCallsInOneTurn(t *testing.T) {
	t.Parallel()
	overBothWires(t, setting{scenario: `
name: four calls
rules:
  - when: {text: four}
    do:
      - call:
          - {tool: lookup, args: {query: a}}
          - {tool: lookup, args: {query: b}}
          - {tool: lookup, args: {query: c}}
          - {tool: forecast, args: {city: Paris}}
      - then:
          - say: That is what I have found.
`}, func(t *testing.T, provider string, st *stack, tools *stage) {
		// All four are decided before a call ends.
		tools.hold("lookup")
		c := st.start(t, 16000)
		c.say(&protocol.InputText{Text: "four"})
		c.toolsStarted(4)
		tools.release("lookup")
		playTurn(c)
		answers := st.tap.waitAnswers(t, 4)
		tools.ran(t, "lookup", 2)
		tools.ran(t, "forecast", 0)
		var refused []given
		for _, a := range answers {
			if !a.envelope.OK {
				refused = append(refused, a)
			}
		}
		if want := []registry.ErrorType{registry.ErrorBudgetExceeded, registry.ErrorBudgetExceeded}; !slices.Equal(types(refused), want) {
			t.Fatalf("the refused calls are %v, want %v", types(refused), want)
		}
		for i, want := range []struct {
			tool string
			account
		}{
			{"lookup", account{Retrieval: count{3, 2}, Total: count{3, 3}}},
			{"forecast", account{Retrieval: count{3, 2}, Total: count{4, 3}}},
		} {
			env := refused[i].envelope
			if env.Meta.Tool != want.tool || accountOf(t, env.Meta.Budget) != want.account || !strings.Contains(env.Error.Suggestion, "Answer the user now") {
				t.Errorf("the model got %s", env.Encode())
			}
		}
		if provider == "openai" && st.tap.toolsOff() != 1 {
			t.Errorf("the answer was requested %d times with tools off, want once", st.tap.toolsOff())
		}
		records := append(st.audit.wait(t, "lookup", 3), st.audit.wait(t, "forecast", 1)...)
		for i, want := range []account{
			{Retrieval: count{1, 2}, Total: count{1, 3}}, {Retrieval: count{2, 2}, Total: count{2, 3}},
			{Retrieval: count{3, 2}, Total: count{3, 3}}, {Retrieval: count{3, 2}, Total: count{4, 3}},
		} {
			r := records[slices.IndexFunc(records, func(r audit.Record) bool { return accountOf(t, r.Budget) == want })]
			if r.OK != (i < 2) || r.TurnID != 1 || !r.Delivered || !r.OK && r.ErrorType != registry.ErrorBudgetExceeded {
				t.Errorf("call %d is audited as %+v", i+1, r)
			}
		}
	})
}

// TestBudgetOverTwoMessages: calls after results share the turn's budget; the user's next turn has a new one.
func TestBudgetOverTwoMessages(t *testing.T) {
	t.Parallel()
	overBothWires(t, setting{scenario: `
name: two messages
rules:
  - when: {text: twice}
    do:
      - call:
          - {tool: lookup, args: {query: a}}
          - {tool: lookup, args: {query: b}}
      - then:
          - call: {tool: lookup, args: {query: c}}
          - then:
              - say: That must do.
  - when: {text: once}
    do:
      - call: {tool: lookup, args: {query: c}}
      - then:
          - say: Here it is.
`}, func(t *testing.T, provider string, st *stack, tools *stage) {
		c := st.start(t, 16000)
		first := c.typed("twice")
		if len(first.ended) != 3 || first.status != "completed" {
			t.Fatalf("the turn was %+v", first)
		}
		last := first.ended[2]
		if e := errorOf(t, last); e.Type != registry.ErrorBudgetExceeded || last.Turn != first.number {
			t.Errorf("the third call ended with %+v in turn %d", e, last.Turn)
		}
		tools.ran(t, "lookup", 2)
		second := c.typed("once")
		if !second.call(t).OK {
			t.Errorf("the next turn's call ended with %s", second.ended[0].Error)
		}
		tools.ran(t, "lookup", 3)
		answers := st.tap.waitAnswers(t, 4)
		if got, want := types(answers), []registry.ErrorType{"", "", registry.ErrorBudgetExceeded, ""}; !slices.Equal(got, want) {
			t.Errorf("the answers were %v, want %v", got, want)
		}
		// The call that exhausts the budget reports this; the next turn's does not.
		if a := accountOf(t, answers[1].envelope.Meta.Budget); a.Retrieval != (count{2, 2}) {
			t.Errorf("with the second answer the account was %+v", a)
		}
		if answers[3].envelope.Meta.Budget != nil {
			t.Errorf("the next turn's answer has the budget %s", answers[3].envelope.Meta.Budget)
		}
		if provider == "openai" && st.tap.toolsOff() != 1 {
			t.Errorf("an answer was requested %d times with tools off, want once", st.tap.toolsOff())
		}
	})
}

// TestClamp: a top_k that is too high, from the model or the default, is lowered before the tool gets it, and reported
// to the model, the client and the audit.
func TestClamp(t *testing.T) {
	t.Parallel()
	overBothWires(t, setting{scenario: `
name: clamp
rules:
  - when: {text: absent}
    do:
      - call: {tool: lookup, args: {query: a}}
      - then: [say: Here.]
  - when: {text: ten}
    do:
      - call: {tool: lookup, args: {query: b, top_k: 10}}
      - then: [say: Here.]
  - when: {text: two}
    do:
      - call: {tool: lookup, args: {query: c, top_k: 2}}
      - then: [say: Here.]
`}, func(t *testing.T, provider string, st *stack, tools *stage) {
		c := st.start(t, 16000)
		for i, tc := range []struct{ text, saw, clamped string }{
			{"absent", `{"query":"a","top_k":3}`, `{"top_k":{"requested":5,"applied":3}}`},
			{"ten", `{"query":"b","top_k":3}`, `{"top_k":{"requested":10,"applied":3}}`},
			{"two", `{"query":"c","top_k":2}`, ``},
		} {
			ended := c.typed(tc.text).call(t)
			if saw := tools.runs("lookup"); len(saw) != i+1 || saw[i] != tc.saw {
				t.Errorf("%s: the tool saw %v", tc.text, saw)
			}
			text := func(c map[string]registry.Clamped) string {
				if len(c) == 0 {
					return ""
				}
				raw, err := json.Marshal(c)
				if err != nil {
					t.Fatal(err)
				}
				return string(raw)
			}
			answer := st.tap.waitAnswers(t, i+1)[i]
			record := st.audit.wait(t, "lookup", i+1)[i]
			if string(ended.Clamped) != tc.clamped || text(answer.envelope.Meta.Clamped) != tc.clamped || text(record.Clamped) != tc.clamped {
				t.Errorf("%s: the client got %s, the model %s, the audit %s; want %s", tc.text,
					ended.Clamped, text(answer.envelope.Meta.Clamped), text(record.Clamped), tc.clamped)
			}
		}
	})
}

// TestRefusedCalls: refused calls do not run, and the model learns the fix.
func TestRefusedCalls(t *testing.T) {
	t.Parallel()
	overBothWires(t, setting{scenario: `
name: refused
rules:
  - when: {text: unknown}
    do:
      - call: {tool: teleport, args: {}}
      - then: [say: I cannot do that.]
  - when: {text: mode}
    do:
      - call: {tool: wordy, args: {}}
      - then: [say: I cannot do that here.]
  - when: {text: invalid}
    do:
      - call: {tool: lookup, args: {query: 7, top_k: 0, wrong: true}}
      - on_error:
          - call: {tool: lookup, args: {query: seven}}
          - then: [say: Now I have it.]
  - when: {text: boom}
    do:
      - call: {tool: boom}
      - then: [say: Something went wrong.]
`}, func(t *testing.T, provider string, st *stack, tools *stage) {
		c := st.start(t, 16000)
		unknown := errorOf(t, c.typed("unknown").call(t))
		if unknown.Type != registry.ErrorNotFound {
			t.Errorf("the unknown tool ended with %+v", unknown)
		}
		if mode := errorOf(t, c.typed("mode").call(t)); mode.Type != registry.ErrorModeRestricted {
			t.Errorf("the tool of another mode ended with %+v", mode)
		}
		tools.ran(t, "wordy", 0)
		fixed := c.typed("invalid")
		if len(fixed.ended) != 2 || !fixed.ended[1].OK {
			t.Fatalf("the corrected call: %+v", fixed)
		}
		var details struct{ Errors []document.Problem }
		e := errorOf(t, fixed.ended[0])
		if err := json.Unmarshal(e.Details, &details); err != nil {
			t.Fatalf("details: %v: %s", err, e.Details)
		}
		var paths []string
		for _, p := range details.Errors {
			paths = append(paths, p.Path)
		}
		slices.Sort(paths)
		if want := []string{"/query", "/top_k", "/wrong"}; e.Type != registry.ErrorValidation || !slices.Equal(paths, want) {
			t.Errorf("the invalid call ended with %s about %v, want %v", e.Type, paths, want)
		}
		tools.ran(t, "lookup", 1)
		broken := errorOf(t, c.typed("boom").call(t))
		if broken.Type != registry.ErrorInternal || !broken.PartialSideEffects || strings.Contains(broken.Message, "secret") {
			t.Errorf("the broken tool ended with %+v", broken)
		}
		if r := st.audit.wait(t, "boom", 1)[0]; r.ErrorType != registry.ErrorInternal || !r.PartialSideEffects || !r.Delivered {
			t.Errorf("the broken tool is audited as %+v", r)
		}
		if r := st.audit.wait(t, "teleport", 1)[0]; r.ErrorType != registry.ErrorNotFound || r.ToolVersion != "" {
			t.Errorf("the unknown tool is audited as %+v", r)
		}
	})
}
