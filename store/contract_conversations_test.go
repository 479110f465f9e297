package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/conversation"
	"voicegw/internal/testutil"
)

// renewedAlone takes a lease of a conversation, and checks that no other holder gets it until it was renewed beyond
// its life. On a machine that pauses for so long the lease is lost, and its holder learns it before another holder
// gets it; then it returns false.
func renewedAlone(t *testing.T, c *Conversations, id string) bool {
	t.Helper()
	const life = 2 * time.Second
	l, err := c.Lease(t.Context(), id, life)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	defer l.Release()
	lost := make(chan struct{}) // closed when the holder is informed
	l.WhenLost(func() { close(lost) })
	var seen []uint64
	for len(seen) < 1+renewals+1 {
		other, err := c.Lease(t.Context(), id, time.Second)
		if err == nil {
			other.Release()
			testutil.WaitClosed(t, "the holder learns that its lease is lost", lost)
			return false
		}
		if !errors.Is(err, ErrBusy) {
			t.Fatalf("while it is held: %v", err)
		}
		h, err := c.leases.get(t.Context(), keyOf(id))
		switch {
		case err == nil && !slices.Contains(seen, h.revision):
			seen = append(seen, h.revision)
		case err != nil && !errors.Is(err, errNone):
			t.Fatal(err)
		}
		select {
		case <-lost:
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
	return true
}

// talkID is a unique name of a conversation.
func talkID(t *testing.T, text string) string {
	return strings.Map(func(r rune) rune {
		if r == '/' || r == '_' {
			return '.'
		}
		return r
	}, t.Name()) + "." + text
}

func said(n int, text string) conversation.Entry {
	at := time.Date(2026, 11, 20, 10, 0, n, 0, time.UTC)
	return conversation.Entry{At: at, Side: conversation.SideText, Role: conversation.RoleUser, Text: text, Turn: n}
}

// largest returns a conversation at its size limit, which has dropped entries. It takes seconds to make under the
// race detector, so all engines share it.
var largest = sync.OnceValue(func() *conversation.Conversation {
	c := conversation.New("large", "ada", "", time.Now())
	for i := range 3 * conversation.MaxEntries {
		c.Append(time.Now(), said(i, strings.Repeat("ü", 2000)))
	}
	return c
})

func testConversations(t *testing.T, s *Store) {
	c, id := s.Conversations, talkID(t, "a")
	if _, rev, err := c.Load(t.Context(), id); !errors.Is(err, ErrUnknown) || rev != 0 {
		t.Fatalf("before it was saved: %d %v", rev, err)
	}
	talk := conversation.New(id, "ada", "default", time.Now())
	first, err := c.Save(t.Context(), talk, 0)
	if err != nil || first == 0 {
		t.Fatal(first, err)
	}
	if _, err := c.Save(t.Context(), talk, 0); !errors.Is(err, ErrChanged) {
		t.Errorf("made a second time: %v", err)
	}
	talk.Append(time.Now(), said(1, "Grüße <b> \x00"))
	second, err := c.Save(t.Context(), talk, first)
	if err != nil || second == first {
		t.Fatal(second, err)
	}
	got, rev, err := c.Load(t.Context(), id)
	if diff := cmp.Diff(talk, got); diff != "" || err != nil || rev != second {
		t.Error(rev, err, diff)
	}
	for _, stale := range []Revision{first, second + 1000} {
		if _, err := c.Save(t.Context(), conversation.New(id, "eve", "", time.Now()), stale); !errors.Is(err, ErrChanged) {
			t.Errorf("with the revision %d: %v", stale, err)
		}
	}
	if again, err := c.Save(t.Context(), got, rev); err != nil || again == rev {
		t.Errorf("as it was loaded: %d %v", again, err)
	}
	if _, err := c.Save(t.Context(), conversation.New("no/name", "", "", time.Now()), 0); err == nil || errors.Is(err, ErrUnavailable) {
		t.Errorf("an invalid id: %v", err)
	}
	large := *largest()
	large.ID = talkID(t, "large")
	if _, err := c.Save(t.Context(), &large, 0); err != nil {
		t.Errorf("the largest possible: %v", err)
	}
}

// testConversationRace: of many saves of one revision one succeeds, and an update loses no entry of other writers.
func testConversationRace(t *testing.T, s *Store) {
	c, id := s.Conversations, talkID(t, "a")
	rev, err := c.Save(t.Context(), conversation.New(id, "ada", "", time.Now()), 0)
	if err != nil {
		t.Fatal(err)
	}
	var won atomic.Int32
	racers(32, func(i int) {
		talk := conversation.New(id, fmt.Sprint(i), "", time.Now())
		switch _, err := c.Save(t.Context(), talk, rev); {
		case err == nil:
			won.Add(1)
		case !errors.Is(err, ErrChanged):
			t.Error(err)
		}
	})
	if won.Load() != 1 {
		t.Errorf("%d of 32 saved", won.Load())
	}
	racers(6, func(i int) {
		err := c.Update(t.Context(), id, func(talk *conversation.Conversation) error {
			talk.Append(time.Now(), said(i, fmt.Sprint(i)))
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	if talk, _, err := c.Load(t.Context(), id); err != nil || len(talk.Entries) != 6 {
		t.Errorf("%d of 6 entries are there, %v", len(talk.Entries), err)
	}
	refused := errors.New("refused")
	if err := c.Update(t.Context(), id, func(*conversation.Conversation) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("the error of change: %v", err)
	}
}

// testLease: a lease has one holder at a time, beyond its life while it is renewed.
func testLease(t *testing.T, s *Store) {
	c, id := s.Conversations, talkID(t, "a")
	for !renewedAlone(t, c, id) {
	}
	var won atomic.Int32
	racers(16, func(int) {
		held, err := c.Lease(t.Context(), id, time.Minute)
		switch {
		case err == nil:
			won.Add(1)
			t.Cleanup(held.Release)
		case !errors.Is(err, ErrBusy):
			t.Error(err)
		}
	})
	if won.Load() != 1 {
		t.Errorf("%d of 16 hold the lease", won.Load())
	}
}
