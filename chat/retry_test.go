package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/audit"
	"voicegw/internal/conversation"
	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/store"
	"voicegw/transport"
	"voicegw/transport/textmodel"
)

// lines are all messages of an answer as text, without the numbers of a stream; pieces of one text are joined.
func (h *turnMessages) lines() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	item := ""
	for _, m := range h.msgs {
		if piece, ok := m.(*protocol.TextDelta); ok && piece.ItemID == item {
			last := strings.TrimSuffix(out[len(out)-1], `"}`)
			out[len(out)-1] = last + piece.Text + `"}`
			continue
		} else if ok {
			item = piece.ItemID
		}
		text, err := protocol.EncodeServer(0, protocol.Clone(m))
		if err != nil {
			h.t.Fatal(err)
		}
		out = append(out, string(text))
	}
	return strings.Join(out, "\n")
}

// ways are the ways for a client to send the same message twice.
func ways() map[string]Request {
	return map[string]Request{
		"an id":                                  {ID: "m-1", Message: "Book"},
		"an id, without a conversation":          {ID: "m-2", Message: "Book", ConversationID: "none"},
		"the same words":                         {Message: "Book"},
		"the same words, without a conversation": {Message: "Book", ConversationID: "none"},
		"a history of the client's":              {History: []textmodel.Message{{Role: textmodel.RoleUser, Text: "Hello"}, {Role: textmodel.RoleAssistant, Text: "Hi"}}, Message: "Book", ConversationID: "none"},
		"an id and a history":                    {ID: "m-3", History: []textmodel.Message{}, Message: "Book", ConversationID: "none"},
	}
}

// TestTheSameMessageAgain: a repeated message in progress joins its answer, from the beginning; afterwards it gets
// the same answer, from this gateway and from another one. The model is asked and the tool runs once.
func TestTheSameMessageAgain(t *testing.T) {
	for name, req := range ways() {
		t.Run(name, func(t *testing.T) {
			bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
				f.do = func(context.Context, toolCall) (registry.Result, error) {
					pass(time.Second)
					return registry.Result{Data: "done"}, nil
				}
				joined := make(chan *turnMessages)
				first, err := f.respond(t.Context(), req, func(ctx context.Context, p textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
					delta("One moment.")
					go func() {
						sent, err := f.respond(t.Context(), req)
						if err != nil {
							t.Error(err)
						}
						joined <- sent
					}()
					r, err := callsTools(nth(1), "book", `{"name":"a"}`, nth(2), "rare", `{}`)(ctx, p, delta)
					r.Text = "One moment."
					return r, err
				}, says("It is done."))
				if err != nil || first.done().Status != protocol.DoneCompleted {
					t.Fatal(err, first.types())
				}
				want := first.lines()
				if diff := cmp.Diff(want, (<-joined).lines()); diff != "" {
					t.Error("joined:", diff)
				}
				pass(time.Minute)
				elsewhere := newFixture(t, fixtureSetting{shares: f})
				for i, g := range []*fixture{f, elsewhere, elsewhere, f, elsewhere} {
					again, err := g.respond(t.Context(), req)
					if err != nil {
						t.Fatal(i, err)
					}
					if diff := cmp.Diff(want, again.lines()); diff != "" {
						t.Error(i, diff)
					}
					if g != f && len(g.ran()) != 0 {
						t.Errorf("ran %v elsewhere", g.ran())
					}
				}
				if len(f.ran()) != 2 || len(f.model.prompts) != 2 {
					t.Errorf("ran %v, the model was asked %d times", f.ran(), len(f.model.prompts))
				}
				if len(f.kept.kept) > 1 || len(f.kept.taken) != 0 {
					t.Errorf("%d conversations, the leases are %v", len(f.kept.kept), f.kept.taken)
				}
			})
		})
	}
}

// TestTheSameAnswerElsewhere: secrets are not stored, so another gateway sends the answer without them.
func TestTheSameAnswerElsewhere(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		req := Request{ID: "m-1", Message: "Pay"}
		first, _ := f.respond(t.Context(), req, callsTools(nth(1), "pay", `{"name":"Bob"}`), says("May I?"))
		if again, _ := f.respond(t.Context(), req); again.lines() != first.lines() || len(of[*protocol.ConfirmationRequest](again)) != 1 {
			t.Error(again.types())
		}
		g := newFixture(t, fixtureSetting{shares: f})
		if again, err := g.respond(t.Context(), req); err != nil || again.types() != "tool.started tool.ended text.done usage done" {
			t.Error(err, again.types())
		}
	})
}

// TestLeftInTheMiddle: the client disconnects while a tool writes, and repeats its message at once, while the tool
// still runs, or later. The tool runs once, and the answer is complete.
func TestLeftInTheMiddle(t *testing.T) {
	for _, wait := range []time.Duration{0, 10 * time.Second} {
		for name, req := range ways() {
			t.Run(fmt.Sprint(name, wait), func(t *testing.T) {
				bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
					ctx, leave := context.WithCancel(t.Context())
					f.do = func(ctx context.Context, c toolCall) (registry.Result, error) {
						if c.Tool == "stop" {
							<-ctx.Done()
							return registry.Result{}, ctx.Err()
						}
						pass(3 * time.Second)
						return registry.Result{Data: "done"}, ctx.Err()
					}
					over := make(chan struct{})
					go func() {
						defer close(over)
						sent, err := f.respond(ctx, req, callsTools(nth(1), "book", `{"name":"a"}`, nth(2), "stop", `{}`, nth(3), "change", `{"name":"b"}`))
						if err != nil || sent.done().Status != protocol.DoneFailed {
							t.Error(err, sent.types())
						}
					}()
					synctest.Wait()
					leave()
					synctest.Wait()
					pass(wait)
					f.do = func(context.Context, toolCall) (registry.Result, error) { return registry.Result{Data: "done"}, nil }
					again, err := f.respond(t.Context(), req, says("It is done."))
					<-over
					if err != nil || again.done().Status != protocol.DoneCompleted || strings.Join(again.errorTypes(), " ") != "ok ok ok" {
						t.Fatal(err, again.types(), again.errorTypes())
					}
					if diff := cmp.Diff([]string{"book a", "change b", "stop", "stop"}, sorted(f.ran())); diff != "" {
						t.Error(diff)
					}
					if got := answers(t, f.last()); len(got) != 3 || !got[0].OK || !got[1].OK || !got[2].OK {
						t.Errorf("the model got %+v", got)
					}
					if f.kept.kept["conv"] != nil {
						if c := f.conversation("conv"); len(c.Entries) != 3 || c.Turns != 1 || c.Entries[2].Text != "It is done." {
							t.Errorf("saved is %+v", c.Entries)
						}
					}
				})
			})
		}
	}
}

// TestOneOfTwoLeaves: a turn continues while a client waits for it.
func TestOneOfTwoLeaves(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan struct{})
		go func() {
			defer close(left)
			if _, err := f.respond(ctx, Request{Message: "Tell"}, func(ctx context.Context, p textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
				select {
				case <-time.After(time.Second):
					return says("Once upon a time.")(ctx, p, delta)
				case <-ctx.Done():
					return textmodel.Reply{}, ctx.Err()
				}
			}); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		stays := make(chan *turnMessages)
		go func() {
			sent, _ := f.respond(t.Context(), Request{Message: "Tell"})
			stays <- sent
		}()
		synctest.Wait()
		leave()
		<-left
		if sent := <-stays; sent.done().Status != protocol.DoneCompleted || sent.types() != "text.done usage done" {
			t.Error(sent.types())
		}
	})
}

// TestFailedMessageContinues: a turn that fails after its tools have run only asks the model for its answer when the
// message is repeated; one that fails before that starts anew. A failure is never the message's answer.
func TestFailedMessageContinues(t *testing.T) {
	for name, req := range ways() {
		t.Run(name, func(t *testing.T) {
			bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
				lost := func(context.Context, textmodel.Prompt, func(string)) (textmodel.Reply, error) {
					return textmodel.Reply{}, &textmodel.Error{Kind: transport.KindRetry, Err: errors.New("no route")}
				}
				elsewhere := newFixture(t, fixtureSetting{shares: f})
				for i, try := range []struct {
					at    *fixture
					steps []step
					types string
				}{
					{f, []step{lost}, "error usage done"},
					{f, []step{callsTools(nth(1), "book", `{"name":"a"}`), lost}, "tool.started tool.ended error usage done"},
					{elsewhere, []step{lost}, "tool.started tool.ended error usage done"},
					{f, []step{says("It is done.")}, "tool.started tool.ended text.done usage done"},
					{elsewhere, nil, "tool.started tool.ended text.done usage done"},
				} {
					sent, err := try.at.respond(t.Context(), req, try.steps...)
					if err != nil || sent.types() != try.types {
						t.Errorf("try %d: %v, %s", i+1, err, sent.types())
					}
				}
				if len(f.ran())+len(elsewhere.ran()) != 1 {
					t.Errorf("ran %v and %v", f.ran(), elsewhere.ran())
				}
				if f.kept.kept["conv"] != nil {
					if c := f.conversation("conv"); len(c.Entries) != 3 || c.Turns != 1 {
						t.Errorf("saved is %+v", c.Entries)
					}
				}
			})
		})
	}
}

// TestKilledInTheMiddle: a gateway is killed while a tool runs. The repeated message makes the same call on the next
// one, and gets the outcome that the ledger knows.
func TestKilledInTheMiddle(t *testing.T) {
	for name, req := range ways() {
		if strings.Contains(name, "same words, without") {
			continue // the ledger knows it; the rest is as with a conversation
		}
		for _, finished := range []bool{false, true} {
			t.Run(fmt.Sprint(name, finished), func(t *testing.T) {
				bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
					killed := make(chan struct{})
					f.do = func(_ context.Context, c toolCall) (registry.Result, error) {
						if c.Args.Name == "b" || !finished {
							<-killed
						}
						return registry.Result{Data: "done"}, nil
					}
					ctx, leave := context.WithCancel(t.Context())
					over := make(chan struct{})
					go func() {
						defer close(over)
						_, _ = f.respond(ctx, req, callsTools("short", "change", `{"name":"a"}`, "brief", "change", `{"name":"b"}`))
					}()
					synctest.Wait()
					g := newFixture(t, fixtureSetting{shares: f})
					f.kept.taken = nil // as the store does when it is opened
					again, err := g.respond(t.Context(), req, says("I do not know."))
					first := "CONFLICT"
					if finished {
						first = "ok"
					}
					if err != nil || strings.Join(sorted(again.errorTypes()), " ") != "CONFLICT "+first || again.done().Status != protocol.DoneCompleted || len(g.ran()) != 0 {
						t.Errorf("%v, %s, %v, ran %v", err, again.types(), again.errorTypes(), g.ran())
					}
					leave()
					synctest.Wait()
					close(killed)
					<-over
				})
			})
		}
	}
}

// TestNothingIsDoneUnrecorded: if the calls of a message cannot be recorded, they do not run.
func TestNothingIsDoneUnrecorded(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		f.answers.fail = store.ErrUnavailable
		sent := f.say("Book", callsTools(nth(1), "book", `{"name":"a"}`))
		if e := of[*protocol.Error](sent); len(e) != 1 || e[0].Code != protocol.CodeStoreUnavailable || len(f.ran()) != 0 {
			t.Errorf("%s, ran %v", sent.types(), f.ran())
		}
		f.answers.fail = nil
		if sent := f.say("Book", says("It is done.")); sent.types() != "tool.started tool.ended text.done usage done" || len(f.ran()) != 1 {
			t.Errorf("%s, ran %v", sent.types(), f.ran())
		}
	})
}

// TestTooLongToBeKept: for an answer that is too large for the store, it is still known that it was given, and that
// its calls are the same.
func TestTooLongToBeKept(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		req := Request{ID: "m-1", Message: "Change"}
		calls := func(id string) step {
			return func(ctx context.Context, p textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
				r, err := callsTools(id, "change", `{"name":"a"}`)(ctx, p, delta)
				r.Text = strings.Repeat("a", mostRecord)
				return r, err
			}
		}
		lost := func(context.Context, textmodel.Prompt, func(string)) (textmodel.Reply, error) {
			return textmodel.Reply{}, &textmodel.Error{Kind: transport.KindRetry, Err: errors.New("no route")}
		}
		_, _ = f.respond(t.Context(), req, calls(nth(1)), lost)
		g := newFixture(t, fixtureSetting{shares: f})
		sent, err := g.respond(t.Context(), req, calls(nth(2)), says("Done."))
		if err != nil || sent.done().Status != protocol.DoneCompleted || len(f.ran()) != 1 || len(g.ran()) != 0 {
			t.Errorf("%v, %s, ran %d and %d", err, sent.types(), len(f.ran()), len(g.ran()))
		}
		again, err := newFixture(t, fixtureSetting{shares: f}).respond(t.Context(), req)
		if err != nil || again.types() != "error done" {
			t.Error(err, again.types())
		}
	})
}

// TestALongTurnIsKnown: a turn that takes longer than the store keeps its message is still known elsewhere after its
// end.
func TestALongTurnIsKnown(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		f.do = func(context.Context, toolCall) (registry.Result, error) {
			pass(50 * time.Second)
			return registry.Result{Data: "done"}, nil
		}
		req := Request{Message: "Change"}
		round := func(i int) step { return callsTools(nth(2*i), "look", `{}`, nth(2*i+1), "search", `{}`) }
		first, err := f.respond(t.Context(), req, callsTools(nth(1), "change", `{"name":"a"}`), round(2), round(3), round(4), says("It is done."))
		if err != nil || first.done().Status != protocol.DoneCompleted {
			t.Fatal(err, first.types())
		}
		elsewhere := newFixture(t, fixtureSetting{shares: f})
		if again, err := elsewhere.respond(t.Context(), req); err != nil || again.lines() != first.lines() {
			t.Error(err, again.types())
		}
	})
}

// TestCallsWithInvalidArguments: arguments from a client's model may be empty or invalid JSON; the message is still
// the same, and a different one with other arguments.
func TestCallsWithInvalidArguments(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		tools := []textmodel.Tool{{Name: "theirs", Parameters: json.RawMessage(`{}`)}}
		said := func(args string) Request {
			yes := true
			return Request{ConversationID: "none", Message: "Go", Tools: tools, Parallel: &yes, History: []textmodel.Message{
				{Role: textmodel.RoleUser, Text: "Hello"}, {Role: textmodel.RoleAssistant, Calls: []textmodel.ToolCall{{ID: "a", Name: "theirs", Args: json.RawMessage(args)}}}, {Role: textmodel.RoleTool, CallID: "a", Text: "x"}}}
		}
		for i, args := range []string{"", "{", `{"a":1}`, `{"a":2}`} {
			first, err := f.respond(t.Context(), said(args), says(fmt.Sprint("Done ", i)))
			if err != nil {
				t.Fatal(err)
			}
			if again, err := f.respond(t.Context(), said(args)); err != nil || again.lines() != first.lines() {
				t.Errorf("%q: %v, %s", args, err, again.types())
			}
		}
	})
}

// TestAnonymousUsersAreSeparate: anonymous users with conversation ids may number their messages alike.
func TestAnonymousUsersAreSeparate(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		anonymous := func() user.User { return user.Anonymous(netip.Addr{}, false) }
		one, two := strings.Repeat("1", conversation.MinSecret), strings.Repeat("2", conversation.MinSecret)
		for _, id := range []string{"1", ""} {
			for _, conv := range []string{one, two} {
				if sent, err := f.respond(t.Context(), Request{User: anonymous(), ID: id, ConversationID: conv, Message: "Hello " + id}, says("Hello in "+conv)); err != nil || of[*protocol.TextDone](sent)[0].Text != "Hello in "+conv {
					t.Errorf("%q in %s: %v", id, conv, err)
				}
			}
		}
		// Repeated behind the same proxy it is the same message; with the id alone it is not.
		if sent, err := f.respond(t.Context(), Request{User: anonymous(), ID: "1", ConversationID: one, Message: "Hello 1"}); err != nil || of[*protocol.TextDone](sent)[0].Text != "Hello in "+one {
			t.Error(err)
		}
		if sent, err := f.respond(t.Context(), Request{User: anonymous(), ID: "1", ConversationID: "none", Message: "Hello 1"}, says("Who are you?")); err != nil || of[*protocol.TextDone](sent)[0].Text != "Who are you?" {
			t.Error(err)
		}
	})
}

// TestSaidTwice: equal words are one message or two, according to docs/chat.md.
func TestSaidTwice(t *testing.T) {
	reads, writes := callsTools(nth(1), "look", `{}`), callsTools(nth(2), "change", `{"name":"a"}`)
	for name, tc := range map[string]struct {
		first   step
		between func(f *fixture)
		leaves  bool
		same    bool
	}{
		"read whole, nothing was changed":      {reads, nil, false, false},
		"read whole, something was changed":    {writes, nil, false, true},
		"the client left before the end":       {reads, nil, true, true},
		"something was changed, then it spoke": {writes, func(f *fixture) { f.say("No", says("As you like.")) }, false, false},
		"something was changed long ago":       {writes, func(*fixture) { pass(hashedLife) }, false, false},
		"it spoke of something else":           {reads, func(f *fixture) { f.say("No", says("As you like.")) }, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				_, err := f.respond(ctx, Request{Message: "Yes"}, tc.first, func(ctx context.Context, p textmodel.Prompt, delta func(string)) (textmodel.Reply, error) {
					r, err := says("One.")(ctx, p, delta)
					if tc.leaves {
						leave()
					}
					return r, err
				})
				if err != nil {
					t.Fatal(err)
				}
				if tc.between != nil {
					tc.between(f)
				}
				asked := len(f.model.prompts)
				again := f.say("Yes", says("Two."))
				if same := len(f.model.prompts) == asked && of[*protocol.TextDone](again)[0].Text == "One."; same != tc.same && !tc.leaves {
					t.Errorf("it is the same message: %t", same)
				}
				if tc.leaves && again.done().Turn == 1 != tc.same {
					t.Errorf("it was turn %d", again.done().Turn)
				}
				f.model.steps = nil
			})
		})
	}
}

// TestAnIDIsOneMessage: an id with other words is refused, also elsewhere and after the answer; another user's id is
// different, and a repeat may name the conversation id that the client has learned since.
func TestAnIDIsOneMessage(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		req := Request{ID: "m-1", Message: "Hello", ConversationID: "none"}
		first, err := f.respond(t.Context(), req, says("Hi."))
		if err != nil {
			t.Fatal(err)
		}
		elsewhere := newFixture(t, fixtureSetting{shares: f})
		for _, g := range []*fixture{f, elsewhere, f} {
			for name, wrong := range map[string]Request{
				"other words":          {ID: "m-1", Message: "Bye", ConversationID: "none"},
				"a history":            {ID: "m-1", Message: "Hello", History: []textmodel.Message{}},
				"a confirmation":       {ID: "m-1", Confirmation: &Confirmation{Token: "cf_x"}},
				"another conversation": {ID: "m-1", Message: "Hello", ConversationID: "other"},
			} {
				if sent, err := g.respond(t.Context(), wrong); !errors.Is(err, ErrReused) || len(sent.msgs) != 0 {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		known := req
		known.ConversationID = first.done().ConversationID
		if again, err := f.respond(t.Context(), known); err != nil || again.lines() != first.lines() {
			t.Error(err)
		}
		other := req
		other.User = eve
		if sent, err := f.respond(t.Context(), other, says("Hello, Eve.")); err != nil || sent.done().ConversationID == first.done().ConversationID {
			t.Error(err)
		}
		pass(namedLife)
		if sent, err := f.respond(t.Context(), req, says("Good morning.")); err != nil || of[*protocol.TextDone](sent)[0].Text != "Good morning." {
			t.Error(err)
		}
		for _, id := range []string{strings.Repeat("x", MaxMessageID+1), "a\nb", "\xff"} {
			if _, err := f.respond(t.Context(), Request{ID: id, Message: "Hello"}); !errors.Is(err, ErrMessage) {
				t.Errorf("%q: %v", id, err)
			}
		}
	})
}

// TestApprovedAgain: a repeated approval gets the lost answer, and runs nothing twice, even after a kill.
func TestApprovedAgain(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		asked := f.proposed()
		req := Request{Confirmation: &Confirmation{Token: asked.Token, Approved: true}}
		killed := make(chan struct{})
		f.do = func(context.Context, toolCall) (registry.Result, error) {
			<-killed
			return registry.Result{Data: "done"}, nil
		}
		ctx, leave := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			_, _ = f.respond(ctx, req)
		}()
		synctest.Wait()
		g := newFixture(t, fixtureSetting{shares: f})
		f.kept.taken = nil
		sent, err := g.respond(t.Context(), req, says("I do not know."))
		if err != nil || strings.Join(sent.errorTypes(), " ") != "CONFLICT" || len(g.ran()) != 0 {
			t.Errorf("%v, %v, ran %v", err, sent.errorTypes(), g.ran())
		}
		leave()
		synctest.Wait()
		close(killed)
		<-over
	})
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		asked := f.proposed()
		ctx, leave := context.WithCancel(t.Context())
		req := Request{Confirmation: &Confirmation{Token: asked.Token, Approved: true}}
		_, _ = f.respond(ctx, req, func(context.Context, textmodel.Prompt, func(string)) (textmodel.Reply, error) {
			leave()
			return textmodel.Reply{}, context.Canceled
		})
		sent, err := f.respond(t.Context(), req, says("It is paid."))
		if err != nil || sent.types() != "confirmation.ended tool.started tool.ended text.done usage done" || len(f.ran()) != 1 {
			t.Errorf("%v, %s, ran %v", err, sent.types(), f.ran())
		}
		if e := of[*protocol.ConfirmationEnded](sent); e[0].Token != asked.Token {
			t.Errorf("%+v", e[0])
		}
		if got := transcript(f.last()); strings.Count(got, "The user approved pay") != 1 {
			t.Error(got)
		}
		// A second answer to the question is refused.
		deny := Request{Confirmation: &Confirmation{Token: asked.Token}}
		if _, err := f.respond(t.Context(), deny); !errors.Is(err, store.ErrUsed) {
			t.Error(err)
		}
	})
}

// TestAnswersAreBounded: the answers in memory are limited in number and bytes.
func TestAnswersAreBounded(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		long := says(strings.Repeat("a", 100<<10))
		for i := range 150 {
			if _, err := f.respond(t.Context(), Request{ID: fmt.Sprint(i), Message: "Tell", History: []textmodel.Message{}}, long); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if n := f.agent.keptSize; n > mostKeptBytes || n < mostKeptBytes/2 || len(f.agent.messages) != len(f.agent.kept) {
			t.Errorf("%d bytes, %d messages, %d in the list", n, len(f.agent.messages), len(f.agent.kept))
		}
		pass(hashedLife)
		f.say("Hello", says("Hi."))
		synctest.Wait()
		if len(f.agent.messages) != 1 || len(f.agent.kept) != 1 {
			t.Errorf("%d messages are left", len(f.agent.messages))
		}
	})
}

// TestAnAnswerWaitsForTheAudit: a turn is stored only after the audit has its calls, because a later attempt at the
// message finds their answers and writes no record.
func TestAnAnswerWaitsForTheAudit(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		f.auditQueue = make(chan audit.Record, 1)
		over := make(chan struct{})
		go func() {
			defer close(over)
			_, _ = f.respond(t.Context(), Request{ID: "m-1", Message: "Book"}, callsTools("short", "change", `{"name":"a"}`), says("Done."))
		}()
		synctest.Wait()
		one := <-f.auditQueue
		f.kept.mu.Lock()
		if len(f.kept.kept) != 0 {
			t.Errorf("the turn was stored while the audit waited: %s", f.kept.kept)
		}
		f.kept.mu.Unlock()
		close(one.Written)
		<-over
		if len(f.kept.kept) != 1 {
			t.Errorf("stored: %s", f.kept.kept)
		}
	})
}
