// Package gemini is Gemini Live (BidiGenerateContent) from the provider's side, for clients of the Gemini API and of
// Vertex AI.
//
// session is the model's side without a clock and without a socket; connection drives it in the goroutine of the HTTP
// request, which owns all state except the resumption handles, the tokens and the spoken lines, which have a lock each.
//
// # Behaviour decided here, for lack of recordings
//
//   - A toolResponse for an id that was never given out, was cancelled or is
//     answered already is ignored, as in js-genai's recording of one. An id of
//     the provider's own form with the name of an open call is accepted
//     anyway, so that recorded sessions can be played against the simulator.
//     A session that was resumed closes 1008 over an id that its handle does
//     not know. Clients report that close, but not its reason: ours is that of
//     other input that comes out of turn.
//   - A handle is a snapshot: the history and the open calls at its issue. A
//     call that was open then is open after a resume, and its result is spoken
//     about in a turn of its own; the answer that was being spoken is lost.
//   - On Vertex, results of calls that were never made are treated as input and
//     answered, as in js-genai's recording.
//   - Text input while a blocking call is open closes 1008 on 2.5, waits for the
//     results on 3.1, and cancels the calls on 3.8. Speech interrupts on all.
//   - clientContent {turnComplete:true} alone stops an answer. While the model
//     is idle it asks for a greeting, once.
package gemini

import (
	"cmp"
	"net/http"
	"regexp"

	"voicegw/sim/voice"
	"voicegw/sim/wire"
)

// Handler serves Gemini Live from the provider's side. It may be used concurrently.
type Handler struct {
	// Fixed after New.
	opts wire.Options // what zero means is filled in

	resumable *registry
	tokens    tokenStore
	lines     voice.Cache
}

// New makes a handler that behaves like the provider. It cannot fail. The server that mounts it must route raw paths
// for which Handles is true to it, without http.ServeMux in between.
func New(o wire.Options) *Handler {
	o = o.WithDefaults()
	o.PlaybackSpeed, o.GoAwayLeft = cmp.Or(o.PlaybackSpeed, 1), goAwayLeft(o)
	return &Handler{opts: o, resumable: &registry{handles: map[string]held{}, taken: map[*origin]bool{}}}
}

// ServeHTTP serves the WebSocket paths of both APIs, and makes ephemeral tokens.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if tokensPath.MatchString(r.URL.Path) {
		h.serveTokens(w, r)
		return
	}
	at, ok := parsePath(r.URL.Path)
	if !ok {
		wire.Refuse(w, wire.GoogleError, &wire.Error{Status: http.StatusNotFound, Message: "The requested URL " + r.URL.Path +
			" was not found on this server."})
		return
	}
	h.serveLive(w, r, at)
}

// speak synthesizes a line, or returns it from the cache. The result must not be changed.
func (h *Handler) speak(name, text string) voice.Utterance {
	return h.lines.Speak(text, voice.Options{Rate: outputRate, Voice: name})
}

type route struct {
	version     string // of wire.GeminiAPI or wire.VertexAI
	vertex      bool
	constrained bool // the method for ephemeral tokens
}

// One official client, @google/genai, sends the path with a doubled leading slash if its base URL is set.
var (
	developerPath = regexp.MustCompile(`^/{1,2}ws/google\.ai\.generativelanguage\.(` + wire.Versions(wire.GeminiAPI) +
		`)\.GenerativeService\.BidiGenerateContent(Constrained)?$`)
	vertexPath = regexp.MustCompile(`^/{1,2}ws/google\.cloud\.aiplatform\.(` + wire.Versions(wire.VertexAI) +
		`)\.LlmBidiService/BidiGenerateContent$`)
	tokensPath = regexp.MustCompile(`^/{1,2}` + wire.Versions(wire.GeminiAPI) + `/(?:auth_tokens|authTokens)$`)
)

// Handles reports whether path belongs to this wire. A server that mounts several wires calls it before it passes a
// request to the Handler, with the raw path: http.ServeMux answers a doubled slash with a redirect, which no WebSocket
// client follows.
func Handles(path string) bool {
	_, live := parsePath(path)
	return live || tokensPath.MatchString(path)
}

func parsePath(path string) (route, bool) {
	if m := developerPath.FindStringSubmatch(path); m != nil {
		return route{version: m[1], constrained: m[2] != ""}, true
	}
	if m := vertexPath.FindStringSubmatch(path); m != nil {
		return route{version: m[1], vertex: true}, true
	}
	return route{}, false
}
