package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"voicegw/internal/testutil"
	"voicegw/orchestrator"
	"voicegw/protocol"
	"voicegw/registry"
)

// payRules let a model propose a payment on request and comment on the result.
const payRules = `
name: payment
rules:
  - when: {text: '^pay$'}
    do:
      - call: {tool: pay, args: {amount: 5, to: Bob}}
      - then:
          - remember: {token: "${result.error.confirmation_request.token}", reference: "${result.error.details.reference}"}
          - say: Please approve it.
  - when: {text: '^\[voicegw:\w+\]'}
    do: [say: I see what came of it.]
`

// paid is the argument of payRules' payment.
const paid = `{"amount":5,"to":"Bob"}`

// proposed lets the model propose the payment and returns the approval request.
func (c *client) proposed(t testing.TB) *protocol.ConfirmationRequest {
	t.Helper()
	p := c.typed("pay")
	if e := errorOf(t, p.call(t)); e.Type != registry.ErrorConfirmationRequired || len(p.asked) != 1 {
		t.Fatalf("the call ended with %+v, and the user was asked %d times", e, len(p.asked))
	}
	return p.asked[0]
}

// resolve answers an approval request like a button.
func (c *client) resolve(token string, approved bool) {
	c.t.Helper()
	c.say(&protocol.ConfirmationResolve{Token: token, Approved: approved})
}

// refused waits for the error that refuses an answer.
func (c *client) refused(code string) {
	c.t.Helper()
	if e := waitFor[*protocol.Error](c); e.Code != code {
		c.t.Errorf("the answer was refused with %s: %s; want %s", e.Code, e.Message, code)
	}
}

// notices returns the user turns to the model that begin with a mark of the gateway.
func (tp *tap) notices(mark string) []string {
	var out []string
	add := func(v any) {
		if s, ok := v.(string); ok && strings.HasPrefix(s, mark) {
			out = append(out, s)
		}
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			add(v["text"])
			for _, e := range v {
				walk(e)
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	for _, m := range tp.all() {
		walk(m)
	}
	return out
}

// TestApproval: no tool runs before an approval; then it runs once with exactly the shown arguments, and the model gets
// the result as a turn.
func TestApproval(t *testing.T) {
	t.Parallel()
	overBothWires(t, setting{scenario: payRules}, func(t *testing.T, provider string, st *stack, tools *stage) {
		c := st.start(t, 16000)
		c.resolve("cf_ABCDEFGHIJKLMNOPQRSTUVWXYZ", true)
		c.refused(protocol.CodeConfirmationUnknown)
		asked := c.proposed(t)
		if asked.Tool != "pay" || asked.Preview != "Pay 5 to Bob" || string(asked.Args) != paid || time.Until(asked.ExpiresAt.Time) < 4*time.Minute {
			t.Errorf("the user was asked %+v", asked)
		}
		if env := st.tap.waitAnswers(t, 1)[0].envelope; env.Error.ConfirmationRequest == nil || env.Error.ConfirmationRequest.Token != asked.Token {
			t.Errorf("the model got %s", env.Encode())
		}
		// A repeated call makes no second request.
		again := c.typed("pay")
		if e := errorOf(t, again.call(t)); e.Type != registry.ErrorConfirmationRequired || len(again.asked) != 0 || !again.ended[0].Deduplicated {
			t.Errorf("requested again: %+v, and %d questions", e, len(again.asked))
		}
		tools.ran(t, "pay", 0)

		c.resolve(asked.Token, true)
		ended := waitFor[*protocol.ConfirmationEnded](c)
		if ended.Token != asked.Token || ended.Outcome != "approved" {
			t.Errorf("the question ended with %+v", ended)
		}
		done := c.turn()
		if m := done.call(t); !m.OK || m.Tool != "pay" || done.number != again.number+1 || done.status != "completed" {
			t.Errorf("the approved action ended with %+v in turn %d", m, done.number)
		}
		if saw := tools.runs("pay"); len(saw) != 1 || saw[0] != paid {
			t.Errorf("pay ran with %v", saw)
		}
		notices := st.tap.notices("[voicegw:")
		if len(notices) != 1 || !strings.Contains(notices[0], `"ok":true`) || strings.Contains(notices[0], asked.Token) {
			t.Errorf("the model got %v", notices)
		}
		st.tap.waitAnswers(t, 2)

		c.resolve(asked.Token, true)
		c.refused(protocol.CodeConfirmationUsed)
		c.resolve(asked.Token, false)
		c.refused(protocol.CodeConfirmationUsed)
		tools.ran(t, "pay", 1)
		records := st.audit.wait(t, "pay", 3)
		if r := records[0]; r.Confirmation != "required" || r.OK || r.ErrorType != registry.ErrorConfirmationRequired {
			t.Errorf("the question is audited as %+v", r)
		}
		if r := records[2]; !r.OK || r.Confirmation != "approved" || r.ConfirmedBy != "client" || r.Reference == "" || strings.Contains(asked.Token, r.Reference) ||
			!r.Delivered || r.TurnID != done.number {
			t.Errorf("the payment is audited as %+v", r)
		}
		for _, r := range records {
			if raw, err := json.Marshal(r); err != nil || strings.Contains(string(raw), asked.Token) {
				t.Errorf("the token is in the audit: %s %v", raw, err)
			}
		}
		if strings.Contains(st.log.String(), asked.Token) {
			t.Error("the token is in the log")
		}
	})
}

// TestNoApproval: a declined or expired action does not run, and the model learns this.
func TestNoApproval(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		outcome, notices, code string
		life                   time.Duration
	}{
		{"denied", "declined", protocol.CodeConfirmationUsed, 0},
		{"expired", "not answer in time", protocol.CodeConfirmationExpired, 700 * time.Millisecond},
	} {
		t.Run(tc.outcome, func(t *testing.T) {
			overBothWires(t, setting{scenario: payRules, life: tc.life}, func(t *testing.T, provider string, st *stack, tools *stage) {
				c := st.start(t, 16000)
				asked := c.proposed(t)
				if tc.outcome == "denied" {
					c.resolve(asked.Token, false)
				}
				if ended := firstOf[*protocol.ConfirmationEnded](c); ended.Outcome != tc.outcome || ended.Token != asked.Token {
					t.Errorf("the question ended with %+v", ended)
				}
				c.turn()
				if notices := st.tap.notices("[voicegw:"); len(notices) != 1 || !strings.Contains(notices[0], tc.notices) {
					t.Errorf("the model got %v", notices)
				}
				c.resolve(asked.Token, true)
				c.refused(tc.code)
				tools.ran(t, "pay", 0)
				records := st.audit.wait(t, "pay", 2)
				if r := records[1]; r.Event != "confirmation" || r.OK || r.Confirmation != tc.outcome || r.ConfirmedBy != map[string]string{"denied": "client", "expired": "clock"}[tc.outcome] {
					t.Errorf("the audit has %+v", r)
				}
			})
		})
	}
}

// TestTokenOfAnotherSession: a token is useless in another session, and an attempt has no effect.
func TestTokenOfAnotherSession(t *testing.T) {
	t.Parallel()
	overBothWires(t, setting{scenario: payRules}, func(t *testing.T, _ string, st *stack, tools *stage) {
		c, thief := st.startAs(t, "ada"), st.startAs(t, "ada")
		asked := c.proposed(t)
		thief.resolve(asked.Token, true)
		thief.refused(protocol.CodeConfirmationUnknown)
		thief.resolve(asked.Token, false)
		thief.refused(protocol.CodeConfirmationUnknown)
		tools.ran(t, "pay", 0)
		c.resolve(asked.Token, true)
		waitFor[*protocol.ConfirmationEnded](c)
		if m := c.turn().call(t); !m.OK {
			t.Errorf("the approved action ended with %s", m.Error)
		}
		tools.ran(t, "pay", 1)
	})
}

// TestModelCannotApprove: the model has the token and sends it in every possible form, but no tool runs.
func TestModelCannotApprove(t *testing.T) {
	t.Parallel()
	const tries = `
name: a cunning model
rules:
  - when: {text: pay}
    do:
      - call: {tool: pay, args: {amount: 5, to: Bob}}
      - then:
          - remember: {token: "${result.error.confirmation_request.token}", reference: "${result.error.details.reference}"}
          - call: {tool: pay, args: {amount: 5, to: Bob, confirmation_token: "${token}", approved: true}}
          - then:
              - call: {tool: confirm_action, args: {reference: "${reference}", token: "${token}", approved: true}}
              - then: [say: I could not.]
  - when: {text: again}
    do:
      - call: {tool: pay, args: {amount: 5, to: "${token}"}}
      - then:
          - call: {tool: confirm_action, args: {reference: "${token}", approved: true}}
          - then: [say: I could not.]
`
	for _, spoken := range []bool{false, true} {
		t.Run(fmt.Sprint("spoken confirmation ", spoken), func(t *testing.T) {
			overBothWires(t, setting{scenario: tries, policy: orchestrator.Policy{SpokenConfirmation: spoken}}, func(t *testing.T, _ string, st *stack, tools *stage) {
				c := st.start(t, 16000)
				p := c.typed("pay")
				want := []registry.ErrorType{registry.ErrorConfirmationRequired, registry.ErrorValidation, registry.ErrorNotFound}
				if spoken { // the user has said nothing since the request
					want[2] = registry.ErrorConfirmationRequired
				}
				again := c.typed("again")
				// Another payee makes another request, and the token is not a reference.
				want = append(want, registry.ErrorConfirmationRequired, registry.ErrorNotFound)
				ended := append(p.ended, again.ended...)
				if len(ended) != len(want) {
					t.Fatalf("%d calls have ended, want %d", len(ended), len(want))
				}
				for i, m := range ended {
					if e := errorOf(t, m); e.Type != want[i] {
						t.Errorf("call %d ended with %s: %s; want %s", i+1, e.Type, e.Message, want[i])
					}
				}
				st.tap.waitAnswers(t, len(want))
				tools.ran(t, "pay", 0)
				if len(p.asked) != 1 || len(again.asked) != 1 {
					t.Fatalf("the user was asked %d and %d times", len(p.asked), len(again.asked))
				}
				// The token is in the second request, which stores its arguments unchanged.
				testutil.Forget(p.asked[0].Token)
			})
		})
	}
}

// TestApprovalByTheAPI: a backend answers for its user; the action runs in the session, or outside it after its end.
func TestApprovalByTheAPI(t *testing.T) {
	t.Parallel()
	overBothWires(t, setting{scenario: payRules}, func(t *testing.T, _ string, st *stack, tools *stage) {
		post := func(token, says string, want int) map[string]any {
			t.Helper()
			status, text := st.http(t, http.MethodPost, "/v1/confirmations", `{"token":"`+token+`"`+says+`}`)
			if strings.Contains(text, token) {
				t.Errorf("the answer repeats the token: %s", text)
			}
			var answer map[string]any
			if err := json.Unmarshal([]byte(text), &answer); err != nil || status != want {
				t.Fatalf("the API answers %d %s, want %d", status, text, want)
			}
			return answer
		}
		c := st.startAs(t, "ada")
		asked := c.proposed(t)
		if status, text := st.http(t, http.MethodPost, "/v1/confirmations/"+asked.Token, `{"approved":true}`); status != http.StatusGone || strings.Contains(text, asked.Token) {
			t.Errorf("the old address answers %d %s", status, text)
		}
		post("cf_ABCDEFGHIJKLMNOPQRSTUVWXYZ", `,"approved":true`, http.StatusNotFound)
		post(asked.Token, `,"approved":"yes"`, http.StatusBadRequest)
		post(asked.Token, ``, http.StatusBadRequest)
		tools.ran(t, "pay", 0)
		if a := post(asked.Token, `,"approved":true`, http.StatusOK); a["outcome"] != "approved" || a["told"] != true || a["envelope"] != nil {
			t.Errorf("the API answers %v", a)
		}
		if ended := waitFor[*protocol.ConfirmationEnded](c); ended.Outcome != "approved" {
			t.Errorf("the question ended with %+v", ended)
		}
		if m := c.turn().call(t); !m.OK {
			t.Errorf("the approved action ended with %s", m.Error)
		}
		post(asked.Token, `,"approved":true`, http.StatusConflict)
		c.resolve(asked.Token, true)
		c.refused(protocol.CodeConfirmationUsed)
		tools.ran(t, "pay", 1)

		later := c.proposed(t)
		c.say(&protocol.End{})
		c.ended()
		testutil.WaitUntil(t, "the session is over", func() bool { return st.manager.Running() == 0 })
		a := post(later.Token, `,"approved":true`, http.StatusOK)
		env, _ := a["envelope"].(map[string]any)
		if a["told"] != false || env["ok"] != true {
			t.Errorf("after the session the API answers %v", a)
		}
		post(later.Token, `,"approved":true`, http.StatusConflict)
		if saw := tools.runs("pay"); len(saw) != 2 || saw[1] != paid {
			t.Errorf("pay ran with %v", saw)
		}
		records := st.audit.wait(t, "pay", 4)
		if r := records[1]; r.ConfirmedBy != "api" || !r.OK || !r.Delivered {
			t.Errorf("the first payment is audited as %+v", r)
		}
		if r := records[3]; r.ConfirmedBy != "api" || !r.OK || r.Delivered || r.NotDelivered != "session_over" || r.UserID != "ada" {
			t.Errorf("the second payment is audited as %+v", r)
		}
	})
}

// TestSpokenApproval: if the operator allows it, the user's words count once the user has spoken after the request; the
// button works too.
func TestSpokenApproval(t *testing.T) {
	t.Parallel()
	const rules = payRules + `
  - when: {utterance: any}
    heard: Yes, please.
    do:
      - call: {tool: confirm_action, args: {reference: "${reference}", approved: true}}
      - then: [say: It is paid.]
  - when: {text: '^no$'}
    do:
      - call: {tool: confirm_action, args: {reference: "${reference}", approved: false}}
      - then: [say: I have not.]
`
	overBothWires(t, setting{scenario: rules, policy: orchestrator.Policy{SpokenConfirmation: true}}, func(t *testing.T, provider string, st *stack, tools *stage) {
		c := st.start(t, 16000)
		asked := c.proposed(t)
		tools.ran(t, "pay", 0)
		c.speak(16000, phrase(16000))
		if ended := waitFor[*protocol.ConfirmationEnded](c); ended.Token != asked.Token || ended.Outcome != "approved" {
			t.Errorf("the question ended with %+v", ended)
		}
		playTurn(c)
		if saw := tools.runs("pay"); len(saw) != 1 || saw[0] != paid {
			t.Errorf("pay ran with %v", saw)
		}
		answers := st.tap.waitAnswers(t, 2)
		if env := answers[1].envelope; !env.OK || env.Meta.Tool != "pay" {
			t.Errorf("confirm_action was answered %s", env.Encode())
		}
		if notices := st.tap.notices("[voicegw:"); len(notices) != 0 {
			t.Errorf("the model also got %v", notices)
		}
		if r := st.audit.wait(t, "pay", 2)[1]; !r.OK || r.Confirmation != "approved" || r.ConfirmedBy != "spoken" {
			t.Errorf("the payment is audited as %+v", r)
		}
		c.resolve(asked.Token, true)
		c.refused(protocol.CodeConfirmationUsed)

		second := c.proposed(t)
		p := c.typed("no")
		if e := errorOf(t, p.call(t)); e.Type != registry.ErrorPermanent {
			t.Errorf("the declined action ended with %+v", e)
		}
		c.resolve(second.Token, true)
		c.refused(protocol.CodeConfirmationUsed)
		tools.ran(t, "pay", 1)

		third := c.proposed(t)
		c.resolve(third.Token, true)
		waitFor[*protocol.ConfirmationEnded](c)
		if m := c.turn().call(t); !m.OK {
			t.Errorf("the action approved by button ended with %s", m.Error)
		}
		tools.ran(t, "pay", 2)
	})
}
