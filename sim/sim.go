// Package sim simulates the realtime providers: one HTTP handler that speaks OpenAI's Realtime and Live APIs and Gemini's
// Live API over real WebSockets, detects speech, answers in synthesized speech, follows a scenario and injects faults on
// demand. The gateway runs the same code against it as against a provider.
//
// Server is the handler; Start serves one on a loopback port. A scenario.Scenario defines the model's words and a
// scenario.FaultScript the faults; docs/simulator.md describes both YAML files.
//
// This package also has the request/response APIs. Each can inject faults.
//
// Chat Completions (https://developers.openai.com/api/reference/resources/chat, read 2026-11-20), as OpenAI, Azure and
// compatible servers serve them: nothing is kept between requests. The request's messages are replayed through a
// scenario.Dialogue, which answers the last one, so one scenario works by voice and in text.
//
// Embeddings (https://developers.openai.com/api/reference/resources/embeddings, read 2026-11-20): words, their stems,
// pieces and pairs, and groups of related common words are hashed to places in the vector. Texts in similar words get
// similar vectors, the same on every machine.
//
// Speech of OpenAI (https://developers.openai.com/api/reference/resources/audio, read 2026-11-30): by sim/voice.
//
// Images of OpenAI (https://developers.openai.com/api/reference/resources/images), Gemini
// (https://ai.google.dev/api/generate-content) and Imagen (https://docs.cloud.google.com/vertex-ai/generative-ai/docs/
// model-reference/imagen-api, all read 2026-11-20): shapes and colours from a hash of the prompt.
package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"voicegw/sim/gemini"
	"voicegw/sim/live"
	"voicegw/sim/openai"
	"voicegw/sim/scenario"
	"voicegw/sim/voice"
	"voicegw/sim/wire"
)

// Options configure a simulator; see wire.Options. The zero value is useful.
type Options = wire.Options

// Stats counts a Server's work; see wire.Stats.
type Stats = wire.Stats

// Server is the providers behind one handler. It may be used concurrently.
type Server struct {
	opts   Options
	openai http.Handler // OpenAI Realtime
	gemini http.Handler
	live   http.Handler // OpenAI Live

	// firstAfter is the time before the first word of a chat, between the time between two words.
	firstAfter, between time.Duration
	lines               voice.Cache // of text to speech
}

const (
	// defaultBetween is the speed of an ordinary model: about 65 tokens a second.
	defaultBetween = 15 * time.Millisecond
	// defaultSpeed is the speed of speech to which defaultBetween belongs: a simulator that speaks twice as fast also
	// writes twice as fast.
	defaultSpeed = 4
)

// New makes a simulator. It starts nothing; each connection runs on the goroutines of its request.
func New(o Options) *Server {
	o = o.WithDefaults()
	s := &Server{
		opts: o, openai: openai.New(o), gemini: gemini.New(o), live: live.New(o),
		firstAfter: time.Duration(max(cmp.Or(o.FirstAudioMS, 200), 0)) * time.Millisecond,
	}
	if speed := cmp.Or(o.Speed, defaultSpeed); speed > 0 {
		s.between = time.Duration(float64(defaultBetween) * defaultSpeed / speed)
	}
	return s
}

// Stats returns the server's counters. It may be called at any time.
func (s *Server) Stats() *Stats { return s.opts.Stats }

// Open returns the number of open connections.
func (s *Server) Open() int { return s.opts.Group.Len() }

// Inject injects a fault into the realtime connection of any wire whose client has
// the given address, host:port. A fault about a tool call happens at the next call, any other
// fault at once. The error is wire.ErrNoConnection or wire.ErrTooMany.
func (s *Server) Inject(remote string, a scenario.Fault) error { return s.opts.Group.Inject(remote, a) }

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
