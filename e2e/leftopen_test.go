package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"voicegw/client/talk"
	"voicegw/internal/conversation"
	"voicegw/internal/testutil"
	"voicegw/orchestrator/execute"
	"voicegw/protocol"
	"voicegw/store"
)

// approvedAndHeld are confirmations that hang after recording an approval.
type approvedAndHeld struct{ execute.Confirmations }

// heldMark is the log line of a gateway process with a hanging approval.
const heldMark = "an approval is recorded, and hangs"

// Resolve hangs after an approval until its process is killed.
func (c approvedAndHeld) Resolve(ctx context.Context, token, session string, approved bool, now time.Time) (store.Confirmation, error) {
	q, err := c.Confirmations.Resolve(ctx, token, session, approved, now)
	if err == nil && q.Outcome == store.Approved {
		fmt.Println(heldMark)
		select {}
	}
	return q, err
}

// TestKilledAfterAnApproval: a gateway is killed with SIGKILL between an approval and its effect, and between the
// effect and its record. The conversation's next turn reports it, once; the operators' list contains it; and no action
// is repeated.
func TestKilledAfterAnApproval(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		set   processSetting
		begun bool
	}{
		"before its effect": {set: processSetting{HoldApproved: true}},
		"after its effect":  {set: processSetting{Hold: "pay"}, begun: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tp := newProvider(t, setting{scenario: payRules})
			set := processSetting{Provider: "openai", Dir: t.TempDir(), Scenario: payRules}
			tc.set.Provider, tc.set.Dir, tc.set.Scenario = set.Provider, set.Dir, set.Scenario
			first := startProcess(t, tp, tc.set)
			asked := first.wrote(t, talk.TextTurn{Message: "pay"})
			id, token := asked.done.ConversationID, only[*protocol.ConfirmationRequest](t, asked).Token
			answered := make(chan error, 1) // from the turn that is cut off
			go func() {
				_, err := first.write(t, talk.TextTurn{ConversationID: id, Confirmation: &talk.TextAnswer{Token: token, Approved: true}})
				answered <- err
			}()
			var done []string
			if tc.begun {
				done = []string{"pay " + paid}
				testutil.WaitUntil(t, "the payment", func() bool { return slices.Equal(first.effects(t), done) })
			} else {
				testutil.WaitUntil(t, "the approval", func() bool { return strings.Contains(first.said.String(), heldMark) })
			}
			first.kill(t)
			if err := <-answered; err == nil {
				t.Error("the turn of a killed gateway was answered")
			}

			second := startProcess(t, tp, set)
			notices := func() (notices []string) {
				status, body := second.http(t, http.MethodGet, "/v1/conversations/"+id, "")
				var c conversation.Conversation
				if err := json.Unmarshal([]byte(body), &c); err != nil || status != http.StatusOK {
					t.Fatalf("%d %s", status, body)
				}
				for _, e := range c.Entries {
					if strings.Contains(e.Text, "outcome was recorded") {
						notices = append(notices, e.Text)
					}
				}
				return notices
			}
			for range 2 {
				second.wrote(t, talk.TextTurn{ConversationID: id, Message: "Hello"})
				if got := notices(); len(got) != 1 || !strings.Contains(got[0], "approved pay") || strings.Contains(got[0], "may have been done") != tc.begun || strings.Contains(got[0], token) {
					t.Errorf("the conversation got %q", got)
				}
			}
			second.leave(t)
			if got := second.effects(t); strings.Join(got, "\n") != strings.Join(done, "\n") {
				t.Errorf("the effects are %v", got)
			}
			kept, err := store.Open(t.Context(), store.Options{Dir: filepath.Join(set.Dir, "store")})
			if err != nil {
				t.Fatal(err)
			}
			defer kept.Close()
			open, err := kept.Approvals.Open(t.Context(), time.Now())
			if err != nil || len(open) != 1 || open[0].Tool != "pay" || open[0].Begun != tc.begun || !open[0].Told || open[0].Conversation != id {
				t.Errorf("open are %+v, %v", open, err)
			}
		})
	}
}

// TestSettledActions: ended actions are settled, whatever the way of the approval and the result.
func TestSettledActions(t *testing.T) {
	tp := newProvider(t, setting{scenario: payRules})
	set := processSetting{Provider: "openai", Dir: t.TempDir(), Scenario: payRules}
	first := startProcess(t, tp, set)
	c := first.startAs(t, "ada")
	asked := c.proposed(t)
	c.resolve(asked.Token, true)
	testutil.WaitUntil(t, "the first payment", func() bool { return len(first.records(t, "pay")) == 2 })
	w := first.wrote(t, talk.TextTurn{Message: "pay"})
	token := only[*protocol.ConfirmationRequest](t, w).Token
	first.wrote(t, talk.TextTurn{ConversationID: w.done.ConversationID, Confirmation: &talk.TextAnswer{Token: token, Approved: true}})
	w = first.wrote(t, talk.TextTurn{Message: "pay"})
	if status, body := first.http(t, http.MethodPost, "/v1/confirmations", `{"token":"`+only[*protocol.ConfirmationRequest](t, w).Token+`","approved":true}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	first.leave(t)
	kept, err := store.Open(t.Context(), store.Options{Dir: filepath.Join(set.Dir, "store")})
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	if open, err := kept.Approvals.Open(t.Context(), time.Now()); err != nil || len(open) != 0 {
		t.Errorf("open are %+v, %v", open, err)
	}
}
