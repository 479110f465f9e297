package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func event(t *testing.T, id string) Webhook {
	return Webhook{ID: key(t, id), Type: "session.started", At: time.Now().UTC().Truncate(time.Millisecond), Body: []byte(`{"a":1}`)}
}

func take(t *testing.T, s *Store, receiver string) Taken {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	taken, err := s.Webhooks.Take(ctx, receiver)
	if err != nil {
		t.Fatal(err)
	}
	return taken
}

func idOf(t Taken) string {
	e, _ := t.Event()
	return e.ID
}

// testWebhooks: an event has one taker at a time, is redelivered if it is released, and is removed when it is done.
func testWebhooks(t *testing.T, s *Store) {
	w := s.Webhooks
	add := func(receiver, id string) {
		t.Helper()
		for range 2 { // after an error the event is added again
			if err := w.Add(t.Context(), receiver, event(t, id)); err != nil {
				t.Fatal(err)
			}
		}
	}
	add("one", "1")
	add("one", "2")
	add("two", "1")
	first, second := take(t, s, "one"), take(t, s, "one")
	is, _ := first.Event()
	other, _ := second.Event()
	if want := event(t, "1"); is.ID != want.ID || is.Type != want.Type || !bytes.Equal(is.Body, want.Body) || time.Since(is.At) > time.Minute || other.ID != key(t, "2") {
		t.Errorf("%+v and %+v", is, other)
	}
	if n, err := w.Waiting(t.Context(), "one"); n != 2 || err != nil {
		t.Errorf("%d wait, %v", n, err)
	}
	if err := first.Later(t.Context(), 10*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if err := second.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	back := take(t, s, "one")
	if e, tries := back.Event(); e.ID != is.ID || tries != 2 {
		t.Errorf("the released event: %+v", back)
	}
	if err := back.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if left, err := w.Take(ctx, "one"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an event in an empty queue: %+v, %v", left, err)
	}
	if n, err := w.Waiting(t.Context(), "one"); n != 0 || err != nil {
		t.Errorf("%d wait, %v", n, err)
	}
	if taken := take(t, s, "two"); idOf(taken) != key(t, "1") || taken.Done(t.Context()) != nil {
		t.Errorf("%+v", taken)
	}
	// The server does not know the consumer: it has lost it, or, in a cluster, has not received it yet.
	if err := w.stream.DeleteConsumer(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	add("one", "3")
	if taken := take(t, s, "one"); idOf(taken) != key(t, "3") || taken.Done(t.Context()) != nil {
		t.Errorf("%+v", taken)
	}
	for name, wrong := range map[string]Webhook{"no.name": event(t, "x"), "empty": {}, "big": {ID: "x", Type: "t", At: time.Now(), Body: bytes.Repeat([]byte("x"), mostWebhook)}} {
		if err := w.Add(t.Context(), name, wrong); err == nil || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrTooBig) != (name == "big") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := w.Take(t.Context(), "a*"); err == nil {
		t.Error("a name without a webhook")
	}
}

// TestWebhooksAreBounded: a receiver that takes nothing does not block others.
func TestWebhooksAreBounded(t *testing.T) {
	s := openTest(t, Options{Memory: true})
	w := s.Webhooks
	var err error
	for i := range mostWebhooks + 1 {
		if err = w.Add(t.Context(), "dead", event(t, fmt.Sprint(i))); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrFull) || errors.Is(err, ErrUnavailable) {
		t.Errorf("one too many: %v", err)
	}
	if err := w.Add(t.Context(), "alive", event(t, "1")); err != nil {
		t.Errorf("another receiver: %v", err)
	}
}

// TestWebhooksOutliveTheProcess: an unfinished event is there after a restart, even if it was taken, and new events
// arrive after a time without any.
func TestWebhooksOutliveTheProcess(t *testing.T) {
	dir := t.TempDir()
	for round := range 3 {
		s := openTest(t, Options{Dir: dir})
		w := s.Webhooks
		if round > 0 {
			for range 2 {
				taken := take(t, s, "one")
				if !strings.HasSuffix(idOf(taken), fmt.Sprint(round-1)) {
					t.Errorf("round %d: %s", round, idOf(taken))
				}
				if err := taken.Done(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, kind := range []string{"taken", "waits"} {
			if err := w.Add(t.Context(), "one", event(t, fmt.Sprint(kind, round))); err != nil {
				t.Fatal(err)
			}
		}
		take(t, s, "one") // without finishing it
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := openTest(t, Options{Dir: dir})
	for range 2 {
		if err := take(t, s, "one").Done(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// The stream is empty now, and its index is rebuilt at the start.
	s = openTest(t, Options{Dir: dir})
	if err := s.Webhooks.Add(t.Context(), "one", event(t, "last")); err != nil {
		t.Fatal(err)
	}
	if taken := take(t, s, "one"); !strings.HasSuffix(idOf(taken), "last") {
		t.Errorf("%s", idOf(taken))
	}
}
