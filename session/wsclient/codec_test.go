package wsclient

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestClientMessagesRoundTrip: what a client encodes, the gateway reads.
func TestClientMessagesRoundTrip(t *testing.T) {
	for _, m := range []ClientMessage{
		&Start{InputRate: 48000, OutputRate: 24000, Provider: "gemini", TurnDetection: "client", PendingRequest: "book it",
			Resume: &Resume{SessionID: "s", Token: "t", LastSeq: 7}, Client: &ClientInfo{Name: "n", Version: "1"}},
		&InputText{Text: "hello", ID: "x"}, &InputActivity{Active: true}, &Interrupt{},
		&Playback{ItemID: "a", PlayedMS: 120, Done: true}, &ConfirmationResolve{Token: "t", Approved: true}, &End{}, &Ping{T: 1.5},
	} {
		text, err := EncodeClient(m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseClient(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := cmp.Diff(m, got); diff != "" {
			t.Errorf("%s came back otherwise (-want +got):\n%s", text, diff)
		}
	}
}

// TestServerMessagesRoundTrip: what the gateway encodes, a client reads.
func TestServerMessagesRoundTrip(t *testing.T) {
	at := Time{time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)}
	for _, m := range []ServerMessage{
		&SessionStarted{SessionID: "s", Provider: "gemini", Model: "m", InputRate: 16000, OutputRate: 24000, ExpiresAt: at},
		&AudioStart{Header: Header{Turn: 2}, ItemID: "a"}, &AudioEnd{ItemID: "a", AudioMS: 5}, &AudioFlush{ItemID: "a", Reason: "user_speech"},
		&SpeechStarted{AudioMS: 1}, &SpeechStopped{AudioMS: 2}, &Transcript{ID: "t", Role: "user", Text: "hi", Final: true, StartedAt: at},
		&TurnStarted{Header{Turn: 1}}, &TurnEnded{Status: "completed", Latency: &Latency{1, 2, 3}}, &ToolStarted{CallID: "c", Tool: "t"},
		&ToolEnded{CallID: "c", Tool: "t", Error: json.RawMessage(`{"type":"NOT_FOUND"}`)}, &Timeout{TimeoutUntil: 1, DurationSeconds: 2, Message: "m"}, &SessionEnding{Reason: "r", AfterMS: 3},
		&SessionEnded{Reason: "r"}, &Error{Code: "c", Message: "m", Retryable: true, Ref: "f", Until: Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC)}}, &Pong{T: 3},
	} {
		text, err := EncodeServer(9, m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseServer(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := cmp.Diff(m, got); diff != "" || m.header().Seq != 9 || m.header().Type == "" {
			t.Errorf("%s came back otherwise (-want +got):\n%s", text, diff)
		}
	}
}

// TestTimesAreUTCWithMilliseconds pins the form of product times.
func TestTimesAreUTCWithMilliseconds(t *testing.T) {
	zone := time.FixedZone("x", 3600)
	text, err := json.Marshal(Time{time.Date(2026, 1, 2, 3, 4, 5, 6e6, zone)})
	if err != nil || string(text) != `"2026-01-02T02:04:05.006Z"` {
		t.Errorf("%s, %v", text, err)
	}
}

// TestUnknownServerMessage: a newer gateway does not break an older client.
func TestUnknownServerMessage(t *testing.T) {
	m, err := ParseServer([]byte(`{"type":"new.thing","seq":4,"x":1}`))
	u, ok := m.(*Unknown)
	if err != nil || !ok || u.Type != "new.thing" || u.Seq != 4 || !strings.Contains(string(u.Raw), `"x":1`) {
		t.Errorf("%#v, %v", m, err)
	}
}

// TestWrongShapesNameTheField: the author of a client learns what to mend.
func TestWrongShapesNameTheField(t *testing.T) {
	for _, tc := range []struct{ text, field, word string }{
		{`{"type":7}`, "type", "string"},
		{`{"type":"playback","item_id":"a","played_ms":"1"}`, "played_ms", "whole number"},
		{`{"type":"playback","item_id":"a","played_ms":-1}`, "played_ms", "negative"},
		{`{"type":"playback"}`, "item_id", "missing"},
		{`{"type":"input.activity","active":"yes"}`, "active", "true or false"},
		{`{"type":"session.start","input_rate":1,"output_rate":24000}`, "input_rate", "8000"},
		{`{"type":"session.start","input_rate":16000,"output_rate":24000,"client":{"name":1}}`, "client.name", "string"},
		{`{"type":"session.start","input_rate":16000,"output_rate":24000,"turn_detection":"x"}`, "turn_detection", "server"},
		{`{"type":"input.text","text":"` + strings.Repeat("a", MaxTextChars+1) + `"}`, "text", "8000"},
		{"{\"type\":\"\xff\"}", "", "UTF-8"},
	} {
		_, err := ParseClient([]byte(tc.text))
		var bad *MessageError
		if !errors.As(err, &bad) || bad.Field != tc.field || !strings.Contains(bad.Message, tc.word) {
			t.Errorf("%.60s: %+v", tc.text, err)
		}
	}
}

// FuzzParseClient: no input panics, and what is refused is refused in words.
func FuzzParseClient(f *testing.F) {
	f.Add([]byte(`{"type":"session.start","input_rate":16000,"output_rate":24000}`))
	f.Add([]byte(`{"type":"input.text","text":"hi"}`))
	f.Add([]byte(`{"type":"playback","item_id":"a","played_ms":1e3}`))
	f.Add([]byte(`[{"type":null}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseClient(data)
		var bad *MessageError
		if err != nil && (!errors.As(err, &bad) || bad.Message == "" || bad.Code == "") {
			t.Fatalf("refused without words: %v", err)
		}
		if err != nil {
			return
		}
		text, err := EncodeClient(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseClient(text); err != nil {
			t.Fatalf("what was read cannot be read again: %s: %v", text, err)
		}
	})
}

// FuzzParseServer: no input panics a client.
func FuzzParseServer(f *testing.F) {
	f.Add([]byte(`{"type":"turn.ended","seq":1,"usage":{"input":{"text":1}}}`))
	f.Add([]byte(`{"type":"transcript","started_at":"2026-01-02T03:04:05Z"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseServer(data)
		if (m == nil) == (err == nil) {
			t.Fatalf("%v and %v", m, err)
		}
	})
}
