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

func TestBothWiresBehindOneAddress(t *testing.T) {
	l := start(t, Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
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
		"/healthz": 200, "/v1/realtime": 401,
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
		t.Error("it still listens")
	}
}

func TestStartSaysWhereItFailed(t *testing.T) {
	if _, err := Start(t.Context(), "256.0.0.1:1", Options{}); err == nil || !strings.Contains(err.Error(), "256.0.0.1:1") {
		t.Errorf("got %v", err)
	}
}

func TestClientSecretOverHTTP(t *testing.T) {
	l := start(t, Options{})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, l.OpenAIURL()+"/realtime/client_secrets", strings.NewReader(`{"session":{"type":"realtime","model":"gpt-realtime"}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer sk-x")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), `"value":"ek_`) {
		t.Errorf("%d %s %v", resp.StatusCode, body, err)
	}
}
