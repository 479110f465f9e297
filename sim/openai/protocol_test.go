package openai

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"voicegw/internal/openaiwire"
	"voicegw/sim/wire"
)

const say = `{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}}`

func TestErrorTexts(t *testing.T) {
	for _, c := range []struct{ send, code, param, message string }{
		{`{"type":"session.update","session":{}}`, "missing_required_parameter", "session.type", "Missing required parameter: 'session.type'."},
		{`{"type":"session.update"}`, "missing_required_parameter", "session", "Missing required parameter: 'session'."},
		{update(`"modalities":["audio"]`), "unknown_parameter", "session.modalities", "Unknown parameter: 'session.modalities'."},
		{update(`"audio":{"input":{"foo":1}}`), "unknown_parameter", "session.audio.input.foo", "Unknown parameter: 'session.audio.input.foo'."},
		{update(`"tool_choice":"bogus"`), "invalid_value", "session.tool_choice", "Invalid value: 'bogus'. Supported values are: 'none', 'auto', and 'required'."},
		{update(`"instructions":5`), "invalid_type", "session.instructions", "Invalid type for 'session.instructions': expected a string, but got an integer instead."},
		{update(`"audio":{"input":{"turn_detection":{"threshold":7}}}`), "invalid_value", "session.audio.input.turn_detection.threshold", "Invalid value for 'session.audio.input.turn_detection.threshold': expected a value between 0 and 1, but got 7 instead."},
		{update(`"audio":{"input":{"format":{"type":"audio/mp3"}}}`), "invalid_value", "session.audio.input.format.type", "Invalid value: 'audio/mp3'. Supported values are: 'audio/pcm', 'audio/pcmu', and 'audio/pcma'."},
		{update(`"tools":[{"type":"function"}]`), "missing_required_parameter", "session.tools[0].name", "Missing required parameter: 'session.tools[0].name'."},
		{update(`"output_modalities":["audio","text"]`), "invalid_value", "session.output_modalities", "Invalid modalities: ['audio', 'text']. Supported combinations are: ['text'] and ['audio']."},
		{update(`"model":"gpt-realtime-2"`), "cannot_update_model", "session.model", "Cannot update a session's model. The session uses 'gpt-realtime'."},
		{`{"type":"session.update","session":{"type":"transcription"}}`, "invalid_value", "session.type", "Passing a transcription session update event to a realtime session is not allowed."},
		{`{"type":"response.cancel"}`, "response_cancel_not_active", "", "Cancellation failed: no active response found"},
		{`{"type":"conversation.item.retrieve","item_id":"item_x"}`, "item_not_found", "item_id", "Item with item_id 'item_x' not found in the conversation."},
		{`{"type":"conversation.item.delete"}`, "missing_required_parameter", "item_id", "Missing required parameter: 'item_id'."},
		{`{"type":"conversation.item.create","previous_item_id":"nope","item":{"type":"message","role":"user","content":[]}}`, "item_not_found", "previous_item_id", "Item with item_id 'nope' not found in the conversation."},
		{`{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"call_x","output":"y"}}`, "invalid_tool_call_id", "item.call_id", "Tool call ID 'call_x' not found in conversation."},
		{`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"output_text","text":"x"}]}}`, "invalid_value", "item.content[0].type", "Invalid value: 'output_text'. Supported values are: 'input_text', 'input_audio', and 'input_image'."},
		{`{"type":"input_audio_buffer.append"}`, "missing_required_parameter", "audio", "Missing required parameter: 'audio'."},
		{`{"type":"input_audio_buffer.append","audio":"AAA*"}`, "invalid_value", "audio", "Invalid 'audio'. Expected base64-encoded audio bytes in the session's input format."},
		{`{"type":"response.create","response":{"modalities":["text"]}}`, "unknown_parameter", "response.modalities", "Unknown parameter: 'response.modalities'."},
		{`{}`, "missing_required_parameter", "type", "Missing required parameter: 'type'."},
		{`[1]`, "invalid_json", "", "The event must be a JSON object, but got an array instead."},
		{`nonsense`, "invalid_json", "", "The event could not be parsed as JSON. Send one JSON object in each text message."},
		{`{"type":5}`, "invalid_type", "type", "Invalid type for 'type': expected a string, but got an integer instead."},
		{`{"type":"conversation.item.delete","item_id":5}`, "invalid_type", "item_id", "Invalid type for 'item_id': expected a string, but got an integer instead."},
		{`{"type":"conversation.item.truncate","item_id":"x","audio_end_ms":1.5}`, "invalid_type", "audio_end_ms", "Invalid type for 'audio_end_ms': expected an integer, but got a decimal instead."},
	} {
		bubble(t, wire.Options{}, func(r *rig) {
			cl := r.open()
			frame := strings.Replace(c.send, `{"type"`, `{"event_id":"mine","type"`, 1)
			cl.send(frame)
			e := find(cl.take(50*time.Millisecond), "error")
			if e.text("error.code") != c.code || e.text("error.param") != c.param || e.text("error.message") != c.message || e.text("error.type") != "invalid_request_error" {
				t.Errorf("%s\n got %v", c.send, e)
			}
			if strings.HasPrefix(frame, `{"event_id"`) && e.text("error.event_id") != "mine" {
				t.Errorf("%s: the event id is %v", c.send, e.at("error.event_id"))
			}
			// The session continues.
			cl.send(`{"type":"input_audio_buffer.clear"}`)
			if got := kinds(cl.take(50 * time.Millisecond)); got != "input_audio_buffer.cleared" {
				t.Errorf("%s: afterwards %s", c.send, got)
			}
		})
	}
}

func TestUnknownTypeListsTheSupportedOnes(t *testing.T) {
	bubble(t, wire.Options{}, func(r *rig) {
		c := r.open()
		c.send(`{"type":"output_audio_buffer.clear"}`)
		e := find(c.take(50*time.Millisecond), "error")
		if m := e.text("error.message"); !strings.HasPrefix(m, "Invalid value: 'output_audio_buffer.clear'. Supported values are: 'session.update', ") || !strings.HasSuffix(m, ", and 'response.cancel'.") {
			t.Errorf("message %q", m)
		}
	})
}

func TestRejectedUpdateChangesNothing(t *testing.T) {
	bubble(t, wire.Options{}, func(r *rig) {
		c := r.open()
		c.send(update(`"instructions":"new","tools":[{"type":"function","name":"a"}],"audio":{"output":{"speed":9}}`), update(`"max_output_tokens":100`))
		got := c.take(50 * time.Millisecond)
		e := find(got, "session.updated")
		if e.text("session.instructions") != wire.Instructions || e.num("session.max_output_tokens") != 100 || len(e.at("session.tools").([]any)) != 0 {
			t.Errorf("session %v", e)
		}
		c.send(update(`"audio":{"output":{"voice":"verse"}}`), `{"type":"response.create"}`)
		c.until(done)
		c.send(update(`"instructions":"newer","audio":{"output":{"voice":"echo"}}`))
		if e := find(c.take(50*time.Millisecond), "error"); e.text("error.message") != "Cannot update a conversation's voice if assistant audio is present." {
			t.Errorf("voice: %v", e)
		}
	})
}

func TestKeysAndModelsThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		path, header, value, code string
		close                     int
	}{
		{"?model=gpt-realtime", "Authorization", "Bearer sk-invalid-1", "invalid_api_key", 3000},
		{"?model=gpt-realtime", "Authorization", "Bearer expired", "expired_api_key", 3000},
		{"?model=gpt-nonsense", "", "", "model_not_found", 4000},
		{"?model=gpt-live-1", "", "", "invalid_model", 4000},
		{"", "", "", "missing_model", 4000},
		{"?model=gpt-realtime", "OpenAI-Beta", "realtime=v1", "beta_api_shape_disabled", 4000},
		{"?intent=transcription", "", "", "invalid_intent", 4000},
	} {
		bubble(t, wire.Options{}, func(r *rig) {
			var h []string
			if c.header != "" {
				h = []string{c.header, c.value}
			}
			cl := r.connect("/v1/realtime"+c.path, h...)
			code, reason := cl.closed(time.Second)
			e := find(cl.take(0), "error")
			if code != c.close || reason != "invalid_request_error."+c.code || e.text("error.code") != c.code || e.at("error.event_id") != nil {
				t.Errorf("%+v: closed %d %q, %v", c, code, reason, e)
			}
			if r.stats.Refused.Load() != 1 {
				t.Error("the refusal was not counted")
			}
		})
	}
}

func TestHandshakes(t *testing.T) {
	bubble(t, wire.Options{}, func(r *rig) {
		if _, resp, err := r.dial("/v1/realtime?model=gpt-realtime", "Authorization", ""); err == nil || resp.StatusCode != http.StatusUnauthorized {
			t.Error("a connection without a key")
		}
		for _, c := range []struct{ path, header, value, protocol, voice string }{
			{"/v1/realtime?model=gpt-realtime", "Protocols", "realtime, openai-insecure-api-key.sk-1, openai-agents-sdk.0.20", "realtime", "alloy"},
			{"/openai/v1/realtime?model=my-deployment", "Api-Key", "k", "", "alloy"},
			{"/v1/realtime?model=gpt-realtime-2.1-mini", "", "", "", "marin"},
		} {
			var h []string
			if c.header != "" {
				h = []string{c.header, c.value}
			}
			cl := r.connect(c.path, h...)
			if cl.ws.Subprotocol() != c.protocol {
				t.Errorf("%s: subprotocol %q", c.path, cl.ws.Subprotocol())
			}
			got := cl.take(50 * time.Millisecond)
			if kinds(got) != "session.created" || got[0].text("session.audio.output.voice") != c.voice {
				t.Errorf("%s: %s", c.path, kinds(got))
			}
			if life := got[0].num("session.expires_at") - float64(time.Now().Unix()); life < 3598 || life > 3600 {
				t.Errorf("expires in %g s", life)
			}
			cl.ws.CloseNow()
		}
	})
}

func TestModelNames(t *testing.T) {
	for name, want := range map[string]bool{
		"gpt-realtime": true, "gpt-realtime-2": true, "gpt-realtime-2.1-mini": true, "gpt-realtime-1.5": true,
		"gpt-realtime-mini-2025-10-06": true, "gpt-realtime-2025-08-28": true, "gpt-realtime-whisper": false,
		"gpt-live-1": false, "gpt-realtime-x": false, "": false, "gpt-4o": false, "gpt-realtimely": false,
		"gpt-realtime-2.7": false, "gpt-realtime-3": false, "gpt-realtime-2.1-2026": false, "gpt-realtime-2.1-2026-05-01": true,
	} {
		if _, ok := findModel(name); ok != want {
			t.Errorf("%q known: %v", name, ok)
		}
	}
}

func TestSessionExpires(t *testing.T) {
	bubble(t, wire.Options{}, func(r *rig) {
		c := r.open()
		if got := c.take(59*time.Minute + 59*time.Second); kinds(got) != "session.created" {
			t.Errorf("before: %s", kinds(got))
		}
		code, reason := c.closed(2 * time.Second)
		e := find(c.take(0), "error")
		if code != 1001 || reason != expiredText || e.text("error.code") != "session_expired" || e.text("error.message") != expiredText {
			t.Errorf("closed %d %q, %v", code, reason, e)
		}
	})
}

func TestQuota(t *testing.T) {
	bubble(t, wire.Options{}, func(r *rig) {
		c := r.connect("/v1/realtime?model=gpt-realtime", "Authorization", "Bearer quota-exhausted")
		c.send(`{"type":"response.create"}`)
		got := c.until(done)
		if kinds(got) != "session.created response.created response.done" || got[2].text("response.status_details.error.code") != "insufficient_quota" {
			t.Errorf("got %s %v", kinds(got), got[2])
		}
	})
}

func TestResponses(t *testing.T) {
	bubble(t, wire.Options{Scenario: script(t, story), Speed: 1}, func(r *rig) {
		c := r.open()
		c.send(fmt.Sprintf(say, "go"), `{"type":"response.create"}`)
		c.until("response.output_audio.delta")
		c.send(`{"type":"response.create","event_id":"two"}`)
		e := find(c.take(50*time.Millisecond), "error")
		if m := e.text("error.message"); !strings.HasPrefix(m, "Conversation already has an active response in progress: resp_") || e.text("error.event_id") != "two" {
			t.Errorf("second response: %v", e)
		}
		// A response outside the conversation may run at the same time.
		c.send(`{"type":"response.create","response":{"conversation":"none","output_modalities":["text"],"metadata":{"topic":"x"},"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"aside"}]}]}}`)
		got := c.until(done)
		end := got[len(got)-1].event
		if end.at("response.conversation_id") != nil || end.text("response.metadata.topic") != "x" || end.text("response.status") != "completed" ||
			end.text("response.output.0.content.0.type") != "output_text" || strings.Contains(kinds(got), "conversation.item") {
			t.Errorf("aside: %s %v", kinds(got), end)
		}
		c.send(`{"type":"response.cancel"}`)
		got = c.until(done)
		end = got[len(got)-1].event
		if end.text("response.status_details.reason") != "client_cancelled" || end.text("response.status") != "cancelled" || end.at("response.usage") == nil {
			t.Errorf("cancelled: %v", end)
		}
		c.send(`{"type":"response.create","response":{"max_output_tokens":7,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]}]}}`)
		got = c.until(done)
		end = got[len(got)-1].event
		if end.text("response.status") != "incomplete" || end.text("response.status_details.reason") != "max_output_tokens" || end.num("response.max_output_tokens") != 7 {
			t.Errorf("limited: %v", end)
		}
		c.send(`{"type":"response.create","response":{"instructions":"Say: exactly this","output_modalities":["text"]}}`)
		if got = c.until(done); find(got, "response.output_text.done").text("text") == "" {
			t.Errorf("instructions alone: %s", kinds(got))
		}
	})
}

func TestHistory(t *testing.T) {
	bubble(t, wire.Options{}, func(r *rig) {
		c := r.open()
		c.send(
			`{"type":"conversation.item.create","item":{"id":"u1","type":"message","role":"user","content":[{"type":"input_text","text":"What is the weather in Rome?"}]}}`,
			`{"type":"conversation.item.create","item":{"id":"a1","type":"message","role":"assistant","content":[{"type":"output_text","text":"Sunny."}]}}`,
			`{"type":"conversation.item.create","item":{"id":"u2","type":"message","role":"user","content":[{"type":"input_text","text":"Say: thanks"},{"type":"input_image","image_url":"data:image/png;base64,AA=="}]}}`,
			`{"type":"conversation.item.create","previous_item_id":"root","item":{"id":"s0","type":"message","role":"system","content":[{"type":"input_text","text":"Be brief."}]}}`,
			`{"type":"conversation.item.create","previous_item_id":"u1","item":{"id":"m1","type":"message","role":"assistant","content":[{"type":"output_text","text":"Hm."}]}}`,
			`{"type":"conversation.item.create","item":{"id":"u1","type":"message","role":"user","content":[]}}`,
		)
		got := c.take(50 * time.Millisecond)
		var order []string
		for _, e := range got {
			if e.kind() == "conversation.item.added" {
				order = append(order, fmt.Sprintf("%s<%v", e.text("item.id"), e.at("previous_item_id")))
			}
		}
		if s := strings.Join(order, " "); s != "u1<<nil> a1<u1 u2<a1 s0<<nil> m1<u1" {
			t.Errorf("order %s", s)
		}
		if find(got, "error").text("error.param") != "item.id" {
			t.Errorf("a second u1: %v", find(got, "error"))
		}
		c.send(`{"type":"response.create","response":{"output_modalities":["text"]}}`)
		if words := find(c.until(done), "response.output_text.done").text("text"); words != "Thanks [image]." {
			t.Errorf("only unanswered input is answered: %q", words)
		}
		c.send(`{"type":"conversation.item.delete","item_id":"m1"}`, `{"type":"conversation.item.retrieve","item_id":"m1"}`)
		if k := kinds(c.take(50 * time.Millisecond)); k != "conversation.item.deleted error" {
			t.Errorf("deleted: %s", k)
		}
	})
}

func TestConversationIsBounded(t *testing.T) {
	var c conversation
	for i := range maxItems + 50 {
		c.insert(&item{Item: openaiwire.Item{ID: fmt.Sprint(i), Type: openaiwire.Message, Role: "user"}, audio: make([]byte, 100_000)}, len(c.items))
	}
	held := 0
	for _, it := range c.items {
		held += len(it.audio)
	}
	if len(c.items) != maxItems || c.audio != held || held > maxAudio {
		t.Errorf("%d items, %d bytes held, %d counted", len(c.items), held, c.audio)
	}
	for range 5 {
		c.insert(&item{Item: openaiwire.Item{Size: maxWords / 3}}, len(c.items))
	}
	if len(c.items) != 3 || c.words > maxWords {
		t.Errorf("%d items with %d bytes", len(c.items), c.words)
	}
}

// TestAllConversationsTogetherAreBounded: an item without room is not stored in parts, and the end of a conversation
// makes room for others.
func TestAllConversationsTogetherAreBounded(t *testing.T) {
	var held atomic.Int64
	all := make([]*conversation, 1000)
	for i := range all {
		all[i] = &conversation{held: &held}
	}
	var cut int
	for n := range 2 {
		for _, c := range all {
			it := &item{Item: openaiwire.Item{ID: fmt.Sprint(n), Type: openaiwire.Message, Role: "assistant"}}
			c.insert(it, len(c.items))
			for range 10 {
				c.keep(it, make([]byte, 10_000))
			}
			switch len(it.audio) {
			case 0:
				cut++
			case 100_000:
			default:
				t.Fatalf("%d bytes of an item of 100000 are stored", len(it.audio))
			}
		}
	}
	if cut == 0 {
		t.Error("no item was cut")
	}
	sum := 0
	for _, c := range all {
		for _, it := range c.items {
			sum += len(it.audio)
		}
	}
	if held.Load() != int64(sum) || sum > maxHeld || sum < maxHeld*9/10 {
		t.Errorf("%d bytes are held, %d counted", sum, held.Load())
	}
}

// TestAudioIsKeptFromItsBeginning: audio dropped for lack of room is not stored from its middle on when there is room
// again.
func TestAudioIsKeptFromItsBeginning(t *testing.T) {
	var held atomic.Int64
	c, it := conversation{held: &held}, &item{}
	c.insert(it, len(c.items))
	for _, others := range []int64{maxHeld, 0} {
		held.Store(others)
		c.keep(it, make([]byte, 10_000))
		if len(it.audio) > 0 || held.Load() != others {
			t.Errorf("next to %d bytes of others, %d are stored; %d are counted", others, len(it.audio), held.Load())
		}
	}
}

func TestConcurrentResponsesAreBounded(t *testing.T) {
	bubble(t, wire.Options{Scenario: script(t, story), Speed: 1}, func(r *rig) {
		c := r.open()
		for range maxRunning + 5 {
			c.send(`{"type":"response.create","response":{"conversation":"none","input":[]}}`)
		}
		got := c.take(time.Second)
		if count(got, created) != maxRunning || count(got, "error") != 5 {
			t.Errorf("%d responses, %d errors", count(got, created), count(got, "error"))
		}
	})
}

func TestClientSecrets(t *testing.T) {
	bubble(t, wire.Options{}, func(r *rig) {
		code, e := r.post("/v1/realtime/client_secrets", "sk-x", `{"expires_after":{"anchor":"created_at","seconds":60},"session":{"type":"realtime","model":"gpt-realtime-2.1","instructions":"Be kind.","audio":{"output":{"voice":"echo"}}}}`)
		key := e.text("value")
		if code != 200 || !strings.HasPrefix(key, "ek_") || e.text("session.instructions") != "Be kind." || e.num("expires_at") != float64(time.Now().Add(time.Minute).Unix()) {
			t.Fatalf("%d %v", code, e)
		}
		c := r.connect("/v1/realtime?model=gpt-realtime", "Protocols", "realtime, openai-insecure-api-key."+key)
		s := find(c.until("session.created"), "session.created")
		if s.text("session.instructions") != "Be kind." || s.text("session.audio.output.voice") != "echo" || s.text("session.model") != "gpt-realtime" {
			t.Errorf("session %v", s)
		}
		c2 := r.connect("/v1/realtime", "Authorization", "Bearer "+key) // the model of the secret
		if s := find(c2.until("session.created"), "session.created"); s.text("session.model") != "gpt-realtime-2.1" {
			t.Errorf("model %v", s.at("session.model"))
		}
		pass(2 * time.Minute)
		if code, _ := r.connect("/v1/realtime?model=gpt-realtime", "Authorization", "Bearer "+key).closed(time.Second); code != 3000 {
			t.Errorf("a secret that is too old: closed %d", code)
		}
		for body, want := range map[string]string{
			`{"expires_after":{"seconds":5}}`:                       "expires_after.seconds",
			`{"session":{"type":"realtime","nonsense":1}}`:          "session.nonsense",
			`{"session":{"type":"realtime","model":"gpt-nothing"}}`: "model",
			`{"foo":1}`: "foo",
		} {
			if code, e := r.post("/v1/realtime/client_secrets", "sk-x", body); code != 400 || e.text("error.param") != want {
				t.Errorf("%s: %d %v", body, code, e)
			}
		}
		for _, bad := range []string{key, "ek_of-nobody"} {
			if code, _ := r.connect("/v1/realtime?model=gpt-realtime", "Authorization", "Bearer "+bad).closed(time.Second); code != 3000 {
				t.Errorf("%s: closed %d", bad, code)
			}
			if code, _ := r.post("/v1/realtime/client_secrets", bad, `{}`); code != 401 {
				t.Errorf("%s makes another key: %d", bad, code)
			}
		}
		if code, _ := r.post("/v1/realtime/client_secrets", "", `{}`); code != 401 {
			t.Errorf("without a key: %d", code)
		}
	})
}

func TestUnknownPath(t *testing.T) {
	bubble(t, wire.Options{}, func(r *rig) {
		if code, _ := r.post("/v1/nothing", "k", `{}`); code != 404 {
			t.Errorf("got %d", code)
		}
	})
}
