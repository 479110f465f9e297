package cluster

import (
	"errors"
	"testing"
	"time"

	"voicegw/internal/cost"
	"voicegw/orchestrator"
	"voicegw/session"
	"voicegw/store"
)

// TestSession: a node sends another one the description of its session.
func TestSession(t *testing.T) {
	want := session.Running{
		ID: "voice-1", User: "ada", Agent: "default", Provider: "openai", Model: "m", StartedAt: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC),
		Turn: 3, Phase: orchestrator.PhaseActive, Away: true, Cost: cost.Amount{Micros: 7},
	}
	p, err := New(Options{Secret: testSecret, Session: func(id string) (session.Running, bool) { return want, id == want.ID }})
	if err != nil {
		t.Fatal(err)
	}
	at := store.Node{URL: serve(t, p.Handler())}
	if got, err := p.Session(t.Context(), at, want.ID); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := p.Session(t.Context(), at, "voice-2"); !errors.Is(err, store.ErrUnknown) {
		t.Errorf("a session that does not run there: %v", err)
	}
}

// FuzzParseRunning: any message of a node is the requested session, or is refused.
func FuzzParseRunning(f *testing.F) {
	f.Add([]byte(`{"ID":"voice-1","Turn":3,"Phase":"active"}`))
	f.Add([]byte(`{"ID":"voice-2"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		found, err := parseRunning(body, "voice-1")
		if err != nil && !errors.Is(err, ErrRefused) || err == nil && found.ID != "voice-1" {
			t.Errorf("%q: %+v, %v", body, found, err)
		}
	})
}
