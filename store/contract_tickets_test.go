package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func ticket(t *testing.T) Ticket {
	return Ticket{
		SessionID: "voice-1", User: "ada", Agent: "default", Conversation: talkID(t, "c"),
		PendingRequest: "Grüße <b>", Context: "User: hello\nAssistant: hi", Origin: "https://Example.org:443/",
	}
}

func create(t *testing.T, s *Store, ticket Ticket) string {
	t.Helper()
	secret, err := s.Tickets.Create(t.Context(), ticket)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func testTickets(t *testing.T, s *Store) {
	want, now := ticket(t), time.Now()
	secret := create(t, s, want)
	stored, err := s.Tickets.bucket.get(t.Context(), keyOf(secret))
	if err != nil || strings.Contains(string(stored.data), secret) || strings.Contains(keyOf(secret), secret) {
		t.Errorf("the secret is in the store: %s, %v", stored.data, err)
	}
	for _, origin := range []string{"", "null", "https://evil.example", "http://example.org", "https://example.org.evil.example"} {
		if _, err := s.Tickets.Redeem(t.Context(), secret, origin, now); !errors.Is(err, ErrOrigin) {
			t.Errorf("from %q: %v", origin, err)
		}
	}
	got, err := s.Tickets.Redeem(t.Context(), secret, "https://example.org", now)
	if err != nil {
		t.Fatal(err)
	}
	if left := got.ExpiresAt.Sub(now); left < 59*time.Second || left > 61*time.Second {
		t.Errorf("it lives %v", left)
	}
	want.Origin, want.ExpiresAt, want.UsedAt = "https://example.org", got.ExpiresAt, now.UTC()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, late := range []time.Duration{0, time.Hour} {
		if _, err := s.Tickets.Redeem(t.Context(), secret, "https://example.org", now.Add(late)); !errors.Is(err, ErrUsed) {
			t.Errorf("a second time, after %v: %v", late, err)
		}
	}
	if _, err := s.Tickets.Redeem(t.Context(), secret+"x", "", now); !errors.Is(err, ErrUnknown) {
		t.Errorf("a guess: %v", err)
	}
	late := want
	late.Origin, late.ExpiresAt = "", time.Time{}
	secret = create(t, s, late)
	for _, now := range []time.Time{now.Add(2 * time.Minute), now.Add(time.Hour)} {
		if _, err := s.Tickets.Redeem(t.Context(), secret, "https://anywhere.example", now); !errors.Is(err, ErrExpired) {
			t.Errorf("too late: %v", err)
		}
	}
	if _, err := s.Tickets.Redeem(t.Context(), secret, "https://anywhere.example", now); err != nil {
		t.Errorf("for any origin: %v", err)
	}
}

// testClientSecrets: a client secret opens sessions until it expires, from its pages only, and is not a ticket, nor a
// ticket a client secret.
func testClientSecrets(t *testing.T, s *Store) {
	want, now := ticket(t), time.Now()
	want.ClientSecret = &ClientSecret{Model: "m", Session: []byte(`{"instructions":"Sing."}`), LockInstructions: true}
	want.ExpiresAt = now.Add(2 * time.Hour)
	secret := create(t, s, want)
	if !strings.HasPrefix(secret, SecretPrefix) || len(secret) < 50 {
		t.Errorf("the secret is %q", secret)
	}
	stored, err := s.Tickets.bucket.get(t.Context(), keyOf(secret))
	if err != nil || strings.Contains(string(stored.data), strings.TrimPrefix(secret, SecretPrefix)) {
		t.Errorf("the secret is in the store: %v", err)
	}
	want.Origin, want.ExpiresAt = "https://example.org", want.ExpiresAt.UTC()
	for range 3 {
		got, err := s.Tickets.Secret(t.Context(), secret, "https://example.org", now)
		if err != nil {
			t.Fatal(err)
		}
		want.ExpiresAt = got.ExpiresAt // without the monotonic clock
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	if _, err := s.Tickets.Secret(t.Context(), secret, "https://evil.example", now); !errors.Is(err, ErrOrigin) {
		t.Errorf("from another page: %v", err)
	}
	if _, err := s.Tickets.Secret(t.Context(), secret, "https://example.org", now.Add(2*time.Hour)); !errors.Is(err, ErrExpired) {
		t.Errorf("too late: %v", err)
	}
	if got, err := s.Tickets.Redeem(t.Context(), secret, "https://example.org", now); !errors.Is(err, ErrUnknown) || got.User != "" {
		t.Errorf("as a ticket: %+v, %v", got, err)
	}
	if got, err := s.Tickets.Secret(t.Context(), create(t, s, ticket(t)), "https://example.org", now); !errors.Is(err, ErrUnknown) || got.User != "" {
		t.Errorf("a ticket as a client secret: %+v, %v", got, err)
	}
	if _, err := s.Tickets.Secret(t.Context(), secret+"x", "", now); !errors.Is(err, ErrUnknown) {
		t.Errorf("a guess: %v", err)
	}
}

func testTicketRace(t *testing.T, s *Store) {
	for range 3 {
		secret := create(t, s, ticket(t))
		var won atomic.Int32
		racers(64, func(int) {
			switch _, err := s.Tickets.Redeem(t.Context(), secret, "https://example.org", time.Now()); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, ErrUsed):
				t.Error(err)
			}
		})
		if won.Load() != 1 {
			t.Errorf("%d of 64 were accepted", won.Load())
		}
	}
}

func testTicketRefused(t *testing.T, s *Store) {
	for name, spoil := range map[string]func(*Ticket){
		"session": func(k *Ticket) { k.SessionID = "" },
		"user":    func(k *Ticket) { k.User = "" },
		"origin":  func(k *Ticket) { k.Origin = "example.org" },
		"path":    func(k *Ticket) { k.Origin = "https://example.org/page" },
		"end":     func(k *Ticket) { k.ExpiresAt = time.Now().Add(-time.Second) },
	} {
		k := ticket(t)
		spoil(&k)
		if _, err := s.Tickets.Create(t.Context(), k); err == nil || errors.Is(err, ErrUnavailable) {
			t.Errorf("without its %s: %v", name, err)
		}
	}
	if _, err := s.Tickets.Create(t.Context(), ticket(t)); err != nil {
		t.Fatal(err)
	}
	all := s.Tickets.most
	defer func() { s.Tickets.most = all }()
	s.Tickets.most = 1
	if _, err := s.Tickets.Create(t.Context(), ticket(t)); !errors.Is(err, ErrFull) || errors.Is(err, ErrUnavailable) {
		t.Errorf("one beyond the limit: %v", err)
	}
}

func offer(t *testing.T, s *Store, r Ticket) Offer {
	t.Helper()
	o, err := s.VoiceSessions.Offer(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// testVoiceSessions: a conversation has one voice session at a time, and only its last ticket is valid.
func testVoiceSessions(t *testing.T, s *Store) {
	v, r := s.VoiceSessions, Ticket{
		User: "ada", Conversation: talkID(t, "c"), Agent: "default", PendingRequest: "What is new?", Context: "User: hello",
		Inspect: true, Vouched: true, Scopes: []string{"hr"},
	}
	first, second := offer(t, s, r), offer(t, s, r)
	if !strings.HasPrefix(first.SessionID, "voice-") || first.SessionID == second.SessionID || first.Secret == second.Secret ||
		first.PendingRequest != r.PendingRequest || first.Conversation != r.Conversation {
		t.Errorf("the offers are %+v and %+v", first.SessionID, second.SessionID)
	}
	if _, _, err := v.Redeem(t.Context(), first.Secret, "", time.Now()); !errors.Is(err, ErrUsed) {
		t.Errorf("the replaced ticket: %v", err)
	}
	got, over, err := v.Redeem(t.Context(), second.Secret, "", time.Now())
	if err != nil || got.SessionID != second.SessionID || got.User != "ada" || got.Context != r.Context || got.PendingRequest != r.PendingRequest || !got.Inspect ||
		!got.Vouched || !slices.Equal(got.Scopes, r.Scopes) {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := v.Offer(t.Context(), r); !errors.Is(err, ErrVoiceActive) {
		t.Errorf("while it runs: %v", err)
	}
	if _, err := v.Begin(t.Context(), "voice-x", r.User, r.Conversation); !errors.Is(err, ErrVoiceActive) {
		t.Errorf("a second session while it runs: %v", err)
	}
	other := r
	other.User = "bob"
	offer(t, s, other) // the same name, another user's conversation
	over.Release()
	over.Release()
	third := offer(t, s, r)
	over, err = v.Begin(t.Context(), "voice-x", r.User, r.Conversation)
	if err != nil {
		t.Fatal(err)
	}
	defer over.Release()
	if _, _, err := v.Redeem(t.Context(), third.Secret, "", time.Now()); !errors.Is(err, ErrBusy) {
		t.Errorf("a ticket from before another session: %v", err)
	}
	for _, r := range []Ticket{{}, {User: strings.Repeat("x", 300)}, {User: "a", Conversation: strings.Repeat("x", 300)}} {
		if _, err := v.Offer(t.Context(), r); !errors.Is(err, ErrUser) {
			t.Errorf("for an invalid user: %v", err)
		}
	}
	if _, err := v.Offer(t.Context(), Ticket{User: "ada", Origin: "nowhere"}); err == nil {
		t.Error("an invalid origin is accepted")
	}
}

// testVoiceRace: with many tickets and clients of one conversation, one session runs.
func testVoiceRace(t *testing.T, s *Store) {
	v, r := s.VoiceSessions, Ticket{User: "ada", Conversation: talkID(t, "c")}
	o := offer(t, s, r)
	var won atomic.Int32
	racers(32, func(i int) {
		var over *Lease
		var err error
		if i%2 == 0 {
			_, over, err = v.Redeem(t.Context(), o.Secret, "", time.Now())
		} else {
			over, err = v.Begin(t.Context(), fmt.Sprint("voice-", i), r.User, r.Conversation)
		}
		switch {
		case err == nil:
			won.Add(1)
			t.Cleanup(over.Release)
		case !errors.Is(err, ErrUsed) && !errors.Is(err, ErrVoiceActive):
			t.Error(err)
		}
	})
	if won.Load() != 1 {
		t.Errorf("%d sessions run", won.Load())
	}
}

// TestCleanOrigin: the forms of one origin are equal, and an invalid one is refused.
func TestCleanOrigin(t *testing.T) {
	for origin, want := range map[string]string{
		"": "", "https://example.org": "https://example.org", "HTTPS://Example.ORG/": "https://example.org",
		"https://example.org:443": "https://example.org", "http://localhost:80": "http://localhost",
		"http://localhost:443": "http://localhost:443", "http://[::1]:8080": "http://[::1]:8080",
	} {
		if got, ok := CleanOrigin(origin); !ok || got != want {
			t.Errorf("%q is %q, %t", origin, got, ok)
		}
	}
	for _, origin := range []string{"null", "example.org", "file:///x", "https://", "https://a/b", "https://u@a", "https://a?b", "https://a#b", "https://:80", "\x00"} {
		if got, ok := CleanOrigin(origin); ok {
			t.Errorf("%q is %q", origin, got)
		}
	}
}

// testReplacedTicket: a replaced ticket opens nothing, even after the newer one's session.
func testReplacedTicket(t *testing.T, s *Store) {
	v, r := s.VoiceSessions, Ticket{User: "ada", Conversation: talkID(t, "c")}
	first, second := offer(t, s, r), offer(t, s, r)
	_, over, err := v.Redeem(t.Context(), second.Secret, "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	over.Release()
	if _, _, err := v.Redeem(t.Context(), first.Secret, "", time.Now()); !errors.Is(err, ErrUsed) {
		t.Errorf("the replaced ticket: %v", err)
	}
}
