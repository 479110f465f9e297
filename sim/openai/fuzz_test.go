package openai

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"voicegw/sim/wire"
)

// Taking the audio out first gives the same event as reading all of it.
func FuzzCutAudio(f *testing.F) {
	pad := strings.Repeat("A", 256)
	f.Add(`{"type":"input_audio_buffer.append","audio":"` + pad + `"}`)
	f.Add(`{"audio": "` + pad + `","event_id":"x","type":"input_audio_buffer.append"}`)
	f.Add(`{"type":"input_audio_buffer.append","x":{"audio":"` + pad + `"}}`)
	f.Add(`{"type":"input_audio_buffer.append","x":"\"audio\":\"` + pad + `"}`)
	f.Fuzz(func(t *testing.T, frame string) {
		data := []byte(frame)
		rest, encoded, ok := wire.CutText(data, "audio")
		var short, whole clientEvent
		if !ok || json.Unmarshal(rest, &short) != nil || short.Audio == nil || *short.Audio != "" || !utf8.ValidString(frame) {
			return
		}
		if err := json.Unmarshal(data, &whole); err != nil {
			// An invalid JSON string is also invalid base64, and append refuses it.
			if _, err := base64.StdEncoding.DecodeString(string(encoded)); err == nil {
				t.Fatalf("%q is taken", frame)
			}
			return
		}
		if strings.Count(strings.ToLower(frame), "audio\"") > 1 {
			return // the same key twice: either may win
		}
		if whole.Audio == nil || *whole.Audio != string(encoded) || whole.Type != short.Type || whole.EventID != short.EventID {
			t.Fatalf("%q: %q", frame, encoded)
		}
	})
}

// Whatever a client sends, the session answers or closes, and does not fall over.
func FuzzClientEvents(f *testing.F) {
	f.Add(update(`"tools":[{"type":"function","name":"a","parameters":{"x":1}}],"audio":{"input":{"turn_detection":{"type":"semantic_vad"},"transcription":{"model":"whisper-1"}}}`) + "\n" + `{"type":"response.create"}`)
	f.Add(`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_audio","audio":"AAAA","transcript":"x"}]}}` + "\n" + `{"type":"response.create","response":{"conversation":"none","input":[{"type":"item_reference","id":"x"}],"max_output_tokens":3}}`)
	f.Add(`{"type":"input_audio_buffer.append","audio":"AAAAAAAA"}` + "\n" + `{"type":"input_audio_buffer.commit"}` + "\n" + `{"type":"conversation.item.truncate","item_id":"a","audio_end_ms":-1}`)
	f.Add(`{"type":"session.update","session":{"type":"realtime","audio":{"input":{"format":{"type":"audio/pcmu"}}}}}` + "\n" + `{"type":"response.cancel","response_id":5}`)
	f.Add("[]\nnull\n{\"type\":null}\n\x00")
	f.Fuzz(func(t *testing.T, frames string) {
		bubble(t, wire.Options{Speed: -1, FirstAudioMS: -1}, func(r *rig) {
			c := r.open()
			for i, e := range strings.Split(frames, "\n") {
				if i == 20 || c.ws.Write(context.Background(), websocket.MessageText, []byte(strings.ToValidUTF8(e, "?"))) != nil {
					break
				}
			}
			for _, e := range c.take(time.Second) {
				if !json.Valid(e.raw) || e.text("type") == "" || e.text("event_id") == "" {
					t.Fatalf("sent %s", e.raw)
				}
			}
		})
	})
}

// FuzzClientSecrets: no request for an ephemeral key breaks the reader, and a key that is made opens a session.
func FuzzClientSecrets(f *testing.F) {
	for _, body := range []string{
		``, `{}`, `{"expires_after":{"anchor":"created_at","seconds":10},"session":{"type":"realtime","model":"gpt-realtime","instructions":"x"}}`,
		`{"session":[]}`, `{"session":{"model":3}}`, `{"expires_after":null,"session":null}`, `[`, "\xff",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		h, now := New(wire.Options{}), time.Now()
		answer, bad := h.makeSecret(body, now)
		if bad != nil {
			return
		}
		if made, no := h.secrets.find(answer.Value, now); no != nil || made == nil {
			t.Errorf("a key that was made is refused: %v", no)
		}
	})
}
