// Package live simulates OpenAI Live (gpt-live-1): the WebSocket at /v1/live/sessions, and Azure's at
// /openai/v1/live/sessions.
//
// A session has one clock, which advances only while audio comes in, in real time at most. The output is one endless
// track in pieces of 100 ms, mostly digital silence. There are no turns: the model speaks, stops when the user speaks for
// half a second, and hands work over by session.delegation.created instead of calling tools. A scenario's rule that calls
// tools is a delegation; another one is spoken.
//
// Times follow recorded sessions and the measurements that livewire names, read 2026-11-28; a comment marks unknown
// behaviour. One goroutine per connection owns the session.
//
// Not simulated: WebRTC, SIP, sideband connections, forks, recordings, delegation to Responses or Decisions.
package live

import (
	"net/http"
	"strings"

	"voicegw/internal/livewire"
	"voicegw/internal/openaiwire"
	"voicegw/sim/scenario"
	"voicegw/sim/voice"
	"voicegw/sim/wire"
)

// Handler serves the API. It may be used concurrently.
type Handler struct {
	opts  wire.Options
	lines voice.Cache
}

// New makes the Live side of the simulator.
func New(o wire.Options) *Handler { return &Handler{opts: o.WithDefaults()} }

// Handles reports whether path, without a slash at its end, belongs to this API.
func Handles(path string) bool {
	path = strings.TrimPrefix(path, "/openai")
	return path == livewire.Path || strings.HasPrefix(path, livewire.Path+"/")
}

// ServeHTTP serves the WebSocket; a path below it and another method get 404 with an explanation.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, azure := strings.CutPrefix(r.URL.Path, "/openai")
	key := wire.OpenAIKeyOf(r)
	no := wire.OpenAIKey(key)
	if wire.ClassifyKey(key) == wire.KeyQuota {
		no = nil // session.start is refused
	}
	switch {
	case no != nil:
	case path != livewire.Path || r.Method != http.MethodGet:
		no = openaiwire.Invalid("unknown_url", "", "Unknown request URL: %s %s. The simulator serves the WebSocket at %s and at "+
			"/openai%[3]s, and no WebRTC, SIP, sideband, fork or recording.", r.Method, r.URL.Path, livewire.Path)
		no.Status = http.StatusNotFound
	case !strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
		no = openaiwire.Invalid("websocket_required", "", "This is a WebSocket endpoint; connect with wss:// or ws://.")
		no.Status = http.StatusUpgradeRequired
	}
	if no != nil {
		h.opts.Stats.Refused.Add(1)
		wire.Refuse(w, wire.OpenAIError, no)
		return
	}
	h.opts.Serve(w, r, scenario.APIOpenAILive, wire.ConnOptions{}, func(ws *wire.Conn, begin wire.Begin, first []scenario.Fault) {
		log := h.opts.Logger.With("wire", "live", "conn", begin.N)
		c := &conn{
			opts: h.opts, log: log, lines: &h.lines, w: ws, ids: wire.NewIDs(begin.Seed), azure: azure,
			quota: wire.ClassifyKey(key) == wire.KeyQuota, dialogue: h.opts.Scenario.NewDialogue(begin.Seed),
		}
		c.Commit(ws.Do(first))
		ws.Run(c, wire.ShuttingDown)
		log.Info("session ended", "seconds", c.in.ms/1000, "turns", c.out.turn, "delegations", c.calls)
	})
}
