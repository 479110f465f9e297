package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"voicegw/internal/auth"
	"voicegw/internal/conversation"
	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/session/handoff"
	"voicegw/store"
	"voicegw/transport"
)

const secret = "s3cret-of-a-ticket"

// counter redeems tickets and takes conversations back.
type counter struct {
	ticket handoff.Ticket
	err    error
	before string
	hold   time.Duration // duration of a handback
	lost   bool          // the leases of its tickets are lost at once

	mu  sync.Mutex // guards the following fields
	its noted
	out strings.Builder // the log
}

// noted are the recorded calls of a counter.
type noted struct {
	asked   []string // secret and origin
	entered []string
	kept    []handoff.Part
	back    []handoff.Part
	decided []string // reference and result
	over    int
	lose    func() // loses the lease of the running session
	log     string
}

// seen returns the records so far.
func (c *counter) seen() noted {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.its
	n.log = c.out.String()
	return n
}

func (c *counter) note(f func(n *noted)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.its)
}

func (c *counter) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Write(p)
}

func (c *counter) Redeem(_ context.Context, secret, origin string) (handoff.Ticket, error) {
	c.note(func(n *noted) { n.asked = append(n.asked, secret+" from "+origin) })
	t := c.ticket
	t.Over = func() { c.note(func(n *noted) { n.over++ }) }
	t.WhenLost = func(f func()) { c.note(func(n *noted) { n.lose = f }) }
	if c.lost {
		t.WhenLost = func(f func()) { go f() }
	}
	return t, c.err
}

func (c *counter) Enter(_ context.Context, id string, who user.User) (string, error) {
	c.note(func(n *noted) { n.entered = append(n.entered, id+" of "+who.String()) })
	return c.before, c.err
}

func (c *counter) Adopt(context.Context, string, uint64, string, user.User) (handoff.Adopted, error) {
	return handoff.Adopted{}, nil
}

func (c *counter) Save(_ context.Context, said handoff.Part) error {
	c.note(func(n *noted) { n.kept = append(n.kept, said) })
	return nil
}

func (c *counter) HandBack(ctx context.Context, said handoff.Part) error {
	select {
	case <-time.After(c.hold):
	case <-ctx.Done():
		return ctx.Err()
	}
	c.note(func(n *noted) { n.back = append(n.back, said) })
	return nil
}

func (c *counter) Decided(_ context.Context, q store.Confirmation, result json.RawMessage) error {
	c.note(func(n *noted) { n.decided = append(n.decided, q.Reference+": "+string(result)) })
	return nil
}

func (c *counter) give(o *Options) {
	o.Handoffs = c
	o.Logger = slog.New(slog.NewTextHandler(c, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

var ticketed = handoff.Ticket{
	SessionID: "voice-ticketed", User: user.Must("ada"), Vouched: true, Scopes: []string{"hr"}, Agent: "default", ConversationID: "c-7",
	PendingRequest: "When is the lab open?", Context: "User: hello",
}

// visit connects with a ticket in the list of subprotocols.
func (st *stage) visit(text, ticket, origin string) *testClient {
	st.t.Helper()
	a, err := st.m.Admit(someone, Coming{})
	if err != nil {
		st.t.Fatal(err)
	}
	a.Ticket, a.Origin = ticket, origin
	c := newTestClient()
	c.say(text)
	st.m.Start(a, c)
	return c
}

// TestClientSecret: a session with a client secret is like one with a ticket, without a ticket in its messages; a
// client whose secret is used by another session gets an error.
func TestClientSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		desk := &counter{ticket: ticketed}
		st := newStage(t, hearing, desk.give)
		come := func() *testClient {
			a, err := st.m.Admit(someone, Coming{})
			if err != nil {
				t.Fatal(err)
			}
			a.TicketNeeded = true
			a.Redeem = func(ctx context.Context) (handoff.Ticket, error) { return desk.Redeem(ctx, "the client secret", "") }
			c := newTestClient()
			c.say(startWith(`,"agent":"default","conversation_id":"c-8","client":{"id":"eve"}`))
			st.m.Start(a, c)
			return c
		}
		c := come()
		st.fake.Accept(t)
		synctest.Wait()
		if got, ok := st.m.Session("voice-ticketed"); !ok || got.User != "ada" || got.Agent != "default" || got.ConversationID != "c-7" {
			t.Errorf("the session is %+v", got)
		}
		desk.err = store.ErrBusy
		second := come()
		synctest.Wait()
		if m := second.last(t, "error"); m["code"] != protocol.CodeVoiceActive || len(st.m.Sessions()) != 1 {
			t.Errorf("a second session at the same time: %v", m)
		}
		c.say(`{"type":"session.end"}`)
		synctest.Wait()
		if seen := desk.seen(); seen.over != 1 || len(seen.entered) != 0 || len(seen.asked) != 2 {
			t.Errorf("%+v", seen)
		}
	})
}

func startWith(fields string) string { return strings.TrimSuffix(startText, "}") + fields + "}" }

// TestTicketSaysWhoComes: the session is the ticket's, regardless of the client's fields, and the model gets the
// conversation and a request to answer.
func TestTicketSaysWhoComes(t *testing.T) {
	for name, places := range map[string]struct{ list, start string }{
		"in session.start": {"", secret}, "as a subprotocol": {secret, ""}, "in both": {secret, secret},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				desk := &counter{ticket: ticketed}
				st := newStage(t, hearing, desk.give)
				c := st.visit(startWith(`,"ticket":"`+places.start+`","agent":"default","conversation_id":"c-8","pending_request":"other","client":{"id":"eve"}`), places.list, "https://a.example")
				model := st.fake.Accept(t)
				synctest.Wait()
				if m := c.last(t, "session.started"); m["session_id"] != "voice-ticketed" {
					t.Errorf("the session is %v", m["session_id"])
				}
				if m := c.last(t, "transcript"); m["text"] != "When is the lab open?" || m["role"] != "user" {
					t.Errorf("the first turn is %v", m)
				}
				sent := fmt.Sprintf("%+v", model.Commands())
				if !strings.Contains(sent, "User: hello") || !strings.Contains(sent, "Answer this first:\nWhen is the lab open?") || strings.Contains(sent, "other") {
					t.Errorf("the model got %s", sent)
				}
				if s := st.m.roster.visit("voice-ticketed"); s == nil || s.start.Ticket != "" || !s.vouched || !slices.Equal(s.scopes, []string{"hr"}) {
					t.Error("the session keeps the secret, or lacks the grants of the ticket")
				} else {
					s.visitors.Done()
				}
				got, ok := st.m.Session("voice-ticketed")
				want := Running{ID: "voice-ticketed", User: "ada", Agent: "default", ConversationID: "c-7", Provider: got.Provider, Model: got.Model, StartedAt: time.Now().UTC(), Turn: 1, Phase: "active",
					Principal: auth.Principal{Kind: auth.KindTicket, User: user.Must("ada"), Scopes: auth.ScopeVoice}}
				if diff := cmp.Diff(want, got); diff != "" || !ok {
					t.Error(diff)
				}
				if list := st.m.Sessions(); len(list) != 1 || list[0] != got {
					t.Errorf("the list is %+v", list)
				}
				if diff := cmp.Diff([]string{secret + " from https://a.example"}, desk.seen().asked); diff != "" || desk.seen().over != 0 {
					t.Error(diff, desk.seen().over)
				}
				c.say(`{"type":"session.end"}`)
				synctest.Wait()
				if desk.seen().over != 1 || len(desk.seen().entered) != 0 {
					t.Errorf("the ticket's session ended %d times, entered %v", desk.seen().over, desk.seen().entered)
				}
				if _, ok := st.m.Session("voice-ticketed"); ok {
					t.Error("the session is listed after its end")
				}
				if strings.Contains(desk.seen().log, secret) || strings.Contains(strings.Join(c.got, " "), secret) {
					t.Errorf("the log contains the secret: %s", desk.seen().log)
				}
			})
		})
	}
}

// TestTicketIsRefused: each refusal has its code and message, and no session begins.
func TestTicketIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		err         error
		list, start string
		change      func(*Options, *counter)
		code        string
		close       websocket.StatusCode
	}{
		"unknown":     {start: secret, err: store.ErrUnknown, code: "ticket_wrong", close: 4501},
		"differing":   {start: secret, list: "another", code: "ticket_wrong", close: 4501},
		"origin":      {list: secret, err: store.ErrOrigin, code: "ticket_origin", close: 4501},
		"used":        {start: secret, err: fmt.Errorf("%w: replaced", store.ErrUsed), code: "ticket_used", close: 4502},
		"late":        {start: secret, err: store.ErrExpired, code: "ticket_expired", close: 4502},
		"in voice":    {start: secret, err: store.ErrBusy, code: "voice_active", close: 4502},
		"store":       {start: secret, err: errors.New("disk " + secret), code: "store_unavailable", close: 1011},
		"no tickets":  {start: secret, change: func(o *Options, _ *counter) { o.Handoffs = nil }, code: "not_available", close: 4500},
		"agent":       {start: secret, change: func(_ *Options, c *counter) { c.ticket.Agent = "bob" }, code: "unknown_agent", close: 4505},
		"blocked":     {start: secret, change: func(o *Options, _ *counter) { o.Blocked = blocksAda }, code: "blocked", close: 4503},
		"too long":    {start: strings.Repeat("x", protocol.MaxTicketBytes+1), code: "invalid_message", close: 4500},
		"not a text":  {start: `","ticket":["` + secret + `"],"x":"`, code: "invalid_message", close: 4500},
		"and resumed": {start: secret + `","resume":{"session_id":"s","token":"t"},"x":"`, code: "not_available", close: 4500},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				desk := &counter{ticket: ticketed, err: tc.err}
				st := newStage(t, hearing, func(o *Options) {
					desk.give(o)
					if tc.change != nil {
						tc.change(o, desk)
					}
				})
				c := st.visit(startWith(`,"ticket":"`+tc.start+`"`), tc.list, "")
				synctest.Wait()
				c.ended(t, tc.close)
				m := c.last(t, "error")
				if m["code"] != tc.code || m["message"] == "" || strings.Contains(fmt.Sprint(m), secret) {
					t.Errorf("the client got %v", m)
				}
				if st.fake.Attempts() != 0 {
					t.Error("the model was contacted anyway")
				}
				if begun := tc.err == nil && len(desk.seen().asked) > 0; begun != (desk.seen().over == 1) {
					t.Errorf("the ticket was redeemed: %t, returned %d times", begun, desk.seen().over)
				}
				if name != "store" && strings.Contains(desk.seen().log, secret) {
					t.Errorf("the log contains the secret: %s", desk.seen().log)
				}
			})
		})
	}
}

func blocksAda(who user.User) (time.Time, bool) {
	return time.Now().Add(time.Hour), who == user.Must("ada")
}

// TestEnteringWithoutATicket: a client may continue only its own conversation.
func TestEnteringWithoutATicket(t *testing.T) {
	for name, tc := range map[string]struct {
		id    string
		err   error
		code  string
		close websocket.StatusCode
	}{
		"its own":           {id: "c-7"},
		"another's":         {id: "c-7", err: store.ErrUnknown, code: "unknown_conversation", close: 4505},
		"store unavailable": {id: "c-7", err: store.ErrUnavailable, code: "store_unavailable", close: 1011},
		"bad name":          {id: "../etc", code: "invalid_message", close: 4500},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				desk := &counter{err: tc.err, before: "User: hello"}
				st := newStage(t, hearing, desk.give)
				c := st.connect(startWith(`,"conversation_id":"` + tc.id + `","client":{"id":"ada"}`))
				if tc.code != "" {
					synctest.Wait()
					c.ended(t, tc.close)
					if m := c.last(t, "error"); m["code"] != tc.code {
						t.Errorf("the client got %v", m)
					}
					return
				}
				model := st.fake.Accept(t)
				synctest.Wait()
				if sent := fmt.Sprintf("%+v", model.Commands()); !strings.Contains(sent, "User: hello") || len(desk.seen().entered) != 1 || desk.seen().entered[0] != "c-7 of ada" {
					t.Errorf("entered %v, the model got %s", desk.seen().entered, sent)
				}
			})
		})
	}
}

// TestHandedBack: at the end the conversation gets the transcript before the session is no longer counted, and the last
// message summarises it.
func TestHandedBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		desk := &counter{ticket: ticketed, hold: 300 * time.Millisecond}
		st := newStage(t, hearing, desk.give)
		c := st.visit(startText, secret, "")
		model := st.fake.Accept(t)
		model.Emit(transport.ResponseStarted{ID: "r1"}, transport.Transcript{Item: "o1", Role: transport.RoleAssistant, Text: "At nine.", Final: true})
		synctest.Wait()
		pass(12 * time.Second) // the answer plays, then silence
		synctest.Wait()
		c.say(`{"type":"session.end"}`)
		synctest.Wait()
		if c.isOver() || len(desk.seen().back) != 0 {
			t.Error("the client was closed before the conversation was written")
		}
		pass(time.Second)
		synctest.Wait()
		if len(desk.seen().back) != 1 || desk.seen().over != 1 {
			t.Fatalf("handed back %d times, ended %d times", len(desk.seen().back), desk.seen().over)
		}
		got := desk.seen().back[0]
		if diff := cmp.Diff([]string{`user When is the lab open?`, `assistant At nine.`}, said(got.Entries)); diff != "" {
			t.Error(diff)
		}
		if got.SessionID != "voice-ticketed" || got.ConversationID != "c-7" || got.User != user.Must("ada") || got.Agent != "default" {
			t.Errorf("%+v", got)
		}
		h, _ := c.last(t, "session.ended")["handback"].(map[string]any)
		if h["conversation_id"] != "c-7" || !strings.Contains(fmt.Sprint(h["summary"]), "At nine.") || !strings.HasPrefix(fmt.Sprint(h["summary"]), "1 turn over 12s.") {
			t.Errorf("the client got %v", h)
		}
	})
}

// TestSavedAtTheEndOfATurn: the transcript is saved when a turn ends, long before the session, and again when more of
// it is known.
func TestSavedAtTheEndOfATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		desk := &counter{ticket: ticketed}
		st := newStage(t, hearing, desk.give)
		c := st.visit(startText, secret, "")
		model := st.fake.Accept(t)
		model.Emit(transport.ResponseStarted{ID: "r1"}, transport.Transcript{Item: "o1", Role: transport.RoleAssistant, Text: "At nine.", Final: true})
		synctest.Wait()
		if n := len(desk.seen().kept); n != 0 {
			t.Errorf("saved %d times before the turn has ended", n)
		}
		model.Emit(transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
		pass(12 * time.Second)
		synctest.Wait()
		last := func() []string {
			kept := desk.seen().kept
			if len(kept) == 0 || kept[len(kept)-1].SessionID != "voice-ticketed" {
				t.Fatalf("saved %+v", kept)
			}
			return said(kept[len(kept)-1].Entries)
		}
		if diff := cmp.Diff([]string{`user When is the lab open?`, `assistant At nine.`}, last()); diff != "" {
			t.Error(diff)
		}
		c.say(`{"type":"session.end"}`)
		synctest.Wait()
		if len(desk.seen().back) != 1 {
			t.Errorf("handed back %d times", len(desk.seen().back))
		}
	})
}

func said(entries []conversation.Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, string(e.Role)+" "+e.Text)
	}
	return out
}

// TestHandbackDelaysNothing: a slow store does not delay the client, one that never answers does not hold the session,
// and a failure is logged.
func TestHandbackDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		desk := &counter{ticket: ticketed, hold: time.Hour}
		st := newStage(t, hearing, desk.give)
		c := st.visit(startText, secret, "")
		st.fake.Accept(t)
		synctest.Wait()
		c.say(`{"type":"session.end"}`)
		pass(time.Second + 100*time.Millisecond)
		synctest.Wait()
		if !c.isOver() || st.m.Running() != 1 || desk.seen().over != 0 {
			t.Errorf("after a second: client closed %t, %d sessions run", c.isOver(), st.m.Running())
		}
		if c.last(t, "session.ended")["handback"] == nil {
			t.Error("the last message has no summary")
		}
		pass(15 * time.Second)
		synctest.Wait()
		if st.m.Running() != 0 || desk.seen().over != 1 || !strings.Contains(desk.seen().log, "could not be handed back") {
			t.Errorf("finally %d sessions run; the log: %s", st.m.Running(), desk.seen().log)
		}
	})
}

// TestNothingToHandBack: no handback without a conversation, and none without new words.
func TestNothingToHandBack(t *testing.T) {
	for name, conversation := range map[string]string{"no conversation": "", "nothing said": `,"conversation_id":"c-9","client":{"id":"ada"}`} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				desk := &counter{}
				st := newStage(t, hearing, desk.give)
				c := st.connect(startWith(conversation))
				st.fake.Accept(t)
				synctest.Wait()
				c.say(`{"type":"session.end"}`)
				synctest.Wait()
				if h := c.last(t, "session.ended")["handback"]; (h != nil) != (conversation != "") || len(desk.seen().back) != 0 {
					t.Errorf("summary %v, written %d times", h, len(desk.seen().back))
				}
			})
		})
	}
}

// TestLostLeaseEndsTheSession: a session that may no longer be the only one of its conversation ends at once with an
// instruction to its client; its transcript waits for the store.
func TestLostLeaseEndsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		desk := &counter{ticket: ticketed, hold: time.Minute}
		st := newStage(t, hearing, desk.give)
		c := st.visit(startText, secret, "")
		model := st.fake.Accept(t)
		model.Emit(transport.ResponseStarted{ID: "r1"}, transport.Transcript{Item: "o1", Role: transport.RoleAssistant, Text: "At nine.", Final: true})
		synctest.Wait()
		desk.seen().lose()
		synctest.Wait()
		if s := st.m.roster.visit("voice-ticketed"); s != nil {
			if !s.isOver() {
				t.Error("the session continues")
			}
			s.visitors.Done()
		}
		pass(time.Second)
		synctest.Wait()
		c.ended(t, 4006)
		if m := c.last(t, "error"); m["code"] != "voice_lost" || m["retryable"] != true || !strings.Contains(fmt.Sprint(m["message"]), "new ticket") {
			t.Errorf("the client got %v", m)
		}
		if m := c.last(t, "session.ended"); m["reason"] != "voice_lost" || m["handback"] == nil {
			t.Errorf("the last message is %v", m)
		}
		pass(time.Minute)
		synctest.Wait()
		if n := desk.seen(); len(n.back) != 1 || n.over != 1 || len(n.back[0].Entries) != 2 {
			t.Errorf("handed back %v, ended %d times; the log: %s", n.back, n.over, n.log)
		}
	})
}

// TestLeaseLostDuringConnect: a session whose lease is lost while the model is contacted ends.
func TestLeaseLostDuringConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		desk := &counter{ticket: ticketed, lost: true}
		st := newStage(t, hearing, desk.give)
		c := st.visit(startText, secret, "")
		st.fake.Accept(t)
		pass(time.Second)
		synctest.Wait()
		c.ended(t, 4006)
		if desk.seen().over != 1 || st.m.Running() != 0 {
			t.Errorf("ended %d times, %d sessions run", desk.seen().over, st.m.Running())
		}
	})
}
