package transport_test

import (
	"encoding/json"
	"strings"
	"testing"

	"voicegw/transport"
)

// testHistory opens a connection with a history: the provider gets the entries in order, each with its words and role,
// before any audio.
func testHistory(t *testing.T, h Harness) {
	p := h.Start(t)
	tr := p.Transport(h.client)
	form := tr.Capabilities("").History
	setup := suiteSetup()
	setup.History = []transport.Past{
		transport.PastNote{Text: "In short: they met."},
		transport.PastUser{Text: "Where is Ada?"},
		transport.PastTool{Name: "first_tool", Args: json.RawMessage(`{"n":7}`),
			Output: json.RawMessage(`{"ok":true,"data":"Vienna"}`), OK: true},
		transport.PastAssistant{Text: "She is in", Interrupted: true},
		transport.PastUser{Text: "Thank you."},
		transport.PastAssistant{Text: "You are \"welcome\"."},
	}
	setup.Reanchor = "Do not greet."
	want := []Remembered{
		{"system", "In short: they met."}, {"user", "Where is Ada?"}, {"tool", "Vienna"},
		{"assistant", "She is in"}, {"user", "Thank you."}, {"assistant", `You are "welcome".`}, {"system", "Do not greet."},
	}
	switch form {
	case transport.HistoryNone:
		want = nil
	case transport.HistoryItems:
		p.Remember(len(want) + 1) // a tool call and its output are two items
	case transport.HistoryContent:
		p.Remember(len(want))
	}
	ctx, cancel := soon()
	defer cancel()
	conn, err := tr.Connect(ctx, setup)
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	defer func() { _ = conn.Close() }()
	heard := transport.Listen(conn)
	peer := p.Accept()
	checkHistory(t, form, peer.History(), want)
	send(t, heard, &transport.AudioIn{PCM: tone(1, 160)})
	if got := peer.NextAudio(); len(got) != 320 {
		t.Errorf("the provider got %d bytes of audio after the history, want 320", len(got))
	}
}

// checkHistory compares the history that a provider has read with the expected one. A model that accepts only
// turns of text gets tool calls and instructions as turns of the user.
func checkHistory(t *testing.T, form transport.HistoryForm, got, want []Remembered) {
	t.Helper()
	for i, w := range want {
		role := w.Role
		if form == transport.HistoryContent && (role == "tool" || role == "system") {
			role = "user"
		}
		entry := oneEntry(form, w.Role, &got)
		if entry.Role != role || !strings.Contains(entry.Text, w.Text) {
			t.Errorf("entry %d of the history is %+v, want %s that says %q", i+1, entry, role, w.Text)
		}
		if w.Role == "tool" && (!strings.Contains(entry.Text, "first_tool") || !strings.Contains(entry.Text, "7")) {
			t.Errorf("the tool call has no name or no arguments: %+v", entry)
		}
	}
	if len(got) > 0 {
		t.Errorf("the history has additional entries: %+v", got)
	}
}

// oneEntry takes the first entry from the list, a call together with its output.
func oneEntry(form transport.HistoryForm, role string, list *[]Remembered) Remembered {
	n := 1
	if form == transport.HistoryItems && role == "tool" {
		n = 2
	}
	if len(*list) < n {
		*list = nil
		return Remembered{}
	}
	entry := (*list)[0]
	for _, more := range (*list)[1:n] {
		entry.Text += " " + more.Text
	}
	*list = (*list)[n:]
	return entry
}
