package protocol

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestClientMessagesRoundTrip: the gateway can read all messages that a client encodes.
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
			t.Errorf("%s differs after a round trip (-want +got):\n%s", text, diff)
		}
	}
}

// TestServerMessagesRoundTrip: a client can read all messages that the gateway encodes.
func TestServerMessagesRoundTrip(t *testing.T) {
	at := Time{time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)}
	for _, m := range []ServerMessage{
		&SessionStarted{SessionID: "s", Provider: "gemini", Model: "m", InputRate: 16000, OutputRate: 24000, ExpiresAt: at},
		&AudioStart{Header: Header{Turn: 2}, ItemID: "a"}, &AudioEnd{ItemID: "a", AudioMS: 5}, &AudioFlush{ItemID: "a", Reason: "user_speech"},
		&SpeechStarted{AudioMS: 1}, &SpeechStopped{AudioMS: 2}, &Transcript{ID: "t", Role: "user", Text: "hi", Final: true, StartedAt: at},
		&TurnStarted{Header: Header{Turn: 1}}, &TurnEnded{Status: "completed", Latency: &Latency{1, 2, 3, 4}}, &ToolStarted{CallID: "c", Tool: "t"},
		&ToolProgress{Header: Header{Turn: 3}, CallID: "c", Tool: "t", Category: "retrieval", DurationMS: 1500},
		&JobProgress{JobID: "job-1", Tool: "t", Name: "n", Text: "half", Fraction: new(0.5)},
		&ToolMessage{Header: Header{Turn: 3}, CallID: "c", Tool: "t", Name: "n", Data: json.RawMessage(`[1]`)},
		&ConfirmationRequest{Header: Header{Turn: 3}, Token: "cf", Tool: "t", Args: json.RawMessage(`{"a":1}`), Preview: "Do it", ExpiresAt: at},
		&ConfirmationEnded{Header: Header{Turn: 3}, Token: "cf", Tool: "t", Outcome: "approved"},
		&ToolEnded{CallID: "c", Tool: "t", Error: json.RawMessage(`{"type":"NOT_FOUND"}`), Deduplicated: true, Clamped: json.RawMessage(`{"top_k":{"requested":10,"applied":3}}`)}, &Timeout{TimeoutUntil: 1, DurationSeconds: 2, Message: "m"}, &SessionEnding{Reason: "r", AfterMS: 3},
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
			t.Errorf("%s differs after a round trip (-want +got):\n%s", text, diff)
		}
		for _, seq := range []int64{3, 123456} {
			want, err := EncodeServer(seq, m)
			if text = Renumber(text, seq); err != nil || string(text) != string(want) {
				t.Errorf("with another seq: %s, want %s (%v)", text, want, err)
			}
		}
	}
}

// TestToolMessagesOnTheWire pins the fields of the messages about tools, and their order.
func TestToolMessagesOnTheWire(t *testing.T) {
	at := Time{time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)}
	for _, tc := range []struct {
		m    ServerMessage
		want string
	}{
		{&ToolProgress{Header: Header{Turn: 3}, CallID: "call_1", Tool: "kb_search", Category: "retrieval", DurationMS: 1500},
			`{"type":"tool.progress","seq":9,"turn":3,"call_id":"call_1","tool":"kb_search","category":"retrieval","duration_ms":1500}`},
		{&ToolProgress{CallID: "call_1", Tool: "kb_search", DurationMS: 1, Text: "half", Fraction: new(0.5)},
			`{"type":"tool.progress","seq":9,"call_id":"call_1","tool":"kb_search","duration_ms":1,"text":"half","fraction":0.5}`},
		{&JobProgress{JobID: "job-1", Tool: "report_make", Name: "Yearly report", Text: "Chapter 2 of 4", Fraction: new(0.25)},
			`{"type":"job.progress","seq":9,"job_id":"job-1","tool":"report_make","name":"Yearly report","text":"Chapter 2 of 4","fraction":0.25}`},
		{&ToolMessage{CallID: "call_1", Tool: "pack", Category: "action", Name: "order.packed", Data: json.RawMessage(`{"n":2}`)},
			`{"type":"tool.message","seq":9,"call_id":"call_1","tool":"pack","category":"action","name":"order.packed","data":{"n":2}}`},
		{&ConfirmationRequest{Header: Header{Turn: 3}, Token: "cf_1", Tool: "pay", Args: json.RawMessage(`{"to":"Ada"}`), Preview: "Pay Ada", ExpiresAt: at},
			`{"type":"confirmation.request","seq":9,"turn":3,"token":"cf_1","tool":"pay","args":{"to":"Ada"},"preview":"Pay Ada","expires_at":"2026-01-02T03:04:05.678Z"}`},
		{&ConfirmationEnded{Header: Header{Turn: 3}, Token: "cf_1", Tool: "pay", Outcome: "expired"},
			`{"type":"confirmation.ended","seq":9,"turn":3,"token":"cf_1","tool":"pay","outcome":"expired"}`},
		{&ToolEnded{CallID: "call_1", Tool: "kb_search", OK: true, DurationMS: 2, Deduplicated: true, Clamped: json.RawMessage(`{"top_k":{"requested":10,"applied":3}}`)},
			`{"type":"tool.ended","seq":9,"call_id":"call_1","tool":"kb_search","ok":true,"duration_ms":2,"deduplicated":true,"clamped":{"top_k":{"requested":10,"applied":3}}}`},
		{&Error{Code: CodeBlocked, Message: "m", Until: at}, `{"type":"error","seq":9,"code":"blocked","message":"m","retryable":false,"until":"2026-01-02T03:04:05.678Z"}`},
	} {
		got, err := EncodeServer(9, tc.m)
		if err != nil || string(got) != tc.want {
			t.Errorf("%v\ngot  %s\nwant %s", err, got, tc.want)
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

// TestWrongShapesNameTheField: the error names the field that the author of a client must fix.
func TestWrongShapesNameTheField(t *testing.T) {
	for _, tc := range []struct{ text, field, word string }{
		{`{"type":7}`, "type", "string"},
		{`{"type":"playback","item_id":"a","played_ms":"1"}`, "played_ms", "whole number"},
		{`{"type":"playback","item_id":"a","played_ms":-1}`, "played_ms", "negative"},
		{`{"type":"playback"}`, "item_id", "missing"},
		{`{"type":"confirmation.resolve","approved":true}`, "token", "missing"},
		{`{"type":"confirmation.resolve","token":"t","approved":"yes"}`, "approved", "true or false"},
		{`{"type":"confirmation.resolve","token":"t"}`, "approved", "missing"},
		{`{"type":"confirmation.resolve","token":"t","approved":null}`, "approved", "missing"},
		{`{"type":"input.activity","active":"yes"}`, "active", "true or false"},
		{`{"type":"session.start","input_rate":1,"output_rate":24000}`, "input_rate", "8000"},
		{`{"type":"session.start","input_rate":16000,"output_rate":24000,"client":{"name":1}}`, "client.name", "string"},
		{`{"type":"session.start","input_rate":16000,"output_rate":24000,"turn_detection":"x"}`, "turn_detection", "server"},
		{`{"type":"input.text","text":""}`, "text", "empty"},
		{`{"type":"input.text","text":" \n\u200b\u2800"}`, "text", "empty"},
		{`{"type":"input.context","text":"\u200b"}`, "text", "empty"},
		{`{"type":"input.text","text":"` + strings.Repeat("a", MaxTextChars+1) + `"}`, "text", "8000"},
		{`{"type":"input.text","text":"a","id":"` + strings.Repeat("é", MaxNameChars+1) + `"}`, "id", "257"},
		{`{"type":"playback","item_id":"` + strings.Repeat("a", MaxNameChars+1) + `"}`, "item_id", "256"},
		{`{"type":"confirmation.resolve","approved":true,"token":"` + strings.Repeat("a", MaxNameChars+1) + `"}`, "token", "256"},
		{`{"type":"session.start","input_rate":16000,"output_rate":24000,"client":{"name":"` + strings.Repeat("a", MaxNameChars+1) + `"}}`, "client.name", "256"},
		{`{"type":"session.start","input_rate":16000,"output_rate":24000,"voice":"` + strings.Repeat("a", MaxNameChars+1) + `"}`, "voice", "256"},
		{`{"type":"session.start","input_rate":16000,"output_rate":24000,"resume":{"session_id":"a","last_seq":1,"token":"` + strings.Repeat("a", MaxNameChars+1) + `"}}`, "resume.token", "256"},
		{"{\"type\":\"\xff\"}", "", "UTF-8"},
	} {
		_, err := ParseClient([]byte(tc.text))
		var bad *MessageError
		if !errors.As(err, &bad) || bad.Field != tc.field || !strings.Contains(bad.Message, tc.word) {
			t.Errorf("%.60s: %+v", tc.text, err)
		}
	}
}

// FuzzParseClient: no input panics, and every refusal has a message.
func FuzzParseClient(f *testing.F) {
	f.Add([]byte(`{"type":"session.start","input_rate":16000,"output_rate":24000}`))
	f.Add([]byte(`{"type":"input.text","text":"hi"}`))
	f.Add([]byte(`{"type":"playback","item_id":"a","played_ms":1e3}`))
	f.Add([]byte(`{"type":"confirmation.resolve","token":"cf_1","approved":true}`))
	f.Add([]byte(`[{"type":null}]`))
	for _, text := range goldenSeeds(f, ">!") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseClient(data)
		var bad *MessageError
		if err != nil && (!errors.As(err, &bad) || bad.Message == "" || bad.Code == "") {
			t.Fatalf("refused without a message: %v", err)
		}
		if err != nil {
			return
		}
		text, err := EncodeClient(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseClient(text); err != nil {
			t.Fatalf("the encoded message cannot be read: %s: %v", text, err)
		}
		if typ, err := messageType(data); err != nil || m.clientType() != typ {
			t.Fatalf("%s was read as %s, want type %s (%v)", data, m.clientType(), typ, err)
		}
	})
}

// TestLastTypeCounts: a frame that begins with its type is read in one pass, but the last type field counts, in any
// notation.
func TestLastTypeCounts(t *testing.T) {
	for frame, want := range map[string]string{
		`{"type":"ping","t":1}`:                              "ping",
		`{"type":"ping","type":"session.end"}`:               "session.end",
		`{"type":"ping","TYPE":"session.end"}`:               "session.end",
		`{"type":"ping","\u0074ype":"session.end"}`:          "session.end",
		`{"type":"input.text","text":"my type is \"ping\""}`: "input.text",
		`{"type":"session.end","x":{"type":"ping"}}`:         "session.end",
		`{ "t":1, "type" : "ping" }`:                         "ping",
	} {
		m, err := ParseClient([]byte(frame))
		if err != nil {
			t.Errorf("%s: %v", frame, err)
		} else if got := m.clientType(); got != want {
			t.Errorf("%s was read as %s, want %s", frame, got, want)
		}
	}
}

// BenchmarkParsePlayback measures reading a playback report, which arrives several times a second.
func BenchmarkParsePlayback(b *testing.B) {
	frame := []byte(`{"type":"playback","item_id":"item_1","played_ms":1200,"received_ms":1400,"seq":17}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseClient(frame); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzParseServer: no input panics a client.
func FuzzParseServer(f *testing.F) {
	f.Add([]byte(`{"type":"turn.ended","seq":1,"usage":{"input":{"text":1}}}`))
	f.Add([]byte(`{"type":"confirmation.request","token":"cf_1","args":{"to":"Ada"},"expires_at":null}`))
	f.Add([]byte(`{"type":"transcript","started_at":"2026-01-02T03:04:05Z"}`))
	for _, text := range goldenSeeds(f, "<~") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseServer(data)
		if (m == nil) == (err == nil) {
			t.Fatalf("%v and %v", m, err)
		}
	})
}
