package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/audit"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
)

// nth names a call that the policy considers unique.
func nth(i int) string { return fmt.Sprintf("call_unique_%04d", i) }

// manyCalls are n calls of a tool with different arguments, in one answer.
func manyCalls(from, n int, tool string) step {
	var what []string
	for i := range n {
		what = append(what, nth(from+i), tool, fmt.Sprintf(`{"name":"n%d"}`, from+i))
	}
	return callsTools(what...)
}

// TestSixthRetrieval: five retrievals run in a turn, in any number of rounds; the sixth is refused with instructions,
// and the model is asked with its tools off.
func TestSixthRetrieval(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		sent := f.say("Find it", manyCalls(0, 3, "search"), manyCalls(3, 3, "get"), says("Here it is."))
		want := []string{"ok", "ok", "ok", "ok", "ok", "BUDGET_EXCEEDED"}
		got := sent.errorTypes()
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if n := len(f.ran()); n != 5 {
			t.Errorf("%d tools ran", n)
		}
		p := f.last()
		if !p.ToolsOff {
			t.Error("the answer was not asked for with tools off")
		}
		envs := answers(t, p)
		sixth := envs[len(envs)-1]
		if sixth.OK || sixth.Error.Type != registry.ErrorBudgetExceeded || sixth.Error.Suggestion == "" || !strings.Contains(string(sixth.Meta.Budget), `"retrieval":{"used":6,"limit":5}`) {
			t.Errorf("the model got %s", sixth.Encode())
		}
		if sent.done().Status != protocol.DoneCompleted {
			t.Errorf("%+v", sent.done())
		}
		// The next turn has its own budget.
		if again := f.say("And?", manyCalls(50, 5, "search"), says("There.")); slices.Contains(again.errorTypes(), "BUDGET_EXCEEDED") || f.last().ToolsOff {
			t.Errorf("the next turn: %v", again.errorTypes())
		}
	})
}

// TestEleventhCall: ten calls of any kind run in a turn, including refused ones.
func TestEleventhCall(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		sent := f.say("Do it", manyCalls(0, 9, "look"), callsTools(nth(20), "nothing", `{}`, nth(21), "look", `{"name":"eleven"}`), says("Done."))
		got := sent.errorTypes()
		count := map[string]int{}
		for _, e := range got {
			count[e]++
		}
		if diff := cmp.Diff(map[string]int{"ok": 9, "NOT_FOUND": 1, "BUDGET_EXCEEDED": 1}, count); diff != "" {
			t.Error(diff)
		}
		if slices.Contains(f.ran(), "look eleven") || !f.last().ToolsOff {
			t.Errorf("ran %v, tools off %v", f.ran(), f.last().ToolsOff)
		}
	})
}

// TestTopK: top_k of retrieval is lowered to ten, and the client and the audit are informed; other tools keep theirs.
func TestTopK(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		var saw []string
		f.do = func(_ context.Context, c toolCall) (registry.Result, error) {
			saw = append(saw, fmt.Sprint(c.Tool, " ", c.Args.TopK))
			return registry.Result{}, nil
		}
		sent := f.say("Find", callsTools(nth(1), "search", `{"top_k":40}`), callsTools(nth(2), "look", `{"top_k":40}`), callsTools(nth(3), "search", `{}`), says("There."))
		if diff := cmp.Diff([]string{"search 10", "look 40", "search 5"}, saw); diff != "" {
			t.Error(diff)
		}
		ended := of[*protocol.ToolEnded](sent)
		if string(ended[0].Clamped) != `{"top_k":{"requested":40,"applied":10}}` || ended[1].Clamped != nil {
			t.Errorf("the client got %s and %s", ended[0].Clamped, ended[1].Clamped)
		}
		if r := f.audited()[0]; r.Clamped["top_k"].Applied != 10 {
			t.Errorf("%+v", r)
		}
	})
}

// TestRetry: a transient failure is retried once, if repeating is safe.
func TestRetry(t *testing.T) {
	transient := &registry.ToolError{Type: registry.ErrorTransient, Message: "not now", Retryable: true}
	for name, tc := range map[string]struct {
		tool string
		err  *registry.ToolError
		runs int
		want string
	}{
		"idempotent":         {"look", transient, 2, "ok"},
		"not idempotent":     {"rare", transient, 1, "TRANSIENT"},
		"not retryable":      {"look", &registry.ToolError{Type: registry.ErrorTransient, Message: "no"}, 1, "TRANSIENT"},
		"another kind":       {"look", &registry.ToolError{Type: registry.ErrorPermanent, Message: "no"}, 1, "PERMANENT"},
		"writes, with a key": {"book", transient, 1, "TRANSIENT"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
				f.do = func(context.Context, toolCall) (registry.Result, error) {
					if len(f.ran()) == 1 {
						return registry.Result{}, tc.err
					}
					return registry.Result{Data: "done"}, nil
				}
				sent := f.say("Go", callsTools(nth(1), tc.tool, `{"name":"x"}`), says("Well."))
				if diff := cmp.Diff([]string{tc.want}, sent.errorTypes()); diff != "" || len(f.ran()) != tc.runs {
					t.Errorf("%d runs, %s", len(f.ran()), diff)
				}
			})
		})
	}
}

// TestOrder: the calls of an answer are decided in order, run in parallel, four at a time, and answered to the model
// in order, whichever ends first.
func TestOrder(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		now, most := 0, 0
		f.do = func(_ context.Context, c toolCall) (registry.Result, error) {
			f.mu.Lock()
			now++
			most = max(most, now)
			f.mu.Unlock()
			pass(time.Duration(10-len(c.Args.Name)) * time.Second)
			f.mu.Lock()
			now--
			f.mu.Unlock()
			return registry.Result{Data: c.Args.Name}, nil
		}
		began := time.Now()
		sent := f.say("Go", callsTools(
			nth(1), "look", `{"name":"1"}`, nth(2), "look", `{"name":"22"}`, nth(3), "spoken", `{}`, nth(4), "look", `{"name":"4444"}`,
			nth(5), "look", `{"name":"55555"}`, nth(6), "look", `{"name":"666666"}`), says("Done."))
		if took := time.Since(began); took > 13*time.Second {
			t.Errorf("it took %s", took)
		}
		if most != 4 {
			t.Errorf("%d ran at once", most)
		}
		var started, said []string
		for _, m := range of[*protocol.ToolStarted](sent) {
			started = append(started, m.CallID)
		}
		if diff := cmp.Diff([]string{"call_1_1", "call_1_2", "call_1_3", "call_1_4", "call_1_5", "call_1_6"}, started); diff != "" {
			t.Error(diff)
		}
		for _, env := range answers(t, f.last()) {
			said = append(said, string(env.Data))
		}
		if diff := cmp.Diff([]string{`"1"`, `"22"`, ``, `"4444"`, `"55555"`, `"666666"`}, said); diff != "" {
			t.Error(diff)
		}
		for i, m := range f.last().Messages[len(f.last().Messages)-6:] {
			if m.CallID != nth(i+1) {
				t.Errorf("answer %d is of %s", i, m.CallID)
			}
		}
		// A call beyond its latency budget reports progress.
		if n := len(of[*protocol.ToolProgress](sent)); n < 5 {
			t.Errorf("%d messages of progress", n)
		}
	})
}

// TestRefusedArguments: the model gets its errors, and may try again.
func TestRefusedArguments(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		sent := f.say("Go", callsTools(nth(1), "look", `{"name":`, nth(2), "look", `[1]`, nth(3), "look", `{"nam":"x"}`, nth(4), "look", ``, nth(5), "spoken", `{}`, nth(6), "none", `{}`),
			callsTools(nth(7), "look", `{"name":"x"}`), says("Done."))
		got := sent.errorTypes()
		slices.Sort(got)
		if diff := cmp.Diff([]string{"MODE_RESTRICTED", "NOT_FOUND", "VALIDATION", "VALIDATION", "VALIDATION", "ok", "ok"}, got); diff != "" {
			t.Error(diff)
		}
		for i, env := range answers(t, f.last())[:3] {
			if env.Error == nil || env.Error.Type != registry.ErrorValidation || len(env.Error.Details) == 0 {
				t.Errorf("call %d: %s", i, env.Encode())
			}
		}
	})
}

// TestOwnToken: a token from the model approves nothing: it is an unknown argument, and at most a new question.
func TestOwnToken(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		f.say("Pay", callsTools(nth(1), "pay", `{"name":"Bob"}`), says("Please approve it."))
		token := f.questions.All()[0].Token
		sent := f.say("Yes, I approve "+token, callsTools(
			nth(2), "pay", `{"name":"Bob","confirmation_token":"`+token+`"}`, nth(3), "pay", `{"name":"Bob","approved":true}`, nth(4), "confirm_action", `{"token":"`+token+`","approved":true}`), says("Well."))
		if diff := cmp.Diff([]string{"VALIDATION", "VALIDATION", "NOT_FOUND"}, sent.errorTypes()); diff != "" {
			t.Error(diff)
		}
		if len(f.ran()) != 0 || len(f.ledger.Entries()) != 0 {
			t.Errorf("%v ran", f.ran())
		}
	})
}

// TestDuplicates: equal calls in progress are one, each with its answer; the same id in a later answer gets the
// stored one.
func TestDuplicates(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		f.do = func(context.Context, toolCall) (registry.Result, error) {
			pass(time.Second)
			return registry.Result{Data: "done"}, nil
		}
		sent := f.say("Go", callsTools(nth(1), "look", `{"name":"x"}`, nth(2), "look", `{"name":"x"}`, nth(1), "look", `{"name":"x"}`), callsTools(nth(1), "look", `{"name":"x"}`), says("Done."))
		if n := len(f.ran()); n != 1 {
			t.Errorf("%d ran", n)
		}
		var marks []bool
		for _, e := range of[*protocol.ToolEnded](sent) {
			marks = append(marks, e.Deduplicated)
		}
		if diff := cmp.Diff([]bool{false, true, true, true}, marks); diff != "" {
			t.Error(diff)
		}
		if envs := answers(t, f.last()); len(envs) != 4 || envs[3].Meta.OriginalTurn != 1 || !envs[3].OK {
			t.Errorf("%v", envs)
		}
		if len(f.audited()) != 4 {
			t.Errorf("%d records", len(f.audited()))
		}
	})
}

// TestSideEffectOnce: a side effect of an earlier turn does not happen again.
func TestSideEffectOnce(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		f.say("Book", callsTools(nth(1), "book", `{"name":"room"}`), says("Booked."))
		sent := f.say("Book it again", callsTools(nth(2), "book", `{"name":"room"}`), says("Booked."))
		if e := of[*protocol.ToolEnded](sent)[0]; !e.OK || !e.Deduplicated || len(f.ran()) != 1 {
			t.Errorf("%+v, ran %v", e, f.ran())
		}
	})
}

// TestIntents: intents for a voice session are refused in text and audited; a message for the next turn is stored.
func TestIntents(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		f.do = func(context.Context, toolCall) (registry.Result, error) {
			return registry.Result{Data: "x", Intents: []registry.Intent{
				registry.EndVoiceSession(registry.EndNow), registry.SetPendingMessage("Ask about the weather."), registry.SuppressAudio(true)}}, nil
		}
		// The second call joins the first: its intents are the same.
		f.say("Go", callsTools(nth(1), "look", `{}`, nth(2), "look", `{}`), callsTools(nth(1), "look", `{}`), says("Done."))
		if n := len(f.conversation("conv").Entries); n != 5 {
			t.Errorf("%d entries", n)
		}
		r := f.audited()[0]
		if !slices.Equal(r.Intents, []registry.IntentType{registry.IntentSetPendingMessage}) || len(r.Refused) != 2 || r.Why != "there is no voice session" {
			t.Errorf("%+v", r)
		}
		f.say("And?", says("Yes."))
		if !strings.Contains(transcript(f.last()), "Ask about the weather.") {
			t.Errorf("the model got:\n%s", transcript(f.last()))
		}
	})
}

// TestAudit: each call has one record, whatever its outcome, with its owner.
func TestAudit(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		f.do = func(_ context.Context, c toolCall) (registry.Result, error) {
			if c.Tool == "rare" {
				return registry.Result{}, &registry.ToolError{Type: registry.ErrorPermanent, Message: "no"}
			}
			return registry.Result{}, nil
		}
		f.say("Go", callsTools(nth(1), "search", `{"name":"x"}`), callsTools("", "rare", `{}`), callsTools(nth(3), "none", `{}`), callsTools(nth(4), "pay", `{"name":"Bob"}`), says("Done."))
		type line struct {
			Tool, Call, Key, Error, Confirmation string
			OK                                   bool
		}
		var got []line
		for _, r := range f.audited() {
			key, _, _ := strings.Cut(r.IdempotencyKey, ":")
			got = append(got, line{r.ToolID, r.CallID, key, string(r.ErrorType), r.Confirmation, r.OK})
			if r.Event != audit.EventTool || r.SessionID != "chat-conv" || r.ConversationID != "conv" || r.UserID != "ada" || r.Mode != spec.ModeText ||
				r.Agent != "default" || r.TurnID != 1 || !r.Delivered || r.RegistryVersion == "" || !json.Valid(r.Budget) {
				t.Errorf("%+v", r)
			}
		}
		want := []line{
			{"search", "call_1_1", "provider", "", "", true}, {"rare", "call_1_2", "hash", "PERMANENT", "", false},
			{"none", "call_1_3", "provider", "NOT_FOUND", "", false}, {"pay", "call_1_4", "provider", "CONFIRMATION_REQUIRED", "required", false},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
