package chat

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"voicegw/internal/conversation"
	"voicegw/internal/user"
	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/store"
	"voicegw/transport/textmodel"
)

// openApprovals are approvals with an unknown outcome, like the store's.
type openApprovals struct {
	mu   sync.Mutex // guards the following fields
	open []store.Approval
	fail error
}

func (o *openApprovals) OpenIn(_ context.Context, conversation string, _ time.Time) ([]store.Approval, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var in []store.Approval
	for _, a := range o.open {
		if a.Conversation == conversation {
			in = append(in, a)
		}
	}
	return in, o.fail
}

func (o *openApprovals) Told(ctx context.Context, sent store.Approval) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.open {
		if o.open[i].Reference == sent.Reference {
			o.open[i].Told = true
		}
	}
	return ctx.Err()
}

// TestOpenApprovalIsReported: a call approved before the gateway was killed is reported to the model in the
// conversation's next turn, before the user's message, and only once.
func TestOpenApprovalIsReported(t *testing.T) {
	open := &openApprovals{fail: errors.New("the store is down"), open: []store.Approval{
		{Reference: "ABC234", Tool: "pay", User: "ada", Conversation: "c-1", Begun: true},
		{Reference: "XYZ777", Tool: "book", User: "ada", Conversation: "c-1"},
		{Reference: "KNOWN2", Tool: "pay", User: "ada", Conversation: "c-1", Begun: true, Result: json.RawMessage(`{"ok":true,"data":"receipt"}`)},
		{Reference: "EVE222", Tool: "pay", User: "eve", Conversation: "c-1"},
		{Reference: "OTHER2", Tool: "pay", User: "ada", Conversation: "c-2"},
	}}
	bubble(t, fixtureSetting{options: Options{Approvals: open}}, func(t *testing.T, f *fixture) {
		say := func(text string) string {
			if _, err := f.respond(t.Context(), Request{ConversationID: "c-1", User: user.Must("ada"), Message: text}, says("I see.")); err != nil {
				t.Fatal(err)
			}
			return transcript(f.last())
		}
		if got := say("One"); strings.Contains(got, "ABC234") {
			t.Errorf("reported while the store is down: %s", got)
		}
		open.fail = nil
		got := say("Two")
		for _, want := range []string{"approved pay (reference ABC234)", "may have been done", "approved book (reference XYZ777)", "seems that it was not begun", "approved pay (reference KNOWN2), and it was run", `{"ok":true,"data":"receipt"}`} {
			if strings.Count(got, want) != 1 || strings.Index(got, want) > strings.Index(got, "user: Two") {
				t.Errorf("%q is missing before the user's words: %s", want, got)
			}
		}
		if strings.Contains(got, "EVE222") || strings.Contains(got, "OTHER2") {
			t.Errorf("reported another's: %s", got)
		}
		// It stays in the history, and is not repeated.
		if got := say("Three"); strings.Count(got, "ABC234") != 1 || strings.Index(got, "ABC234") > strings.Index(got, "user: Two") {
			t.Errorf("in the turn after that: %s", got)
		}
	})
}

// TestReportIsNotRepeated: a gateway was killed after the report to the conversation and before that was recorded.
func TestReportIsNotRepeated(t *testing.T) {
	open := &openApprovals{open: []store.Approval{
		{Reference: "ABC234", Tool: "pay", User: "ada", Conversation: "conv", Result: json.RawMessage(`{"ok":true}`)},
		{Reference: "XYZ777", Tool: "pay", User: "ada", Conversation: "conv"},
	}}
	bubble(t, fixtureSetting{options: Options{Approvals: open}}, func(t *testing.T, f *fixture) {
		for _, a := range open.open {
			f.kept.append(t, "conv", conversation.Entry{At: time.Now(), Side: conversation.SideText, Role: conversation.RoleNotice, System: true, Text: "The user approved pay (reference " + a.Reference + "), so."})
		}
		f.say("Hello", says("Hello."))
		if got := transcript(f.last()); strings.Count(got, "ABC234") != 1 || strings.Count(got, "XYZ777") != 1 || !open.open[0].Told || !open.open[1].Told {
			t.Errorf("%s; %+v", got, open.open)
		}
	})
}

// TestAnsweredInTheFirstTurn: a question is answered over the API during the turn that asked it: a notice of that
// time is in its place in the history, once.
func TestAnsweredInTheFirstTurn(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		notice := func(text string) conversation.Entry {
			return conversation.Entry{At: time.Now(), Side: conversation.SideText, Role: conversation.RoleNotice, System: true, Text: text}
		}
		f.say("Pay", callsTools(nth(1), "pay", `{"name":"Bob"}`), func(ctx context.Context, p textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
			pass(time.Second)
			f.kept.append(t, "conv", notice("The user approved pay (reference AAAAAA), and it was run."))
			pass(time.Second)
			return says("May I?")(ctx, p, delta)
		})
		f.say("And?", says("It is paid."))
		var got []string
		for _, e := range f.conversation("conv").Entries[:4] {
			got = append(got, string(e.Role))
		}
		if strings.Join(got, " ") != "user assistant notice assistant" {
			t.Errorf("saved: %v", got)
		}
		// Declined over the API, which informs the conversation at the same moment as a turn does.
		asked := of[*protocol.ConfirmationRequest](f.say("Pay Eve", callsTools(nth(2), "pay", `{"name":"Eve"}`), says("May I?")))[0]
		c, err := f.executor.Answer(t.Context(), "", asked.Token, false)
		if err != nil {
			t.Fatal(err)
		}
		f.say("Well?", func(ctx context.Context, p textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
			f.kept.append(t, "conv", notice(prompts.DeclinedNotice("pay", c.Reference)))
			return says("As you like.")(ctx, p, delta)
		})
		if got := transcript(f.last()); strings.Count(got, "declined pay") != 1 {
			t.Error(got)
		}
		pass(10 * time.Minute)
		f.say("Hello", says("Hello."))
		if got := transcript(f.last()); strings.Count(got, "declined pay") != 1 || strings.Contains(got, "did not answer in time whether to run pay (reference "+c.Reference) {
			t.Error(got)
		}
	})
}

// TestApprovedAndNotKept: an approved call is settled when the conversation is informed, and not before.
func TestApprovedAndNotKept(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		asked := f.proposed()
		saves := f.kept.saves
		f.kept.before = func(n int) error {
			if n == saves+1 {
				return store.ErrUnavailable
			}
			return nil
		}
		req := Request{Confirmation: &Confirmation{Token: asked.Token, Approved: true}}
		if sent, err := f.respond(t.Context(), req, says("It is paid.")); err != nil || sent.done().Status != protocol.DoneFailed {
			t.Fatal(err, sent.types())
		}
		if got := f.questions.Settled(); len(got) != 0 {
			t.Errorf("settled %v, but the conversation does not have it", got)
		}
		if sent, err := f.respond(t.Context(), req); err != nil || sent.done().Status != protocol.DoneCompleted || len(f.ran()) != 1 {
			t.Fatal(err, sent.types(), f.ran())
		}
	})
}

// TestUnsavedNotice: a notice is repeated after a turn that could not be saved.
func TestUnsavedNotice(t *testing.T) {
	open := &openApprovals{open: []store.Approval{{Reference: "ABC234", Tool: "pay", User: "ada", Conversation: "c-1"}}}
	bubble(t, fixtureSetting{options: Options{Approvals: open}}, func(t *testing.T, f *fixture) {
		f.kept.before = func(n int) error {
			if n == 1 {
				return store.ErrUnavailable
			}
			return nil
		}
		for range 2 {
			if _, err := f.respond(t.Context(), Request{ConversationID: "c-1", User: user.Must("ada"), Message: "Hello"}, says("I see.")); err != nil {
				t.Fatal(err)
			}
			if got := transcript(f.last()); strings.Count(got, "ABC234") != 1 {
				t.Errorf("the model got %s", got)
			}
		}
		if !open.open[0].Told {
			t.Error("the report is not recorded")
		}
	})
}
