package session

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/audit"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/store"
	"voicegw/store/storetest"
	"voicegw/transport"
)

// TestConfirmation: the model calls, the client is asked and approves, the stored arguments run, and the model learns
// of it in a turn of its own.
func TestConfirmation(t *testing.T) {
	onStage(t, nil, func(t *testing.T, tl *till) {
		c, model := tl.talk()
		asked := time.Now()
		tl.calls(model, "u1", "pay", `{"to":"Bob","amount":5}`)
		c.expect(t, "turn.started", "tool.started", "confirmation.request", "tool.ended")
		request := c.last(t, "confirmation.request")
		token, _ := request["token"].(string)
		args, _ := json.Marshal(request["args"])
		if !strings.HasPrefix(token, "cf_") || request["tool"] != "pay" || request["turn"] != 1.0 || request["preview"] != `Pay 5 to Bob` ||
			string(args) != `{"amount":5,"to":"Bob","top_k":5}` || request["expires_at"] != asked.Add(5*time.Minute).UTC().Format("2006-01-02T15:04:05.000Z") {
			t.Errorf("the client was asked %v", request)
		}
		env := results(t, model)["mu1"]
		if env.OK || env.Error.Type != registry.ErrorConfirmationRequired || env.Error.ConfirmationRequest == nil || env.Error.ConfirmationRequest.Token != token ||
			env.Error.ConfirmationRequest.ExpiresAt != request["expires_at"] || len(tl.payments()) != 0 {
			t.Errorf("the model got %+v", env.Error)
		}
		says(c, model, "question")
		resolve(c, token, true)
		c.expect(t, "confirmation.request", "turn.ended completed", "confirmation.ended", "turn.started", "tool.started", "tool.ended")
		if got := c.last(t, "confirmation.ended"); got["outcome"] != "approved" || got["token"] != token || got["tool"] != "pay" {
			t.Errorf("the client got %v", got)
		}
		if got := c.last(t, "tool.ended"); got["ok"] != true || got["tool"] != "pay" || got["turn"] != 2.0 || got["call_id"] == "call_1" {
			t.Errorf("the client got %v", got)
		}
		tl.once(t)
		said := userTexts(model)
		reference := tl.questions.All()[0].Reference
		if len(said) != 1 || !strings.Contains(said[0], "approved pay") || !strings.Contains(said[0], reference) || !strings.Contains(said[0], `"receipt":1`) || strings.Contains(said[0], token) {
			t.Errorf("the model got %q", said)
		}
		says(c, model, "thanks")
		calls := tl.audited.byCall(t)
		first, second := calls["call_1"], calls["call_2"]
		if len(calls) != 2 || first.OK || first.Confirmation != "required" || first.ErrorType != registry.ErrorConfirmationRequired || !first.Delivered {
			t.Errorf("the call is audited as %+v", first)
		}
		if !second.OK || second.Confirmation != "approved" || second.ConfirmedBy != "client" || second.Reference != reference || !second.Delivered ||
			second.IdempotencyKey != "confirmation:"+reference || second.TurnID != 2 {
			t.Errorf("the side effect is audited as %+v", second)
		}
		for _, r := range tl.audited.list() {
			if r.SessionID == "" || r.SessionID != c.last(t, "session.started")["session_id"] || r.UserID != "ada" || r.Agent != "default" || r.ConversationID != "conv_1" {
				t.Errorf("an audit record without a user: %+v", r)
			}
			if line, err := json.Marshal(r); err != nil || strings.Contains(string(line), token) {
				t.Errorf("the audit holds the token: %s", line)
			}
		}
	})
}

// TestConfirmationDenied: nothing runs, the model learns of the denial, and it is audited.
func TestConfirmationDenied(t *testing.T) {
	onStage(t, nil, func(t *testing.T, tl *till) {
		c, model := tl.talk()
		token := tl.asksToPay(c, model, "u1")
		resolve(c, token, false)
		if got := c.last(t, "confirmation.ended"); got["outcome"] != "denied" || got["token"] != token {
			t.Errorf("the client got %v", got)
		}
		if said := userTexts(model); len(said) != 1 || !strings.Contains(said[0], "declined pay") {
			t.Errorf("the model got %q", said)
		}
		tl.ranNothing(t, c, "denied", "client")
		resolve(c, token, true) // too late
		c.expect(t, "confirmation.ended", "error confirmation_used")
		if len(tl.payments()) != 0 {
			t.Error("a denial was reversed")
		}
	})
}

// ranNothing fails unless the last audit record is a confirmation that ran nothing.
func (tl *till) ranNothing(t *testing.T, c *testClient, outcome, by string) {
	t.Helper()
	all := tl.audited.list()
	r := all[len(all)-1]
	if r.Event != audit.EventConfirmation || r.Confirmation != outcome || r.ConfirmedBy != by || r.OK || r.ToolID != "pay" || r.SessionID != c.last(t, "session.started")["session_id"] || r.UserID != "ada" {
		t.Errorf("audited: %+v", r)
	}
	if len(tl.payments()) != 0 || len(tl.ledger.Entries()) != 0 {
		t.Error("the payment ran")
	}
}

// TestConfirmationExpires: a confirmation ends exactly at its time.
func TestConfirmationExpires(t *testing.T) {
	onStage(t, nil, func(t *testing.T, tl *till) {
		c, model := tl.talk()
		token := tl.asksToPay(c, model, "u1")
		pass(time.Until(tl.questions.All()[0].ExpiresAt) - time.Millisecond)
		synctest.Wait()
		if n := c.count("confirmation.ended"); n != 0 {
			t.Fatal("it ended too early")
		}
		pass(time.Millisecond)
		synctest.Wait()
		if got := c.last(t, "confirmation.ended"); got["outcome"] != "expired" || got["token"] != token {
			t.Errorf("the client got %v", got)
		}
		if said := userTexts(model); len(said) != 1 || !strings.Contains(said[0], "did not answer in time") {
			t.Errorf("the model got %q", said)
		}
		tl.ranNothing(t, c, "expired", "clock")
		resolve(c, token, true)
		c.expect(t, "confirmation.ended", "error confirmation_expired")
		if len(tl.payments()) != 0 {
			t.Error("the payment ran")
		}
	})
}

// TestConfirmationsOfOthers: a token of another session is unknown, a used token is used, and neither has an effect.
func TestConfirmationsOfOthers(t *testing.T) {
	onStage(t, nil, func(t *testing.T, tl *till) {
		c, model := tl.talk()
		other, _ := tl.talk()
		token := tl.asksToPay(c, model, "u1")
		resolve(other, token, true)
		other.expect(t, "error confirmation_unknown")
		resolve(c, "cf_guess", true)
		c.expect(t, "error confirmation_unknown")
		if len(tl.payments()) != 0 {
			t.Fatal("another session has approved it")
		}
		resolve(c, token, true)
		resolve(c, token, true)
		c.expect(t, "error confirmation_unknown", "confirmation.ended", "error confirmation_used")
		if other.count("confirmation") != 0 || other.isOver() || c.isOver() {
			t.Error("the other session got a message, or one ended")
		}
		tl.once(t)
	})
}

// TestAnsweredTwiceAtOnce: both answers arrive before either is recorded.
func TestAnsweredTwiceAtOnce(t *testing.T) {
	onStage(t, nil, func(t *testing.T, tl *till) {
		tl.questions.Before = func(_ context.Context, op storetest.Op, _ string) error {
			if op == storetest.Resolve {
				pass(time.Second)
			}
			return nil
		}
		c, model := tl.talk()
		token := tl.asksToPay(c, model, "u1")
		resolve(c, token, true)
		resolve(c, token, false)
		pass(2 * time.Second)
		synctest.Wait()
		c.expect(t, "error confirmation_used", "confirmation.ended", "tool.ended")
		if got := c.last(t, "confirmation.ended"); got["outcome"] != "approved" || c.count("confirmation.ended") != 1 {
			t.Errorf("the client got %v", got)
		}
		tl.once(t)
	})
}

// TestUnrecordedQuestion: if the question cannot be recorded, the client is not asked, and the model is informed.
func TestUnrecordedQuestion(t *testing.T) {
	onStage(t, nil, func(t *testing.T, tl *till) {
		var down atomic.Bool
		down.Store(true)
		tl.questions.Before = func(context.Context, storetest.Op, string) error {
			if down.Load() {
				return store.ErrUnavailable
			}
			return nil
		}
		c, model := tl.talk()
		tl.calls(model, "u1", "pay", `{"to":"Bob","amount":5}`)
		if env := results(t, model)["mu1"]; env.OK || env.Error.Type != registry.ErrorTransient || c.count("confirmation") != 0 {
			t.Errorf("the model got %+v", env)
		}
		says(c, model, "sorry")
		down.Store(false)
		resolve(c, tl.asksToPay(c, model, "u2"), true)
		tl.once(t)
	})
}

// TestUnrecordedAnswer: an answer that cannot be recorded causes an error, and the next one counts; also if only the
// acknowledgement of the first was lost.
func TestUnrecordedAnswer(t *testing.T) {
	for name, lost := range map[string]bool{"down": false, "acknowledgement lost": true} {
		t.Run(name, func(t *testing.T) {
			onStage(t, nil, func(t *testing.T, tl *till) {
				n := 0
				tl.questions.Before = func(ctx context.Context, op storetest.Op, token string) error {
					if op != storetest.Resolve {
						return nil
					}
					if n++; n != 1 {
						return nil
					}
					if lost {
						if _, err := tl.questions.Resolve(ctx, token, "", true, time.Now()); err != nil {
							t.Error(err)
						}
					}
					return store.ErrUnavailable
				}
				c, model := tl.talk()
				token := tl.asksToPay(c, model, "u1")
				resolve(c, token, true)
				c.expect(t, "error store_unavailable")
				if got := c.last(t, "error"); got["retryable"] != true || c.count("confirmation.ended") != 0 || len(tl.payments()) != 0 {
					t.Errorf("the client got %v", got)
				}
				resolve(c, token, true)
				if got := c.last(t, "confirmation.ended"); got["outcome"] != "approved" {
					t.Errorf("the client got %v", got)
				}
				tl.once(t)
				if r := tl.audited.byCall(t)["call_2"]; !r.OK || r.ConfirmedBy != "client" {
					t.Errorf("audited: %+v", r)
				}
			})
		})
	}
}

// TestDenialLost: a denial whose acknowledgement was lost remains a denial, regardless of the second answer.
func TestDenialLost(t *testing.T) {
	onStage(t, nil, func(t *testing.T, tl *till) {
		n := 0
		tl.questions.Before = func(ctx context.Context, op storetest.Op, token string) error {
			if op != storetest.Resolve {
				return nil
			}
			if n++; n != 1 {
				return nil
			}
			if _, err := tl.questions.Resolve(ctx, token, "", false, time.Now()); err != nil {
				t.Error(err)
			}
			return store.ErrUnavailable
		}
		c, model := tl.talk()
		token := tl.asksToPay(c, model, "u1")
		resolve(c, token, false)
		resolve(c, token, true)
		if got := c.last(t, "confirmation.ended"); got["outcome"] != "denied" || len(tl.payments()) != 0 {
			t.Errorf("the client got %v and the payments are %v", got, tl.payments())
		}
	})
}

// TestApprovedAtTheEnd: an approved payment runs once although the session ends before the answer is recorded; it is in
// the ledger, and the gateway waits for it.
func TestApprovedAtTheEnd(t *testing.T) {
	for name, end := range map[string]func(tl *till, c *testClient){
		"hung up":  func(_ *till, c *testClient) { c.say(`{"type":"session.end"}`) },
		"vanished": func(_ *till, c *testClient) { c.Abort() },
		"shutdown": func(tl *till, _ *testClient) { go tl.m.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, nil, func(t *testing.T, tl *till) {
				tl.takes = time.Second
				tl.questions.Before = func(_ context.Context, op storetest.Op, _ string) error {
					if op == storetest.Resolve {
						pass(time.Second)
					}
					return nil
				}
				c, model := tl.talk()
				resolve(c, tl.asksToPay(c, model, "u1"), true)
				end(tl, c)
				synctest.Wait()
				if !c.isOver() || tl.m.Running() != 1 || len(tl.payments()) != 0 {
					t.Fatalf("closed=%t, %d run, payments %v", c.isOver(), tl.m.Running(), tl.payments())
				}
				pass(3 * time.Second)
				synctest.Wait()
				tl.once(t)
				if r := tl.audited.byCall(t)["call_2"]; !r.OK || r.Delivered || r.NotDelivered != "session_over" || r.Confirmation != "approved" || r.UserID != "ada" {
					t.Errorf("audited: %+v", r)
				}
				if tl.m.Running() != 0 || tl.fake.Open() != 0 || len(userTexts(model)) != 0 {
					t.Errorf("%d sessions and %d connections remain; messages %v", tl.m.Running(), tl.fake.Open(), userTexts(model))
				}
			})
		})
	}
}

// TestTwoSessionsOneSideEffect: the same user approves the same payment in two sessions at once; it runs once, and both
// learn the outcome.
func TestTwoSessionsOneSideEffect(t *testing.T) {
	onStage(t, nil, func(t *testing.T, tl *till) {
		tl.takes = time.Second
		first, firstModel := tl.talk()
		second, secondModel := tl.talk()
		a, b := tl.asksToPay(first, firstModel, "u1"), tl.asksToPay(second, secondModel, "u1")
		resolve(first, a, true)
		resolve(second, b, true)
		pass(2 * time.Second)
		synctest.Wait()
		tl.once(t)
		one, two := first.last(t, "tool.ended"), second.last(t, "tool.ended")
		if one["ok"] != true || two["ok"] != false {
			t.Errorf("the clients got %v and %v", one, two)
		}
		failure, _ := two["error"].(map[string]any)
		if failure["type"] != "CONFLICT" || failure["partialSideEffects"] != true {
			t.Errorf("the second session got %v", failure)
		}
		// A second approval gets the answer of the first.
		resolve(second, tl.asksToPay(second, secondModel, "u2"), true)
		pass(2 * time.Second)
		synctest.Wait()
		tl.once(t)
		if got := second.last(t, "tool.ended"); got["ok"] != true || got["deduplicated"] != true {
			t.Errorf("the second approval got %v", got)
		}
	})
}

// TestConfirmActionIsDeclared: only if the operator allows spoken approval, and in the form that the model accepts.
func TestConfirmActionIsDeclared(t *testing.T) {
	for name, spoken := range map[string]bool{"button": false, "spoken": true} {
		t.Run(name, func(t *testing.T) {
			onStage(t, func(o *Options) { o.Policy.SpokenConfirmation = spoken }, func(t *testing.T, tl *till) {
				c, model := tl.talk()
				declared := false
				for _, tool := range model.Setup().Tools {
					declared = declared || tool.Name == "confirm_action"
				}
				if declared != spoken {
					t.Errorf("declared: %t", declared)
				}
				c.say(`{"type":"session.end"}`)
				synctest.Wait()
				c.ended(t, protocol.CloseDone)
			})
		})
	}
}

// TestSpokenConfirmation: the user approves aloud and the model reports it; the payment is the answer to its call.
func TestSpokenConfirmation(t *testing.T) {
	onStage(t, func(o *Options) { o.Policy.SpokenConfirmation = true }, func(t *testing.T, tl *till) {
		c, model := tl.talk()
		tl.asksToPay(c, model, "u1")
		args := `{"reference":"` + tl.questions.All()[0].Reference + `","approved":true}`
		model.Emit(transport.ResponseStarted{ID: "rx"}, transport.ToolCall{Call: "mx", ID: "call_by_itself", Name: "confirm_action", Args: json.RawMessage(args)},
			transport.ResponseDone{ID: "rx", Status: transport.ResponseCompleted})
		synctest.Wait()
		if env := results(t, model)["mx"]; env.OK || len(tl.payments()) != 0 {
			t.Fatalf("the model approved without the user: %+v", env)
		}
		says(c, model, "again")
		pass(time.Second)
		model.Emit(transport.SpeechStarted{Item: "u2", AudioMS: 1}, transport.SpeechStopped{Item: "u2", AudioMS: 2, EndMS: 2})
		tl.calls(model, "u2", "confirm_action", args)
		if env := results(t, model)["mu2"]; !env.OK || !strings.Contains(string(env.Data), "receipt") {
			t.Errorf("the model got %+v", env)
		}
		tl.once(t)
		if got := c.last(t, "confirmation.ended"); got["outcome"] != "approved" {
			t.Errorf("the client got %v", got)
		}
		if r := tl.audited.byCall(t)["call_3"]; r.ConfirmedBy != "spoken" || r.Confirmation != "approved" || r.ToolID != "pay" {
			t.Errorf("audited: %+v", r)
		}
	})
}
