package sim

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"voicegw/internal/livewire"
	"voicegw/sim/scenario"
	"voicegw/sim/voice"
)

func TestMain(m *testing.M) {
	// A library below Google's SDK starts it when the program begins.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

func start(t *testing.T, o Options) *Local {
	t.Helper()
	l, err := Start(t.Context(), "", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return l
}

func TestBothWiresAtOneAddress(t *testing.T) {
	l := start(t, Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for path, send := range map[string]string{
		"/v1/realtime?model=gpt-realtime":                                                       "",
		"//v1/realtime?model=gpt-realtime":                                                      "",
		"/openai/v1/realtime?model=my-own":                                                      "",
		"/v1/realtime/?model=gpt-realtime-2.1":                                                  "",
		"/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent?key=k":   `{"setup":{"model":"models/gemini-2.5-flash-native-audio-preview-09-2025"}}`,
		"//ws/google.ai.generativelanguage.v1alpha.GenerativeService.BidiGenerateContent?key=k": `{"setup":{"model":"models/gemini-2.5-flash-native-audio-preview-09-2025"}}`,
	} {
		ws, _, err := websocket.Dial(ctx, l.GeminiURL()+path, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer sk-x"}}})
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if send != "" {
			if err := ws.Write(ctx, websocket.MessageText, []byte(send)); err != nil {
				t.Error(err)
			}
		}
		_, data, err := ws.Read(ctx)
		if err != nil || !strings.Contains(string(data), "session.created") && !strings.Contains(string(data), "setupComplete") {
			t.Errorf("%s: %.80s %v", path, data, err)
		}
		if err := ws.Close(1000, ""); err != nil {
			t.Errorf("%s: close: %v", path, err)
		}
	}
	if n := l.Server.Stats().Connections.Load(); n != 6 {
		t.Errorf("%d connections were counted", n)
	}
}

func TestUnknownPathsAreExplained(t *testing.T) {
	s := New(Options{})
	for path, want := range map[string]int{
		"/": 404, "/v1/completions": 404, "/v1/chat/completions": 405, "/ws/nothing": 404, "/v1/realtime/calls": 404, "/v2/realtime": 404,
		"/healthz": 200, "/v1/realtime": 401, "/v1/live": 404, "/v1/live/sessions": 401, "/openai/v1/live/sessions/": 401,
	} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
		if want == 404 && !strings.Contains(w.Body.String(), "/v1/realtime") {
			t.Errorf("%s: %q", path, w.Body.String())
		}
	}
}

func TestCloseEndsConnections(t *testing.T) {
	l, err := Start(t.Context(), "127.0.0.1:0", Options{})
	if err != nil {
		t.Fatal(err)
	}
	ws, _, err := websocket.Dial(t.Context(), l.OpenAIURL()+"/realtime?model=gpt-realtime", &websocket.DialOptions{HTTPHeader: http.Header{"Api-Key": {"k"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := ws.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1) // from Close's goroutine to the test; capacity 1 so that it never waits
	go func() { closed <- l.Close() }()
	if _, _, err := ws.Read(t.Context()); websocket.CloseStatus(err) != 1001 {
		t.Errorf("the client sees %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if n := l.Server.Open(); n != 0 {
		t.Errorf("%d connections are left", n)
	}
	if _, err := http.Get(l.GeminiURL()); err == nil {
		t.Error("it is still listening")
	}
}

func TestStartErrors(t *testing.T) {
	if _, err := Start(t.Context(), "256.0.0.1:1", Options{}); err == nil || !strings.Contains(err.Error(), "256.0.0.1:1") {
		t.Errorf("got %v", err)
	}
}

// TestHandshakesRefusedByAFault: a fault refuses the handshake of either wire with a status, and does not affect the
// others.
func TestHandshakesRefusedByAFault(t *testing.T) {
	faults, err := scenario.ParseFaults("f", []byte("faults: [{at: connect, api: realtime, do: http_error, code: 503, for: 3s, reason: full}, {at: connect, api: live, do: http_error, code: 429, for: 3s}]"))
	if err != nil {
		t.Fatal(err)
	}
	l := start(t, Options{Faults: faults, Speed: -1, FirstAudioMS: -1})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for path, want := range map[string]int{
		"/v1/realtime?model=gpt-realtime": 503,
		"/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent?key=k": 429,
	} {
		_, resp, err := websocket.Dial(ctx, l.GeminiURL()+path, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer sk-x"}}})
		if err == nil || resp == nil || resp.StatusCode != want || resp.Header.Get("Retry-After") != "3" {
			t.Errorf("%s: %v", path, err)
		}
	}
	if n := l.Server.Stats().FaultsBy.All()[scenario.HTTPError]; n != 2 {
		t.Errorf("%d faults were counted", n)
	}
	if got := post(t, l, "/v1/chat/completions", `{"model":"gpt-5","messages":[{"role":"user","content":"hello"}]}`); !strings.Contains(got, "What can I do for you?") {
		t.Errorf("%s", got)
	}
}

func post(t *testing.T, l *Local, path, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, l.GeminiURL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer sk-x")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestLiveAndTheTextModelShareAScenario: OpenAI Live delegates the tools of a scenario to the text model of the same
// scenario.
func TestLiveAndTheTextModelShareAScenario(t *testing.T) {
	s, err := scenario.Parse("s", []byte(`
rules:
  - {when: {utterance: 1}, heard: 'What is the weather in Paris?'}
  - {when: {text: 'weather in (\w+)', declared: get_weather}, do: [{call: {tool: get_weather, args: {city: "${1}"}}}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	l := start(t, Options{Scenario: s, Speed: -1, FirstAudioMS: -1})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, l.URL("live")+"/live/sessions", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer sk-x"}}})
	if err != nil {
		t.Fatal(err)
	}
	pcm := voice.New(voice.Options{}).Speak("What is the weather in Paris, please?").PCM
	for _, frame := range []string{`{"type":"session.start","session":{"model":"gpt-live-1"}}`, string(livewire.AppendAudio(nil, append(pcm, make([]byte, 96000)...)))} {
		if err := ws.Write(ctx, websocket.MessageText, []byte(frame)); err != nil {
			t.Fatal(err)
		}
	}
	heard := ""
	for e := (livewire.ServerEvent{}); e.Type != livewire.DelegationCreated; {
		_, data, err := ws.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if e, err = livewire.ParseServerEvent(data); err != nil {
			t.Fatal(err)
		}
		if e.Type == livewire.InputTranscript {
			heard += e.Delta
		}
	}
	got := post(t, l, "/v1/chat/completions", `{"model":"gpt-5","messages":[{"role":"user","content":"`+heard+`"}],"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}]}`)
	if !strings.Contains(got, `"get_weather"`) || !strings.Contains(got, "Paris") {
		t.Errorf("the text model with %q: %s", heard, got)
	}
	if err := ws.Close(1000, ""); err != nil {
		t.Error(err)
	}
}

// TestRequestAPIs: the APIs without connections are at the same address as the wires, at OpenAI's, Azure's and Google's
// paths.
func TestRequestAPIs(t *testing.T) {
	l := start(t, Options{Speed: -1, FirstAudioMS: -1})
	chat := `{"model":"gpt-5","messages":[{"role":"user","content":"hello"}]}`
	for path, c := range map[string]struct{ body, want string }{
		"/v1/chat/completions":                                  {chat, "chat.completion"},
		"//v1/chat/completions/":                                {chat, "chat.completion"},
		"/openai/v1/chat/completions":                           {chat, "chat.completion"},
		"/v1beta/openai/chat/completions":                       {chat, "chat.completion"},
		"/v1/embeddings":                                        {`{"model":"text-embedding-3-small","input":"x"}`, `"embedding":[`},
		"/v1/images/generations":                                {`{"model":"gpt-image-2","prompt":"x","size":"64x64"}`, `"b64_json":"iVBOR`},
		"/v1beta/models/gemini-2.5-flash-image:generateContent": {`{"contents":[{"parts":[{"text":"x"}]}]}`, `"data":"iVBOR`},
		"/v1beta1/projects/p/locations/l/publishers/google/models/imagen-4.0-generate-001:predict": {`{"instances":[{"prompt":"x"}]}`, `"bytesBase64Encoded":"iVBOR`},
	} {
		if got := post(t, l, path, c.body); !strings.Contains(got, c.want) {
			t.Errorf("%s: %.200s", path, got)
		}
	}
}
