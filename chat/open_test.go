package chat

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"voicegw/store"
	"voicegw/user"
)

// openApprovals are approvals that nobody knows the outcome of, as the store has them.
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

func (o *openApprovals) Told(ctx context.Context, told store.Approval) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.open {
		if o.open[i].Reference == told.Reference {
			o.open[i].Told = true
		}
	}
	return ctx.Err()
}

// TestWhatWasLeftOpenIsTold: what was approved before the gateway was killed is told to the
// model in the conversation's next turn, before what the user says, and never again.
func TestWhatWasLeftOpenIsTold(t *testing.T) {
	open := &openApprovals{fail: errors.New("the store is away"), open: []store.Approval{
		{Reference: "ABC234", Tool: "pay", User: "ada", Conversation: "c-1", Begun: true},
		{Reference: "XYZ777", Tool: "book", User: "ada", Conversation: "c-1"},
		{Reference: "EVE222", Tool: "pay", User: "eve", Conversation: "c-1"},
		{Reference: "OTHER2", Tool: "pay", User: "ada", Conversation: "c-2"},
	}}
	bubble(t, setting{options: Options{Approvals: open}}, func(t *testing.T, f *fixture) {
		say := func(text string) string {
			if _, err := f.respond(t.Context(), Request{ConversationID: "c-1", User: user.Must("ada"), Message: text}, says("I see.")); err != nil {
				t.Fatal(err)
			}
			return transcript(f.last())
		}
		if got := say("One"); strings.Contains(got, "ABC234") {
			t.Errorf("told while the store is away: %s", got)
		}
		open.fail = nil
		got := say("Two")
		for _, want := range []string{"approved pay (reference ABC234)", "may have been done", "approved book (reference XYZ777)", "seems that it was not begun"} {
			if strings.Count(got, want) != 1 || strings.Index(got, want) > strings.Index(got, "user: Two") {
				t.Errorf("%q is missing before the user's words: %s", want, got)
			}
		}
		if strings.Contains(got, "EVE222") || strings.Contains(got, "OTHER2") {
			t.Errorf("told of somebody else's: %s", got)
		}
		// It stays in the history, and is not said again.
		if got := say("Three"); strings.Count(got, "ABC234") != 1 || strings.Index(got, "ABC234") > strings.Index(got, "user: Two") {
			t.Errorf("in the turn after that: %s", got)
		}
	})
}

// TestWhatWasNotKeptIsToldAgain: a turn that could not be kept has told nobody.
func TestWhatWasNotKeptIsToldAgain(t *testing.T) {
	open := &openApprovals{open: []store.Approval{{Reference: "ABC234", Tool: "pay", User: "ada", Conversation: "c-1"}}}
	bubble(t, setting{options: Options{Approvals: open}}, func(t *testing.T, f *fixture) {
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
				t.Errorf("the model was told %s", got)
			}
		}
		if !open.open[0].Told {
			t.Error("it is not noted that it was told")
		}
	})
}
