package transport_test

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/transport"
)

func testInfo(t *testing.T, h Harness) {
	p := h.Start(t)
	conn, _ := h.dial(t, p)
	info, tr := conn.Info(), p.Transport(h.client)
	if info.Provider != tr.Name() || info.Provider == "" {
		t.Errorf("Info.Provider is %q, Name %q", info.Provider, tr.Name())
	}
	if info.InputRate <= 0 || info.OutputRate <= 0 || info.Model == "" {
		t.Errorf("Info is incomplete: %+v", info)
	}
	if _, err := netip.ParseAddrPort(info.LocalAddr); err != nil {
		t.Errorf("Info.LocalAddr is %q: %v", info.LocalAddr, err)
	}
	if diff := cmp.Diff(tr.Capabilities(""), info.Capabilities); diff != "" {
		t.Errorf("Info.Capabilities are not the default model's (-Capabilities +Info):\n%s", diff)
	}
	if info.Capabilities.Source == "" || info.Capabilities.Tools == "" {
		t.Errorf("the row has no source or no ToolWaiting: %+v", info.Capabilities)
	}
	if unknown := tr.Capabilities("some-model-of-the-future"); unknown.Tools == "" {
		t.Errorf("an unknown model has no row: %+v", unknown)
	}
}

// testAudio plays two answers and checks the order of the events of items and responses.
func testAudio(t *testing.T, h Harness) {
	conn, peer := h.connect(t)
	var want []byte
	silence := make([]byte, 4800)
	for turn := range 2 {
		peer.Begin()
		for i := range 4 {
			pcm := tone(turn*10+i, 480*(i+1))
			want = append(want, pcm...)
			peer.Say("word ", pcm)
		}
		peer.Finish()
	}
	events := untilDone(t, conn, 2)
	checkResponses(t, events, transport.ResponseCompleted, transport.ResponseCompleted)
	items := checkItems(t, events)
	if len(items) != 2 || items[0] == items[1] {
		t.Errorf("two answers have the items %q", items)
	}
	var got []byte
	for _, out := range only[*transport.AudioOut](events) {
		if len(out.PCM) == 0 || len(out.PCM)%2 != 0 {
			t.Errorf("an AudioOut of %d bytes", len(out.PCM))
		}
		if !h.Quiet || !bytes.Equal(out.PCM, silence) {
			got = append(got, out.PCM...)
		}
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the audio differs: %d bytes, want %d", len(got), len(want))
	}
}

// checkResponses checks that each response starts and ends once, one after another, with all audio and calls in between.
func checkResponses(t *testing.T, events []transport.Event, want ...transport.ResponseStatus) {
	t.Helper()
	var got []transport.ResponseStatus
	running := ""
	seen := map[string]bool{}
	for _, ev := range events {
		switch ev := ev.(type) {
		case transport.ResponseStarted:
			if running != "" || seen[ev.ID] || ev.ID == "" {
				t.Errorf("ResponseStarted %q while %q runs", ev.ID, running)
			}
			running, seen[ev.ID] = ev.ID, true
		case transport.ResponseDone:
			if ev.ID != running {
				t.Errorf("ResponseDone %q while %q runs", ev.ID, running)
			}
			running = ""
			got = append(got, ev.Status)
		case *transport.AudioOut, transport.ToolCall:
			if running == "" {
				t.Errorf("%T outside a response", ev)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the ends of the responses differ (-want +got):\n%s", diff)
	}
}

// checkItems checks that each item's audio is contiguous and followed by one
// AudioDone, and returns the items in order.
func checkItems(t *testing.T, events []transport.Event) []string {
	t.Helper()
	var items []string
	done := map[string]bool{}
	for _, ev := range events {
		switch ev := ev.(type) {
		case *transport.AudioOut:
			if ev.Item == "" || done[ev.Item] {
				t.Errorf("audio of item %q after its AudioDone", ev.Item)
			}
			if len(items) == 0 || items[len(items)-1] != ev.Item {
				items = append(items, ev.Item)
			}
		case transport.AudioDone:
			if done[ev.Item] {
				t.Errorf("a second AudioDone of %q", ev.Item)
			}
			if len(items) == 0 || items[len(items)-1] != ev.Item {
				t.Errorf("AudioDone of %q, which is not the item that was speaking", ev.Item)
			}
			done[ev.Item] = true
		}
	}
	for _, item := range items {
		if !done[item] {
			t.Errorf("no AudioDone of %q", item)
		}
	}
	return items
}

func testTranscripts(t *testing.T, h Harness) {
	conn, peer := h.connect(t)
	peer.UserSaid(" What", " is", " the time?")
	peer.Begin()
	for i, text := range []string{"It is", " half", " past ni", "ne."} {
		peer.Say(text, tone(i, 480))
	}
	peer.Finish()
	// A user's transcript may become final before the answer or together with it.
	latest := map[transport.Role]transport.Transcript{}
	done := false
	until(t, conn, func(ev transport.Event) bool {
		switch ev := ev.(type) {
		case transport.ResponseDone:
			done = true
		case transport.Transcript:
			before := latest[ev.Role]
			if before.Item != "" && (before.Item != ev.Item || !strings.HasPrefix(ev.Text, before.Text)) {
				t.Errorf("%+v does not continue %+v", ev, before)
			}
			latest[ev.Role] = ev
		}
		return done && latest[transport.RoleUser].Final && latest[transport.RoleAssistant].Final
	})
	for role, want := range map[transport.Role]string{
		transport.RoleUser: " What is the time?", transport.RoleAssistant: "It is half past nine.",
	} {
		if got := latest[role]; strings.TrimSpace(got.Text) != strings.TrimSpace(want) || got.Item == "" {
			t.Errorf("the %s's transcript is %+v, want the text %q", role, got, want)
		}
	}
}

func testInterrupted(t *testing.T, h Harness) {
	conn, peer := h.connect(t)
	peer.Begin()
	peer.Say("A long", tone(1, 480))
	peer.Say(" story", tone(2, 480))
	peer.Interrupt()
	peer.Begin()
	peer.Say("Yes?", tone(3, 480))
	peer.Finish()
	events := untilDone(t, conn, 2)
	first := transport.ResponseInterrupted
	if h.Quiet {
		first = transport.ResponseCompleted
	}
	checkResponses(t, events, first, transport.ResponseCompleted)
	if items := checkItems(t, events); len(items) != 2 {
		t.Errorf("items %q", items)
	}
	want := 0
	if conn.Info().Capabilities.InterruptNotice {
		want = 1
	}
	if n := len(only[transport.Interrupted](events)); n != want {
		t.Errorf("%d Interrupted events, want %d", n, want)
	}
	started := 0
	for _, ev := range events {
		switch ev.(type) {
		case transport.ResponseStarted:
			started++
		case transport.Interrupted:
			if started != 1 {
				t.Errorf("Interrupted came in response %d", started)
			}
		}
	}
}

// testTools calls two tools at once, with a number that float64 would round, and
// answers them in reverse order.
func testTools(t *testing.T, h Harness) {
	conn, peer := h.connect(t)
	asked := []transport.ToolCall{
		{ID: "call_id_0001", Name: "first_tool", Args: json.RawMessage(`{"n":9007199254740993}`)},
		{ID: "call_id_0002", Name: "second_tool", Args: json.RawMessage(`{"n":2}`)},
	}
	peer.Begin()
	peer.CallTools(asked...)
	var calls []transport.ToolCall
	until(t, conn, func(ev transport.Event) bool {
		if call, ok := ev.(transport.ToolCall); ok {
			calls = append(calls, call)
		}
		return len(calls) == len(asked)
	})
	for i, call := range calls {
		if call.ID != asked[i].ID || call.Name != asked[i].Name || string(call.Args) != string(asked[i].Args) {
			t.Errorf("call %d is %+v with %s, want %+v with %s", i, call, call.Args, asked[i], asked[i].Args)
		}
	}
	if calls[0].Call == "" || calls[0].Call == calls[1].Call {
		t.Fatalf("the calls are named %q and %q", calls[0].Call, calls[1].Call)
	}
	output := func(i int) json.RawMessage {
		return json.RawMessage(`{"ok":true,"data":{"tool":"` + calls[i].Name + `","n":9007199254740993}}`)
	}
	if h.Quiet { // its text model gets all results at once, in the order of the calls
		for i := len(calls) - 1; i >= 0; i-- {
			send(t, conn, transport.ToolResult{Call: calls[i].Call, Output: output(i)})
		}
		for i, call := range asked {
			if id, got := peer.NextResult(); id != call.ID || string(got) != string(output(i)) {
				t.Errorf("the result of %s is %s %s, want %s", call.Name, id, got, output(i))
			}
		}
		return
	}
	for i := len(calls) - 1; i >= 0; i-- {
		output := output(i)
		send(t, conn, transport.ToolResult{Call: calls[i].Call, Output: output})
		id, got := peer.NextResult()
		if id != asked[i].ID || string(got) != string(output) {
			t.Errorf("the result of %s was sent as %s %s, want %s", calls[i].Name, id, got, output)
		}
	}
}

func testUplink(t *testing.T, h Harness) {
	conn, peer := h.connect(t)
	in := &transport.AudioIn{}
	var want, got []byte
	for i := range 5 {
		in.PCM = append(in.PCM[:0], tone(i, 160)...)
		want = append(want, in.PCM...)
		send(t, conn, in)
		clear(in.PCM) // PCM belongs to the caller again
	}
	for len(got) < len(want) {
		got = append(got, peer.NextAudio()...)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the provider got %d bytes that differ from the %d sent", len(got), len(want))
	}
}

// testDropped sends commands that a model does not support, or not at this time. They cause no error, and the connection
// continues.
func testDropped(t *testing.T, h Harness) {
	conn, peer := h.connect(t)
	for _, cmd := range []transport.Command{
		transport.ActivityStart{}, transport.ActivityEnd{}, transport.AudioPause{},
		transport.ToolResult{Call: "unknown call", Output: json.RawMessage(`{"ok":true}`)},
	} {
		send(t, conn, cmd)
	}
	send(t, conn, &transport.AudioIn{PCM: tone(1, 160)})
	if got := peer.NextAudio(); !bytes.Equal(got, tone(1, 160)) {
		t.Errorf("the audio after the dropped commands differs")
	}
}

func testUnknown(t *testing.T, h Harness) {
	conn, peer := h.connect(t)
	peer.Unknown()
	peer.Begin()
	peer.Say("Hello.", tone(1, 480))
	peer.Finish()
	checkResponses(t, untilDone(t, conn, 1), transport.ResponseCompleted)
	if s := conn.Stats(); s.UnknownEvents != 1 || s.MalformedEvents != 0 {
		t.Errorf("stats %+v, want one unknown event", s)
	}
}

func testGarbage(t *testing.T, h Harness) {
	conn, peer := h.connect(t)
	peer.Garbage()
	peer.Begin()
	peer.Say("Hello.", tone(1, 480))
	peer.Finish()
	checkResponses(t, untilDone(t, conn, 1), transport.ResponseCompleted)
	if s := conn.Stats(); s.MalformedEvents != 1 || s.UnknownEvents != 0 {
		t.Errorf("stats %+v, want one malformed event", s)
	}
}
