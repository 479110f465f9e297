package handoff

import (
	"errors"
	"testing"
	"time"

	"voicegw/internal/conversation"
	"voicegw/internal/user"
	"voicegw/registry"
	"voicegw/store"
)

func makeSecret(t *testing.T, d *Handoffs, in Invitation) string {
	t.Helper()
	value, err := d.MakeSecret(t.Context(), in, store.ClientSecret{Model: "m", LockTools: true}, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// TestSecretOpensOneSessionAfterAnother: a client secret opens one session at a time, each with its own id, and each
// gets the earlier conversation.
func TestSecretOpensOneSessionAfterAnother(t *testing.T) {
	d, _ := newDesk(t)
	by := registry.Guarantor{ID: "key:a", Mark: "m"}
	value := makeSecret(t, d, Invitation{User: user.Must("ada"), Vouched: true, Scopes: []string{"hr"}, Agent: "default", PendingRequest: "Hello?", Guarantor: by})
	found, err := d.Secret(t.Context(), value, "")
	if err != nil || found.User != user.Must("ada") || found.Agent != "default" || found.Guarantor != by || !found.LockTools || found.Model != "m" || found.ConversationID == "" {
		t.Fatalf("%+v, %v", found, err)
	}
	first, err := found.Redeem(t.Context())
	if err != nil || first.User != user.Must("ada") || !first.Vouched || first.PendingRequest != "Hello?" || first.ConversationID != found.ConversationID || first.Guarantor != by {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := d.Secret(t.Context(), value, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Redeem(t.Context()); !errors.Is(err, store.ErrBusy) {
		t.Errorf("a second session at the same time: %v", err)
	}
	said := Part{SessionID: first.SessionID, ConversationID: first.ConversationID, User: user.Must("ada"), Agent: "default",
		Entries: []conversation.Entry{entry(time.Now(), conversation.SideVoice, 1, "I like tea")}}
	if err := d.HandBack(t.Context(), said); err != nil {
		t.Fatal(err)
	}
	first.Over()
	second, err := again.Redeem(t.Context())
	if err != nil || second.SessionID == first.SessionID || second.Context != "User: I like tea" {
		t.Fatalf("%+v, %v", second, err)
	}
	second.Over()
}

func TestSecretIsOfOneUser(t *testing.T) {
	d, _ := newDesk(t)
	invite(t, d, Invitation{User: user.Must("ada"), ConversationID: "c-1"})
	if _, err := d.MakeSecret(t.Context(), Invitation{User: user.Must("eve"), ConversationID: "c-1"}, store.ClientSecret{}, time.Now().Add(time.Hour)); !errors.Is(err, ErrTaken) {
		t.Errorf("for another user's conversation: %v", err)
	}
	value := makeSecret(t, d, Invitation{User: user.Must("ada"), Origin: "https://app.example"})
	if _, err := d.Secret(t.Context(), value, "https://evil.example"); !errors.Is(err, store.ErrOrigin) {
		t.Errorf("from another page: %v", err)
	}
	if _, err := d.Redeem(t.Context(), value, "https://app.example"); !errors.Is(err, store.ErrUnknown) {
		t.Errorf("as a ticket: %v", err)
	}
	if _, err := d.MakeSecret(t.Context(), Invitation{User: user.Must("ada")}, store.ClientSecret{}, time.Now().Add(-time.Second)); err == nil {
		t.Error("an expired secret was made")
	}
}
