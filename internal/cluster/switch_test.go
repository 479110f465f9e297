package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"voicegw/session"
	"voicegw/store"
)

// TestSwitchAgent: a node switches the agent of a session of another one, and learns the reason of a failure.
func TestSwitchAgent(t *testing.T) {
	var asked []string
	p, err := New(Options{Secret: testSecret, Switch: func(id, agent, reason string) error {
		asked = append(asked, id+" "+agent+" "+reason)
		switch id {
		case "voice-1/a b":
			return nil
		case "voice-2":
			return fmt.Errorf("%w: it is asleep", session.ErrAgent)
		}
		return session.ErrNotHere
	}})
	if err != nil {
		t.Fatal(err)
	}
	at := store.Node{URL: serve(t, p.Handler())}
	for id, want := range map[string]error{"voice-1/a b": nil, "voice-2": session.ErrAgent, "voice-3": store.ErrUnknown} {
		err := p.SwitchAgent(t.Context(), at, id, "billing", "../? &é")
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", id, err, want)
		}
		if want == session.ErrAgent && !strings.HasSuffix(err.Error(), ": it is asleep") {
			t.Errorf("the reason is %v", err)
		}
	}
	slices.Sort(asked)
	if want := []string{"voice-1/a b billing ../? &é", "voice-2 billing ../? &é", "voice-3 billing ../? &é"}; !slices.Equal(asked, want) {
		t.Errorf("the node was asked for %q, want %q", asked, want)
	}
	if err := p.SwitchAgent(t.Context(), store.Node{URL: "http://127.0.0.1:1"}, "voice-1", "billing", ""); !errors.Is(err, ErrUnreachable) {
		t.Errorf("no listener: %v", err)
	}
}

// FuzzParseWanted: the parsed request is the written one.
func FuzzParseWanted(f *testing.F) {
	f.Add(wanted{"billing", "a bill"}.encode())
	f.Add("e30")
	f.Fuzz(func(t *testing.T, text string) {
		w, err := parseWanted(text)
		if err != nil {
			return
		}
		if again, err := parseWanted(w.encode()); err != nil || again != w {
			t.Errorf("%q is read as %+v, then as %+v, %v", text, w, again, err)
		}
	})
}
