package openai

import (
	"testing"

	"voicegw/transport"
)

// TestRefusedUpdate: a refused update is answered once, with the reason, and is not a Problem; the next one is confirmed by
// its own session.updated.
func TestRefusedUpdate(t *testing.T) {
	s := newServer(t)
	conn, p := s.connect(transport.Setup{})
	send(t, conn, transport.Reconfigure{Instructions: "one"})
	send(t, conn, transport.Reconfigure{Instructions: "two"})
	first := p.expect("session.update")
	p.expect("session.update")
	p.send(`{"type":"error","event_id":"e","error":{"type":"invalid_request_error","code":"invalid_value","message":"no","param":"session.tools","event_id":%q}}`, first["event_id"])
	p.send(`{"type":"session.updated","event_id":"e","session":{"type":"realtime"}}`)
	p.send(`{"type":"session.updated","event_id":"e","session":{"type":"realtime"}}`) // answers no update
	p.Begin()
	p.Finish()
	ev := recvAs[transport.Reconfigured](t, conn)
	if ev.Err == nil || ev.Err.Kind != transport.KindRefused || ev.Err.Code != "invalid_value" {
		t.Errorf("the refusal was reported as %+v", ev)
	}
	if ev := recv(t, conn); ev != (transport.Reconfigured{}) {
		t.Errorf("the second update was answered with %T %+v", ev, ev)
	}
	if _, ok := recv(t, conn).(transport.ResponseStarted); !ok {
		t.Error("a session.updated without an update was reported")
	}
}

// TestUpdatesAreBounded: a provider that confirms nothing does not fill the memory.
func TestUpdatesAreBounded(t *testing.T) {
	c := &conn{}
	for range 3 * maxUpdates {
		c.expectUpdate(c.eventID(opUpdate))
	}
	if len(c.updates) != maxUpdates || !c.updateRefused("update_48") || c.updateRefused("update_1") {
		t.Errorf("%d updates wait: %q", len(c.updates), c.updates)
	}
}

// TestDialectsOfUpdates: today's API requires a type in each update; other services may not keep the settings that an
// update leaves out, and get a new connection instead.
func TestDialectsOfUpdates(t *testing.T) {
	for address, live := range map[string]bool{
		"https://api.openai.com/v1": true, "https://r.openai.azure.com/openai/v1": true,
		"https://r.services.ai.azure.com/voice-live": false, "https://api.x.ai/v1": false,
	} {
		tr, err := New(transport.Provider{APIKey: secret, BaseURL: address, Model: "gpt-realtime"})
		if err != nil {
			t.Fatal(err)
		}
		if got := tr.Capabilities("").Reconfigure == transport.ReconfigureLive; got != live {
			t.Errorf("%s: live is %v, want %v", address, got, live)
		}
	}
}

// TestAddedItemsHaveNamesOfTheirOwn: no added item has the id of another one or of the history.
func TestAddedItemsHaveNamesOfTheirOwn(t *testing.T) {
	s := newServer(t)
	s.Remember(1)
	conn, p := s.connect(transport.Setup{History: []transport.Past{transport.PastUser{Text: "before"}}})
	seen := map[any]bool{p.past[0]["id"]: true}
	for range 2 {
		send(t, conn, transport.AddItem{Item: transport.PastNote{Text: "now"}})
		m := p.expect("conversation.item.create")
		item := m["item"].(map[string]any)
		if seen[item["id"]] || m["previous_item_id"] != nil {
			t.Errorf("the item is %v after %v", item["id"], m["previous_item_id"])
		}
		seen[item["id"]] = true
	}
	p.quiet(conn)
}
