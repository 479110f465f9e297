package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"voicegw/internal/user"
	"voicegw/orchestrator/calls"
	"voicegw/orchestrator/execute"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/store"
	"voicegw/transport/textmodel"
)

// stubborn is a model that requests another payment in every answer, and speaks only without tools.
type stubborn struct{ calls int }

func (s *stubborn) Complete(_ context.Context, p textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
	if p.ToolsOff {
		delta("I cannot pay.")
		return textmodel.Reply{Text: "I cannot pay."}, nil
	}
	s.calls++
	return textmodel.Reply{Calls: []textmodel.ToolCall{{ID: nth(s.calls), Name: "pay", Args: json.RawMessage(fmt.Sprintf(`{"name":"Bob %d"}`, s.calls))}}}, nil
}

// asked runs a turn with the stubborn model, and returns its questions.
func (f *fixture) asked(req Request) []*protocol.ConfirmationRequest {
	f.t.Helper()
	req.User, req.ConversationID = user.Must("ada"), "conv"
	sent := &turnMessages{t: f.t}
	if err := f.agent.Respond(f.t.Context(), req, sent.emit); err != nil {
		f.t.Fatal(err)
	}
	if sent.done().Status != protocol.DoneCompleted {
		f.t.Fatalf("a turn ended as %s: %s", sent.done().Status, sent.types())
	}
	return of[*protocol.ConfirmationRequest](sent)
}

// questionsOf sends a message and answers every question, like `voicegw chat` with --approve and --deny, until
// none is open. It returns the number of questions.
func (f *fixture) questionsOf(message string, approve bool) (n int) {
	f.t.Helper()
	for open := f.asked(Request{Message: message}); len(open) > 0; n++ {
		if n == 100 {
			f.t.Fatal("the questions do not end")
		}
		q := open[0]
		open = append(open[1:], f.asked(Request{Confirmation: &Confirmation{Token: q.Token, Approved: approve}})...)
	}
	return n
}

// restart replaces the agent with a new one on the same store.
func (f *fixture) restart() {
	f.t.Helper()
	var err error
	if f.agent, err = New(f.agent.opts); err != nil {
		f.t.Fatal(err)
	}
}

// refusals is the number of calls in the audit with an error of that type.
func (f *fixture) refusals(kind registry.ErrorType) (n int) {
	for _, r := range f.audited() {
		if r.ErrorType == kind {
			n++
		}
	}
	return n
}

// TestDeclinedQuestionsAreLimited: an insistent model asks a limited number of questions, over messages and restarts,
// and every turn ends with an answer in words.
func TestDeclinedQuestionsAreLimited(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		f.agent.opts.Model = &stubborn{}
		total := f.questionsOf("Pay Bob", false)
		for i := range 20 {
			if i%3 == 0 {
				f.restart()
			}
			total += f.questionsOf(fmt.Sprintf("Message %d", i), false)
		}
		if total != 10 {
			t.Errorf("the user was asked %d times", total)
		}
		if len(f.ran()) != 0 || f.refusals(registry.ErrorBudgetExceeded) == 0 {
			t.Errorf("ran %v", f.ran())
		}
	})
}

// waits is a stubborn model that asks once, and once more after each answer.
type waits struct{ stubborn }

func (w *waits) Complete(ctx context.Context, p textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
	if last := p.Messages[len(p.Messages)-1]; last.Role == textmodel.RoleTool {
		delta("As you see.")
		return textmodel.Reply{Text: "As you see."}, nil
	}
	return w.stubborn.Complete(ctx, p, delta)
}

// TestDeclinedToolIsAskedForAgain: after three declined questions about a tool, each message of the user's allows one
// more.
func TestDeclinedToolIsAskedForAgain(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		f.agent.opts.Model = &waits{}
		var got []int
		for i := range 10 {
			if i%2 == 0 {
				f.restart()
			}
			got = append(got, f.questionsOf("Pay Bob", false))
		}
		if want := []int{3, 1, 1, 1, 1, 1, 1, 1, 0, 0}; !slices.Equal(got, want) {
			t.Errorf("the user was asked %v times, want %v", got, want)
		}
	})
}

// TestUnansweredQuestionsAreLimited: unanswered questions count when they have expired.
func TestUnansweredQuestionsAreLimited(t *testing.T) {
	bubble(t, fixtureSetting{execute: execute.Options{Life: time.Minute}}, func(t *testing.T, f *fixture) {
		f.agent.opts.Model = &waits{}
		total := 0
		for i := range 20 {
			if i == 5 {
				f.restart()
			}
			total += len(f.asked(Request{Message: "Pay Bob"}))
			pass(2 * time.Minute)
		}
		if total != 10 {
			t.Errorf("the user was asked %d times", total)
		}
	})
}

// TestExpiredCountsForItsTool: waiting questions count for all tools together; expired ones count for their tool,
// like declined ones.
func TestExpiredCountsForItsTool(t *testing.T) {
	rules := calls.Policy{Mode: spec.ModeText, Questions: calls.Questions{PerTool: 2, Total: 100}}
	bubble(t, fixtureSetting{options: Options{Rules: rules}, execute: execute.Options{Life: time.Minute}}, func(t *testing.T, f *fixture) {
		f.agent.opts.Model = &stubborn{}
		var got []int
		for range 3 {
			got = append(got, len(f.asked(Request{Message: "Pay Bob"})))
			pass(2 * time.Minute)
		}
		if want := []int{10, 1, 1}; !slices.Equal(got, want) {
			t.Errorf("the user was asked %v times, want %v", got, want)
		}
	})
}

// TestApprovedQuestionsAreLimited: a user who approves everything is asked as often as one message's budget allows
// calls, and again as often for the next one.
func TestApprovedQuestionsAreLimited(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		f.agent.opts.Model = &waits{}
		for range 8 {
			// A question and its approved call are two of ten calls.
			if n := f.questionsOf("Pay Bob", true); n != 5 {
				t.Errorf("one message has asked %d times", n)
			}
			f.restart()
		}
		if len(f.ran()) != 40 {
			t.Errorf("%d ran", len(f.ran()))
		}
	})
}

// TestApprovedOverTheAPI: a question approved over the API does not count, although no turn of the conversation has
// taken the answer.
func TestApprovedOverTheAPI(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		f.agent.opts.Model = &waits{}
		for i := range 30 {
			open := f.asked(Request{Message: "Pay Bob"})
			if len(open) != 1 {
				t.Fatalf("message %d: %d questions", i, len(open))
			}
			if _, err := f.executor.Answer(t.Context(), "", open[0].Token, true); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestStoredQuestions: the conversation stores names, not tokens, and removing the oldest entries removes none of
// them.
func TestStoredQuestions(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		f.agent.opts.Model = &waits{}
		q := f.asked(Request{Message: "Pay Bob"})[0]
		kept := string(f.conversation("conv").Policy)
		if strings.Contains(kept, q.Token) || !strings.Contains(kept, store.QuestionName(q.Token)) || !strings.Contains(kept, `"total":1`) {
			t.Errorf("the conversation has %s", kept)
		}
		// Questions that the store has forgotten do not count.
		c := f.conversation("conv")
		c.Policy = json.RawMessage(`{"unapproved":[` + strings.Repeat(`{"tool":"pay","name":"0123","over":true},`, 9) + `{"tool":"pay","name":"0123","over":true}]}`)
		f.kept.mu.Lock()
		f.kept.put(c)
		f.kept.mu.Unlock()
		if n := len(f.asked(Request{Message: "Pay Bob"})); n != 1 {
			t.Errorf("after ten forgotten questions there are %d", n)
		}
		// Unreadable data counts as nothing, and is logged.
		c = f.conversation("conv")
		c.Policy = json.RawMessage(`[1]`)
		f.kept.mu.Lock()
		f.kept.put(c)
		f.kept.mu.Unlock()
		if n := len(f.asked(Request{Message: "Pay Bob"})); n != 1 || !strings.Contains(f.log.String(), "restoring the approval requests of earlier turns failed") {
			t.Errorf("%d questions; the log: %s", n, f.log)
		}
	})
}
