package openai

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"voicegw/internal/nonblock"
	"voicegw/transport"
)

// TestBargeIn: the user speaks during the answer. Audio that was already generated still arrives, the response ends as
// interrupted, its usage counts, and the truncation is limited to the available audio.
func TestBargeIn(t *testing.T) {
	s := newServer(t)
	conn, p := s.connect(transport.Setup{})
	p.Begin()
	p.Say("One", make([]byte, 4800))
	recvAs[*transport.AudioOut](t, conn)
	send(t, conn, transport.Respond{}) // it waits, and the user's speech makes it obsolete
	p.send(`{"type":"input_audio_buffer.speech_started","event_id":"e","audio_start_ms":1460,"item_id":"item_U"}`)
	p.Say(" two", make([]byte, 480))
	p.finish("cancelled", `{"type":"cancelled","reason":"turn_detected"}`)
	item := p.item
	got := []transport.Event{}
	for len(got) == 0 || got[len(got)-1] != (transport.ResponseDone{ID: p.response, Status: transport.ResponseInterrupted}) {
		ev := recv(t, conn)
		if out, ok := ev.(*transport.AudioOut); ok {
			ev = &transport.AudioOut{Item: out.Item, PCM: make([]byte, len(out.PCM))}
		}
		got = append(got, ev)
	}
	want := []transport.Event{
		transport.SpeechStarted{Item: "item_U", AudioMS: 1460},
		transport.Transcript{Item: item, Role: transport.RoleAssistant, Text: "One two"},
		&transport.AudioOut{Item: item, PCM: make([]byte, 480)},
		transport.AudioDone{Item: item},
		transport.Transcript{Item: item, Role: transport.RoleAssistant, Text: "One two", Final: true},
		transport.Usage{Tokens: transport.Tokens{
			Input: 20, Output: 10, InputText: 15, InputAudio: 5, CachedText: 6, CachedAudio: 2, OutputText: 4, OutputAudio: 6,
		}},
		transport.ResponseDone{ID: p.response, Status: transport.ResponseInterrupted},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	send(t, conn, transport.Truncate{Item: "item_unknown", AudioMS: 10})
	send(t, conn, transport.Truncate{Item: item, AudioMS: 60})
	if m := p.expect("conversation.item.truncate"); m["item_id"] != item || m["audio_end_ms"] != 60.0 || m["content_index"] != 0.0 {
		t.Errorf("truncation %v", m)
	}
	send(t, conn, transport.Truncate{Item: item, AudioMS: 5000})
	if m := p.expect("conversation.item.truncate"); m["audio_end_ms"] != 110.0 {
		t.Errorf("truncation past the end %v, want 110 ms", m)
	}
	p.send(`{"type":"conversation.item.truncated","event_id":"e","item_id":%q,"content_index":0,"audio_end_ms":60}`, item)
	if ev := recv(t, conn); ev != (transport.Truncated{Item: item, AudioMS: 60}) {
		t.Errorf("%#v", ev)
	}
	p.send(`{"type":"error","event_id":"e","error":{"type":"invalid_request_error","code":"invalid_value","message":"Audio content of 100ms is already shorter than 110ms","param":null,"event_id":"truncate_2"}}`)
	if pr := recvAs[transport.Problem](t, conn); pr.Err.Kind != transport.KindIgnore {
		t.Errorf("a late truncation: %v", pr.Err)
	}
	p.quiet(conn)
}

// TestAServerWithoutCancel: with NoInterrupt no response.cancel is ever sent, and a typed turn is still answered.
func TestAServerWithoutCancel(t *testing.T) {
	s := newServer(t)
	s.opts.NoInterrupt = true
	conn, p := s.connect(transport.Setup{})
	if conn.Info().Capabilities.Cancel {
		t.Error("the record says that the model can be interrupted")
	}
	p.Begin()
	recvAs[transport.ResponseStarted](t, conn)
	send(t, conn, transport.Interrupt{})
	send(t, conn, transport.UserText{Text: "next"})
	p.expect("conversation.item.create")
	p.finish("completed", "null")
	recvAs[transport.ResponseDone](t, conn)
	p.expect("response.create")
}

func TestSpeechEnd(t *testing.T) {
	s := newServer(t)
	conn, p := s.connect(transport.Setup{})
	p.send(`{"type":"input_audio_buffer.speech_stopped","event_id":"e","audio_end_ms":4256,"item_id":"item_U"}`)
	// 400 ms is the value in session.updated.
	if ev := recv(t, conn); ev != (transport.SpeechStopped{Item: "item_U", AudioMS: 4256, EndMS: 3856}) {
		t.Errorf("%#v", ev)
	}
	p.send(`{"type":"input_audio_buffer.committed","event_id":"e","previous_item_id":null,"item_id":"item_U"}`)
	if ev := recv(t, conn); ev != (transport.InputCommitted{Item: "item_U"}) {
		t.Errorf("%#v", ev)
	}
	p.send(`{"type":"conversation.item.input_audio_transcription.delta","event_id":"e","item_id":"item_U","content_index":0,"delta":"half"}`)
	p.send(`{"type":"conversation.item.input_audio_transcription.failed","event_id":"e","item_id":"item_U","content_index":0,"error":{"type":"transcription_error","code":"audio_unintelligible","message":"no","param":null}}`)
	recv(t, conn)
	if ev := recv(t, conn); ev != (transport.Transcript{Item: "item_U", Role: transport.RoleUser, Text: "half", Final: true}) {
		t.Errorf("%#v", ev)
	}
	if pr := recvAs[transport.TranscriptFailed](t, conn); pr.Item != "item_U" || pr.Err.Kind != transport.KindRefused || pr.Err.Code != "audio_unintelligible" {
		t.Errorf("%v", pr.Err)
	}
}

// TestPauseEndsThePhrase: a muted microphone sends no audio, so the adapter sends the silence that the provider needs,
// and does not count it in the audio clock.
func TestPauseEndsThePhrase(t *testing.T) {
	s := newServer(t)
	conn, p := s.connect(transport.Setup{})
	send(t, conn, &transport.AudioIn{PCM: make([]byte, 1000*bytesPerMS)})
	p.NextAudio()
	send(t, conn, transport.AudioPause{})
	if n := len(p.NextAudio()); n != 600*bytesPerMS {
		t.Errorf("%d ms of silence, want 600", n/bytesPerMS)
	}
	send(t, conn, transport.AudioPause{}) // no new speech
	p.quiet(conn)
	p.send(`{"type":"input_audio_buffer.speech_stopped","event_id":"e","audio_end_ms":1350,"item_id":"item_U"}`)
	p.send(`{"type":"input_audio_buffer.speech_started","event_id":"e","audio_start_ms":1700,"item_id":"item_V"}`)
	if ev := recv(t, conn); ev != (transport.SpeechStopped{Item: "item_U", AudioMS: 1000, EndMS: 950}) {
		t.Errorf("%#v", ev)
	}
	if ev := recv(t, conn); ev != (transport.SpeechStarted{Item: "item_V", AudioMS: 1100}) {
		t.Errorf("%#v", ev)
	}
}

// TestParallelCalls: two calls of one response, answered while it still runs; the two requests become one
// response.create, after response.done.
func TestParallelCalls(t *testing.T) {
	for _, loops := range []*nonblock.Loops{nil, {}} {
		s := newServer(t)
		s.opts.HTTPClient = nonblock.Client(s.client, loops)
		conn, p := s.connect(transport.Setup{})
		p.Begin()
		p.call("item_1", 0, transport.ToolCall{ID: "call_1", Name: "a", Args: json.RawMessage(`{}`)})
		p.call("item_2", 1, transport.ToolCall{ID: "call_2", Name: "b", Args: json.RawMessage(`{"x":1}`)})
		first, second := recvAs[transport.ToolCall](t, conn), recvAs[transport.ToolCall](t, conn)
		for _, call := range []transport.ToolCall{second, first} {
			send(t, conn, transport.ToolResult{Call: call.Call, Output: json.RawMessage(`{"ok":true}`)})
			send(t, conn, transport.ToolResult{Call: call.Call, Output: json.RawMessage(`{"ok":false}`)}) // a call has one answer
			send(t, conn, transport.Respond{ToolsOff: call.Call == second.Call})
		}
		for _, id := range []string{"call_2", "call_1"} {
			if got, _ := p.expect("conversation.item.create")["item"].(map[string]any); got["call_id"] != id || got["output"] != `{"ok":true}` {
				t.Errorf("answer %v, want one to %s", got, id)
			}
		}
		p.quiet(conn)
		p.finish("completed", "null")
		recvAs[transport.ResponseDone](t, conn)
		m := p.expect("response.create")
		if r, _ := m["response"].(map[string]any); r["tool_choice"] != "none" {
			t.Errorf("response.create %v, want tools off", m)
		}
		p.quiet(conn)
	}
}

// TestRepeatedCall: a second call of the provider with the same id is another request to the caller; a repetition of the
// same events is not.
func TestRepeatedCall(t *testing.T) {
	s := newServer(t)
	conn, p := s.connect(transport.Setup{})
	ask := transport.ToolCall{ID: "call_1", Name: "book", Args: json.RawMessage(`{}`)}
	p.Begin()
	p.call("item_1", 0, ask)
	p.callDone("item_1", 0, "completed", ask)
	p.call("item_2", 0, ask)
	p.finish("completed", "null")
	first, second := recvAs[transport.ToolCall](t, conn), recvAs[transport.ToolCall](t, conn)
	if first.Call == second.Call || first.ID != "call_1" || second.ID != "call_1" {
		t.Errorf("calls %+v and %+v", first, second)
	}
	if _, ok := recv(t, conn).(transport.Usage); !ok {
		t.Error("a third call, or something else, before the usage")
	}
	send(t, conn, transport.ToolResult{Call: second.Call, Output: json.RawMessage(`{}`)})
	if got, _ := p.expect("conversation.item.create")["item"].(map[string]any); got["call_id"] != "call_1" {
		t.Errorf("answer %v", got)
	}
}

// TestCutOffCall: an interruption also ends the arguments with a done event; such a call must not run.
func TestCutOffCall(t *testing.T) {
	s := newServer(t)
	conn, p := s.connect(transport.Setup{})
	p.Begin()
	p.send(`{"type":"response.function_call_arguments.done","event_id":"e","response_id":%q,"item_id":"item_1","output_index":0,"call_id":"call_1","name":"book","arguments":"{}"}`, p.response)
	p.callDone("item_1", 0, "incomplete", transport.ToolCall{ID: "call_1", Name: "book", Args: json.RawMessage(`{}`)})
	p.finish("cancelled", `{"type":"cancelled","reason":"client_cancelled"}`)
	if got := kinds([]transport.Event{recv(t, conn), recv(t, conn), recv(t, conn)}); got != "ResponseStarted Usage(20+10) ResponseDone(interrupted)" {
		t.Errorf("events %s", got)
	}
}

// TestCallWithoutItsItem: compatible servers that send only the arguments, or the call only in response.done.
func TestCallWithoutItsItem(t *testing.T) {
	s := newServer(t)
	conn, p := s.connect(transport.Setup{})
	p.Begin()
	p.send(`{"type":"response.function_call_arguments.done","event_id":"e","response_id":%q,"item_id":"item_1","output_index":0,"call_id":"call_1","name":"a","arguments":"{}"}`, p.response)
	p.send(`{"type":"response.done","event_id":"e","response":{"id":%q,"status":"completed","status_details":null,"output":[{"id":"item_2","type":"function_call","status":"completed","call_id":"call_2","name":"b","arguments":"{}"},{"id":"item_3","type":"message","status":"completed","role":"assistant","content":[]}],"usage":null}}`, p.response)
	if got := kinds([]transport.Event{recv(t, conn), recv(t, conn), recv(t, conn), recv(t, conn)}); got != "ResponseStarted ToolCall(b{}) ToolCall(a{}) ResponseDone(completed)" {
		t.Errorf("events %s", got)
	}
}

// TestRepeatedEvents: events that a server repeats are reported once.
func TestRepeatedEvents(t *testing.T) {
	s := newServer(t)
	conn, p := s.connect(transport.Setup{})
	p.Begin()
	p.send(`{"type":"response.created","response":{"id":%q}}`, p.response)
	p.Finish()
	p.Finish()
	p.Begin()
	got := []transport.Event{recv(t, conn), recv(t, conn), recv(t, conn), recv(t, conn)}
	if k := kinds(got); k != "ResponseStarted Usage(20+10) ResponseDone(completed) ResponseStarted" {
		t.Errorf("events %s", k)
	}
}

// TestAudioItemLeftOpen: response.done ends an item without output_audio.done, and later audio of it is dropped.
func TestAudioItemLeftOpen(t *testing.T) {
	s := newServer(t)
	conn, p := s.connect(transport.Setup{})
	p.Begin()
	p.Say("", make([]byte, 480))
	p.Say("", make([]byte, 480))
	p.send(`{"type":"response.done","event_id":"e","response":{"id":%q,"status":"completed","output":[]}}`, p.response)
	if got := kinds([]transport.Event{recv(t, conn), recv(t, conn), recv(t, conn), recv(t, conn), recv(t, conn)}); got != "ResponseStarted Audio AudioDone ResponseDone(completed)" {
		t.Errorf("events %s", got)
	}
	p.send(`{"type":"response.output_audio.delta","event_id":"e","response_id":%q,"item_id":%q,"output_index":0,"content_index":0,"delta":"AAAA"}`, p.response, p.item)
	p.Begin()
	if _, ok := recv(t, conn).(transport.ResponseStarted); !ok {
		t.Error("audio after the end of its item")
	}
}

func TestUserText(t *testing.T) {
	s := newServer(t)
	conn, p := s.connect(transport.Setup{})
	send(t, conn, transport.UserText{Text: "Hi \"there\""})
	m := p.expect("conversation.item.create")
	want := map[string]any{"type": "message", "role": "user", "content": []any{map[string]any{"type": "input_text", "text": `Hi "there"`}}}
	if diff := cmp.Diff(want, m["item"]); diff != "" {
		t.Error(diff)
	}
	p.expect("response.create")
	p.Begin()
	recvAs[transport.ResponseStarted](t, conn)
	send(t, conn, transport.UserText{Text: "Another"})
	if m := p.expect("response.cancel"); m["response_id"] != p.response {
		t.Errorf("cancel %v", m)
	}
	p.expect("conversation.item.create")
	p.quiet(conn)
	p.finish("cancelled", `{"type":"cancelled","reason":"client_cancelled"}`)
	recvAs[transport.ResponseDone](t, conn)
	p.expect("response.create")
}

func TestInterruptAndInstructions(t *testing.T) {
	s := newServer(t)
	conn, p := s.connect(transport.Setup{})
	send(t, conn, transport.Interrupt{}) // no response to interrupt
	send(t, conn, transport.Respond{Instructions: "Say hello."})
	m := p.expect("response.create")
	if r, _ := m["response"].(map[string]any); r["instructions"] != "Say hello." {
		t.Errorf("%v", m)
	}
	// Unconfirmed, but it must stop.
	send(t, conn, transport.Interrupt{})
	if m := p.expect("response.cancel"); m["response_id"] != nil {
		t.Errorf("cancel of an unknown response: %v", m)
	}
	p.Begin()
	recvAs[transport.ResponseStarted](t, conn)
	send(t, conn, transport.Respond{})
	send(t, conn, transport.Interrupt{}) // drops the request; the response is cancelled already
	p.quiet(conn)
	p.finish("cancelled", `{"type":"cancelled","reason":"client_cancelled"}`)
	recvAs[transport.ResponseDone](t, conn)
	p.quiet(conn)
	p.send(`{"type":"error","event_id":null,"error":{"type":"invalid_request_error","code":"response_cancel_not_active","message":"Cancellation failed: no active response found","param":null,"event_id":"cancel_2"}}`)
	if pr := recvAs[transport.Problem](t, conn); pr.Err.Kind != transport.KindIgnore || pr.Err.Code != codeCancelLate {
		t.Errorf("%v", pr.Err)
	}
	p.Begin()
	recvAs[transport.ResponseStarted](t, conn)
	send(t, conn, transport.Interrupt{}) // another response, another cancel
	if m := p.expect("response.cancel"); m["response_id"] != p.response {
		t.Errorf("%v", m)
	}
}

// TestActiveResponse: the provider has started its own response when ours arrives.
func TestActiveResponse(t *testing.T) {
	for _, loops := range []*nonblock.Loops{nil, {}} {
		s := newServer(t)
		s.opts.HTTPClient = nonblock.Client(s.client, loops)
		conn, p := s.connect(transport.Setup{})
		send(t, conn, transport.Respond{ToolsOff: true})
		event := p.expect("response.create")["event_id"]
		p.Begin()
		p.send(`{"type":"error","event_id":"e","error":{"type":"invalid_request_error","code":"conversation_already_has_active_response","message":"Conversation already has an active response in progress: x.","param":null,"event_id":%q}}`, event)
		p.Say("Hello", make([]byte, 480))
		p.Finish()
		for {
			ev := recv(t, conn)
			if _, ok := ev.(transport.Problem); ok {
				t.Errorf("%#v was not absorbed", ev)
			}
			if _, ok := ev.(transport.ResponseDone); ok {
				break
			}
		}
		m := p.expect("response.create")
		if r, _ := m["response"].(map[string]any); r["tool_choice"] != "none" || m["event_id"] == event {
			t.Errorf("the second try is %v", m)
		}
	}
}

func TestManualActivity(t *testing.T) {
	s := newServer(t)
	conn, p := s.connect(transport.Setup{ManualActivity: true})
	p.Begin()
	recvAs[transport.ResponseStarted](t, conn)
	send(t, conn, transport.ActivityStart{})
	p.expect("response.cancel")
	p.expect("input_audio_buffer.clear")
	p.finish("cancelled", `{"type":"cancelled","reason":"client_cancelled"}`)
	recvAs[transport.ResponseDone](t, conn)
	send(t, conn, &transport.AudioIn{PCM: make([]byte, 100*bytesPerMS)})
	send(t, conn, transport.ActivityEnd{})
	p.expect("input_audio_buffer.append")
	p.expect("input_audio_buffer.commit")
	p.expect("response.create")
	p.Begin()
	p.Finish()
	recvAs[transport.ResponseDone](t, conn)
	send(t, conn, transport.AudioPause{}) // ActivityEnd does that
	send(t, conn, transport.ActivityStart{})
	p.expect("input_audio_buffer.clear")
	send(t, conn, transport.ActivityEnd{}) // less than the provider's minimum
	p.expect("input_audio_buffer.clear")
	send(t, conn, transport.ActivityStart{})
	p.expect("input_audio_buffer.clear")
	send(t, conn, &transport.AudioIn{PCM: make([]byte, 150*bytesPerMS)})
	p.expect("input_audio_buffer.append")
	send(t, conn, transport.ActivityEnd{Empty: true})
	p.expect("input_audio_buffer.clear")
	p.quiet(conn)
}

func TestProblemsAndEnds(t *testing.T) {
	const failed = `{"type":"response.done","event_id":"e","response":{"id":"resp_1","status":"failed","status_details":{"type":"failed","error":{"type":"x","code":%q,"message":"no"}},"output":[],"usage":null}}`
	errorEvent := func(code string) func(*peer) {
		return func(p *peer) {
			p.send(`{"type":"error","event_id":"e","error":{"type":"invalid_request_error","code":%q,"message":"no: `+secret+`","param":null,"event_id":null}}`, code)
		}
	}
	for _, tt := range []struct {
		name string
		play func(*peer)
		kind transport.Kind
		code string
	}{
		{"expired, as recorded", func(p *peer) {
			errorEvent("session_expired")(p)
			p.Close(1001, "Your session hit the maximum duration of 60 minutes.")
		}, transport.KindExpired, "session_expired"},
		{"expired, the close alone", func(p *peer) { p.Close(1001, "Your session hit the maximum duration of 60 minutes.") }, transport.KindExpired, "1001"},
		{"quota in an error", errorEvent("insufficient_quota"), transport.KindQuota, "insufficient_quota"},
		{"billing", errorEvent("billing_hard_limit_reached"), transport.KindQuota, "billing_hard_limit_reached"},
		{"account", errorEvent("account_deactivated"), transport.KindAuth, "account_deactivated"},
		{"quota in a failed response, then closed", func(p *peer) {
			p.send(failed, "insufficient_quota")
			p.Close(1000, "")
		}, transport.KindQuota, "insufficient_quota"},
		{"quota once, but it continued", func(p *peer) {
			p.send(failed, "insufficient_quota")
			p.Begin()
			p.Finish()
			p.Close(1000, "")
		}, transport.KindRetry, "1000"},
		{"rate in a failed response, then closed", func(p *peer) {
			p.send(failed, "rate_limit_exceeded")
			p.Close(1011, "")
		}, transport.KindRetry, "1011"},
		{"harmless error, then dropped", func(p *peer) {
			errorEvent("unknown_parameter")(p)
			_ = p.ws.CloseNow()
		}, transport.KindRetry, "1006"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t)
			conn, p := s.connect(transport.Setup{})
			tt.play(p)
			err := recvError(t, conn)
			if err.Kind != tt.kind || err.Code != tt.code || strings.Contains(err.Error(), secret) {
				t.Errorf("%v, want %s %q without the key", err, tt.kind, tt.code)
			}
			if again := recvError(t, conn); again.Kind != tt.kind {
				t.Errorf("the second time %v", again)
			}
			if err := conn.Send(context.Background(), transport.Respond{}); transport.KindOf(err) != tt.kind {
				t.Errorf("Send returned %v", err)
			}
		})
	}
}

func TestFailedResponse(t *testing.T) {
	s := newServer(t)
	conn, p := s.connect(transport.Setup{})
	n := 0
	for code, kind := range map[string]transport.Kind{
		"insufficient_quota": transport.KindQuota, "model_not_found": transport.KindInvalid,
		"rate_limit_exceeded": transport.KindRateLimit, "server_error": transport.KindServer, "content_filter": transport.KindFiltered, "some_new_code": transport.KindServer,
	} {
		n++
		p.send(`{"type":"response.done","event_id":"e","response":{"id":"resp_%d","status":"failed","status_details":{"type":"failed","error":{"type":"t","code":%q,"message":"m, please try again in 1.5s."}},"output":[],"usage":null}}`, n, code)
		done := recvAs[transport.ResponseDone](t, conn)
		if done.Status != transport.ResponseFailed || done.Err == nil || done.Err.Kind != kind || done.Err.Code != code || done.Err.Op != "response" || done.Err.RetryAfter != 1500*time.Millisecond {
			t.Errorf("%q: %+v, want %s", code, done, kind)
		}
	}
	p.send(`{"type":"response.done","event_id":"e","response":{"id":"resp_x","status":"incomplete","status_details":{"type":"incomplete","reason":"max_output_tokens"},"output":[],"usage":null}}`)
	if done := recvAs[transport.ResponseDone](t, conn); done.Status != transport.ResponseIncomplete || done.Err == nil || done.Err.Kind != transport.KindTooLong {
		t.Errorf("%+v", done)
	}
	p.send(`{"type":"error","event_id":"e","error":{"type":"invalid_request_error","code":"some_new_code","message":"m","param":"p","event_id":"item_3"}}`)
	if pr := recvAs[transport.Problem](t, conn); pr.Err.Kind != transport.KindRefused || pr.Err.Code != "some_new_code" {
		t.Errorf("%v", pr.Err)
	}
}

func TestGarbage(t *testing.T) {
	s := newServer(t)
	conn, p := s.connect(transport.Setup{})
	for _, frame := range []string{
		``, `null`, `[]`, `"type"`, `{"type":5}`, `{"no":"type"}`, "\x00\xff", `{"type":"error","error":`,
		`{"type":"rate_limits.updated",}`, `{"type":"response.output_audio.delta","item_id":"i","delta":"?!"}`,
		`{"type":"response.done","response":7}`, `{"type":"conversation.item.input_audio_transcription.delta","item_id":"i","content_index":99,"delta":"x"}`,
	} {
		p.send("%s", frame)
	}
	p.write(websocket.MessageBinary, []byte{0, 1, 2})
	p.write(websocket.MessageBinary, []byte(`{"type":"response.created","response":{"id":"resp_1"}}`))
	if ev := recv(t, conn); ev != (transport.AudioDone{Item: "i"}) { // by a response.done without further details
		t.Errorf("%#v", ev)
	}
	if ev := recv(t, conn); ev != (transport.ResponseStarted{ID: "resp_1"}) {
		t.Errorf("%#v", ev)
	}
	if got := conn.Stats(); got != (transport.Stats{MalformedEvents: 12, SlowPath: 1}) {
		t.Errorf("stats %+v", got)
	}
}

func TestOversizedFrame(t *testing.T) {
	s := newServer(t)
	conn, p := s.connect(transport.Setup{})
	writing := make(chan struct{})
	go func() {
		defer close(writing)
		_ = p.ws.Write(context.Background(), websocket.MessageText, make([]byte, ReadLimit+2))
	}()
	if err := recvError(t, conn); err.Kind != transport.KindRetry || err.Code != "frame_too_big" {
		t.Errorf("%v", err)
	}
	_ = p.ws.CloseNow()
	<-writing
}

func TestAssistantTextAndBetaNames(t *testing.T) {
	s := newServer(t)
	conn, p := s.connect(transport.Setup{})
	for _, frame := range []string{
		`{"type":"response.output_text.delta","event_id":"e","response_id":"r","item_id":"i","output_index":0,"content_index":0,"delta":"I"}`,
		`{"type":"response.text.delta","event_id":"e","response_id":"r","item_id":"i","output_index":0,"content_index":0,"delta":" check"}`,
		`{"type":"response.text.done","event_id":"e","response_id":"r","item_id":"i","output_index":0,"content_index":0,"text":"I check."}`,
		`{"type":"response.audio_transcript.delta","event_id":"e","response_id":"r","item_id":"j","output_index":1,"content_index":0,"delta":"So"}`,
		`{"type":"response.audio_transcript.done","event_id":"e","response_id":"r","item_id":"j","output_index":1,"content_index":0,"transcript":"So."}`,
	} {
		p.send("%s", frame)
	}
	say := func(item, text string, final bool) transport.Event {
		return transport.Transcript{Item: item, Role: transport.RoleAssistant, Text: text, Final: final}
	}
	for _, want := range []transport.Event{say("i", "I", false), say("i", "I check", false), say("i", "I check.", true), say("j", "So", false), say("j", "So.", true)} {
		if ev := recv(t, conn); ev != want {
			t.Errorf("%+v, want %+v", ev, want)
		}
	}
}
