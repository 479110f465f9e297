package openai

import (
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/transport"
)

// newLocal is a scripted local server with a session in session.created.
func newLocal(t *testing.T, shown string) *server {
	t.Helper()
	s := newServer(t)
	s.opts.Settings, s.opts.APIKey = map[string]string{"dialect": Local}, ""
	s.greet = func(p *peer) {
		p.send(`{"type":"session.created","event_id":"e","session":%s}`, shown)
		p.setup, _ = p.expect("session.update")["session"].(map[string]any)
		p.send(`{"type":"session.updated","event_id":"e","session":{}}`)
	}
	return s
}

const localShown = `{"type":"realtime","model":"m","instructions":"","audio":{"input":{"format":{"type":"audio/pcm","rate":16000},"turn_detection":{"type":"server_vad"}},"output":{"format":{"type":"audio/pcmu"},"voice":"x"}},"tools":[]}`

// TestLocalSetup: settings that are not shown are left out and logged; a usable audio format is not changed. No key and
// no model is sent.
func TestLocalSetup(t *testing.T) {
	var log strings.Builder
	s := newLocal(t, localShown)
	s.opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	conn, p := s.connect(transport.Setup{Instructions: "Be brief.", Voice: "y", SilenceMS: 300, Tools: []transport.Tool{{Name: "f"}}})
	var want map[string]any
	if err := json.Unmarshal([]byte(`{"type":"realtime","instructions":"Be brief.","tools":[{"type":"function","name":"f"}],
		"audio":{"input":{"turn_detection":{"type":"server_vad"}},"output":{"format":{"type":"audio/pcm","rate":24000},"voice":"y"}}}`), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, p.setup); diff != "" {
		t.Errorf("session.update (-want +got):\n%s", diff)
	}
	const lost = "audio.input.turn_detection.create_response audio.input.turn_detection.interrupt_response audio.input.turn_detection.silence_duration_ms output_modalities tool_choice"
	if !strings.Contains(log.String(), lost) {
		t.Errorf("the log: %s", log.String())
	}
	if p.query != "" || p.header.Get("Authorization") != "" {
		t.Errorf("the handshake: ?%s %v", p.query, p.header)
	}
	info := conn.Info()
	if info.InputRate != 16000 || info.OutputRate != sampleRate || info.Model != "m" || !info.Capabilities.Free || info.Capabilities.ConnectionLife != 0 {
		t.Errorf("info %+v", info)
	}
}

// TestLocalRates: the adapter uses the server's formats.
func TestLocalRates(t *testing.T) {
	s := newLocal(t, strings.Replace(localShown, `"audio/pcmu"`, `"audio/pcm","rate":22050`, 1))
	conn, p := s.connect(transport.Setup{})
	if info := conn.Info(); info.InputRate != 16000 || info.OutputRate != 22050 {
		t.Errorf("info %+v", info)
	}
	if output, ok := p.setup["audio"].(map[string]any)["output"]; ok {
		t.Errorf("the output is sent as %v", output)
	}
}

// TestLocalManual: turn detection is turned off even if it is not shown.
func TestLocalManual(t *testing.T) {
	s := newLocal(t, `{"instructions":"","audio":{"input":{}}}`)
	_, p := s.connect(transport.Setup{ManualActivity: true})
	input, _ := p.setup["audio"].(map[string]any)["input"].(map[string]any)
	if vad, there := input["turn_detection"]; !there || vad != nil {
		t.Errorf("the input is %v", input)
	}
}

// TestLocalAcknowledgements: an unanswered truncation hides no later error, the commit is reported once with or without
// its event, and requests have no label.
func TestLocalAcknowledgements(t *testing.T) {
	s := newLocal(t, localShown)
	conn, p := s.connect(transport.Setup{})
	p.Begin()
	p.Say("Hello", make([]byte, 4800))
	p.Finish()
	recvAs[transport.ResponseDone](t, conn)
	send(t, conn, transport.Truncate{Item: p.item, AudioMS: 50})
	p.expect("conversation.item.truncate")
	p.send(`{"type":"error","event_id":"e","error":{"type":"invalid_request_error","message":"The tool has no name."}}`)
	if got := recvAs[transport.Problem](t, conn); got.Err.Kind != transport.KindRefused {
		t.Errorf("a later error is %v", got.Err)
	}
	p.send(`{"type":"error","event_id":"e","error":{"type":"invalid_request_error","message":"Unknown or invalid event: conversation.item.truncate"}}`)
	if got := recvAs[transport.Problem](t, conn); got.Err.Kind != transport.KindIgnore {
		t.Errorf("the refused truncation is %v", got.Err)
	}
	for _, committed := range []bool{true, false, true} {
		p.send(`{"type":"input_audio_buffer.speech_started","audio_start_ms":100,"item_id":"u"}`)
		p.send(`{"type":"input_audio_buffer.speech_stopped","audio_end_ms":900,"item_id":"u"}`)
		if committed {
			p.send(`{"type":"input_audio_buffer.committed","item_id":"u"}`)
		}
		p.Begin()
		commits := 0
		for ev := recv(t, conn); ; ev = recv(t, conn) {
			if _, ok := ev.(transport.InputCommitted); ok {
				commits++
			}
			if _, ok := ev.(transport.ResponseStarted); ok {
				break
			}
		}
		if commits != 1 {
			t.Errorf("with the event %v: %d commits", committed, commits)
		}
		p.Finish()
	}
	send(t, conn, transport.Respond{})
	if m := p.expect("response.create"); m["response"] != nil {
		if r, _ := m["response"].(map[string]any); r["metadata"] != nil {
			t.Errorf("the request has %v", r)
		}
	}
}

// TestActiveResponseElsewhere: after another server's code for a request during a response, the request is repeated after
// the response.
func TestActiveResponseElsewhere(t *testing.T) {
	for name, refusal := range map[string]string{
		"nemotron-voice-agent": `"type":"invalid_request_error","code":"response_in_progress"`,
		"speech-to-speech":     `"type":"conversation_already_has_active_response","code":null`,
	} {
		s := newLocal(t, localShown)
		conn, p := s.connect(transport.Setup{})
		send(t, conn, transport.Respond{})
		id := p.expect("response.create")["event_id"]
		p.Begin()
		recvAs[transport.ResponseStarted](t, conn)
		p.send(`{"type":"error","event_id":"e","error":{%s,"message":"busy","event_id":%q}}`, refusal, id)
		p.Finish()
		if p.expect("response.create")["event_id"] == id {
			t.Errorf("%s: the same request again", name)
		}
		recvAs[transport.ResponseDone](t, conn)
	}
}

// TestLocalHistory: the user's last words are an item of their own if they have no answer.
func TestLocalHistory(t *testing.T) {
	user, answer := transport.PastUser{Text: "Where is Ada?"}, transport.PastAssistant{Text: "In\nVienna.", Interrupted: true}
	tool := transport.PastTool{Name: "find", Args: json.RawMessage(`{}`), Output: json.RawMessage(`{"ok":true}`), OK: true}
	for name, test := range map[string]struct {
		past []transport.Past
		want []string // the end of each item
	}{
		"answered":        {[]transport.Past{user, answer}, []string{"said: Where is Ada?\nYou said: In Vienna. [interrupted]"}},
		"open":            {[]transport.Past{answer, user, transport.PastNote{Text: "Go on."}}, []string{"[interrupted]\nGo on.", "Where is Ada?"}},
		"with results":    {[]transport.Past{user, tool}, []string{"You called find {} and got: {\"ok\":true}", "Where is Ada?"}},
		"only a question": {[]transport.Past{user}, []string{"Where is Ada?"}},
	} {
		items, err := localHistory(test.past)
		var texts []string
		for _, it := range items {
			var frame struct {
				Item struct {
					Role    string
					Content []struct{ Type, Text string }
				}
			}
			if err := json.Unmarshal(it.frame, &frame); err != nil || frame.Item.Role != "user" || frame.Item.Content[0].Type != "input_text" {
				t.Fatalf("%s: %s", name, it.frame)
			}
			texts = append(texts, frame.Item.Content[0].Text)
		}
		if err != nil || len(texts) != len(test.want) {
			t.Fatalf("%s: %q, %v", name, texts, err)
		}
		for i, want := range test.want {
			if !strings.HasSuffix(texts[i], want) {
				t.Errorf("%s: item %d is %q, want the end %q", name, i, texts[i], want)
			}
		}
	}
}

func TestLocalRefusals(t *testing.T) {
	for code, want := range map[string]transport.Kind{"model_load_error": transport.KindServer, "session_limit_reached": transport.KindRateLimit} {
		for _, event := range []string{`"type":"server_error","code":"` + code + `"`, `"type":"` + code + `","code":null`} {
			s := newLocal(t, localShown)
			s.greet = func(p *peer) {
				p.send(`{"type":"error","event_id":"e","error":{%s,"message":"Out of memory."}}`, event)
			}
			if err := s.connectError(transport.Setup{}); err.Kind != want || !strings.Contains(err.Error(), "Out of memory.") {
				t.Errorf("%s is %v", event, err)
			}
		}
	}
}

func TestLocalOptions(t *testing.T) {
	const base = "http://127.0.0.1:1/v1"
	for want, p := range map[string]transport.Provider{
		"use local":              {BaseURL: base, Settings: map[string]string{"dialect": "lokal"}},
		"set BaseURL":            {APIKey: "k", Settings: map[string]string{"dialect": "local"}},
		"only the dialect local": {BaseURL: base, Settings: map[string]string{"load_time": "1m"}},
		"such as 5m":             {BaseURL: base, Settings: map[string]string{"dialect": "local", "load_time": "soon"}},
		"from 1s to 30m":         {BaseURL: base, Settings: map[string]string{"dialect": "local", "load_time": "2h"}},
		"local has no such":      {BaseURL: base, Settings: map[string]string{"dialect": "local", "reasoning": "low"}},
	} {
		if _, err := Wire().New(p); !errors.Is(err, ErrBadOption) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for setting, want := range map[string]time.Duration{"": DefaultLoadTime, "10m": 10 * time.Minute} {
		tr, err := Wire().New(transport.Provider{BaseURL: base, Settings: map[string]string{"dialect": "local", "load_time": setting}})
		if err != nil || transport.LoadTime(tr) != want {
			t.Errorf("%q: %v, %v", setting, tr, err)
		}
	}
	if tr, err := New(transport.Provider{BaseURL: base}); err != nil || transport.LoadTime(tr) != 0 {
		t.Errorf("another server: %v, %v", tr, err)
	}
}

// FuzzFit: for any session.created, the update has the settings of the agent.
func FuzzFit(f *testing.F) {
	for _, shown := range []string{localShown, `{}`, `null`, `[1]`, `{"audio":3,"tools":null}`, `{"audio":{"input":{"format":{"rate":"x"}}}}`} {
		f.Add([]byte(shown))
	}
	tr, err := New(transport.Provider{BaseURL: "http://127.0.0.1:1/v1", Settings: map[string]string{"dialect": Local}})
	if err != nil {
		f.Fatal(err)
	}
	update, err := tr.ep.dialect.update("update_1", transport.Setup{Instructions: "Be brief.", Voice: "y", Tools: []transport.Tool{{Name: "f"}}}, &tr.opts)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, shown []byte) {
		fitted, err := newConn(tr, transport.Setup{}).fit(update, shown)
		var got struct {
			Type    string
			Session struct {
				Type, Instructions string
				Tools              []struct{ Name string }
			}
		}
		if err := errors.Join(err, json.Unmarshal(fitted, &got)); err != nil || got.Type != "session.update" ||
			got.Session.Type != "realtime" || got.Session.Instructions != "Be brief." || len(got.Session.Tools) != 1 {
			t.Errorf("%s makes %s: %v", shown, fitted, err)
		}
	})
}
