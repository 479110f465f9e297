// Package sim simulates the realtime providers: one HTTP handler that speaks OpenAI's Realtime and Live APIs and Gemini's
// Live API over real WebSockets, detects speech, answers in synthesized speech, follows a scenario and injects faults on
// demand. The gateway runs the same code against it as against a provider. It also serves Chat Completions from the
// same scenario, embeddings, and the image APIs of both providers.
//
// Server is the handler; Start serves one on a loopback port. A scenario.Scenario defines the model's words and a
// fault.Script the faults; docs/simulator.md describes both YAML files.
package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	"voicegw/sim/fault"
	"voicegw/sim/gemini"
	"voicegw/sim/live"
	"voicegw/sim/openai"
	"voicegw/sim/rest"
	"voicegw/sim/wire"
)

// Options configure a simulator; see wire.Options. The zero value is useful.
type Options = wire.Options

// Stats counts a Server's work; see wire.Stats.
type Stats = wire.Stats

// Server is the providers behind one handler. It may be used concurrently.
type Server struct {
	opts   Options
	openai http.Handler
	gemini http.Handler
	live   http.Handler // OpenAI Live
	rest   http.Handler // the request/response APIs
}

// New makes a simulator. It starts nothing; each connection runs on the goroutines of its request.
func New(o Options) *Server {
	o = o.WithDefaults()
	return &Server{
		opts: o, openai: openai.New(o), gemini: gemini.New(o), live: live.New(o), rest: rest.New(o),
	}
}

// Stats returns the server's counters. It may be called at any time.
func (s *Server) Stats() *Stats { return s.opts.Stats }

// Open returns the number of open connections.
func (s *Server) Open() int { return s.opts.Group.Len() }

// Inject injects a fault into the realtime connection of any wire whose client has
// the given address, host:port. A fault about a tool call happens at the next call, any other
// fault at once. The error is wire.ErrNoConnection or wire.ErrTooMany.
func (s *Server) Inject(remote string, a fault.Action) error { return s.opts.Group.Inject(remote, a) }

// ServeHTTP routes by the raw path, without http.ServeMux, which would redirect the double slash that one official
// client sends. For paths that no wire knows it answers 404 with an explanation.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := "/" + strings.Trim(r.URL.Path, "/")
	switch {
	case realtimePath.MatchString(path):
		s.openai.ServeHTTP(w, at(r, path))
	case live.Handles(path):
		s.live.ServeHTTP(w, at(r, path))
	case rest.Handles(path):
		s.rest.ServeHTTP(w, at(r, path))
	case gemini.Handles(r.URL.Path):
		s.gemini.ServeHTTP(w, r)
	case path == "/healthz":
		// The write fails only if the client is gone.
		_, _ = io.WriteString(w, "ok\n")
	default:
		http.Error(w, "The simulator has nothing at "+r.URL.Path+". It serves:\n"+
			"  /v1/realtime            OpenAI Realtime (WebSocket), and /v1/realtime/client_secrets\n"+
			"  /v1/live/sessions       OpenAI Live (WebSocket)\n"+
			"  /v1/chat/completions    OpenAI Chat Completions, with /v1/embeddings and /v1/images/generations\n"+
			"  /openai/v1/realtime     the same as Azure serves it, and /openai/v1/live/sessions\n"+
			"  /ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent   Gemini Live (WebSocket)\n"+
			"  /v1alpha/auth_tokens    Gemini's ephemeral tokens\n"+
			"  /v1beta/models/{model}:generateContent, :predict   images of Gemini and Imagen\n", http.StatusNotFound)
	}
}

func at(r *http.Request, path string) *http.Request {
	r = r.Clone(r.Context())
	r.URL.Path = path
	return r
}

var realtimePath = regexp.MustCompile(`^(/openai)?/v1/realtime(/.*)?$`)

const closeTimeout = 10 * time.Second

// Close ends all connections with 1001 and waits until they have ended. Later connections
// are refused. It may be called more than once.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := s.opts.Group.Close(ctx); err != nil {
		return fmt.Errorf("sim: close: %d connections did not end: %w", s.Open(), err)
	}
	return nil
}

// Addresses describes where to point each SDK to reach a simulator at a host by a scheme, http or https.
func Addresses(scheme, host string) string {
	ws := map[string]string{"http": "ws", "https": "wss"}[scheme]
	return fmt.Sprintf(`The simulator serves on %[3]s. Any key is taken but those beginning with invalid, expired or quota.

  OpenAI   base URL             %[1]s://%[3]s/v1
  Azure    base URL             %[1]s://%[3]s/openai/v1
  Gemini   base URL             %[1]s://%[3]s   (Go's genai: %[2]s://%[3]s for live sessions)
  voicegw                       OPENAI_API_KEY=sim GEMINI_API_KEY=sim voicegw serve \
                                  --set providers.openai.base_url=%[1]s://%[3]s/v1 --set providers.gemini.base_url=%[1]s://%[3]s

`, scheme, ws, host)
}

// Local is a simulator that listens on an address of this machine.
type Local struct {
	Server *Server

	listener net.Listener
	http     *http.Server
	// served carries the result of http.Serve from its goroutine to Close; capacity 1,
	// so that the goroutine never waits. It is never closed.
	served chan error
}

// Start listens on addr ("127.0.0.1:0" if it is empty) and serves until Close.
func Start(ctx context.Context, addr string, o Options) (*Local, error) {
	addr = cmp.Or(addr, "127.0.0.1:0")
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("sim: listen on %s: %w", addr, err)
	}
	l := &Local{Server: New(o), listener: ln, served: make(chan error, 1)}
	l.http = &http.Server{Handler: l.Server, ReadHeaderTimeout: 10 * time.Second}
	go func() { l.served <- l.http.Serve(ln) }() // Close waits for this goroutine
	return l, nil
}

// Addr is the address it listens on, as host:port.
func (l *Local) Addr() string { return l.listener.Addr().String() }

// URL is the base URL for clients of a wire, "gemini", "openai" or "live"; empty for a wire that the simulator does not speak.
func (l *Local) URL(wire string) string {
	switch wire {
	case "gemini":
		return l.GeminiURL()
	case "openai", "live":
		return l.OpenAIURL()
	default:
		return ""
	}
}

// OpenAIURL is the base URL for clients of OpenAI: http://host:port/v1.
func (l *Local) OpenAIURL() string { return "http://" + l.Addr() + "/v1" }

// GeminiURL is the base URL for clients of Gemini: http://host:port. (For live sessions
// Google's Go client needs the same with ws://.)
func (l *Local) GeminiURL() string { return "http://" + l.Addr() }

// Close stops listening, ends all connections and waits for them.
func (l *Local) Close() error {
	err := l.http.Close()
	err = errors.Join(err, l.Server.Close())
	if served := <-l.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
