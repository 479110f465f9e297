package gateway

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"voicegw/internal/auth"
	"voicegw/internal/logging"
	"voicegw/internal/testutil"
	"voicegw/protocol"
	"voicegw/session"
	"voicegw/transport"
)

func TestMain(m *testing.M) {
	http.DefaultClient.Transport = testutil.Answers(nil)
	goleak.VerifyTestMain(testutil.Main(keyed{m}, testutil.Need{
		Kinds: []logging.Kind{logging.Console, logging.Image, logging.OperatorsKey},
		Sinks: []testutil.Sink{testutil.Log, testutil.Errors},
		// genai depends on opencensus, which starts a goroutine at its import.
	}), goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

// keyed runs tests with servers that have testKey.
type keyed struct{ tests testutil.Tests }

func (k keyed) Run() int {
	testutil.Made(logging.OperatorsKey, testKey)
	return k.tests.Run()
}

// operators are those of a gateway with that key.
func operators(key string) *auth.Current {
	testutil.Made(logging.OperatorsKey, key)
	return auth.Operators(key)
}

// sessionOptions are those of sessions with a fake model.
func sessionOptions() session.Options {
	fake := quiet{transport.Capabilities{SpeechEvents: true}}
	return session.Options{Transports: map[string]transport.Transport{"fake": fake, "other": fake}, Provider: "fake"}
}

// logTo is a logger that must not log a secret.
func logTo(w io.Writer) *slog.Logger {
	return testutil.Logger(slog.New(slog.NewTextHandler(w, nil)))
}

// start runs a gateway with a fake model on a real socket.
func start(t *testing.T, limits session.Limits) (*httptest.Server, *session.Manager) {
	t.Helper()
	return startWith(t, limits, nil)
}

// startWith is start with other options.
func startWith(t *testing.T, limits session.Limits, change func(*Options)) (*httptest.Server, *session.Manager) {
	t.Helper()
	opts := sessionOptions()
	opts.Limits = limits
	return startOf(t, opts, change)
}

// startOf is start for sessions with these options.
func startOf(t *testing.T, opts session.Options, change func(*Options)) (*httptest.Server, *session.Manager) {
	t.Helper()
	m, err := session.NewManager(opts)
	if err != nil {
		t.Fatal(err)
	}
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "the page") })
	serve := Options{Sessions: m, Page: page, Version: "v1"}
	if change != nil {
		change(&serve)
	}
	serve.Logger = testutil.Logger(serve.Logger)
	srv := httptest.NewUnstartedServer(New(serve))
	srv.Config.ConnContext = ConnContext
	srv.Listener = Listen(srv.Listener, nil)
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

// TestEndpoints: the answer of each path.
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

// TestSessionOverASocket: /healthz counts the session of a client until it hangs up.
func TestSessionOverASocket(t *testing.T) {
	srv, m := start(t, session.Limits{})
	c, err := protocol.Dial(context.Background(), srv.URL+"/v1/voice", protocol.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Abort()
	say(t, c, &protocol.Start{InputRate: 16000, OutputRate: 24000, Provider: "other"})
	if started, ok := hear(t, c).(*protocol.SessionStarted); !ok || started.SessionID == "" || started.InputRate != 16000 {
		t.Fatalf("the gateway answered %+v", started)
	}
	if _, body := get(t, srv.URL+"/healthz"); !strings.Contains(body, `"sessions":1`) {
		t.Errorf("healthz: %s", body)
	}
	say(t, c, &protocol.End{})
	if ended, ok := hear(t, c).(*protocol.SessionEnded); !ok || ended.Reason != "client_ended" {
		t.Errorf("the gateway answered %+v", ended)
	}
	if _, err := c.Read(); protocol.CloseStatus(err) != protocol.CloseDone {
		t.Errorf("closed with %v", err)
	}
	m.Close()
	if m.Running() != 0 {
		t.Error("the session is still counted")
	}
}

// TestDrainingIsShown: /readyz returns 503 and new sessions are refused with Retry-After.
func TestDrainingIsShown(t *testing.T) {
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

// TestHundredConnectionsFromOneAddress: sessions up to the limit start and work; the others get 429 with a text, or 4029
// if they were connected before.
func TestHundredConnectionsFromOneAddress(t *testing.T) {
	srv, m := start(t, session.Limits{PerAddress: 10, NewPerSecond: 1000, WaitingPerAddress: 200})
	var mu sync.Mutex
	var open []*protocol.Conn
	var refused []string
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			c, err := protocol.Dial(context.Background(), srv.URL+"/v1/voice", protocol.DialOptions{})
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				refused = append(refused, err.Error())
				return
			}
			say(t, c, &protocol.Start{InputRate: 16000, OutputRate: 24000})
			switch reply := hear(t, c).(type) {
			case *protocol.SessionStarted:
				mu.Lock()
				defer mu.Unlock()
				open = append(open, c)
			case *protocol.Error:
				if _, err := c.Read(); reply.Code != "limit" || protocol.CloseStatus(err) != protocol.CloseLimit {
					t.Errorf("refused with %+v, %v", reply, err)
				}
				c.Abort()
			default:
				t.Errorf("the gateway answered %+v", reply)
			}
		})
	}
	wg.Wait()
	if len(open) != 10 || m.Running() != 10 {
		t.Errorf("%d sessions began, %d run, want 10", len(open), m.Running())
	}
	if _, err := protocol.Dial(context.Background(), srv.URL+"/v1/voice", protocol.DialOptions{}); err == nil {
		t.Error("an address with all its sessions may connect")
	} else {
		refused = append(refused, err.Error())
	}
	for _, text := range refused {
		if !strings.Contains(text, "429") || !strings.Contains(text, "Too many sessions") {
			t.Fatalf("refused with %s", text)
		}
	}
	for _, c := range open {
		c.Abort()
	}
}

// TestSilentHandshakesOverSockets: a thousand silent connections do not block others, whether from the caller's address
// or each from its own.
func TestSilentHandshakesOverSockets(t *testing.T) {
	for name, from := range map[string]func(i int) string{
		"one address":     func(int) string { return "203.0.113.7" },
		"an address each": func(i int) string { return netip.AddrFrom4([4]byte{10, 0, byte(i / 256), byte(i % 256)}).String() },
	} {
		t.Run(name, func(t *testing.T) {
			srv, m := startWith(t, session.Limits{Sessions: 5, PerAddress: 5, NewPerSecond: 2000, Waiting: 40, WaitingPerAddress: 20},
				func(o *Options) { o.TrustedProxies = proxies() })
			dial := func(addr string) *protocol.Conn {
				c, err := protocol.Dial(context.Background(), srv.URL+"/v1/voice", protocol.DialOptions{Header: http.Header{"X-Forwarded-For": {addr}}})
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			// Each closed connection gets the reason, and is read to its end.
			var left sync.WaitGroup
			var reply atomic.Int32
			connect := func(n, first int) {
				for i := range n {
					c := dial(from(first + i))
					left.Go(func() {
						for {
							if _, err := c.Read(); err != nil {
								if protocol.CloseStatus(err) == protocol.CloseTryLater {
									reply.Add(1)
								}
								c.Abort()
								return
							}
						}
					})
				}
			}
			connect(500, 0)
			honest := dial("203.0.113.7")
			connect(10, 500)
			say(t, honest, &protocol.Start{InputRate: 16000, OutputRate: 24000})
			if m, ok := hear(t, honest).(*protocol.SessionStarted); !ok {
				t.Fatalf("the honest caller was answered %+v", m)
			}
			connect(490, 510)
			say(t, honest, &protocol.Ping{T: 1})
			if m, ok := hear(t, honest).(*protocol.Pong); !ok {
				t.Fatalf("the honest caller's ping was answered with %+v", m)
			}
			if m.Running() != 1 {
				t.Errorf("%d sessions run", m.Running())
			}
			honest.Abort()
			m.Close()
			left.Wait()
			if n := int(reply.Load()); n < 1000-40 {
				t.Errorf("%d got the reason of their close", n)
			}
		})
	}
}

// TestErrorsAreJSON: a program can read each refusal.
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

// dialStarted starts a session and returns its client's connection.
func dialStarted(t testing.TB, url string) *protocol.Conn {
	t.Helper()
	c, err := protocol.Dial(context.Background(), url+"/v1/voice", protocol.DialOptions{Client: &http.Client{Transport: &http.Transport{}}})
	if err != nil {
		t.Fatal(err)
	}
	say(t, c, &protocol.Start{InputRate: 16000, OutputRate: 24000})
	if m, ok := hear(t, c).(*protocol.SessionStarted); !ok {
		t.Fatalf("the gateway answered %+v", m)
	}
	return c
}

func say(t testing.TB, c *protocol.Conn, m protocol.ClientMessage) {
	t.Helper()
	text, err := protocol.EncodeClient(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.WriteText(text); err != nil {
		t.Fatal(err)
	}
}

func hear(t testing.TB, c *protocol.Conn) protocol.ServerMessage {
	t.Helper()
	f, err := c.Read()
	if err != nil {
		t.Fatal(err)
	}
	m, err := protocol.ParseServer(f.Data)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// checkError searches an error answer for secrets.
func checkError(w *httptest.ResponseRecorder) {
	if w.Code >= 300 {
		testutil.Check(testutil.Errors, w.Body.Bytes())
	}
}
