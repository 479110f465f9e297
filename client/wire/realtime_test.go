package wire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"voicegw/protocol"
)

// step is a step of a dialogue: a message of the engine or an event of the server, and its results.
type step struct {
	say  protocol.ClientMessage
	hear string
	// sent lists the events to the server; received lists the messages to the engine, shortened and without their seq.
	sent, received []string
}

// The parts of events that many steps need.
const (
	created  = `{"type":"response.created","response":{"id":"r"}}`
	delta    = `{"type":"response.output_audio.delta","item_id":"i","delta":"AAAAAA=="}`
	heardI   = `{"type":"audio.start","turn":1,"item_id":"i"}`
	update   = `{"session":{"audio":{"input":{"format":{"type":"audio/pcm","rate":24000},"transcription":{"model":"gpt-4o-mini-transcribe"}},"output":{"format":{"type":"audio/pcm","rate":24000}}},"output_modalities":["audio"],"type":"realtime"},"type":"session.update"}`
	speech   = `{"type":"input_audio_buffer.speech_started","audio_start_ms":40,"item_id":"u"}`
	text     = `{"item":{"content":[{"text":"hi","type":"input_text"}],"role":"user","type":"message"},"type":"conversation.item.create"}`
	respond  = `{"type":"response.create"}`
	cancel   = `{"type":"response.cancel"}`
	truncate = `{"audio_end_ms":120,"content_index":0,"item_id":"i","type":"conversation.item.truncate"}`
	none     = `"usage":{"input_tokens":0,"output_tokens":0,"input":{"text":0,"audio":0,"cached_text":0,"cached_audio":0},"output":{"text":0,"audio":0}}`
	heard    = `{"type":"turn.ended","turn":1,"status":"interrupted",` + none + `}`
)

var start = step{say: &protocol.Start{InputRate: 24000, OutputRate: 24000}, sent: []string{update}}

var answering = []step{
	{hear: created, received: []string{`{"type":"turn.started","turn":1}`}},
	{hear: delta, received: []string{heardI, "4 bytes"}},
}

// TestRealtime translates dialogues in both directions.
func TestRealtime(t *testing.T) {
	for name, steps := range map[string][]step{
		"a session begins once": {
			start,
			{hear: `{"type":"session.created","session":{"id":"sess_1"}}`},
			{hear: `{"type":"session.updated","session":{"id":"sess_1"}}`, received: []string{`{"type":"session.started","session_id":"sess_1","provider":"","model":"","input_rate":24000,"output_rate":24000,"expires_at":null,"resumed":false}`}},
			{hear: `{"type":"session.updated","session":{"id":"sess_1"}}`},
		},
		"push-to-talk on G.711": {
			{say: &protocol.Start{InputRate: 8000, OutputRate: 8000, TurnDetection: "client", Voice: "verse"},
				sent: []string{`{"session":{"audio":{"input":{"format":{"type":"audio/pcmu"},"transcription":{"model":"gpt-4o-mini-transcribe"},"turn_detection":null},"output":{"format":{"type":"audio/pcmu"},"voice":"verse"}},"output_modalities":["audio"],"type":"realtime"},"type":"session.update"}`}},
			{say: &protocol.InputActivity{Active: true}, sent: []string{`{"type":"input_audio_buffer.clear"}`}},
			{say: &protocol.InputActivity{}, sent: []string{`{"type":"input_audio_buffer.commit"}`, respond}},
			{hear: created, received: []string{`{"type":"turn.started","turn":1}`}},
			{hear: delta, received: []string{heardI, "8 bytes"}},
		},
		"an answer": append(slices.Concat([]step{start}, answering),
			step{hear: `{"type":"response.output_audio_transcript.delta","item_id":"i","delta":"Goo"}`, received: []string{`{"type":"transcript","turn":1,"id":"i","role":"assistant","text":"Goo","final":false,"started_at":null}`}},
			step{hear: `{"type":"response.output_audio_transcript.delta","item_id":"i","delta":"d"}`, received: []string{`{"type":"transcript","turn":1,"id":"i","role":"assistant","text":"Good","final":false,"started_at":null}`}},
			step{hear: `{"type":"response.output_audio_transcript.done","item_id":"i","transcript":"Good."}`, received: []string{`{"type":"transcript","turn":1,"id":"i","role":"assistant","text":"Good.","final":true,"started_at":null}`}},
			step{hear: `{"type":"response.output_audio.done","item_id":"i"}`, received: []string{`{"type":"audio.end","turn":1,"item_id":"i","audio_ms":0}`}},
			step{hear: `{"type":"response.done","response":{"status":"completed","usage":{"input_tokens":41}}}`, received: []string{`{"type":"turn.ended","turn":1,"status":"completed",` + none + `}`}},
			step{say: &protocol.Playback{ItemID: "i", PlayedMS: 1, Done: true}},
			step{hear: speech, received: []string{`{"type":"speech.started","turn":2,"audio_ms":40}`}},
		),
		"the user interrupts, and the client truncates": append(slices.Concat([]step{start}, answering),
			step{say: &protocol.Playback{ItemID: "i", PlayedMS: 60}},
			step{hear: speech, received: []string{`{"type":"speech.started","turn":2,"audio_ms":40}`, `{"type":"audio.flush","turn":1,"item_id":"i","reason":"user_speech"}`}},
			step{say: &protocol.Playback{ItemID: "i", PlayedMS: 120, Done: true}, sent: []string{truncate}},
			step{hear: `{"type":"response.output_audio.done","item_id":"i"}`},
			step{hear: `{"type":"response.done","response":{"status":"cancelled"}}`, received: []string{heard}},
			step{hear: `{"type":"input_audio_buffer.speech_stopped","audio_end_ms":900,"item_id":"u"}`, received: []string{`{"type":"speech.stopped","turn":2,"audio_ms":900}`}},
			step{hear: `{"type":"conversation.item.input_audio_transcription.delta","item_id":"u","delta":"St"}`, received: []string{`{"type":"transcript","turn":1,"id":"u","role":"user","text":"St","final":false,"started_at":null}`}},
			step{hear: `{"type":"conversation.item.input_audio_transcription.completed","item_id":"u","transcript":"Stop"}`, received: []string{`{"type":"transcript","turn":1,"id":"u","role":"user","text":"Stop","final":true,"started_at":null}`}},
		),
		"the stop button": append(slices.Concat([]step{start}, answering),
			step{say: &protocol.Interrupt{}, sent: []string{cancel}},
			step{hear: `{"type":"response.done","response":{"status":"cancelled"}}`, received: []string{`{"type":"audio.flush","turn":1,"item_id":"i","reason":"user_stop"}`, heard}},
			step{say: &protocol.Playback{ItemID: "i", PlayedMS: 120, Done: true}, sent: []string{truncate}},
		),
		"the stop button after the end of the response": append(slices.Concat([]step{start}, answering),
			step{hear: `{"type":"response.done","response":{"status":"incomplete"}}`, received: []string{`{"type":"audio.end","turn":1,"item_id":"i","audio_ms":0}`, `{"type":"turn.ended","turn":1,"status":"completed",` + none + `}`}},
			step{say: &protocol.Interrupt{}, sent: []string{cancel}},
			step{hear: `{"type":"error","error":{"type":"invalid_request_error","code":"response_cancel_not_active","message":"Cancellation failed"}}`,
				received: []string{`{"type":"audio.flush","turn":1,"item_id":"i","reason":"user_stop"}`}},
			step{hear: `{"type":"error","error":{"type":"invalid_request_error","code":"response_cancel_not_active","message":"Cancellation failed"}}`,
				received: []string{`{"type":"error","code":"response_cancel_not_active","message":"Cancellation failed","retryable":false}`}},
		),
		"a text interrupts": append(slices.Concat([]step{start}, answering),
			step{say: &protocol.InputText{Text: "hi"}, sent: []string{text, cancel}},
			step{hear: `{"type":"response.done","response":{"status":"cancelled"}}`, sent: []string{respond}, received: []string{`{"type":"audio.flush","turn":1,"item_id":"i","reason":"user_stop"}`, heard}},
			step{say: &protocol.InputText{Text: "hi"}, sent: []string{text, respond}},
		),
		"a response fails": {
			start,
			{hear: created, received: []string{`{"type":"turn.started","turn":1}`}},
			{hear: `{"type":"response.done","response":{"status":"failed","status_details":{"type":"failed","error":{"type":"server_error","code":"insufficient_quota","message":"No money."}}}}`,
				received: []string{`{"type":"error","turn":1,"code":"insufficient_quota","message":"No money.","retryable":false}`, `{"type":"turn.ended","turn":1,"status":"failed",` + none + `}`}},
		},
		"a tool of the gateway asks": {
			start,
			{hear: created, received: []string{`{"type":"turn.started","turn":1}`}},
			{hear: `{"type":"response.output_item.added","item":{"id":"c","type":"mcp_call","name":"book"}}`, received: []string{`{"type":"tool.started","turn":1,"call_id":"c","tool":"book"}`}},
			{hear: `{"type":"response.output_item.done","item":{"id":"c","type":"mcp_call","name":"book","error":null}}`, received: []string{`{"type":"tool.ended","turn":1,"call_id":"c","tool":"book","ok":true,"duration_ms":0}`}},
			{hear: `{"type":"response.output_item.done","item":{"id":"d","type":"mcp_call","name":"book","error":{"type":"TRANSIENT"}}}`, received: []string{`{"type":"tool.ended","turn":1,"call_id":"d","tool":"book","ok":false,"duration_ms":0,"error":{"type":"TRANSIENT"}}`}},
			{hear: `{"type":"conversation.item.added","item":{"id":"q","type":"mcp_approval_request","name":"book","arguments":"{\"at\":9}"}}`,
				received: []string{`{"type":"confirmation.request","turn":1,"token":"q","tool":"book","args":{"at":9},"preview":"book {\"at\":9}","expires_at":null}`}},
			{say: &protocol.ConfirmationResolve{Token: "q", Approved: true}, sent: []string{`{"item":{"approval_request_id":"q","approve":true,"type":"mcp_approval_response"},"type":"conversation.item.create"}`, respond}},
			{hear: `{"type":"conversation.item.added","item":{"id":"a","type":"mcp_approval_response","approval_request_id":"q","approve":true}}`,
				received: []string{`{"type":"confirmation.ended","turn":1,"token":"q","tool":"","outcome":"approved"}`}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &realtimeState{items: map[string]*realtimeItem{}}
			var to inbox
			for i, step := range steps {
				var events []any
				var err error
				if step.say != nil {
					events, err = s.said(step.say, false, &to)
				} else {
					err = s.hear([]byte(step.hear), &to)
					events, s.owed = s.owed, nil
				}
				if err != nil {
					t.Fatalf("step %d: %v", i+1, err)
				}
				var sent []string
				for _, event := range events {
					data, err := json.Marshal(event)
					if err != nil {
						t.Fatal(err)
					}
					sent = append(sent, string(data))
				}
				if got, want := strings.Join(sent, "\n"), strings.Join(step.sent, "\n"); got != want {
					t.Errorf("step %d sent\n%s\nwant\n%s", i+1, got, want)
				}
				if got, want := strings.Join(received(t, &to), "\n"), strings.Join(step.received, "\n"); got != want {
					t.Errorf("step %d received\n%s\nwant\n%s", i+1, got, want)
				}
			}
		})
	}
}

// received empties an inbox.
func received(t *testing.T, to *inbox) (lines []string) {
	for {
		f, ok, err := to.next()
		switch {
		case err != nil:
			t.Fatal(err)
		case !ok:
			return lines
		case f.Audio:
			lines = append(lines, fmt.Sprint(len(f.Data), " bytes"))
		default:
			head, rest, _ := strings.Cut(string(f.Data), `,"seq":`)
			_, rest, _ = strings.Cut(rest, ",")
			if rest == "" {
				lines = append(lines, head+"}")
				continue
			}
			lines = append(lines, head+","+rest)
		}
	}
}

// TestRealtimeRules: an event that breaks the protocol gives an error that quotes it.
func TestRealtimeRules(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"no JSON":      {`hello`, "sent hello"},
		"no type":      {`{"event_id":"e"}`, "no type"},
		"no base64":    {`{"type":"response.output_audio.delta","item_id":"i","delta":"*"}`, "delta"},
		"half samples": {`{"type":"response.output_audio.delta","item_id":"i","delta":"AAAA"}`, "half a sample"},
	} {
		s := &realtimeState{items: map[string]*realtimeItem{}}
		if err := s.hear([]byte(tc.text), new(inbox)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := &realtimeState{items: map[string]*realtimeItem{}}
	for i := range maxRealtimeItems + 1 {
		err := s.hear(fmt.Appendf(nil, `{"type":"response.output_audio.delta","item_id":"i%d","delta":"AAAAAA=="}`, i), new(inbox))
		if (err != nil) != (i == maxRealtimeItems) {
			t.Errorf("item %d: %v", i+1, err)
		}
	}
	if _, err := s.said(&protocol.Ping{}, false, new(inbox)); err == nil {
		t.Error("a ping is translated")
	}
}

// FuzzRealtime: the connection translates each event to valid messages, or refuses it.
func FuzzRealtime(f *testing.F) {
	f.Add(created + "\n" + delta + "\n" + speech)
	f.Add(`{"type":"conversation.item.added","item":{"id":"q","type":"mcp_approval_request","name":"book","arguments":"{\"at\":9}"}}`)
	f.Add(`{"type":"response.done","response":{"status":"failed"}}`)
	f.Fuzz(func(t *testing.T, events string) {
		s := &realtimeState{items: map[string]*realtimeItem{}}
		for line := range strings.Lines(events) {
			var to inbox
			if err := s.hear([]byte(line), &to); err != nil {
				continue
			}
			for {
				m, ok, err := to.next()
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					break
				}
				if _, err := protocol.ParseServer(m.Data); !m.Audio && err != nil {
					t.Errorf("%s became %s: %v", line, m.Data, err)
				}
			}
		}
	})
}
