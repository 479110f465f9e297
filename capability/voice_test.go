package capability

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var request = VoiceRequest{UserID: "ada", ConversationID: "c1", Agent: "default", PendingRequest: "What is new?"}

func offer(t *testing.T, v *MemoryVoiceSessions, r VoiceRequest) VoiceOffer {
	t.Helper()
	o, err := v.Offer(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestTicketOpensOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := NewMemoryVoiceSessions("ws://localhost/v1/voice", 0)
		o := offer(t, v, request)
		if !strings.HasPrefix(o.SessionID, "voice-") || o.PendingRequest != "What is new?" || o.URL != "ws://localhost/v1/voice" ||
			!o.ExpiresAt.Equal(time.Now().Add(TicketLife)) {
			t.Errorf("the offer is %+v", o)
		}
		id, got, err := v.Redeem(o.Ticket)
		if err != nil || id != o.SessionID || got != request {
			t.Errorf("redeemed %s %+v %v", id, got, err)
		}
		if _, _, err := v.Redeem(o.Ticket); !errors.Is(err, ErrTicket) {
			t.Errorf("a second time: %v", err)
		}
		if _, _, err := v.Redeem("vt_guess"); !errors.Is(err, ErrTicket) {
			t.Errorf("a guess: %v", err)
		}
	})
}

func TestTicketExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := NewMemoryVoiceSessions("", 0)
		o := offer(t, v, request)
		<-time.After(TicketLife)
		if _, _, err := v.Redeem(o.Ticket); !errors.Is(err, ErrTicketExpired) {
			t.Errorf("after its life: %v", err)
		}
		offer(t, v, request)
	})
}

// TestOneVoiceSessionForEachConversation: a new offer replaces one that was not
// taken, and none is made while the session runs.
func TestOneVoiceSessionForEachConversation(t *testing.T) {
	v := NewMemoryVoiceSessions("", 0)
	first := offer(t, v, request)
	second := offer(t, v, request)
	if _, _, err := v.Redeem(first.Ticket); !errors.Is(err, ErrTicket) {
		t.Errorf("the replaced ticket: %v", err)
	}
	id, _, err := v.Redeem(second.Ticket)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Offer(t.Context(), request); !errors.Is(err, ErrVoiceActive) {
		t.Errorf("while it runs: %v", err)
	}
	other := request
	other.ConversationID = "c2"
	offer(t, v, other)
	v.Ended(id)
	offer(t, v, request)
}

func TestVoiceSessionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := NewMemoryVoiceSessions("", 3)
		for i := range 3 {
			offer(t, v, VoiceRequest{UserID: fmt.Sprint("user", i)})
		}
		if _, err := v.Offer(t.Context(), VoiceRequest{UserID: "late"}); !errors.Is(err, ErrFull) {
			t.Errorf("the fourth: %v", err)
		}
		<-time.After(TicketLife)
		offer(t, v, VoiceRequest{UserID: "late"})
		if len(v.byKey) != 1 || len(v.byTicket) != 1 {
			t.Errorf("%d sessions and %d tickets are kept", len(v.byKey), len(v.byTicket))
		}
	})
}

func TestOfferRefusesStrangeUsers(t *testing.T) {
	v := NewMemoryVoiceSessions("", 0)
	for _, r := range []VoiceRequest{{}, {UserID: strings.Repeat("x", maxUser+1)}, {UserID: "a", ConversationID: strings.Repeat("x", maxUser+1)}} {
		if _, err := v.Offer(t.Context(), r); !errors.Is(err, ErrUser) {
			t.Errorf("%.20v: %v", r, err)
		}
	}
}
