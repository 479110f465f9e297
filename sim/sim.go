package sim

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"voicegw/sim/completions"
	"voicegw/sim/embeddings"
	"voicegw/sim/fault"
	"voicegw/sim/gemini"
	"voicegw/sim/images"
	"voicegw/sim/openai"
	"voicegw/sim/scenario"
	"voicegw/sim/wire"
)

// Options describe a simulator. The zero value is a useful one.
type Options struct {
	// Scenario is what the model says. Nil means scenario.Default().
	Scenario *scenario.Scenario
	// Faults are committed on the connections. Nil means none.
	Faults *fault.Script
	// Seed makes ids, faults and choices repeatable.
	Seed uint64
	// Speed is how many seconds of audio the model makes in a second. Zero
	// means each wire's own (OpenAI 4), negative means everything at once.
	Speed float64
	// ChunkMS is the length of an audio chunk in ms. Zero means each wire's own,
	// as recorded (OpenAI 250, Gemini by model).
	ChunkMS int
	// FirstAudioMS is the time from the end of the input to the first audio, in
	// ms. Zero means 200, negative means none.
	FirstAudioMS int
	// PlaybackSpeed is how fast Gemini believes its audio is played, which it waits for
	// before it ends a turn. Zero means 1, real time; negative means that it does not wait.
	PlaybackSpeed float64
	// Logger receives a line for each session's begin and end. Nil logs nothing.
	Logger *slog.Logger
}

// Stats counts what a Server did; see wire.Stats.
type Stats = wire.Stats

// Server is both providers behind one handler. Any number of goroutines may use it.
type Server struct {
	opts   wire.Options
	openai http.Handler
	gemini http.Handler
	// The APIs without connections.
	chat, embeddings, images http.Handler
}

// New makes a simulator. It starts nothing; each connection runs on the
// goroutines of its request.
func New(o Options) *Server {
	w := wire.Options{
		Scenario: o.Scenario, Faults: o.Faults, Seed: o.Seed, Speed: o.Speed, ChunkMS: o.ChunkMS,
		FirstAudioMS: o.FirstAudioMS, Logger: o.Logger, Stats: &Stats{}, Group: &wire.Group{},
	}.WithDefaults()
	return &Server{
		opts: w, openai: openai.New(w), gemini: gemini.NewWith(gemini.Options{Options: w, PlaybackSpeed: o.PlaybackSpeed}),
		chat: completions.New(w), embeddings: embeddings.New(w), images: images.New(w),
	}
}

// Stats are the server's counters. They may be read at any time.
func (s *Server) Stats() *Stats { return s.opts.Stats }

// Open is how many connections are open.
func (s *Server) Open() int { return s.opts.Group.Len() }

// Inject has a fault committed on the realtime connection of either wire whose client has
// that address, host:port: one of a tool call at the next call, another one at once. The
// error is wire.ErrNoConnection or wire.ErrTooMany.
func (s *Server) Inject(remote string, a fault.Action) error { return s.opts.Group.Inject(remote, a) }

// ServeHTTP routes by the raw path, without http.ServeMux, which would redirect
// the doubled slash that one official client sends. Paths that no wire knows
// are 404 in words.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := "/" + strings.Trim(r.URL.Path, "/")
	switch {
	case openAIPath(path):
		s.openai.ServeHTTP(w, at(r, path))
	case completions.Handles(path):
		s.chat.ServeHTTP(w, at(r, path))
	case embeddings.Handles(path):
		s.embeddings.ServeHTTP(w, at(r, path))
	case images.Handles(path):
		s.images.ServeHTTP(w, at(r, path))
	case gemini.Handles(r.URL.Path):
		s.gemini.ServeHTTP(w, r)
	case path == "/healthz":
		// A client that is gone does not read its answer.
		_, _ = io.WriteString(w, "ok\n")
	default:
		http.Error(w, "The simulator has nothing at "+r.URL.Path+". It serves:\n"+
			"  /v1/realtime            OpenAI Realtime (WebSocket), and /v1/realtime/client_secrets\n"+
			"  /v1/chat/completions    OpenAI Chat Completions, with /v1/embeddings and /v1/images/generations\n"+
			"  /openai/v1/realtime     the same as Azure serves it\n"+
			"  /ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent   Gemini Live (WebSocket)\n"+
			"  /v1alpha/auth_tokens    Gemini's ephemeral tokens\n"+
			"  /v1beta/models/{model}:generateContent, :predict   images of Gemini and Imagen\n", http.StatusNotFound)
	}
}

// at is r with another path.
func at(r *http.Request, path string) *http.Request {
	r = r.Clone(r.Context())
	r.URL.Path = path
	return r
}

func openAIPath(path string) bool {
	path = strings.TrimPrefix(path, "/openai")
	return path == "/v1/realtime" || strings.HasPrefix(path, "/v1/realtime/")
}

// closeTimeout is how long Close waits for connections to end.
const closeTimeout = 10 * time.Second

// Close ends all connections with 1001 and waits until they are over. New ones
// are refused from then on. It may be called more than once.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := s.opts.Group.Close(ctx); err != nil {
		return fmt.Errorf("sim: close: %d connections did not end: %w", s.Open(), err)
	}
	return nil
}
