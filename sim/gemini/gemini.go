package gemini

import (
	"cmp"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"voicegw/sim/pace"
	"voicegw/sim/rest"
	"voicegw/sim/voice"
	"voicegw/sim/wire"
)

// Handler serves Gemini Live from the provider's side. It may be used
// concurrently.
type Handler struct {
	// Fixed after New.
	opts  wire.Options // what zero means is filled in
	log   *slog.Logger
	stats *wire.Stats

	resumable *registry
	lines     lineCache
}

// New makes a handler that behaves like the provider. It cannot fail.
// The server that mounts it must route raw paths for which Handles is true to
// it, without http.ServeMux in between.
func New(o wire.Options) *Handler {
	o = o.WithDefaults()
	o.PlaybackSpeed, o.GoAwayLeft = cmp.Or(o.PlaybackSpeed, 1), goAwayLeft(o)
	return &Handler{opts: o, log: o.Logger, stats: o.Stats, resumable: newRegistry()}
}

// ServeHTTP serves the WebSocket paths of both APIs.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at, ok := parsePath(r.URL.Path)
	if !ok {
		rest.Refuse(w, rest.Google, &rest.Error{Status: http.StatusNotFound, Message: "The requested URL " + r.URL.Path + " was not found on this server."})
		return
	}
	h.serveLive(w, r, at)
}

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
