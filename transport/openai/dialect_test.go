package openai

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/transport"
)

// TestDialects: the address of each service, its header and its session.
func TestDialects(t *testing.T) {
	setup := transport.Setup{
		Model: "gpt-realtime", Voice: "marin", Instructions: "Be brief.", SilenceMS: 300,
		Tools: []transport.Tool{{Name: "f", Parameters: json.RawMessage(`{"type":"object"}`)}},
	}
	const tools = `"tools":[{"name":"f","parameters":{"type":"object"},"type":"function"}]`
	const vad = `"turn_detection":{"type":"server_vad","silence_duration_ms":300,"create_response":true,"interrupt_response":true}`
	for name, tt := range map[string]struct {
		base, voice  string
		url, header  string
		session      string // empty for OpenAI's own form
		model        string // the default model
		keepTruncate bool
	}{
		"OpenAI":            {base: "", url: "wss://api.openai.com/v1/realtime?model=gpt-realtime", header: "Authorization", model: DefaultModel, keepTruncate: true},
		"a compatible one":  {base: "http://127.0.0.1:9/v1", url: "ws://127.0.0.1:9/v1/realtime?model=gpt-realtime", header: "Authorization", model: DefaultModel, keepTruncate: true},
		"Azure":             {base: "https://me.openai.azure.com", url: "wss://me.openai.azure.com/openai/v1/realtime?model=gpt-realtime", header: "api-key", keepTruncate: true},
		"Azure AI Foundry":  {base: "https://me.services.ai.azure.com/openai/v1", url: "wss://me.services.ai.azure.com/openai/v1/realtime?model=gpt-realtime", header: "api-key", keepTruncate: true},
		"Azure, a version":  {base: "https://me.openai.azure.com/openai/v1?api-version=preview", url: "wss://me.openai.azure.com/openai/v1/realtime?api-version=preview&model=gpt-realtime", header: "api-key", keepTruncate: true},
		"Voice Live":        {base: "https://me.services.ai.azure.com/voice-live", url: "wss://me.services.ai.azure.com/voice-live/realtime?api-version=2025-10-01&model=gpt-realtime", header: "api-key", session: `{"modalities":["text","audio"],"instructions":"Be brief.","voice":{"name":"marin","type":"openai"},"input_audio_format":"pcm16","output_audio_format":"pcm16","input_audio_transcription":{"model":"whisper-1"},` + vad + `,` + tools + `,"tool_choice":"auto"}`, keepTruncate: true},
		"Voice Live, older": {base: "wss://me.cognitiveservices.azure.com/voice-live/realtime?api-version=2025-05-01-preview", voice: "en-US-AvaNeural", url: "wss://me.cognitiveservices.azure.com/voice-live/realtime?api-version=2025-05-01-preview&model=gpt-realtime", header: "api-key", session: `{"modalities":["text","audio"],"instructions":"Be brief.","voice":{"name":"en-US-AvaNeural","type":"azure-standard"},"input_audio_format":"pcm16","output_audio_format":"pcm16","input_audio_transcription":{"model":"whisper-1"},` + vad + `,` + tools + `,"tool_choice":"auto"}`, keepTruncate: true},
		"xAI":               {base: "https://api.x.ai", url: "wss://api.x.ai/v1/realtime?model=gpt-realtime", header: "Authorization", session: `{"instructions":"Be brief.","voice":"marin","audio":{"input":{"format":{"rate":24000,"type":"audio/pcm"}},"output":{"format":{"rate":24000,"type":"audio/pcm"}}},` + vad + `,` + tools + `}`, model: "grok-voice-latest"},
	} {
		t.Run(name, func(t *testing.T) {
			tr, err := New(transport.Provider{APIKey: secret, BaseURL: tt.base})
			if err != nil {
				t.Fatal(err)
			}
			if got := tr.ep.address(setup.Model); got != tt.url {
				t.Errorf("address %s, want %s", got, tt.url)
			}
			if h := tr.header(tr.ep.dialect.keyHeader); h.Get(tt.header) == "" || len(h["Api-Key"])+len(h["Authorization"]) != 1 {
				t.Errorf("header %v, want the key in %s", h, tt.header)
			}
			if tr.Model() != tt.model || tr.Capabilities("").Truncate != tt.keepTruncate {
				t.Errorf("the model is %q, truncation %v", tr.Model(), tr.Capabilities("").Truncate)
			}
			setup := setup
			if tt.voice != "" {
				setup.Voice = tt.voice
			}
			got, err := tr.ep.dialect.update("update_1", setup, &tr.opts)
			want := []byte(`{"event_id":"update_1","type":"session.update","session":` + tt.session + `}`)
			if tt.session == "" {
				want, _ = dialectOf("", "", "").update("update_1", setup, &tr.opts)
			}
			if diff := cmp.Diff(string(want), string(got)); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

// TestXAI: its texts instead of objects, its usage next to the response and its pings are understood; after a tool the
// adapter requests the answer. The frames have the form of a recorded session.
func TestXAI(t *testing.T) {
	s := newServer(t)
	conn, p := s.connect(transport.Setup{})
	p.send(`{"type":"ping","event_id":"e","timestamp":1783466217066,"previous_item_id":null}`)
	p.send(`{"type":"response.created","event_id":"e","response":{"id":"r","object":"realtime.response","output":[],"status":"in_progress","status_details":"unimplemented","usage":{}},"previous_item_id":null}`)
	p.send(`{"type":"response.function_call_arguments.done","event_id":"e","item_id":"i","response_id":"r","output_index":0,"call_id":"c","name":"f","arguments":"{}"}`)
	p.send(`{"type":"response.output_item.done","event_id":"e","item":{"id":"i","type":"function_call","status":"completed","role":"user","call_id":"c","name":"f","arguments":"{}"},"response_id":"r"}`)
	p.send(`{"type":"response.done","event_id":"e","response":{"id":"r","output":[],"status":"completed","status_details":"unimplemented","usage":{}},"response_id":"r","usage":{"input_tokens":7,"input_token_details":{"text_tokens":7,"grok_tokens":0},"output_tokens":82,"output_token_details":{"text_tokens":7,"audio_tokens":75},"output_audio_seconds":1.48}}`)
	events := []transport.Event{recv(t, conn), recv(t, conn), recv(t, conn), recv(t, conn)}
	if got := kinds(events); got != "ResponseStarted ToolCall(f{}) Usage(7+82) ResponseDone(completed)" {
		t.Fatalf("events %s", got)
	}
	send(t, conn, transport.ToolResult{Call: events[1].(transport.ToolCall).Call, Output: json.RawMessage(`{}`)})
	send(t, conn, transport.Respond{})
	p.expect("conversation.item.create")
	p.expect("response.create")
	if st := conn.Stats(); st != (transport.Stats{}) {
		t.Errorf("stats %+v", st)
	}
}
