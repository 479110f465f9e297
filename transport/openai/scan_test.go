package openai

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestScanFrame(t *testing.T) {
	const plain = `{"type":"response.output_audio.delta","event_id":"event_1","response_id":"resp_1","item_id":"item_1","output_index":0,"content_index":0,"delta":"AAEC"}`
	tests := []struct {
		name, frame string
		want        bool
	}{
		{"as the provider writes it", plain, true},
		{"any order of keys", `{"delta":"AAEC","content_index":0,"item_id":"item_1","type":"response.output_audio.delta","response_id":"resp_1"}`, true},
		{"white space", " {\n \"type\" : \"response.output_audio.delta\" ,\t\"item_id\":\"item_1\" , \"response_id\":\"resp_1\",\"delta\" : \"AAEC\" }\r\n", true},
		{"beta name", strings.Replace(plain, "output_audio", "audio", 1), true},
		{"unknown plain members", strings.Replace(plain, `"event_id"`, `"x":null,"y":true,"z":false,"obfuscation":"aaa","event_id"`, 1), true},
		{"empty key", strings.Replace(plain, `"event_id"`, `"":1,"event_id"`, 1), true},
		{"no response id", `{"type":"response.output_audio.delta","item_id":"item_1","delta":"AAEC"}`, true},
		{"another event", `{"type":"response.done","response":{"id":"x"}}`, false},
		{"another event, type last", `{"event_id":"e","type":"response.done"}`, false},
		{"a nested member before the type", `{"response":{"id":"x"},"type":"response.done"}`, false},
		{"escape in an id", strings.Replace(plain, "item_1", `item\u005f1`, 1), false},
		{"escape in a member that does not count", strings.Replace(plain, "event_1", `event\"1`, 1), false},
		{"escape in a key", strings.Replace(plain, `"item_id"`, `"item\u005fid"`, 1), false},
		{"id outside ASCII", strings.Replace(plain, "item_1", "itém_1", 1), false},
		{"key twice", strings.Replace(plain, `"item_id"`, `"item_id":"item_0","item_id"`, 1), false},
		{"delta twice", strings.Replace(plain, `"delta"`, `"delta":"AAAA","delta"`, 1), false},
		{"key in other letters", strings.Replace(plain, `"event_id":"event_1"`, `"Item_ID":"item_0"`, 1), false},
		{"delta is not a string", strings.Replace(plain, `"AAEC"`, `17`, 1), false},
		{"nested member", strings.Replace(plain, `"output_index":0`, `"extra":{"item_id":"no"}`, 1), false},
		{"list", strings.Replace(plain, `"output_index":0`, `"extra":[1]`, 1), false},
		{"number with a leading zero", strings.Replace(plain, `"output_index":0`, `"output_index":01`, 1), false},
		{"fraction", strings.Replace(plain, `"output_index":0`, `"output_index":0.5`, 1), false},
		{"no item", `{"type":"response.output_audio.delta","delta":"AAEC"}`, false},
		{"comma at the end", strings.Replace(plain, `"AAEC"}`, `"AAEC",}`, 1), false},
		{"something left over", plain + "x", false},
		{"two objects", plain + plain, false},
		{"cut off", plain[:len(plain)-1], false},
		{"cut off in the audio", plain[:len(plain)-3], false},
		{"no object", `["type"]`, false},
		{"empty object", `{}`, false},
		{"nothing", ``, false},
		{"wrong literal", strings.Replace(plain, `"output_index":0`, `"output_index":nul`, 1), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, ok := scanFrame([]byte(tt.frame))
			if ok != tt.want {
				t.Fatalf("scanFrame returned %v, want %v", ok, tt.want)
			}
			if ok && (string(s.item) != "item_1" || string(s.delta) != "AAEC") {
				t.Errorf("item %q, delta %q", s.item, s.delta)
			}
		})
	}
}

// FuzzScanFrame compares the scanner with encoding/json: if the scanner is sure, both must find the same, and the frame
// must be valid except for the audio, which decoding checks.
func FuzzScanFrame(f *testing.F) {
	for _, seed := range []string{
		`{"type":"response.output_audio.delta","event_id":"event_1","response_id":"resp_1","item_id":"item_1","output_index":0,"content_index":0,"delta":"AAEC"}`,
		`{"delta":"AAEC","Item_ID":"b","item_id":"item_1","type":"response.audio.delta"}`,
		`{"type":"response.done","response":{"id":"x"}}`,
		"{\"type\":\"response.output_audio.delta\",\"item_id\":\"a\\u0041\",\"delta\":\"\",\"x\":-1.5e3}",
		`{"type":"a","type":"response.output_audio.delta","item_id":"i","delta":"A\/B="}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		s, ok := scanFrame(frame)
		if !ok {
			return
		}
		var want struct {
			Type, Delta string
			ItemID      string `json:"item_id"`
			ResponseID  string `json:"response_id"`
		}
		err := json.Unmarshal(frame, &want)
		for _, c := range s.delta {
			if c == '\\' || c < ' ' || c >= 0x7F {
				return // the decoder refuses it, the typed path decides
			}
		}
		if err != nil {
			t.Fatalf("sure of a frame that encoding/json refuses: %v", err)
		}
		if want.Type != string(s.eventType) || want.ItemID != string(s.item) ||
			want.ResponseID != string(s.response) || want.Delta != string(s.delta) {
			t.Fatalf("scanner %q %q %q %q, encoding/json %+v", s.eventType, s.item, s.response, s.delta, want)
		}
	})
}

// FuzzLikeness compares the shape of frames with the scanner: a frame with the shape of one that the scanner was sure of
// must give the scanner's result.
func FuzzLikeness(f *testing.F) {
	const plain = `{"type":"response.output_audio.delta","event_id":"event_1","response_id":"resp_1","item_id":"item_1","output_index":0,"content_index":0,"delta":"AAEC"}`
	f.Add([]byte(plain), []byte(strings.Replace(plain, "event_1", "event_2222", 1)))
	f.Add([]byte(plain), []byte(strings.Replace(plain, "event_1", `event\"2`, 1)))
	f.Add([]byte(plain), []byte(strings.Replace(plain, "AAEC", `AA"}EC`, 1)))
	f.Add([]byte(`{"delta":"AAEC","event_id":"x","item_id":"i","type":"response.audio.delta"}`), []byte(`{"delta":"","event_id":"x","item_id":"i","type":"response.audio.delta"}`))
	f.Add([]byte(`{"type":"response.audio.delta","item_id":"i","delta":"AAEC"}`), []byte(`{"type":"response.audio.delta","item_id":"i","delta":"AAECAAEC"}`))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		s, sure := scanFrame(first)
		if !sure {
			return
		}
		var l likeness
		l.learn(&spokenItem{}, first, &s)
		if delta, ok := l.match(first); !ok || string(delta) != string(s.delta) {
			t.Fatalf("a frame is not like itself: %q", delta)
		}
		delta, ok := l.match(second)
		if !ok {
			return
		}
		for _, c := range delta {
			if c == '"' || c == '\\' || c < ' ' || c >= 0x7F {
				return // the decoder refuses it, the typed path decides
			}
		}
		again, sure := scanFrame(second)
		if !sure || string(again.delta) != string(delta) || string(again.item) != string(s.item) {
			t.Fatalf("alike, but the scanner returned %v, item %q, delta %q", sure, again.item, again.delta)
		}
	})
}

// FuzzFrames: no frame makes a connection panic, and a frame counts at most once.
func FuzzFrames(f *testing.F) {
	for _, seed := range []string{
		`{"type":"response.done","response":{"id":"r","status":"failed","status_details":{"error":{"code":"insufficient_quota"}},"output":[{"type":"function_call","id":"i","call_id":"c"}],"usage":{"input_tokens":-1}}}`,
		`{"type":"error","error":{"code":"conversation_already_has_active_response","event_id":""}}`,
		`{"type":"response.output_audio.delta","item_id":"i","delta":"AAE\/"}`,
		`{"type":"input_audio_buffer.speech_stopped","audio_end_ms":1e99,"item_id":3}`,
		`{"type":"response.output_item.done","item":{"type":"function_call","arguments":{}}}`,
		`{"type":"conversation.item.input_audio_transcription.completed","content_index":-4,"transcript":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		c := bareConn(t)
		for range 2 {
			c.take(bytes.Clone(frame))
		}
		if st := c.Stats(); st.MalformedEvents+st.UnknownEvents > 2 {
			t.Fatalf("one frame twice counts as %+v", st)
		}
	})
}
