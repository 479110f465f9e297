package chat

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/conversation"
	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/store"
	"voicegw/transport"
	"voicegw/transport/textmodel"
)

// TestTurn: the messages of a turn with a tool, in order, and the prompts of the model.
func TestTurn(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		sent := f.say("Who is Ada?",
			func(ctx context.Context, p textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
				delta("One moment.")
				r, err := callsTools(nth(1), "search", `{"name":"ada"}`)(ctx, p, delta)
				r.Text = "One moment."
				return r, err
			}, says("She is a mathematician."))
		if got := sent.types(); got != "text.done tool.started tool.ended text.done usage done" {
			t.Error(got)
		}
		var said []string
		for _, d := range of[*protocol.TextDone](sent) {
			said = append(said, d.ItemID+" "+d.Text)
		}
		if diff := cmp.Diff([]string{"text_1_1 One moment.", "text_1_2 She is a mathematician."}, said); diff != "" {
			t.Error(diff)
		}
		pieces := ""
		for _, d := range of[*protocol.TextDelta](sent) {
			if d.Turn != 1 || d.ItemID != "text_1_1" && d.ItemID != "text_1_2" {
				t.Errorf("%+v", d)
			}
			pieces += d.Text
		}
		if pieces != "One moment.She is a mathematician." {
			t.Error(pieces)
		}
		if u := of[*protocol.TurnUsage](sent)[0]; u.InputTokens != 15 || u.OutputTokens != 3 || u.Input.CachedText != 4 {
			t.Errorf("%+v", u)
		}
		if d := sent.done(); d.ConversationID != "conv" || d.Status != protocol.DoneCompleted || d.Turn != 1 {
			t.Errorf("%+v", d)
		}
		first := f.model.prompts[0]
		if first.Messages[0].Role != textmodel.RoleSystem || !strings.HasPrefix(first.Messages[0].Text, "You are a test. [voicegw:") || len(first.Tools) != 11 || first.Tools[0].Description == "" || first.ToolsOff {
			t.Errorf("%+v, %d tools, tools off %v", first.Messages[0], len(first.Tools), first.ToolsOff)
		}
		if strings.Contains(first.User, "ada") || len(first.User) != 24 {
			t.Errorf("the provider got the user %q", first.User)
		}
		want := "user: Who is Ada?\nassistant: One moment. <" + nth(1) + ` search {"name":"ada"}>` + "\ntool " + nth(1)
		if diff := cmp.Diff(want, transcript(f.last())); diff != "" {
			t.Error(diff)
		}
	})
}

// TestEmptyAnswer: a silent model is asked once more; then the turn fails, and is never silent.
func TestEmptyAnswer(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		sent := f.say("Hello?", says(""), says("Hello."))
		if sent.types() != "text.done usage done" || !strings.Contains(transcript(f.last()), "[own] The user is waiting") {
			t.Errorf("%s after %s", sent.types(), transcript(f.last()))
		}
		sent = f.say("And?", says(" "), says(""))
		errs := of[*protocol.Error](sent)
		if len(errs) != 1 || errs[0].Code != protocol.CodeNoAnswer || !errs[0].Retryable || sent.done().Status != protocol.DoneFailed {
			t.Errorf("%s: %+v", sent.types(), errs)
		}
		// A failure in one conversation does not affect another.
		other, err := f.respond(t.Context(), Request{ConversationID: "other", Message: "And?"}, says(""), says(""))
		if err != nil {
			t.Fatal(err)
		}
		if e := of[*protocol.Error](other); len(e) != 1 || e[0] == errs[0] || errs[0].Turn != 2 || e[0].Turn != 1 {
			t.Errorf("%+v and %+v", errs, e)
		}
	})
}

// TestCallsAfterAnEmptyAnswer: a model that is silent, is asked once more, and then calls a tool gets the result.
func TestCallsAfterAnEmptyAnswer(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		sent := f.say("Look", says(""), callsTools(nth(1), "look", `{}`), says("There."))
		if sent.types() != "tool.started tool.ended text.done usage done" || sent.done().Status != protocol.DoneCompleted {
			t.Error(sent.types())
		}
	})
}

// TestRefusal: a refusal in words is the answer; one without words is an error, and is not retried.
func TestRefusal(t *testing.T) {
	refuses := func(text string) step {
		return func(context.Context, textmodel.Prompt, func(string)) (textmodel.Reply, error) {
			return textmodel.Reply{Text: text, Refused: true}, nil
		}
	}
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		if sent := f.say("Do it", refuses("I will not.")); sent.types() != "text.done usage done" || !of[*protocol.TextDone](sent)[0].Refused || sent.done().Status != protocol.DoneCompleted {
			t.Error(sent.types())
		}
		sent := f.say("Do it", refuses(""))
		if e := of[*protocol.Error](sent); len(e) != 1 || e[0].Code != protocol.CodeRefused || e[0].Retryable {
			t.Errorf("%s %+v", sent.types(), e)
		}
	})
}

// TestLengthLimit: an answer that ended at the model's limit says so.
func TestLengthLimit(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		sent := f.say("Tell", func(context.Context, textmodel.Prompt, func(string)) (textmodel.Reply, error) {
			return textmodel.Reply{Text: "and th", Cut: true}, nil
		})
		if d := of[*protocol.TextDone](sent); len(d) != 1 || !d[0].Cut {
			t.Errorf("%+v", d)
		}
	})
}

// TestRounds: a model that only calls tools is asked a limited number of times, the last time with its tools off, and
// the turn fails.
func TestRounds(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		var steps []step
		for i := range 12 {
			steps = append(steps, callsTools(nth(i), "look", `{}`))
		}
		sent := f.say("Go", steps...)
		if n := len(f.model.prompts); n != 12 || !f.last().ToolsOff {
			t.Errorf("the model was asked %d times, tools off %v", n, f.last().ToolsOff)
		}
		if e := of[*protocol.Error](sent); len(e) != 1 || e[0].Code != protocol.CodeNoAnswer || sent.done().Status != protocol.DoneFailed {
			t.Errorf("%s", sent.types())
		}
		if n := len(f.ran()); n != 10 {
			t.Errorf("%d ran", n)
		}
	})
}

// TestModelFails: each kind of failure has a text for the user, without the provider's; earlier actions stay in the
// conversation.
func TestModelFails(t *testing.T) {
	for kind, want := range map[transport.Kind]protocol.Error{
		transport.KindAuth:       {Code: protocol.CodeProviderAuth},
		transport.KindInvalid:    {Code: protocol.CodeProviderError},
		transport.KindUnreadable: {Code: protocol.CodeProviderAnswer},
		transport.KindQuota:      {Code: protocol.CodeProviderQuota},
		transport.KindTooLong:    {Code: protocol.CodeTooLong},
		transport.KindFiltered:   {Code: protocol.CodeContentFilter},
		transport.KindRateLimit:  {Code: protocol.CodeProviderBusy, Retryable: true},
		transport.KindRetry:      {Code: protocol.CodeProviderUnavailable, Retryable: true},
		transport.KindServer:     {Code: protocol.CodeProviderUnavailable, Retryable: true},
		200:                      {Code: protocol.CodeProviderError},                        // a kind without a text yet
		0:                        {Code: protocol.CodeProviderUnavailable, Retryable: true}, // no ModelError
	} {
		t.Run(kind.String(), func(t *testing.T) {
			bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
				sent := f.say("Go", callsTools(nth(1), "book", `{"name":"x"}`), func(_ context.Context, _ textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
					delta("It is")
					if kind == 0 {
						return textmodel.Reply{}, errors.New("inner secret")
					}
					return textmodel.Reply{}, &textmodel.Error{Kind: kind, Status: 400, RetryAfter: 3 * time.Second, Err: errors.New("inner secret")}
				})
				errs := of[*protocol.Error](sent)
				if kind != 0 {
					want.RetryAfterMS = 3000
				}
				if len(errs) != 1 || errs[0].Code != want.Code || errs[0].RetryAfterMS != want.RetryAfterMS || errs[0].Retryable != want.Retryable || strings.Contains(errs[0].Message, "secret") {
					t.Errorf("%+v", errs)
				}
				if sent.done().Status != protocol.DoneFailed {
					t.Errorf("%+v", sent.done())
				}
				if c := f.conversation("conv"); len(c.Entries) != 3 || !c.Entries[2].Broken || len(c.Entries[1].Calls) != 1 || !c.Entries[1].Calls[0].OK {
					t.Errorf("%+v", c.Entries)
				}
				if !strings.Contains(f.log.String(), "inner secret") {
					t.Error("the log does not have the error")
				}
			})
		})
	}
}

// TestTurnTime: a turn that takes too long ends, the client gets the reason, and cancellable tools are cancelled.
func TestTurnTime(t *testing.T) {
	forever := func(ctx context.Context, _ textmodel.Prompt, _ func(string)) (textmodel.Reply, error) {
		<-ctx.Done()
		return textmodel.Reply{}, context.Cause(ctx)
	}
	late := func(ctx context.Context, p textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
		<-time.After(turnTime - 10*time.Second) // the tool has less time than a turn
		return callsTools(nth(1), "stop", `{}`)(ctx, p, delta)
	}
	for name, steps := range map[string][]step{
		"in the model": {forever},
		"in a tool":    {late},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
				f.do = func(ctx context.Context, _ toolCall) (registry.Result, error) {
					<-ctx.Done()
					return registry.Result{}, ctx.Err()
				}
				began := time.Now()
				sent := f.say("Go", steps...)
				if took := time.Since(began); took != turnTime {
					t.Errorf("it took %s", took)
				}
				if e := of[*protocol.Error](sent); len(e) != 1 || e[0].Code != protocol.CodeNoAnswer || sent.done().Status != protocol.DoneFailed {
					t.Errorf("%s", sent.types())
				}
				if len(f.conversation("conv").Entries) == 0 {
					t.Error("the conversation was not saved")
				}
			})
		})
	}
}

// TestVoiceInvitation: the client gets the offer of start_voice_session, and it alone the ticket.
func TestVoiceInvitation(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		at := time.Now().Add(time.Minute)
		f.do = func(_ context.Context, c toolCall) (registry.Result, error) {
			c.Needs.Inviter.Invite(registry.VoiceOffer{SessionID: "voice-1", PendingRequest: "the lab", Ticket: "secret-ticket", ExpiresAt: at})
			return registry.Result{Data: map[string]string{"session_id": "voice-1"}}, nil
		}
		sent := f.say("Start voice", callsTools(nth(1), "look", `{}`), says("Press the button."))
		if got := sent.types(); got != "tool.started voice_session_start tool.ended text.done usage done" {
			t.Error(got)
		}
		m := of[*protocol.VoiceSessionStart](sent)[0]
		if m.SessionID != "voice-1" || m.PendingRequest != "the lab" || m.Ticket != "secret-ticket" || m.URL != "" || !m.ExpiresAt.Equal(at) || m.Turn != 1 {
			t.Errorf("%+v", m)
		}
		f.kept.mu.Lock()
		defer f.kept.mu.Unlock()
		if strings.Contains(transcript(f.last()), "secret-ticket") || strings.Contains(f.log.String(), "secret-ticket") || strings.Contains(string(f.kept.kept["conv"]), "secret-ticket") {
			t.Error("the ticket has reached the model, the log or the conversation")
		}
	})
}

// TestTimeout: the client learns that a tool has blocked the user.
func TestTimeout(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		until := time.Now().Add(90 * time.Second)
		f.do = func(_ context.Context, c toolCall) (registry.Result, error) {
			c.Needs.Messenger.Timeout(until, 90*time.Second, "Enough.")
			return registry.Result{}, nil
		}
		sent := f.say("You fool", callsTools(nth(1), "look", `{}`), says("Goodbye."))
		if m := of[*protocol.Timeout](sent); len(m) != 1 || m[0].TimeoutUntil != until.UnixMilli() || m[0].DurationSeconds != 90 || m[0].Message != "Enough." {
			t.Errorf("%+v", m)
		}
	})
}

// TestRequests: an invalid request is refused before anything happens.
func TestRequests(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		yes := &Confirmation{Token: "cf_x", Approved: true}
		for name, tc := range map[string]struct {
			req  Request
			says string
		}{
			"empty":      {Request{Message: " \n"}, "empty"},
			"unseen":     {Request{Message: "\u200b\u2060"}, "empty"},
			"too long":   {Request{Message: strings.Repeat("x", conversation.MaxText+1)}, "16001 characters"},
			"a wrong id": {Request{ConversationID: "a/b", Message: "x"}, "conversation_id"},
			"a long id":  {Request{ConversationID: strings.Repeat("x", 129), Message: "x"}, "conversation_id"},
			"both":       {Request{Message: "x", Confirmation: yes}, "exclusive"},
		} {
			sent, err := f.respond(t.Context(), tc.req)
			if !errors.Is(err, ErrMessage) || !strings.Contains(err.Error(), tc.says) || len(sent.msgs) != 0 {
				t.Errorf("%s: %v, %d messages", name, err, len(sent.msgs))
			}
		}
		if err := f.agent.Respond(t.Context(), Request{Message: "x"}, nil); !errors.Is(err, ErrMessage) {
			t.Errorf("no user: %v", err)
		}
		// The limit counts characters, not bytes.
		if _, err := f.respond(t.Context(), Request{Message: "ääääääääää"}, says("Yes.")); err != nil {
			t.Error(err)
		}
	})
}

// TestStoreFails: a turn begins only if its conversation can be read; one that cannot be saved reports it.
func TestStoreFails(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		f.kept.before = func(int) error { return store.ErrUnavailable }
		sent := f.say("Hello", says("Hi."))
		e := of[*protocol.Error](sent)
		if len(e) != 1 || e[0].Code != protocol.CodeStoreUnavailable || sent.done().Status != protocol.DoneFailed {
			t.Errorf("%s", sent.types())
		}
		f.kept.kept = map[string][]byte{"conv": []byte("{")}
		f.kept.revs = map[string]store.Revision{"conv": 1}
		if sent, err := f.respond(t.Context(), Request{Message: "x"}); !errors.Is(err, ErrStore) || len(sent.msgs) != 0 {
			t.Errorf("%v", err)
		}
		if len(f.kept.taken) != 0 {
			t.Error("the lease is still held")
		}
	})
}

// TestVoiceEndsMeanwhile: a voice session handed back during a text turn is in the conversation, and so is the turn.
func TestVoiceEndsMeanwhile(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		f.say("Hello", says("Hi."))
		f.say("And?", func(ctx context.Context, p textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
			f.kept.append(t, "conv", conversation.Entry{At: time.Now(), Side: conversation.SideVoice, Role: conversation.RoleUser, Text: "by voice", Turn: 2})
			return says("Well.")(ctx, p, delta)
		})
		var texts []string
		for _, e := range f.conversation("conv").Entries {
			texts = append(texts, e.Text)
		}
		if diff := cmp.Diff([]string{"Hello", "Hi.", "by voice", "And?", "Well."}, texts); diff != "" {
			t.Error(diff)
		}
		// The conversation keeps changing: the turn gives up and reports it.
		f.kept.before = func(int) error { return store.ErrChanged }
		if sent := f.say("More", says("No.")); sent.done().Status != protocol.DoneFailed || len(of[*protocol.Error](sent)) != 1 {
			t.Errorf("%s", sent.types())
		}
	})
}

// TestOwnHistory: for a client that keeps the conversation nothing is loaded or saved.
func TestOwnHistory(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		sent, err := f.respond(t.Context(), Request{Message: "And?", History: []textmodel.Message{{Role: textmodel.RoleUser, Text: "One"}, {Role: textmodel.RoleAssistant, Text: "Two"}}}, says("Three."))
		if err != nil {
			t.Fatal(err)
		}
		if sent.done().Status != protocol.DoneCompleted || f.kept.saves != 0 || len(f.kept.taken) != 0 {
			t.Errorf("%d saves", f.kept.saves)
		}
		if diff := cmp.Diff("user: One\nassistant: Two\nuser: And?", transcript(f.last())); diff != "" {
			t.Error(diff)
		}
	})
}

// TestSettingsOfTheClient: the client's settings of the answer reach the model in each request of the turn; if the
// model refuses one of them, the client's request is at fault, otherwise the gateway's.
func TestSettingsOfTheClient(t *testing.T) {
	hot := map[string]json.RawMessage{"temperature": json.RawMessage(`2`)}
	for words, want := range map[[2]string]string{
		{"temperature", "x"}: protocol.CodeSettingRefused, {"", "'temperature' is not supported"}: protocol.CodeSettingRefused,
		{"tools", "the temperature"}: protocol.CodeProviderError, {"", "x"}: protocol.CodeProviderError,
	} {
		bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
			sent, err := f.respond(t.Context(), Request{Message: "Go", Settings: hot, MaxOutput: 5}, callsTools(nth(1), "look", `{}`), func(context.Context, textmodel.Prompt, func(string)) (textmodel.Reply, error) {
				return textmodel.Reply{}, &textmodel.Error{Kind: transport.KindInvalid, Param: words[0], Err: errors.New(words[1])}
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range f.model.prompts {
				if string(p.Settings["temperature"]) != "2" || p.MaxOutput != 5 {
					t.Errorf("%+v", p)
				}
			}
			if e := of[*protocol.Error](sent); len(e) != 1 || e[0].Code != want || (e[0].Ref == "temperature") != (want == protocol.CodeSettingRefused) {
				t.Errorf("%v: %+v", words, e)
			}
		})
	}
}

// TestTheTurnBeginsAtOnce: before the model is asked, and before an approved tool runs, the client learns that the
// turn has begun, and in which conversation.
func TestTheTurnBeginsAtOnce(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		sent := &turnMessages{t: t}
		first := func() { // the first message of all
			if begun := of[*protocol.TurnStarted](sent); len(begun) != 1 || begun[0].ConversationID != "conv" || protocol.HeaderOf(begun[0]).Turn == 0 || sent.msgs[0] != protocol.ServerMessage(begun[0]) {
				t.Errorf("%s %+v", sent.types(), begun)
			}
		}
		f.model.steps = []step{func(ctx context.Context, p textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
			synctest.Wait()
			first()
			return callsTools(nth(1), "pay", `{"name":"Bob"}`)(ctx, p, delta)
		}, says("Please approve."), says("Done.")}
		if err := f.agent.Respond(t.Context(), Request{User: user.Must("ada"), ConversationID: "conv", Message: "Pay"}, sent.emit); err != nil {
			t.Fatal(err)
		}
		token := of[*protocol.ConfirmationRequest](sent)[0].Token
		sent = &turnMessages{t: t}
		f.do = func(context.Context, toolCall) (registry.Result, error) {
			synctest.Wait()
			first()
			return registry.Result{}, nil
		}
		if err := f.agent.Respond(t.Context(), Request{User: user.Must("ada"), ConversationID: "conv", Confirmation: &Confirmation{Token: token, Approved: true}}, sent.emit); err != nil {
			t.Fatal(err)
		}
		first()
		sent = &turnMessages{t: t}
		if err := f.agent.Respond(t.Context(), Request{User: user.Must("ada"), ConversationID: "conv", Confirmation: &Confirmation{Token: "cf_none", Approved: true}}, sent.emit); err == nil || len(sent.msgs) > 0 {
			t.Errorf("%v, %s", err, sent.types())
		}
	})
}
