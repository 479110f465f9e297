package cluster

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/session"
	"voicegw/store"
	"voicegw/transport"
)

// TestPrompt: a node sends another one the prompt of its session, of any length, or the reason of a failure.
func TestPrompt(t *testing.T) {
	want := session.Prompt{Agent: "billing", Provider: "openai", Instructions: strings.Repeat("You are billing. ", 10_000), Tools: []transport.Tool{{Name: "kb_search", Description: "Searches.", Parameters: json.RawMessage(`{"type":"object"}`)}}}
	p, err := New(Options{Secret: testSecret, Prompt: func(id string) (session.Prompt, error) {
		switch id {
		case "voice-1/a b":
			return want, nil
		case "voice-2":
			return session.Prompt{}, session.ErrNoModel
		}
		return session.Prompt{}, session.ErrNotHere
	}})
	if err != nil {
		t.Fatal(err)
	}
	at := store.Node{URL: serve(t, p.Handler())}
	for id, why := range map[string]error{"voice-1/a b": nil, "voice-2": session.ErrNoModel, "voice-3": store.ErrUnknown} {
		got, err := p.Prompt(t.Context(), at, id)
		if !errors.Is(err, why) {
			t.Errorf("%s: %v, want %v", id, err, why)
		}
		if diff := cmp.Diff(want, got); why == nil && diff != "" {
			t.Errorf("%s: %s", id, diff)
		}
	}
	if _, err := p.Prompt(t.Context(), store.Node{URL: "http://127.0.0.1:1"}, "voice-1"); !errors.Is(err, ErrUnreachable) {
		t.Errorf("no listener: %v", err)
	}
	other, err := New(Options{Secret: []byte(strings.Repeat("x", MinSecret))})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Prompt(t.Context(), at, "voice-1/a b"); !errors.Is(err, ErrRefused) {
		t.Errorf("a node without the secret: %v", err)
	}
}

// FuzzParsePrompt: any message of a node is a prompt, or is refused.
func FuzzParsePrompt(f *testing.F) {
	f.Add([]byte(`{"Agent":"billing","Tools":[{"Name":"kb_search","Parameters":{}}]}`))
	f.Add([]byte(`{"Tools":1}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		found, err := parsePrompt(body)
		if err != nil {
			if !errors.Is(err, ErrRefused) {
				t.Errorf("%q: %v", body, err)
			}
			return
		}
		again, err := json.Marshal(found)
		if err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		if _, err := parsePrompt(again); err != nil {
			t.Errorf("%q: %v", again, err)
		}
	})
}
