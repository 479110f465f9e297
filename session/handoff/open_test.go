package handoff

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"voicegw/internal/user"
	"voicegw/store"
)

// killed is a store whose gateway was killed after ada had approved a payment in a conversation and before its outcome
// was known.
func killed(t *testing.T, conversation string) *store.Store {
	t.Helper()
	o := store.Options{Dir: filepath.Join(t.TempDir(), "data"), Sync: store.SyncInterval}
	s, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	q := store.Confirmation{Token: "cf_x", Reference: "ABC234", Session: "voice-1", User: "ada", Conversation: conversation, Tool: "pay", ExpiresAt: time.Now().Add(time.Minute)}
	if err := s.Confirmations.Create(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Confirmations.Resolve(t.Context(), q.Token, "", true, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = store.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestOpenCallIsReported: a voice session that continues a conversation gets its approved call without an outcome,
// once; the conversation stores it.
func TestOpenCallIsReported(t *testing.T) {
	s := killed(t, "c-1")
	d := New(s, "default")
	if before, err := d.Enter(t.Context(), "c-1", user.Must("eve")); strings.Contains(before, "ABC234") || err != nil {
		t.Errorf("a stranger gets %q, %v", before, err)
	}
	for range 2 {
		before, err := d.Enter(t.Context(), "c-1", user.Must("ada"))
		if err != nil || strings.Count(before, "approved pay (reference ABC234)") != 1 || !strings.HasPrefix(before, "Gateway: ") {
			t.Errorf("got %q, %v", before, err)
		}
	}
	if c, err := d.Conversation(t.Context(), "c-1"); err != nil || len(c.Entries) != 1 || c.User != "ada" {
		t.Errorf("stored: %+v, %v", c, err)
	}
}

// TestOpenCallWithATicket: also if the creator of the ticket supplies the conversation.
func TestOpenCallWithATicket(t *testing.T) {
	for _, context := range []string{"", "User: Pay Bob."} {
		s := killed(t, "c-1")
		d := New(s, "default")
		o := invite(t, d, Invitation{User: user.Must("ada"), ConversationID: "c-1", Context: context})
		got, err := d.Redeem(t.Context(), o.Ticket, "")
		if err != nil || strings.Count(got.Context, "Gateway: ") != 1 || !strings.Contains(got.Context, "approved pay (reference ABC234)") || !strings.HasPrefix(got.Context, context) {
			t.Errorf("got %q, %v", got.Context, err)
		}
		got.Over()
		if open, err := s.Approvals.Open(t.Context(), time.Now()); err != nil || len(open) != 1 || !open[0].Told {
			t.Errorf("%+v, %v", open, err)
		}
	}
}

// TestFinishedCallIsReported: a call that was approved and finished before the gateway was killed, but is not in the
// conversation, is reported once, with its result.
func TestFinishedCallIsReported(t *testing.T) {
	d, s := newDesk(t)
	q := store.Confirmation{Token: "cf_x", Reference: "ABC234", Session: "voice-1", User: "ada", Conversation: "c-1", Tool: "pay", Action: "deed", ExpiresAt: time.Now().Add(time.Minute)}
	if err := s.Confirmations.Create(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Confirmations.Resolve(t.Context(), q.Token, "", true, time.Now()); err != nil {
		t.Fatal(err)
	}
	e, _, err := s.Ledger.Reserve(t.Context(), store.Reservation{Key: q.Action, Tool: q.Tool, Session: q.Session, Lease: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Ledger.Finish(t.Context(), e, []byte(`{"ok":true,"data":"receipt"}`)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		before, err := d.Enter(t.Context(), "c-1", user.Must("ada"))
		if err != nil || strings.Count(before, "receipt") != 1 {
			t.Errorf("got %q, %v", before, err)
		}
	}
	if open, err := s.Approvals.OpenIn(t.Context(), "c-1", time.Now()); err != nil || len(open) != 0 {
		t.Errorf("%+v, %v", open, err)
	}
}
