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
		want        verdict
	}{
		{"as the provider writes it", plain, scanAudio},
		{"any order of keys", `{"delta":"AAEC","content_index":0,"item_id":"item_1","type":"response.output_audio.delta","response_id":"resp_1"}`, scanAudio},
		{"white space", " {\n \"type\" : \"response.output_audio.delta\" ,\t\"item_id\":\"item_1\" , \"response_id\":\"resp_1\",\"delta\" : \"AAEC\" }\r\n", scanAudio},
		{"beta name", strings.Replace(plain, "output_audio", "audio", 1), scanAudio},
		{"unknown plain members", strings.Replace(plain, `"event_id"`, `"x":null,"y":true,"z":false,"obfuscation":"aaa","event_id"`, 1), scanAudio},
		{"empty key", strings.Replace(plain, `"event_id"`, `"":1,"event_id"`, 1), scanAudio},
		{"no response id", `{"type":"response.output_audio.delta","item_id":"item_1","delta":"AAEC"}`, scanAudio},
		{"another event", `{"type":"response.done","response":{"id":"x"}}`, scanOther},
		{"another event, type last", `{"event_id":"e","type":"response.done"}`, scanOther},
		{"a nested member before the type", `{"response":{"id":"x"},"type":"response.done"}`, scanUnsure},
		{"escape in an id", strings.Replace(plain, "item_1", `item\u005f1`, 1), scanUnsure},
		{"escape in a member that does not count", strings.Replace(plain, "event_1", `event\"1`, 1), scanUnsure},
		{"escape in a key", strings.Replace(plain, `"item_id"`, `"item\u005fid"`, 1), scanUnsure},
		{"id outside ASCII", strings.Replace(plain, "item_1", "itém_1", 1), scanUnsure},
		{"key twice", strings.Replace(plain, `"item_id"`, `"item_id":"item_0","item_id"`, 1), scanUnsure},
		{"delta twice", strings.Replace(plain, `"delta"`, `"delta":"AAAA","delta"`, 1), scanUnsure},
		{"key in other letters", strings.Replace(plain, `"event_id":"event_1"`, `"Item_ID":"item_0"`, 1), scanUnsure},
		{"delta is no string", strings.Replace(plain, `"AAEC"`, `17`, 1), scanUnsure},
		{"nested member", strings.Replace(plain, `"output_index":0`, `"extra":{"item_id":"no"}`, 1), scanUnsure},
		{"list", strings.Replace(plain, `"output_index":0`, `"extra":[1]`, 1), scanUnsure},
		{"number with a leading zero", strings.Replace(plain, `"output_index":0`, `"output_index":01`, 1), scanUnsure},
		{"fraction", strings.Replace(plain, `"output_index":0`, `"output_index":0.5`, 1), scanUnsure},
		{"no item", `{"type":"response.output_audio.delta","delta":"AAEC"}`, scanUnsure},
		{"comma at the end", strings.Replace(plain, `"AAEC"}`, `"AAEC",}`, 1), scanUnsure},
		{"something left over", plain + "x", scanUnsure},
		{"two objects", plain + plain, scanUnsure},
		{"cut off", plain[:len(plain)-1], scanUnsure},
		{"cut off in the audio", plain[:len(plain)-3], scanUnsure},
		{"no object", `["type"]`, scanUnsure},
		{"empty object", `{}`, scanUnsure},
		{"nothing", ``, scanUnsure},
		{"wrong literal", strings.Replace(plain, `"output_index":0`, `"output_index":nul`, 1), scanUnsure},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, v := scanFrame([]byte(tt.frame))
			if v != tt.want {
				t.Fatalf("scanFrame returned %d, want %d", v, tt.want)
			}
			if v == scanAudio && (string(s.item) != "item_1" || string(s.delta) != "AAEC") {
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
		s, v := scanFrame(frame)
		var want struct {
			Type, Delta string
			ItemID      string `json:"item_id"`
			ResponseID  string `json:"response_id"`
		}
		err := json.Unmarshal(frame, &want)
		switch v {
		case scanAudio:
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
		case scanOther:
			// The scanner did not read the rest: if that is valid and has no other type, both must agree.
			if err == nil && want.Type != string(s.eventType) && countType(frame) == 1 {
				t.Fatalf("scanner %q, encoding/json %q", s.eventType, want.Type)
			}
		}
	})
}

// countType counts the members of the outer object that encoding/json takes for "type".
func countType(frame []byte) int {
	dec := json.NewDecoder(strings.NewReader(string(frame)))
	if _, err := dec.Token(); err != nil {
		return 0
	}
	n := 0
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return n
		}
		if s, ok := key.(string); ok && strings.EqualFold(s, "type") {
			n++
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return n
		}
	}
	return n
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
		s, v := scanFrame(first)
		if v != scanAudio {
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
		again, v := scanFrame(second)
		if v != scanAudio || string(again.delta) != string(delta) || string(again.item) != string(s.item) {
			t.Fatalf("alike, but the scanner returned %d, item %q, delta %q", v, again.item, again.delta)
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
			own := bytes.Clone(frame)
			if _, s, v := c.fastAudio(own); v != scanAudio {
				c.dispatch(own, &s, v)
			}
		}
		if st := c.Stats(); st.MalformedEvents+st.UnknownEvents > 2 {
			t.Fatalf("one frame twice counts as %+v", st)
		}
	})
}
