package gemini

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/transport"
)

func TestUpdatesOnTheWire(t *testing.T) {
	update := transport.Reconfigure{Instructions: "Be kind.", Tools: []transport.Tool{{Name: "a", NonBlocking: true}, {Name: "b"}}}
	item := transport.AddItem{Item: transport.PastTool{Name: "a", Args: []byte(`{}`), Output: []byte(`1`), OK: true}}
	for model, want := range map[string][]string{
		model25: {``, ``, `{"clientContent":{"turns":[{"role":"user","parts":[{"text":"[tool a {} -\u003e 1]"}]}],"turnComplete":false}}`},
		model31: {``, ``, ``},
		"gemini-3.8-live": {
			`{"contextUpdate":{"systemInstruction":{"parts":[{"text":"Be kind."}],"role":"user"},"tools":{"tools":[{"functionDeclarations":[{"name":"a","behavior":"NON_BLOCKING"},{"name":"b","behavior":"BLOCKING"}]}]}}}`,
			`{"contextUpdate":{"systemInstruction":{},"tools":{}}}`,
			`{"clientContent":{"turns":[{"role":"user","parts":[{"text":"[tool a {} -\u003e 1]"}]}],"turnComplete":false}}`,
		},
	} {
		if diff := cmp.Diff(want, sentBy(t, offline(t, model), update, transport.Reconfigure{}, item)); diff != "" {
			t.Errorf("%s: messages differ (-want +got):\n%s", model, diff)
		}
	}
}

// TestAddedWhileACallWaits: 2.5 closes on client content during a call, so it is held until the result.
func TestAddedWhileACallWaits(t *testing.T) {
	c := offline(t, model25)
	c.calls.add("id", "a", 1, true)
	if sent := sentBy(t, c, transport.AddItem{Item: transport.PastNote{Text: "page 7"}}); sent[0] != "" {
		t.Errorf("sent at once: %s", sent)
	}
	if c.typed.asks || len(c.typed.turns) != 1 {
		t.Errorf("held is %+v", c.typed.turns)
	}
	sentBy(t, c, transport.UserText{Text: "And?"})
	if !c.typed.asks || len(c.typed.turns) != 2 {
		t.Errorf("held is %+v", c.typed.turns)
	}
}

// TestBehaviourAfterAnUpdate: a call gets the latest behaviour of its tool, even if the model made it before it knew the
// update.
func TestBehaviourAfterAnUpdate(t *testing.T) {
	p := newProvider(t)
	opts := p.options()
	opts.Model = "gemini-3.8-live"
	opened, _ := p.connectWith(opts, transport.Setup{Tools: []transport.Tool{{Name: "old", NonBlocking: true}, {Name: "both", NonBlocking: true}}})
	send := func(tools ...transport.Tool) map[string]bool {
		if err := opened.Send(t.Context(), transport.Reconfigure{Tools: tools}); err != nil {
			t.Fatal(err)
		}
		if ev, err := opened.Recv(t.Context()); err != nil || ev != (transport.Reconfigured{}) {
			t.Errorf("the update was answered with %T %v", ev, err)
		}
		return *opened.Conn.(*conn).async.Load()
	}
	if diff := cmp.Diff(map[string]bool{"old": true, "new": true}, send(transport.Tool{Name: "both"}, transport.Tool{Name: "new", NonBlocking: true})); diff != "" {
		t.Errorf("after the first update (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"new": true}, send()); diff != "" {
		t.Errorf("after the second update (-want +got):\n%s", diff)
	}
}
