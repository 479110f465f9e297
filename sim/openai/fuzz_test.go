package openai

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"voicegw/sim/wire"
)

// FuzzClientEvents: the session answers any client event or closes, without a crash.
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

// FuzzClientSecrets: no request for an ephemeral key breaks the reader, and an issued key opens a session.
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
