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

// Options configure a simulator. The zero value is useful.
type Options struct {
	// Scenario is what the model says. Nil means scenario.Default().
	Scenario *scenario.Scenario
	// Faults are injected into the connections. Nil means no faults.
	Faults *fault.Script
	// Seed makes ids, faults and choices repeatable.
	Seed uint64
	// Speed is how many seconds of audio the model makes in a second. Zero
	// means each wire's default (OpenAI 4); a negative value means everything at once.
	Speed float64
	// ChunkMS is the length of an audio chunk in ms. Zero means each wire's default,
	// as recorded (OpenAI 250, Gemini by model).
	ChunkMS int
	// FirstAudioMS is the time from the end of the input to the first audio, in
	// ms. Zero means 200; a negative value means no delay.
	FirstAudioMS int
	// PlaybackSpeed is the speed at which Gemini assumes that its audio is played: it waits for
	// the end of playback before it ends a turn. Zero means 1, real time; a negative value
	// means that it does not wait.
	PlaybackSpeed float64
	// ConnectionLife is the age at which a connection ends as the provider's do; OpenAI's
	// sessions name that time in expires_at. Zero means the provider's own (OpenAI 60 min,
	// Gemini 9:50 or 58:00); a negative value means that connections do not end of age.
	ConnectionLife time.Duration
	// GoAwayAfter and GoAwayLeft are when Gemini announces that end, and the time that it
	// announces: see gemini.Options.
	GoAwayAfter, GoAwayLeft time.Duration
	// Logger receives a line when a session begins or ends. Nil disables logging.
	Logger *slog.Logger
}

// Stats counts a Server's work; see wire.Stats.
type Stats = wire.Stats

// Server is both providers behind one handler. It may be used concurrently.
type Server struct {
	opts   wire.Options
	openai http.Handler
	gemini http.Handler
	// The request/response APIs.
	chat, embeddings, images http.Handler
}

// New makes a simulator. It starts nothing; each connection runs on the
// goroutines of its request.
func New(o Options) *Server {
	w := wire.Options{
		Scenario: o.Scenario, Faults: o.Faults, Seed: o.Seed, Speed: o.Speed, ChunkMS: o.ChunkMS,
		FirstAudioMS: o.FirstAudioMS, ConnectionLife: o.ConnectionLife, Logger: o.Logger, Stats: &Stats{}, Group: &wire.Group{},
	}.WithDefaults()
	return &Server{
		opts: w, openai: openai.New(w),
		gemini: gemini.NewWith(gemini.Options{Options: w, PlaybackSpeed: o.PlaybackSpeed, GoAwayAfter: o.GoAwayAfter, GoAwayLeft: o.GoAwayLeft}),
		chat:   completions.New(w), embeddings: embeddings.New(w), images: images.New(w),
	}
}

// Stats returns the server's counters. It may be called at any time.
func (s *Server) Stats() *Stats { return s.opts.Stats }

// Open returns the number of open connections.
func (s *Server) Open() int { return s.opts.Group.Len() }

// Inject injects a fault into the realtime connection of either wire whose client has
// the given address, host:port. A fault about a tool call happens at the next call, any other
// fault at once. The error is wire.ErrNoConnection or wire.ErrTooMany.
func (s *Server) Inject(remote string, a fault.Action) error { return s.opts.Group.Inject(remote, a) }

// ServeHTTP routes by the raw path, without http.ServeMux, which would redirect
// the double slash that one official client sends. For paths that no wire knows
// it answers 404 with an explanation.
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
		// The write fails only if the client is gone.
		_, _ = io.WriteString(w, "ok\n")
	default:
		http.Error(w, "The simulator has nothing at "+r.URL.Path+". It serves:\n"+
			"  /v1/realtime            OpenAI Realtime (WebSocket)\n"+
			"  /v1/chat/completions    OpenAI Chat Completions, with /v1/embeddings and /v1/images/generations\n"+
			"  /openai/v1/realtime     the same as Azure serves it\n"+
			"  /ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent   Gemini Live (WebSocket)\n"+
			"  /v1beta/models/{model}:generateContent, :predict   images of Gemini and Imagen\n", http.StatusNotFound)
	}
}

// at returns r with another path.
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
