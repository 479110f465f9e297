package gemini

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"voicegw/sim/pace"
	"voicegw/sim/voice"
	"voicegw/sim/wire"
)

// Options are the options of both wires and those only of Gemini. The
// zero value is a server that behaves like the provider.
type Options struct {
	wire.Options

	// PlaybackSpeed is the speed at which the provider assumes that its audio is played:
	// turnComplete is held back until playback ends. Zero means 1, real time; negative
	// means that turnComplete follows generationComplete at once.
	PlaybackSpeed float64
	// GoAwayAfter is the age of a connection at which goAway is sent. Zero means the model's
	// own habit, as measured: GoAwayLeft before the end, which is at 9:50; for models of the
	// 3.8 generation no goAway but a silent close 1011 at 58:00. ConnectionLife changes
	// those ends. A negative value means no goAway: the connection ends silently at
	// ConnectionLife, or not at all if that is zero.
	GoAwayAfter time.Duration
	// GoAwayLeft is the time that goAway announces. The connection is closed
	// 1008 that long (and 0.4 s) after it. Zero means 50 s, and with a ConnectionLife at most
	// a quarter of it; a negative value means 0 s.
	GoAwayLeft time.Duration
	// SessionLife is how long a conversation lasts, over all its connections,
	// without context window compression. Zero means 15 min, and no limit
	// for the 3.8 generation; negative means no limit.
	SessionLife time.Duration
}

// Handler serves Gemini Live from the provider's side. It may be used
// concurrently.
type Handler struct {
	// Fixed after New.
	opts   Options
	limits limits
	log    *slog.Logger
	stats  *wire.Stats

	resumable *registry
	lines     lineCache
}

// New makes a handler that behaves like the provider. It cannot fail.
// The server that mounts it must route raw paths for which Handles is true to
// it, without http.ServeMux in between.
func New(o wire.Options) *Handler { return NewWith(Options{Options: o}) }

// NewWith is like New, with Gemini's own options.
func NewWith(o Options) *Handler {
	o.Options = o.Options.WithDefaults()
	h := &Handler{opts: o, log: o.Logger, stats: o.Stats, resumable: newRegistry()}
	h.limits = limits{
		connection: o.ConnectionLife, goAwayAfter: o.GoAwayAfter, goAwayLeft: o.GoAwayLeft, grace: goAwayExtra,
		session: o.SessionLife, playback: o.PlaybackSpeed,
		chunkMS: o.ChunkMS, speed: o.Speed, firstAudioMS: o.FirstAudioMS,
	}
	h.limits.fill()
	h.limits.playback = cmp.Or(h.limits.playback, 1)
	return h
}

// ServeHTTP serves the WebSocket paths of both APIs.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at, ok := parsePath(r.URL.Path)
	if !ok {
		writeError(w, http.StatusNotFound, "NOT_FOUND", "The requested URL "+r.URL.Path+" was not found on this server.")
		return
	}
	h.serveLive(w, r, at)
}

// Close ends all connections of the handler's group and waits for them, or
// until ctx is done. Later connections are refused with HTTP 503. It may be
// called again.
func (h *Handler) Close(ctx context.Context) error { return h.opts.Group.Close(ctx) }

// spoken is a line as sound.
type spoken struct {
	pcm   []byte
	words []pace.Word
}

// lineCache keeps spoken lines, because many conversations say the same.
type lineCache struct {
	mu    sync.Mutex // guards the following fields
	lines map[lineKey]spoken
	order []lineKey
}

type lineKey struct{ voice, text string }

// maxLines bounds the cache to about 20 MB of ordinary lines.
const maxLines = 64

// speak synthesizes a line, or returns it from the cache. The result is shared and
// must not be changed.
func (c *lineCache) speak(name, text string) spoken {
	key := lineKey{name, text}
	c.mu.Lock()
	line, ok := c.lines[key]
	c.mu.Unlock()
	if ok {
		return line
	}
	u := voice.New(voice.Options{Rate: outputRate, Voice: name}).Speak(text)
	line.pcm = u.PCM
	for _, w := range u.Words {
		line.words = append(line.words, pace.Word{Text: w.Text, Start: w.Start})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lines == nil {
		c.lines = map[lineKey]spoken{}
	}
	if _, again := c.lines[key]; !again {
		c.order = append(c.order, key)
	}
	c.lines[key] = line
	if len(c.order) > maxLines {
		delete(c.lines, c.order[0])
		c.order = slices.Delete(c.order, 0, 1)
	}
	return line
}

// newConversation begins a conversation with the connection's seed.
func (h *Handler) newConversation(model string, seed uint64, ids *wire.IDs, now time.Time) *conversation {
	return &conversation{origin: &origin{model: model, began: now, ids: ids}, dialogue: h.opts.Scenario.NewDialogue(seed)}
}
