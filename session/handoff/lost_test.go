package handoff

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/conversation"
	"voicegw/internal/user"
	"voicegw/store"
)

// TestSessionLearnsOfLostLease: the lease ends here because it is no longer renewed.
func TestSessionLearnsOfLostLease(t *testing.T) {
	d, s := newDesk(t)
	o := invite(t, d, Invitation{User: user.Must("ada")})
	got, err := d.Redeem(t.Context(), o.Ticket, "")
	if err != nil {
		t.Fatal(err)
	}
	lost := make(chan struct{}) // closed when the session is informed
	got.WhenLost(func() { close(lost) })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	<-lost
	got.Over()
}

// TestHandBackTwice: a handback whose acknowledgement was lost is repeated, and is in the conversation once.
func TestHandBackTwice(t *testing.T) {
	d, s := newDesk(t)
	e := entry(time.Now(), conversation.SideVoice, 1, "by voice")
	e.SessionID = "voice-1"
	back := Part{SessionID: "voice-1", ConversationID: "c-1", User: user.Must("ada"), Entries: []conversation.Entry{e}}
	for range 2 {
		if err := d.HandBack(t.Context(), back); err != nil {
			t.Fatal(err)
		}
	}
	back.SessionID, back.Entries[0].SessionID = "voice-2", "voice-2"
	if err := d.HandBack(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	if c, _, err := s.Conversations.Load(t.Context(), "c-1"); err != nil || len(c.Entries) != 2 {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestHandBackWaitsForTheStore: it waits until its deadline, and only for an unavailable store.
func TestHandBackWaitsForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		away, tries := fmt.Errorf("%w: away", store.ErrUnavailable), 0
		tried := func(back int, then error) error {
			tries = 0
			return untilStored(ctx, func() error {
				if tries++; tries < back {
					return away
				}
				return then
			})
		}
		if err := tried(5, nil); err != nil || tries != 5 {
			t.Errorf("%v after %d tries", err, tries)
		}
		if err := tried(2, ErrTaken); !errors.Is(err, ErrTaken) || tries != 2 {
			t.Errorf("%v after %d tries", err, tries)
		}
		if err := tried(1<<30, nil); !errors.Is(err, store.ErrUnavailable) || ctx.Err() == nil {
			t.Errorf("%v, before its time was over: %t", err, ctx.Err() == nil)
		}
	})
}
