package transport_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"voicegw/transport"
)

// testReconfigure changes instructions and tools twice, the second time to nothing. Each change reaches the provider
// complete, before later commands, and is confirmed once. A model without this capability gets nothing.
func testReconfigure(t *testing.T, h Harness) {
	conn, peer := h.connect(t)
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)
	for _, change := range []transport.Reconfigure{
		{Instructions: "Be \"long\".", Tools: []transport.Tool{{Name: "third_tool", Description: "The third.",
			Parameters: schema, NonBlocking: true}, {Name: "first_tool", Parameters: schema}}},
		{},
	} {
		send(t, conn, change)
		send(t, conn, &transport.AudioIn{PCM: tone(1, 160)})
		if conn.Info().Capabilities.Reconfigure == transport.ReconfigureLive {
			checkChange(t, conn, peer, change)
		}
		if got := peer.NextAudio(); len(got) != 320 {
			t.Errorf("the provider got %d bytes of audio after the change, want 320", len(got))
		}
	}
	peer.Begin()
	peer.Say("Hello.", tone(1, 480))
	peer.Finish()
	events := untilDone(t, conn, 1)
	checkResponses(t, events, transport.ResponseCompleted)
	if more := only[transport.Reconfigured](events); len(more) > 0 {
		t.Errorf("confirmed again: %v", more)
	}
}

func checkChange(t *testing.T, conn *transport.Listener, peer Peer, want transport.Reconfigure) {
	t.Helper()
	var names []string
	for _, tool := range want.Tools {
		names = append(names, tool.Name)
	}
	instructions, tools := peer.NextReconfigure()
	if instructions != want.Instructions || !slices.Equal(tools, names) {
		t.Errorf("the provider got %q and the tools %q, want %q and %q", instructions, tools, want.Instructions, names)
	}
	if ev, ok := recv(t, conn).(transport.Reconfigured); !ok || ev.Err != nil {
		t.Errorf("the change was answered with %T %+v", ev, ev)
	}
}

// testAddItem adds an entry of each kind with words: the provider gets it without a request for an answer. A model
// without this capability gets nothing.
func testAddItem(t *testing.T, h Harness) {
	conn, peer := h.connect(t)
	form := conn.Info().Capabilities.AddItem
	for _, add := range []struct {
		item transport.Past
		want Remembered
	}{
		{transport.PastNote{Text: "The user looks at page 7."}, Remembered{"system", "page 7"}},
		{transport.PastUser{Text: "I am \"here\"."}, Remembered{"user", `"here"`}},
		{transport.PastAssistant{Text: "Good."}, Remembered{"assistant", "Good."}},
	} {
		send(t, conn, transport.AddItem{Item: add.item})
		if form == transport.AddItemNone {
			continue
		}
		want := add.want
		if conn.Info().Capabilities.History == transport.HistoryContent && want.Role == "system" {
			want.Role = "user"
		}
		if got := peer.NextItem(); got.Role != want.Role || !strings.Contains(got.Text, want.Text) {
			t.Errorf("the provider got %+v, want %+v", got, want)
		}
	}
	send(t, conn, &transport.AudioIn{PCM: tone(1, 160)})
	if got := peer.NextAudio(); len(got) != 320 {
		t.Errorf("the provider got %d bytes of audio after the entries, want 320", len(got))
	}
}
