package session

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/user"
	"voicegw/orchestrator"
	"voicegw/orchestrator/calls"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/store"
	"voicegw/store/storetest"
)

// TestAPIConfirmsHere: the session runs on this node, so the approved call runs in it, its client and model are
// informed, and a second answer from either side is refused.
func TestAPIConfirmsHere(t *testing.T) {
	onStage(t, nil, func(t *testing.T, tl *till) {
		c, model := tl.talk()
		token := tl.asksToPay(c, model, "u1")
		got, err := tl.m.Confirm(t.Context(), token, true, user.User{})
		if err != nil || got.Outcome != calls.OutcomeApproved || !got.Told || got.Envelope != nil || got.Tool != "pay" || got.SessionID != c.last(t, "session.started")["session_id"] {
			t.Errorf("the API got %+v, %v", got, err)
		}
		synctest.Wait()
		tl.once(t)
		c.expect(t, "confirmation.ended", "turn.started", "tool.started", "tool.ended")
		if said := userTexts(model); len(said) != 1 || !strings.Contains(said[0], `"receipt":1`) {
			t.Errorf("the model got %q", said)
		}
		if r := tl.audited.byCall(t)["call_2"]; !r.OK || r.ConfirmedBy != "api" || r.Confirmation != "approved" || !r.Delivered {
			t.Errorf("audited: %+v", r)
		}
		if _, err := tl.m.Confirm(t.Context(), token, true, user.User{}); !errors.Is(err, store.ErrUsed) {
			t.Errorf("a second time: %v", err)
		}
		resolve(c, token, true)
		c.expect(t, "confirmation.ended", "error confirmation_used")
		tl.once(t)
	})
}

// TestAPIDeniesHere: the client learns of the denial, and nothing runs.
func TestAPIDeniesHere(t *testing.T) {
	onStage(t, nil, func(t *testing.T, tl *till) {
		c, model := tl.talk()
		got, err := tl.m.Confirm(t.Context(), tl.asksToPay(c, model, "u1"), false, user.User{})
		synctest.Wait()
		if err != nil || got.Outcome != calls.OutcomeDenied || !got.Told {
			t.Errorf("the API got %+v, %v", got, err)
		}
		if got := c.last(t, "confirmation.ended"); got["outcome"] != "denied" {
			t.Errorf("the client got %v", got)
		}
		tl.ranNothing(t, c, "denied", "api")
	})
}

// TestAPIRefuses: invalid answers get the errors of the store.
func TestAPIRefuses(t *testing.T) {
	onStage(t, nil, func(t *testing.T, tl *till) {
		var down atomic.Bool // the session's timer asks as well
		tl.questions.Before = func(context.Context, storetest.Op, string) error {
			if down.Load() {
				return store.ErrUnavailable
			}
			return nil
		}
		c, model := tl.talk()
		token := tl.asksToPay(c, model, "u1")
		if _, err := tl.m.Confirm(t.Context(), "cf_guess", true, user.User{}); !errors.Is(err, store.ErrUnknown) {
			t.Errorf("a guessed token: %v", err)
		}
		down.Store(true)
		if _, err := tl.m.Confirm(t.Context(), token, true, user.User{}); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("while the store is down: %v", err)
		}
		down.Store(false)
		pass(5 * time.Minute)
		if _, err := tl.m.Confirm(t.Context(), token, true, user.User{}); !errors.Is(err, store.ErrExpired) {
			t.Errorf("a late answer: %v", err)
		}
		synctest.Wait()
		if len(tl.payments()) != 0 {
			t.Error("the payment ran")
		}
	})
}

// leaves ends a session and waits until nothing of it remains.
func (tl *till) leaves(t *testing.T, c *testClient) {
	t.Helper()
	c.say(`{"type":"session.end"}`)
	synctest.Wait()
	if n := tl.m.Running(); n != 0 {
		t.Fatalf("%d sessions run", n)
	}
}

// TestAPIConfirmsAfterSession: after the session has ended the stored arguments run once, immediately, and the audit
// names the session that asked.
func TestAPIConfirmsAfterSession(t *testing.T) {
	desk := &counter{}
	onStage(t, func(o *Options) { o.Handoffs = desk }, func(t *testing.T, tl *till) {
		c, model := tl.talk()
		token := tl.asksToPay(c, model, "u1")
		tl.leaves(t, c)
		pass(time.Minute)
		got, err := tl.m.Confirm(t.Context(), token, true, user.User{})
		if err != nil || got.Told || got.Outcome != calls.OutcomeApproved || got.Envelope == nil || !got.Envelope.OK || !strings.Contains(string(got.Envelope.Data), `"receipt":1`) {
			t.Errorf("the API got %+v, %v", got, err)
		}
		tl.once(t)
		all := tl.audited.list()
		r := all[len(all)-1]
		reference := tl.questions.All()[0].Reference
		if r.Event != audit.EventTool || !r.OK || r.ToolID != "pay" || r.ToolVersion != "1.0.0" || r.RegistryVersion != tl.registry.Snapshot().Version() || r.Category != spec.CategoryAction ||
			r.SessionID != got.SessionID || r.UserID != "ada" || r.ConversationID != "conv_1" || r.Agent != "default" || r.TurnID != 1 || r.Mode != spec.ModeVoice ||
			r.CallID != "confirmation_"+reference || r.IdempotencyKey != "confirmation:"+reference || r.Confirmation != "approved" || r.ConfirmedBy != "api" || r.Reference != reference ||
			r.Delivered || r.NotDelivered != "session_over" || !r.Time.Equal(time.Now()) || string(r.Args) != `{"amount":5,"to":"Bob","top_k":5}` {
			t.Errorf("audited: %+v", r)
		}
		if received := desk.seen().decided; len(received) != 1 || !strings.HasPrefix(received[0], reference+`: {"ok":true`) {
			t.Errorf("the conversation got %q", received)
		}
		if !slices.Equal(r.Refused, []registry.IntentType{registry.IntentSuppressTranscript}) || r.Why == "" || len(r.Intents) != 0 {
			t.Errorf("its intents are audited as %v, refused %v", r.Intents, r.Refused)
		}
		if _, err := tl.m.Confirm(t.Context(), token, true, user.User{}); !errors.Is(err, store.ErrUsed) {
			t.Errorf("a second time: %v", err)
		}
		tl.audited.byCall(t)
		tl.once(t)
	})
}

// TestAPIDeniesAfterSession: the denial leads only to an audit record.
func TestAPIDeniesAfterSession(t *testing.T) {
	desk := &counter{}
	onStage(t, func(o *Options) { o.Handoffs = desk }, func(t *testing.T, tl *till) {
		c, model := tl.talk()
		token := tl.asksToPay(c, model, "u1")
		tl.leaves(t, c)
		if got, err := tl.m.Confirm(t.Context(), token, false, user.User{}); err != nil || got.Told || got.Envelope != nil || got.Outcome != calls.OutcomeDenied {
			t.Errorf("the API got %+v, %v", got, err)
		}
		tl.ranNothing(t, c, "denied", "api")
		if received, want := desk.seen().decided, tl.questions.All()[0].Reference+": "; !slices.Equal(received, []string{want}) {
			t.Errorf("the conversation got %q, want %q", received, want)
		}
	})
}

// TestAPIConfirmsChangedTool: a tool of another version than the one shown is not run, nor is a deleted one; both are
// audited as failures.
func TestAPIConfirmsChangedTool(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(t *testing.T, tl *till)
		want   registry.ErrorType
	}{
		"another version": {func(t *testing.T, tl *till) {
			if err := tl.registry.Reload(registrytest.File(t, tillTools("2.0.0")...)); err != nil {
				t.Fatal(err)
			}
		}, registry.ErrorConflict},
		"deleted": {func(t *testing.T, tl *till) {
			without, err := registry.Load(registrytest.File(t, tillTools("1.0.0")[2]), registry.Options{Handlers: map[string]registry.Handler{"bye": registry.Bind(bye)}})
			if err != nil {
				t.Fatal(err)
			}
			tl.m.options().Tools = without.Snapshot
		}, registry.ErrorNotFound},
		"no tools at all": {func(_ *testing.T, tl *till) { tl.m.options().Tools = nil }, registry.ErrorNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, nil, func(t *testing.T, tl *till) {
				c, model := tl.talk()
				token := tl.asksToPay(c, model, "u1")
				tl.leaves(t, c)
				tc.change(t, tl)
				got, err := tl.m.Confirm(t.Context(), token, true, user.User{})
				if err != nil || got.Envelope == nil || got.Envelope.OK || got.Envelope.Error.Type != tc.want {
					t.Fatalf("the API got %+v, %v", got, err)
				}
				all := tl.audited.list()
				if r := all[len(all)-1]; r.Event != audit.EventTool || r.OK || r.ErrorType != tc.want || r.Confirmation != "approved" {
					t.Errorf("audited: %+v", r)
				}
				if len(tl.payments()) != 0 || len(tl.ledger.Entries()) != 0 {
					t.Error("the payment ran")
				}
			})
		})
	}
}

// TestAPIConfirmsWhileTheSessionEnds: while its last messages are stuck the session is still known, and an approved
// call runs in it. Later an approved call runs without it, although one of its tools still runs.
func TestAPIConfirmsWhileTheSessionEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		after    time.Duration
		received bool
	}{"last words": {time.Second, true}, "tools": {3 * time.Second, false}} {
		t.Run(name, func(t *testing.T) {
			onStage(t, nil, func(t *testing.T, tl *till) {
				tl.takes = 10 * time.Second
				c, model := tl.talk()
				first := tl.asksToPay(c, model, "u1")
				tl.calls(model, "u2", "pay", `{"to":"Eve","amount":7}`)
				second, _ := c.last(t, "confirmation.request")["token"].(string)
				resolve(c, second, true) // keeps the session's tools busy
				c.stallWrites()
				c.say(`{"type":"ping","t":1}`)
				synctest.Wait()
				c.say(`{"type":"session.end"}`)
				pass(tc.after)
				got, err := tl.m.Confirm(t.Context(), first, true, user.User{})
				if err != nil || got.Told != tc.received || tl.m.Running() != 1 && tc.received {
					t.Errorf("the API got %+v, %v, while %d run", got, err, tl.m.Running())
				}
				if tc.received && len(tl.payments()) != 0 {
					t.Error("it did not run in the session")
				}
				pass(12 * time.Second)
				synctest.Wait()
				if paid := tl.payments(); len(paid) != 2 || paid[0].To != "Eve" || paid[1].To != "Bob" {
					t.Errorf("paid %+v", paid)
				}
				if n := tl.m.Running(); n != 0 {
					t.Errorf("%d sessions run", n)
				}
				approved := 0
				for _, r := range tl.audited.byCall(t) {
					if r.Confirmation == "approved" && r.OK && r.NotDelivered == "session_over" && r.UserID == "ada" {
						approved++
					}
				}
				if approved != 2 {
					t.Errorf("%d approved actions are audited: %+v", approved, tl.audited.list())
				}
			})
		})
	}
}

// TestSessionWaitsForAPI: a session does not end between the moment when the API finds it and the end of the approved
// call.
func TestSessionWaitsForAPI(t *testing.T) {
	onStage(t, nil, func(t *testing.T, tl *till) {
		c, model := tl.talk()
		token := tl.asksToPay(c, model, "u1")
		s := tl.m.roster.visit(c.last(t, "session.started")["session_id"].(string))
		if s == nil {
			t.Fatal("the session is unknown")
		}
		c.say(`{"type":"session.end"}`)
		pass(time.Minute)
		if n := tl.m.Running(); n != 1 {
			t.Fatalf("%d sessions run while the API uses one", n)
		}
		s.dispatch(orchestrator.OfCall{In: calls.Resolved{Token: token, Outcome: calls.OutcomeApproved, By: calls.ByAPI}})
		s.visitors.Done()
		synctest.Wait()
		tl.once(t)
		if n := tl.m.Running(); n != 0 || tl.m.roster.visit(s.id) != nil {
			t.Errorf("%d sessions run", n)
		}
	})
}

// TestAPIAndButtonAtOnce: both approve; the call runs once and both approvals get an answer, regardless of the order in
// the store.
func TestAPIAndButtonAtOnce(t *testing.T) {
	for name, buttonFirst := range map[string]bool{"the button is first": true, "the API is first": false} {
		t.Run(name, func(t *testing.T) {
			onStage(t, nil, func(t *testing.T, tl *till) {
				n := 0
				tl.questions.Before = func(_ context.Context, op storetest.Op, _ string) error {
					if op == storetest.Resolve {
						if n++; n == 1 != buttonFirst {
							pass(time.Second) // the button's answer is first, and is overtaken
						}
					}
					return nil
				}
				c, model := tl.talk()
				token := tl.asksToPay(c, model, "u1")
				c.say(`{"type":"confirmation.resolve","token":"` + token + `","approved":true}`)
				synctest.Wait()
				_, err := tl.m.Confirm(t.Context(), token, true, user.User{})
				if buttonFirst != errors.Is(err, store.ErrUsed) {
					t.Errorf("the API got %v", err)
				}
				pass(2 * time.Second)
				synctest.Wait()
				tl.once(t)
				if c.count("confirmation.ended") != 1 {
					t.Errorf("the client got %d confirmation.ended", c.count("confirmation.ended"))
				}
				tl.audited.byCall(t)
			})
		})
	}
}

// TestSecondAnswer: a second answer gets the outcome of the first, from any source.
func TestSecondAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		first   bool
		second  string
		by      calls.By
		outcome calls.Outcome
	}{
		"yes, then yes":       {true, "yes", calls.ByClient, calls.OutcomeApproved},
		"yes, then no":        {true, "no", calls.ByAPI, calls.OutcomeApproved},
		"no, then yes":        {false, "yes", calls.ByAPI, calls.OutcomeDenied},
		"yes, then the timer": {true, "clock", calls.ByAPI, calls.OutcomeApproved},
		"no, then the timer":  {false, "clock", calls.ByAPI, calls.OutcomeDenied},
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, nil, func(t *testing.T, tl *till) {
				c, model := tl.talk()
				token := tl.asksToPay(c, model, "u1")
				// Another node has answered; no message about it arrives here.
				if _, err := tl.questions.Resolve(t.Context(), token, "", tc.first, time.Now()); err != nil {
					t.Fatal(err)
				}
				if tc.second == "clock" {
					pass(5 * time.Minute)
					synctest.Wait()
				} else {
					resolve(c, token, tc.second == "yes")
				}
				if got := c.last(t, "confirmation.ended"); got["outcome"] != string(tc.outcome) {
					t.Errorf("the client got %v", got)
				}
				if paid := len(tl.payments()); paid != map[bool]int{true: 1, false: 0}[tc.first] {
					t.Errorf("paid %d times", paid)
				}
				all := tl.audited.list()
				if r := all[len(all)-1]; r.ConfirmedBy != string(tc.by) || r.Confirmation != string(tc.outcome) {
					t.Errorf("audited: %+v", r)
				}
			})
		})
	}
}

// TestManyAnswersOfTheAPI: only one of them counts.
func TestManyAnswersOfTheAPI(t *testing.T) {
	for name, gone := range map[string]bool{"here": false, "gone": true} {
		t.Run(name, func(t *testing.T) {
			onStage(t, nil, func(t *testing.T, tl *till) {
				c, model := tl.talk()
				token := tl.asksToPay(c, model, "u1")
				if gone {
					tl.leaves(t, c)
				}
				var all sync.WaitGroup
				var taken, used atomic.Int64
				for range 32 {
					all.Go(func() {
						switch _, err := tl.m.Confirm(t.Context(), token, true, user.User{}); {
						case err == nil:
							taken.Add(1)
						case errors.Is(err, store.ErrUsed):
							used.Add(1)
						default:
							t.Error(err)
						}
					})
				}
				all.Wait()
				synctest.Wait()
				if taken.Load() != 1 || used.Load() != 31 {
					t.Errorf("%d were accepted, %d already used", taken.Load(), used.Load())
				}
				tl.once(t)
				tl.audited.byCall(t)
			})
		})
	}
}
