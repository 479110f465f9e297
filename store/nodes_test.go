package store

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"voicegw/internal/conversation"
	"voicegw/internal/testutil"
)

// TestHandoffBetweenNodes: a lease, a ticket and a running voice session of one node count on the other, and end with
// their node.
func TestHandoffBetweenNodes(t *testing.T) {
	address := startJetStream(t).ClientURL()
	a, b := openTest(t, Options{URL: address}), openTest(t, Options{URL: address})
	held, err := a.Conversations.Lease(t.Context(), "c1", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Conversations.Lease(t.Context(), "c1", time.Second); !errors.Is(err, ErrBusy) {
		t.Errorf("the other node's lease: %v", err)
	}
	held.Release()
	if held, err = b.Conversations.Lease(t.Context(), "c1", time.Second); err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	rev, err := a.Conversations.Save(t.Context(), conversation.New("c1", "ada", "", time.Now()), 0)
	if err != nil {
		t.Fatal(err)
	}
	if c, got, err := b.Conversations.Load(t.Context(), "c1"); err != nil || got != rev || c.User != "ada" {
		t.Errorf("the other node loads %+v, %d, %v", c, got, err)
	}

	r := Ticket{User: "ada", Conversation: "c1"}
	o := offer(t, a, r)
	_, over, err := b.VoiceSessions.Redeem(t.Context(), o.Secret, "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.VoiceSessions.Redeem(t.Context(), o.Secret, "", time.Now()); !errors.Is(err, ErrUsed) {
		t.Errorf("used on the other node: %v", err)
	}
	if _, err := a.VoiceSessions.Offer(t.Context(), r); !errors.Is(err, ErrVoiceActive) {
		t.Errorf("while it runs on the other node: %v", err)
	}
	over.Release()
	offer(t, a, r)
}

// TestLeaseOfADeadNode: a lease of a node that died silently is free after its life, and the node that lost it does
// not free it for the next holder.
func TestLeaseOfADeadNode(t *testing.T) {
	address := startJetStream(t).ClientURL()
	a, b := openTest(t, Options{URL: address}), openTest(t, Options{URL: address})
	lost, err := a.Conversations.Lease(t.Context(), "c1", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	informed := make(chan struct{}) // closed when the holder is informed
	lost.WhenLost(func() { close(informed) })
	a.conn.Close() // as if its network had died
	<-informed
	var held Held
	testutil.WaitUntil(t, "the lease is free", func() bool {
		held, err = b.Conversations.Lease(t.Context(), "c1", time.Minute)
		return err == nil
	})
	defer held.Release()
	lost.Release()
	if _, err := b.Conversations.Lease(t.Context(), "c1", time.Minute); !errors.Is(err, ErrBusy) {
		t.Errorf("the next holder's: %v", err)
	}
}

// TestConversationsReopen: a conversation, and the use of a ticket, outlive the process.
func TestConversationsReopen(t *testing.T) {
	o := Options{Dir: filepath.Join(t.TempDir(), "data")}
	s := openTest(t, o)
	rev, err := s.Conversations.Save(t.Context(), conversation.New("c1", "ada", "", time.Now()), 0)
	if err != nil {
		t.Fatal(err)
	}
	used, fresh := offer(t, s, Ticket{User: "ada"}), offer(t, s, Ticket{User: "bob"})
	if _, _, err := s.VoiceSessions.Redeem(t.Context(), used.Secret, "", time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openTest(t, o)
	if _, got, err := s.Conversations.Load(t.Context(), "c1"); err != nil || got != rev {
		t.Errorf("the conversation: %d, %v", got, err)
	}
	if _, _, err := s.VoiceSessions.Redeem(t.Context(), used.Secret, "", time.Now()); !errors.Is(err, ErrUsed) {
		t.Errorf("the used ticket: %v", err)
	}
	if _, over, err := s.VoiceSessions.Redeem(t.Context(), fresh.Secret, "", time.Now()); err != nil {
		t.Errorf("the unused ticket: %v", err)
	} else {
		over.Release()
	}
}

// TestShortTickets: the operator decides how long a ticket lives.
func TestShortTickets(t *testing.T) {
	s := openTest(t, Options{Memory: true, TicketLife: 50 * time.Millisecond})
	o := offer(t, s, Ticket{User: "ada"})
	<-time.After(time.Until(o.ExpiresAt))
	if _, _, err := s.VoiceSessions.Redeem(t.Context(), o.Secret, "", time.Now()); !errors.Is(err, ErrExpired) {
		t.Errorf("a late ticket: %v", err)
	}
}

// TestFullStoreForgetsTheOldest: when there is no more room for conversations, the least recently saved one is
// removed, and the new one is saved.
func TestFullStoreForgetsTheOldest(t *testing.T) {
	s := openTest(t, Options{Memory: true, ConversationBytes: 1 << 20})
	text := make([]byte, conversation.MaxText)
	for i := range text {
		text[i] = 'x'
	}
	for i := range 4 {
		c := conversation.New(string(rune('a'+i)), "ada", "", time.Now())
		for n := range 25 {
			c.Append(time.Now(), said(n, string(text)))
		}
		if _, err := s.Conversations.Save(t.Context(), c, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.Conversations.Load(t.Context(), "a"); !errors.Is(err, ErrUnknown) {
		t.Errorf("the oldest: %v", err)
	}
	if _, _, err := s.Conversations.Load(t.Context(), "d"); err != nil {
		t.Errorf("the newest: %v", err)
	}
}
