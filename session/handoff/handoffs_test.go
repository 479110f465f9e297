package handoff

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"voicegw/protocol"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"voicegw/internal/conversation"
	"voicegw/internal/logging"
	"voicegw/internal/testutil"
	"voicegw/internal/user"
	"voicegw/registry"
	"voicegw/store"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(testutil.Main(m, testutil.Need{
		Kinds: []logging.Kind{logging.Ticket},
		Sinks: []testutil.Sink{testutil.Data},
	}))
}

func newDesk(t *testing.T) (*Handoffs, *store.Store) {
	t.Helper()
	dir := t.TempDir()
	s, err := store.Open(t.Context(), store.Options{Dir: dir, Sync: store.SyncInterval})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		testutil.CheckFolder(t, dir)
	})
	return New(s, "default"), s
}

func entry(at time.Time, side conversation.Side, turn int, text string) conversation.Entry {
	return conversation.Entry{At: at.UTC(), Side: side, Role: conversation.RoleUser, Text: text, Turn: turn}
}

func invite(t *testing.T, d *Handoffs, in Invitation) registry.VoiceOffer {
	t.Helper()
	o, err := d.Invite(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestTicketKeepsItsTrace: a session belongs to the trace of its ticket.
func TestTicketKeepsItsTrace(t *testing.T) {
	d, _ := newDesk(t)
	above, _ := protocol.ParseTraceParent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	o, err := d.Invite(protocol.WithTraceParent(t.Context(), above), Invitation{User: user.Must("ada")})
	if err != nil {
		t.Fatal(err)
	}
	in, err := d.Redeem(t.Context(), o.Ticket, "")
	if err != nil {
		t.Fatal(err)
	}
	in.Over()
	if in.Parent != above {
		t.Errorf("the session belongs to %q", in.Parent)
	}
	plain := invite(t, d, Invitation{User: user.Must("bob")})
	if in, err := d.Redeem(t.Context(), plain.Ticket, ""); err != nil || !in.Parent.IsZero() {
		t.Errorf("%q, %v", in.Parent, err)
	} else {
		in.Over()
	}
}

// TestThereAndBack: a new conversation begins with the earlier text, the voice agent gets it, and the spoken turns
// follow it.
func TestThereAndBack(t *testing.T) {
	d, _ := newDesk(t)
	now := time.Now()
	o := invite(t, d, Invitation{User: user.Must("ada"), Vouched: true, Scopes: []string{"hr"}, PendingRequest: "When is it open?", Inspect: true, Entries: []conversation.Entry{entry(now, conversation.SideText, 1, "hello")}})
	if !strings.HasPrefix(o.ConversationID, "conv-") {
		t.Errorf("offered %+v", o.ConversationID)
	}
	got, err := d.Redeem(t.Context(), o.Ticket, "")
	if err != nil {
		t.Fatal(err)
	}
	want := Ticket{SessionID: o.SessionID, User: user.Must("ada"), Vouched: true, Scopes: []string{"hr"}, ConversationID: o.ConversationID, PendingRequest: "When is it open?", Context: "User: hello", Inspect: true}
	over := got.Over
	got.Over, got.WhenLost = nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := d.Invite(t.Context(), Invitation{User: user.Must("ada"), ConversationID: o.ConversationID}); !errors.Is(err, store.ErrVoiceActive) {
		t.Errorf("during the session: %v", err)
	}
	back := Part{SessionID: o.SessionID, ConversationID: o.ConversationID, User: user.Must("ada"), Agent: "default",
		Entries: []conversation.Entry{entry(now.Add(time.Second), conversation.SideVoice, 1, "When is it open?")}}
	if err := d.HandBack(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	over()
	c, err := d.Conversation(t.Context(), o.ConversationID)
	if err != nil || c.User != "ada" || c.Agent != "default" || len(c.Entries) != 2 || c.Entries[1].Turn != 2 || c.Entries[1].Text != "When is it open?" {
		t.Errorf("%+v, %v", c, err)
	}
	if before, err := d.Enter(t.Context(), o.ConversationID, user.Must("ada")); err != nil || before != "User: hello\nUser: When is it open?" {
		t.Errorf("the next session gets %q, %v", before, err)
	}
}

// TestTextAfterTheOffer: the voice session also gets the text between the offer and the use of its ticket; a context
// given by the inviting agent replaces it; and messages of a conversation stored here are not stored twice.
func TestTextAfterTheOffer(t *testing.T) {
	for name, tc := range map[string]struct {
		in   Invitation
		want string
	}{
		"with the conversation when the ticket is used": {Invitation{}, "User: hello\nUser: later"},
		"with the agent's context":                      {Invitation{Context: "User wants tea"}, "User wants tea"},
		"with the agent's messages":                     {Invitation{Entries: []conversation.Entry{entry(time.Now(), conversation.SideText, 1, "told")}}, "User: told"},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := newDesk(t)
			add := func(text string) {
				if err := s.Conversations.Update(t.Context(), "c-1", func(c *conversation.Conversation) error {
					c.User = "ada"
					c.Append(time.Now(), entry(time.Now(), conversation.SideText, c.Turns+1, text))
					return nil
				}); err != nil {
					t.Fatal(err)
				}
			}
			add("hello")
			tc.in.User, tc.in.ConversationID = user.Must("ada"), "c-1"
			o := invite(t, d, tc.in)
			add("later")
			got, err := d.Redeem(t.Context(), o.Ticket, "")
			if err != nil || got.Context != tc.want || got.Inspect {
				t.Fatalf("got %q, %v, inspect %t", got.Context, err, got.Inspect)
			}
			got.Over()
			if c, err := d.Conversation(t.Context(), "c-1"); err != nil || len(c.Entries) != 2 {
				t.Errorf("%d entries are stored, %v", len(c.Entries), err)
			}
		})
	}
}

// TestConversationOfAnother: a user cannot be invited into another user's conversation, enter it, read it or write to
// it.
func TestConversationOfAnother(t *testing.T) {
	d, s := newDesk(t)
	invite(t, d, Invitation{User: user.Must("ada"), ConversationID: "c-1", Entries: []conversation.Entry{entry(time.Now(), conversation.SideText, 1, "secret")}})
	if _, err := d.Invite(t.Context(), Invitation{User: user.Must("eve"), ConversationID: "c-1"}); !errors.Is(err, ErrTaken) {
		t.Errorf("invited: %v", err)
	}
	if before, err := d.Enter(t.Context(), "c-1", user.Must("eve")); !errors.Is(err, store.ErrUnknown) || before != "" {
		t.Errorf("entered: %q, %v", before, err)
	}
	o, err := s.VoiceSessions.Offer(t.Context(), store.Ticket{User: "eve", Conversation: "c-1"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.Redeem(t.Context(), o.Secret, "")
	if err != nil || got.Context != "" {
		t.Errorf("got %q, %v", got.Context, err)
	}
	got.Over()
	err = d.HandBack(t.Context(), Part{ConversationID: "c-1", User: user.Must("eve"), Entries: []conversation.Entry{entry(time.Now(), conversation.SideVoice, 1, "x")}})
	if c, _ := d.Conversation(t.Context(), "c-1"); !errors.Is(err, ErrTaken) || len(c.Entries) != 1 {
		t.Errorf("written: %v, %d entries", err, len(c.Entries))
	}
}

// TestHandBackWaitsForText: a text turn in progress saves its conversation, and the spoken turns follow it.
func TestHandBackWaitsForText(t *testing.T) {
	d, s := newDesk(t)
	held, err := s.Conversations.Lease(t.Context(), "c-1", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1) // from the handback
	go func() {
		done <- d.HandBack(context.Background(), Part{ConversationID: "c-1", User: user.Must("ada"),
			Entries: []conversation.Entry{entry(time.Now(), conversation.SideVoice, 1, "by voice")}})
	}()
	select {
	case err := <-done:
		t.Errorf("the handback did not wait: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	c := conversation.New("c-1", "ada", "", time.Now())
	c.Append(time.Now(), entry(time.Now().Add(-time.Minute), conversation.SideText, 1, "by text"))
	if _, err := s.Conversations.Save(t.Context(), c, 0); err != nil {
		t.Errorf("the text turn: %v", err)
	}
	held.Release()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	c, err = d.Conversation(t.Context(), "c-1")
	texts := slices.Collect(func(yield func(string) bool) {
		for _, e := range c.Entries {
			yield(e.Text)
		}
	})
	if diff := cmp.Diff([]string{"by text", "by voice"}, texts); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

// TestDecided: the outcome of an answer over the API is in the conversation of its question, once, for the next text or
// voice turn; other conversations do not get it, and none is created.
func TestDecided(t *testing.T) {
	d, s := newDesk(t)
	talk := conversation.New("c-1", "ada", "", time.Now())
	talk.Append(time.Now(), entry(time.Now(), conversation.SideText, 1, "Pay Bob"))
	if _, err := s.Conversations.Save(t.Context(), talk, 0); err != nil {
		t.Fatal(err)
	}
	approved := store.Confirmation{Session: "chat-c-1", Conversation: "c-1", User: "ada", Tool: "pay", Reference: "AAAAAA"}
	declined := approved
	declined.Reference = "BBBBBB"
	for range 2 {
		if err := errors.Join(d.Decided(t.Context(), approved, []byte(`{"ok":true,"data":"receipt"}`)), d.Decided(t.Context(), declined, nil)); err != nil {
			t.Fatal(err)
		}
	}
	c, err := d.Conversation(t.Context(), "c-1")
	if err != nil || len(c.Entries) != 3 || c.Turns != 1 {
		t.Fatalf("%v, %+v", err, c)
	}
	for i, want := range []string{"The user approved pay (reference AAAAAA)", "The user declined pay (reference BBBBBB)"} {
		if e := c.Entries[i+1]; e.Role != conversation.RoleNotice || !e.System || !strings.HasPrefix(e.Text, want) {
			t.Errorf("%+v", e)
		}
	}
	if !strings.Contains(c.Entries[1].Text, "receipt") {
		t.Errorf("%+v", c.Entries[1])
	}
	eves := approved
	eves.User, eves.Reference = "eve", "CCCCCC"
	if err := d.Decided(t.Context(), eves, nil); !errors.Is(err, ErrTaken) {
		t.Error(err)
	}
	nobodys := approved
	nobodys.Conversation = "c-2"
	if err := d.Decided(t.Context(), nobodys, nil); err != nil {
		t.Error(err)
	}
	if _, err := d.Conversation(t.Context(), "c-2"); !errors.Is(err, store.ErrUnknown) {
		t.Errorf("a conversation was created: %v", err)
	}
	// The first turn is still in progress.
	held, err := s.Conversations.Lease(t.Context(), "c-2", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	if err := d.Decided(t.Context(), nobodys, nil); err != nil {
		t.Error(err)
	}
	if c, err := d.Conversation(t.Context(), "c-2"); err != nil || c.User != "ada" || len(c.Entries) != 1 || !c.HasOutcome("AAAAAA") {
		t.Errorf("%v, %+v", err, c)
	}
}

// TestOfferOfATool: a tool gets the registry's errors, not the store's, if there is no voice session.
func TestOfferOfATool(t *testing.T) {
	d, _ := newDesk(t)
	var sessions registry.VoiceSessions = d
	r := registry.VoiceRequest{UserID: "ada", ConversationID: "conv-1", PendingRequest: "When is it open?", Vouched: true, Scopes: []string{"hr"}, Origin: "https://app.example", Agent: "default"}
	o, err := sessions.Offer(t.Context(), r)
	if err != nil || o.PendingRequest != r.PendingRequest || o.ConversationID != r.ConversationID {
		t.Fatalf("%+v, %v", o.SessionID, err)
	}
	got, err := d.Redeem(t.Context(), o.Ticket, "https://app.example")
	if err != nil {
		t.Fatal(err)
	}
	defer got.Over()
	if got.SessionID != o.SessionID || got.User != user.Must("ada") || !got.Vouched || !slices.Equal(got.Scopes, r.Scopes) || got.ConversationID != r.ConversationID || got.Agent != r.Agent {
		t.Errorf("the ticket opens %+v", got)
	}
	if _, err := sessions.Offer(t.Context(), r); !errors.Is(err, registry.ErrVoiceActive) {
		t.Errorf("while the session runs: %v", err)
	}
	if _, err := sessions.Offer(t.Context(), registry.VoiceRequest{}); !errors.Is(err, registry.ErrUser) {
		t.Errorf("without a user: %v", err)
	}
}

// TestClientConversationIsStored: a conversation held only by its client is stored before the offer, so that the spoken
// turns follow it; a stored one is not changed, and one that cannot be stored is not offered.
func TestClientConversationIsStored(t *testing.T) {
	d, s := newDesk(t)
	r := registry.VoiceRequest{UserID: "ada", ConversationID: "c-1", Agent: "bob", Said: []registry.Utterance{{Text: "I am in Rome."}, {Assistant: true, Text: "Noted."}, {Assistant: true}, {Text: "Call me"}}}
	for range 2 {
		if _, err := d.Offer(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		c, err := d.Conversation(t.Context(), "c-1")
		if err != nil {
			t.Fatal(err)
		}
		if got, want := c.Brief(1000), "User: I am in Rome.\nAssistant: Noted.\nUser: Call me"; got != want || c.Turns != 2 || c.User != "ada" || c.Agent != "bob" {
			t.Errorf("%q, %d turns, of %q with %q", got, c.Turns, c.User, c.Agent)
		}
		c.Join(time.Now(), entry(time.Now(), conversation.SideVoice, 1, "aloud"))
		if last := c.Entries[len(c.Entries)-1]; last.Text != "aloud" {
			t.Errorf("the spoken turn is not the last: %+v", c.Entries)
		}
	}
	r.UserID = ""
	if _, err := d.Offer(t.Context(), r); !errors.Is(err, registry.ErrUser) {
		t.Errorf("without a user: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r.UserID, r.ConversationID = "ada", "c-2"
	if offer, err := d.Offer(t.Context(), r); err == nil || offer.Ticket != "" {
		t.Error("offered without a store")
	}
}
