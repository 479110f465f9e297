package speech

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"voicegw/audio"
	"voicegw/internal/bounded"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(int) { bounded.Shared().CloseIdleConnections() }))
}

// tone is a sound of that length.
func tone(rate int, length time.Duration) []byte {
	pcm := make([]byte, audio.Bytes(rate, length))
	for i := range pcm {
		pcm[i] = byte(i%50 + 1)
	}
	return pcm
}

func wav(rate int, length time.Duration) string {
	var b bytes.Buffer
	if err := audio.WriteWAV(&b, rate, tone(rate, length)); err != nil {
		panic(err)
	}
	return b.String()
}

// serve starts an endpoint that counts its requests.
func serve(t *testing.T, format string, answer http.HandlerFunc) (*Speaker, *atomic.Int32) {
	t.Helper()
	asked := new(atomic.Int32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		body, _ := io.ReadAll(r.Body) // only then the server notices that the client leaves
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer(w, r)
	}))
	client := &http.Client{Transport: bounded.NewTransport()}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		server.CloseClientConnections()
		server.Close()
	})
	return New(nil, Endpoint{BaseURL: server.URL + "/v1/", APIKey: "secret", Voice: "marin", Format: format, Timeout: time.Second, Client: client}), asked
}

// TestEndpoint: the request is complete, and sent once for each text.
func TestEndpoint(t *testing.T) {
	for format, body := range map[string]string{"wav": wav(16000, time.Second), "pcm": string(tone(24000, time.Second)) + "x"} {
		t.Run(format, func(t *testing.T) {
			s, asked := serve(t, format, func(w http.ResponseWriter, r *http.Request) {
				var got map[string]string
				if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
					t.Error(err)
				}
				want := map[string]string{"model": DefaultModel, "voice": "marin", "input": "It costs 20 euros.", "response_format": format}
				if fmt.Sprint(got) != fmt.Sprint(want) || r.URL.Path != "/v1/audio/speech" || r.Header.Get("Authorization") != "Bearer secret" {
					t.Errorf("it was asked %s for %v by %q", r.URL.Path, got, r.Header.Get("Authorization"))
				}
				_, _ = io.WriteString(w, body)
			})
			for range 3 {
				clip, err := s.Speak(t.Context(), "It costs 20 euros.")
				if err != nil || clip.Duration() != time.Second {
					t.Fatalf("%d Hz, %s, %v", clip.Rate, clip.Duration(), err)
				}
			}
			if n := asked.Load(); n != 1 {
				t.Errorf("it was asked %d times", n)
			}
		})
	}
}

// TestHostileEndpoint: any misbehaviour of an endpoint ends in an error, in time and without much memory.
func TestHostileEndpoint(t *testing.T) {
	hang := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	endless := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, wav(24000, time.Second)[:44])
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	}
	text := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
	}
	silent := wav(24000, time.Second)[:44] + strings.Repeat("\x00", 48000)
	for name, tc := range map[string]struct {
		format string
		answer http.HandlerFunc
		want   string
	}{
		"it hangs":              {"wav", hang, "the speech endpoint"},
		"it never ends":         {"wav", endless, "the speech endpoint"},
		"pcm that never ends":   {"pcm", endless, "the speech endpoint"},
		"no audio":              {"wav", text(`{"error":"no"}`), "answer"},
		"an empty body":         {"wav", text(""), "answer"},
		"an empty body of pcm":  {"pcm", text(""), "lasts 0s"},
		"a page instead of pcm": {"pcm", text("<html>"), "lasts"},
		"a wrong rate":          {"wav", text(wav(96000, time.Second)), "96000 Hz"},
		"too low a rate":        {"wav", text(wav(4000, time.Second)), "4000 Hz"},
		"too long":              {"wav", text(wav(24000, 61*time.Second)), "lasts 1m1s"},
		"too short":             {"wav", text(wav(24000, time.Millisecond)), "lasts 1ms"},
		"silence":               {"wav", text(silent), "silent"},
		"an error":              {"wav", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, "answered 500"},
		"a redirect": {"wav", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusTemporaryRedirect)
		}, "the speech endpoint"},
		"a broken connection": {"wav", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_ = conn.Close()
			}
		}, "speech"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, asked := serve(t, tc.format, tc.answer)
			for range 2 { // an error is not cached
				if _, err := s.Speak(t.Context(), "It costs 20 euros."); err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret") {
					t.Errorf("the error is %v, want one about %q", err, tc.want)
				}
			}
			if asked.Load() < 2 {
				t.Error("an error was remembered")
			}
		})
	}
}

// TestOneWaiterLeaves: a caller that leaves does not end the request of another waiting caller.
func TestOneWaiterLeaves(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	s, asked := serve(t, "wav", func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-goOn
		_, _ = io.WriteString(w, wav(24000, time.Second))
	})
	ctx, leave := context.WithCancel(t.Context())
	errs := make(chan error, 2)
	go func() { _, err := s.Speak(ctx, "a"); errs <- err }()
	<-begun
	go func() { _, err := s.Speak(t.Context(), "a"); errs <- err }()
	leave()
	if err := <-errs; err == nil {
		t.Error("the caller that has left got audio")
	}
	close(goOn)
	if err := <-errs; err != nil || asked.Load() != 1 {
		t.Errorf("the other one got %v after %d requests", err, asked.Load())
	}
}

// TestCacheIsBounded: the oldest sentences are removed.
func TestCacheIsBounded(t *testing.T) {
	s := New(nil, Endpoint{})
	clip := audio.Clip{Rate: 24000, PCM: make([]byte, 3<<20)}
	for i := range 40 {
		s.keep([32]byte{byte(i)}, clip)
		if s.bytes > maxCached || s.bytes != len(s.cached)*len(clip.PCM) {
			t.Fatalf("%d bytes of %d sentences are cached", s.bytes, len(s.cached))
		}
	}
	if _, ok := s.lookUp([32]byte{39}); !ok {
		t.Error("the newest sentence was removed")
	}
	if _, ok := s.lookUp([32]byte{0}); ok {
		t.Error("the oldest sentence is remembered")
	}
}

func TestRecordings(t *testing.T) {
	good := fstest.MapFS{"n.wav": {Data: []byte(wav(16000, time.Second))}, "n.txt": {Data: []byte("This call\nis recorded. \n")}}
	all, err := Load(good)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d recordings, %v", len(all), err)
	}
	s := New(all, Endpoint{})
	if clip, err := s.Speak(t.Context(), " This call is  recorded."); err != nil || clip.Rate != 16000 {
		t.Errorf("%d Hz, %v", clip.Rate, err)
	}
	if _, err := s.Speak(t.Context(), "Other words."); err == nil || !strings.Contains(err.Error(), "exact.base_url") {
		t.Errorf("other words: %v", err)
	}
	for name, tc := range map[string]struct {
		files fstest.MapFS
		want  string
	}{
		"no files":       {fstest.MapFS{"a.txt": {}}, "0 files"},
		"no words":       {fstest.MapFS{"a.wav": good["n.wav"]}, "write them into a.txt"},
		"empty words":    {fstest.MapFS{"a.wav": good["n.wav"], "a.txt": {Data: []byte(" \n")}}, "a.txt must have"},
		"no WAV":         {fstest.MapFS{"a.wav": {Data: []byte("ID3")}, "a.txt": good["n.txt"]}, "a.wav:"},
		"too long":       {fstest.MapFS{"a.wav": {Data: []byte(wav(16000, 61*time.Second))}, "a.txt": good["n.txt"]}, "lasts 1m1s"},
		"too low a rate": {fstest.MapFS{"a.wav": {Data: []byte(wav(4000, time.Second))}, "a.txt": good["n.txt"]}, "4000 Hz"},
	} {
		if _, err := Load(tc.files); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: the error is %v, want one about %q", name, err, tc.want)
		}
	}
}

// FuzzAnswer: no answer of an endpoint crashes the gateway, and every accepted one is a playable sentence.
func FuzzAnswer(f *testing.F) {
	for _, body := range []string{"", "RIFF", wav(8000, time.Second), wav(24000, 100*time.Millisecond)[:60]} {
		f.Add(body, true)
		f.Add(body, false)
	}
	f.Fuzz(func(t *testing.T, body string, isWAV bool) {
		format := map[bool]string{true: "wav", false: "pcm"}[isWAV]
		s := New(nil, Endpoint{BaseURL: "http://127.0.0.1", Format: format, Client: &http.Client{Transport: answering(body)}})
		clip, err := s.Speak(t.Context(), "a")
		if err == nil && (check(clip) != nil || len(clip.PCM)%2 != 0) {
			t.Errorf("%d bytes of %d Hz were accepted", len(clip.PCM), clip.Rate)
		}
	})
}

// answering answers each request with itself.
type answering string

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(a))), Request: r}, nil
}
