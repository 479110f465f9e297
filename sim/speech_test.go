package sim

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"voicegw/audio"
	"voicegw/sim/wire"
)

// TestSpeech: the endpoint speaks any text in WAV or PCM, and refuses the requests that OpenAI refuses.
func TestSpeech(t *testing.T) {
	h := New(wire.Options{Seed: 1})
	ask := func(path, body string) *http.Response {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer key")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
	answer := ask("/v1/audio/speech", `{"model":"gpt-4o-mini-tts","voice":"alloy","input":"This call is recorded.","response_format":"wav"}`)
	clip, err := audio.ReadWAV(answer.Body)
	if err != nil || answer.StatusCode != 200 || clip.Rate != 24000 || clip.Duration() < time.Second || clip.Duration() > 5*time.Second {
		t.Fatalf("%d, %d Hz, %s, %v", answer.StatusCode, clip.Rate, clip.Duration(), err)
	}
	pcm, _ := io.ReadAll(ask("/openai/deployments/tts/audio/speech", `{"voice":"alloy","input":"This call is recorded.","response_format":"pcm"}`).Body)
	if !bytes.Equal(pcm, clip.PCM) {
		t.Errorf("PCM has %d bytes, WAV %d", len(pcm), len(clip.PCM))
	}
	for body, want := range map[string]string{
		`{"voice":"alloy","input":"a","response_format":"wav"}`:                                             "model",
		`{"model":"m","voice":"alloy","response_format":"wav"}`:                                             "input",
		`{"model":"m","voice":"alloy","input":" ","response_format":"wav"}`:                                 "input",
		`{"model":"m","voice":"alloy","input":"` + strings.Repeat("a", 5000) + `","response_format":"wav"}`: "input",
		`{"model":"m","input":"a","response_format":"wav"}`:                                                 "voice",
		`{"model":"m","voice":"alloy","input":"a"}`:                                                         "response_format",
		`{"model":"m","voice":"alloy","input":"a","response_format":"wav","speed":9}`:                       "speed",
		`[]`: "JSON",
	} {
		r := ask("/v1/audio/speech", body)
		if text, _ := io.ReadAll(r.Body); r.StatusCode != 400 || !strings.Contains(string(text), want) {
			t.Errorf("%.80s: %d %s", body, r.StatusCode, text)
		}
	}
}
