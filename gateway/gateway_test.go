package gateway

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"voicegw/session"
	"voicegw/session/wsclient"
	"voicegw/transport"
	"voicegw/transport/transporttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sessionOptions are those of sessions with a fake model.
func sessionOptions() session.Options {
	fake := transporttest.New(transport.Capabilities{SpeechEvents: true})
	return session.Options{Transports: map[string]transport.Transport{"fake": fake, "other": fake}, Provider: "fake"}
}

func logTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// start runs a gateway with a fake model on a real socket.
func start(t *testing.T, limits session.Limits) (*httptest.Server, *session.Manager) {
	t.Helper()
	opts := sessionOptions()
	opts.Limits = limits
	m, err := session.NewManager(opts)
	if err != nil {
		t.Fatal(err)
	}
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "the page") })
	srv := httptest.NewUnstartedServer(New(Options{Sessions: m, Page: page, Version: "v1"}))
	srv.Config.ConnContext = ConnContext
	srv.Listener = Listen(srv.Listener)
	srv.Start()
	t.Cleanup(func() {
		m.Close()
		srv.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return srv, m
}

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// TestEndpoints: what each path answers.
func TestEndpoints(t *testing.T) {
	srv, _ := start(t, session.Limits{})
	for _, tc := range []struct {
		path   string
		status int
		word   string
	}{
		{"/healthz", 200, `"status":"ok"`}, {"/readyz", 200, `"ready"`}, {"/", 200, "the page"},
		{"/v1/providers", 200, `"default":"fake"`}, {"/v1/voice", 426, ""}, {"/v1/nothing", 404, "no endpoint"},
	} {
		resp, body := get(t, srv.URL+tc.path)
		if resp.StatusCode != tc.status || !strings.Contains(body, tc.word) {
			t.Errorf("%s: %d %s", tc.path, resp.StatusCode, body)
		}
	}
}

// TestSessionOverASocket: a client starts, is heard of in /healthz, and hangs up.
func TestSessionOverASocket(t *testing.T) {
	srv, m := start(t, session.Limits{})
	c, err := wsclient.Dial(context.Background(), srv.URL+"/v1/voice", wsclient.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Abort()
	say(t, c, &wsclient.Start{InputRate: 16000, OutputRate: 24000, Provider: "other"})
	if started, ok := hear(t, c).(*wsclient.SessionStarted); !ok || started.SessionID == "" || started.InputRate != 16000 {
		t.Fatalf("the gateway answered %+v", started)
	}
	if _, body := get(t, srv.URL+"/healthz"); !strings.Contains(body, `"sessions":1`) {
		t.Errorf("healthz says %s", body)
	}
	say(t, c, &wsclient.End{})
	if ended, ok := hear(t, c).(*wsclient.SessionEnded); !ok || ended.Reason != "client_ended" {
		t.Errorf("the gateway answered %+v", ended)
	}
	if _, err := c.Read(); wsclient.CloseStatus(err) != wsclient.CloseDone {
		t.Errorf("closed with %v", err)
	}
	m.Close()
	if m.Running() != 0 {
		t.Error("the session is still counted")
	}
}

// TestDrainingIsTold: /readyz turns 503 and new sessions are refused with
// Retry-After.
func TestDrainingIsTold(t *testing.T) {
	srv, m := start(t, session.Limits{})
	m.Close()
	for _, path := range []string{"/readyz", "/v1/voice"} {
		resp, body := get(t, srv.URL+path)
		if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
	if resp, _ := get(t, srv.URL+"/healthz"); resp.StatusCode != 200 {
		t.Error("a draining process is alive")
	}
}

// TestHundredConnectionsFromOneAddress: those over the limit get 429 with words,
// and the others work.
func TestHundredConnectionsFromOneAddress(t *testing.T) {
	srv, m := start(t, session.Limits{PerAddress: 10, NewPerSecond: 1000, CountLoopback: true})
	var mu sync.Mutex
	var open []*wsclient.Conn
	var refused []string
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			c, err := wsclient.Dial(context.Background(), srv.URL+"/v1/voice", wsclient.DialOptions{})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				refused = append(refused, err.Error())
				return
			}
			open = append(open, c)
		})
	}
	wg.Wait()
	if len(open) != 10 || m.Running() != 10 {
		t.Errorf("%d connections were let in, %d run, want 10", len(open), m.Running())
	}
	for _, text := range refused {
		if !strings.Contains(text, "429") || !strings.Contains(text, "Too many sessions") {
			t.Fatalf("refused with %s", text)
		}
	}
	say(t, open[0], &wsclient.Start{InputRate: 16000, OutputRate: 24000})
	if _, ok := hear(t, open[0]).(*wsclient.SessionStarted); !ok {
		t.Error("one that was let in does not work")
	}
	for _, c := range open {
		c.Abort()
	}
}

// TestErrorsAreJSON: a refusal can be read by a program.
func TestErrorsAreJSON(t *testing.T) {
	srv, _ := start(t, session.Limits{})
	_, body := get(t, srv.URL+"/v1/"+strings.Repeat("x", 500))
	var v struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal([]byte(body), &v); err != nil || v.Error.Code != "not_found" || len(v.Error.Message) > 200 {
		t.Errorf("%s: %v", body, err)
	}
}

// dialStarted begins a session and returns its client's connection.
func dialStarted(t testing.TB, url string) *wsclient.Conn {
	t.Helper()
	c, err := wsclient.Dial(context.Background(), url+"/v1/voice", wsclient.DialOptions{Client: &http.Client{Transport: &http.Transport{}}})
	if err != nil {
		t.Fatal(err)
	}
	say(t, c, &wsclient.Start{InputRate: 16000, OutputRate: 24000})
	if m, ok := hear(t, c).(*wsclient.SessionStarted); !ok {
		t.Fatalf("the gateway answered %+v", m)
	}
	return c
}

func say(t testing.TB, c *wsclient.Conn, m wsclient.ClientMessage) {
	t.Helper()
	text, err := wsclient.EncodeClient(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.WriteText(text); err != nil {
		t.Fatal(err)
	}
}

func hear(t testing.TB, c *wsclient.Conn) wsclient.ServerMessage {
	t.Helper()
	f, err := c.Read()
	if err != nil {
		t.Fatal(err)
	}
	m, err := wsclient.ParseServer(f.Data)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
