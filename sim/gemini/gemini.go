package gemini

import (
	"cmp"
	"net/http"
	"time"

	"voicegw/sim/rest"
	"voicegw/sim/voice"
	"voicegw/sim/wire"
)

// Handler serves Gemini Live from the provider's side. It may be used
// concurrently.
type Handler struct {
	// Fixed after New.
	opts wire.Options // what zero means is filled in

	resumable *registry
	tokens    tokenStore
	lines     voice.Cache
}

// New makes a handler that behaves like the provider. It cannot fail.
// The server that mounts it must route raw paths for which Handles is true to
// it, without http.ServeMux in between.
func New(o wire.Options) *Handler {
	o = o.WithDefaults()
	o.PlaybackSpeed, o.GoAwayLeft = cmp.Or(o.PlaybackSpeed, 1), goAwayLeft(o)
	return &Handler{opts: o, resumable: newRegistry()}
}

// ServeHTTP serves the WebSocket paths of both APIs, and makes ephemeral tokens.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if tokensPath.MatchString(r.URL.Path) {
		h.serveTokens(w, r)
		return
	}
	at, ok := parsePath(r.URL.Path)
	if !ok {
		rest.Refuse(w, rest.Google, &rest.Error{Status: http.StatusNotFound, Message: "The requested URL " + r.URL.Path + " was not found on this server."})
		return
	}
	h.serveLive(w, r, at)
}

// speak synthesizes a line, or returns it from the cache. The result must not be changed.
func (h *Handler) speak(name, text string) voice.Utterance {
	return h.lines.Speak(text, voice.Options{Rate: outputRate, Voice: name})
}

// newConversation begins a conversation with the connection's seed.
func (h *Handler) newConversation(model string, seed uint64, ids *wire.IDs, now time.Time) *conversation {
	return &conversation{origin: &origin{model: model, began: now, ids: ids}, dialogue: h.opts.Scenario.NewDialogue(seed)}
}
