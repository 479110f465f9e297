// Package openai simulates OpenAI's Realtime API (GA): the WebSocket at /v1/realtime, and Azure's at
// /openai/v1/realtime.
//
// Event names, key sets, order, error texts and token rates follow the provider's documentation
// (developers.openai.com/api/docs/guides/realtime-websocket and the API reference of the realtime events, read
// 2026-11-20), the types of the SDKs of that day, and recorded sessions; a comment marks unknown behaviour.
//
// One goroutine per connection owns the session: it handles the client's events in order and runs the tasks that are
// due without input (outgoing audio, transcripts, expiry).
//
// Not simulated: transcription sessions (?intent=transcription), sideband connections (?call_id=), WebRTC, SIP. MCP
// tools are accepted and ignored.
package openai

import (
	"cmp"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"voicegw/internal/openaiwire"
	"voicegw/sim/scenario"
	"voicegw/sim/voice"
	"voicegw/sim/wire"
)

// Handler serves the API. It may be used concurrently.
type Handler struct {
	opts  wire.Options
	lines voice.Cache
	held  atomic.Int64 // bytes of audio that conversations keep

	secrets secretStore
}

// New makes the OpenAI side of the simulator.
func New(o wire.Options) *Handler {
	h := &Handler{opts: o.WithDefaults()}
	h.secrets.made, h.secrets.ids = map[string]*secret{}, wire.NewIDs(h.opts.Seed^0x656b)
	return h
}

// ServeHTTP serves /v1/realtime and /openai/v1/realtime (WebSocket) and the client_secrets below them; everything
// else gets 404 with an explanation.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimSuffix(r.URL.Path, "/")
	azure := strings.HasPrefix(path, "/openai/")
	switch strings.TrimPrefix(path, "/openai") {
	case "/v1/realtime":
		h.realtime(w, r, azure)
	case "/v1/realtime/client_secrets":
		h.clientSecrets(w, r)
	default:
		writeError(w, http.StatusNotFound, openaiwire.Invalid("unknown_url", "",
			"Unknown request URL: %s %s. The simulator serves /v1/realtime, /openai/v1/realtime and the "+
				"client_secrets below them.", r.Method, r.URL.Path))
	}
}

func (h *Handler) unauthorized(w http.ResponseWriter) {
	h.opts.Stats.Refused.Add(1)
	writeError(w, http.StatusUnauthorized, openaiwire.MissingKey())
}

func writeError(w http.ResponseWriter, status int, e *openaiwire.Error) {
	e.Status = status
	wire.Refuse(w, wire.OpenAIError, e)
}

func keyOf(r *http.Request) string {
	if k := wire.OpenAIKeyOf(r); k != "" {
		return k
	}
	for _, line := range r.Header.Values("Sec-Websocket-Protocol") {
		for _, p := range strings.Split(line, ",") {
			if k, ok := strings.CutPrefix(strings.TrimSpace(p), "openai-insecure-api-key."); ok {
				return k
			}
		}
	}
	return r.URL.Query().Get("api-key") // Azure, for browsers
}

func (h *Handler) realtime(w http.ResponseWriter, r *http.Request, azure bool) {
	key := keyOf(r)
	if key == "" && !localServers[r.URL.Query().Get("model")].local {
		h.unauthorized(w)
		return
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		writeError(w, http.StatusUpgradeRequired,
			openaiwire.Invalid("websocket_required", "", "This is a WebSocket endpoint; connect with wss:// or ws://."))
		return
	}
	o := wire.ConnOptions{Subprotocols: []string{"realtime"}, UpgradeFirst: true}
	h.opts.Serve(w, r, scenario.APIRealtime, o, func(ws *wire.Conn, begin wire.Begin, first []scenario.Fault) {
		h.serve(ws, r, key, azure, begin, ws.Do(first))
	})
}

// serve runs a connection from the first event to the last. first are the faults of the
// handshake that need the protocol.
func (h *Handler) serve(ws *wire.Conn, r *http.Request, key string, azure bool, begin wire.Begin, first []scenario.Fault) {
	log := h.opts.Logger.With("wire", "openai", "conn", begin.N)
	c := &conn{
		opts: h.opts, stats: h.opts.Stats, log: log, lines: &h.lines, w: ws, ids: wire.NewIDs(begin.Seed),
		azure: azure, quota: wire.ClassifyKey(key) == wire.KeyQuota, begun: time.Now(),
		dialogue: h.opts.Scenario.NewDialogue(begin.Seed),
		conv:     conversation{held: &h.held},
	}
	defer c.conv.end()
	made, no := h.secrets.find(key, time.Now())
	if no == nil {
		no = c.open(r, made)
	}
	if no != nil {
		h.opts.Stats.Refused.Add(1)
		log.Info("connection refused", "reason", no.reason())
		c.fail(no.err, "")
		ws.Close(no.closeCode, no.reason())
		return
	}
	log.Info("session started", "model", c.sess.Model, "azure", azure)
	c.run(first)
	log.Info("session ended", "responses", c.turn, "calls", c.calls, "tokens", c.used)
}

func (c *conn) open(r *http.Request, made *secret) *refusal {
	q := r.URL.Query()
	if strings.Contains(strings.ToLower(r.Header.Get("OpenAI-Beta")), "realtime=v1") {
		return &refusal{4000, openaiwire.Invalid("beta_api_shape_disabled", "",
			"The Realtime Beta API is no longer supported. Please use /v1/realtime for the GA API.")}
	}
	if intent := q.Get("intent"); intent != "" {
		return &refusal{4000, openaiwire.Invalid("invalid_intent", "intent",
			"The intent '%s' is not simulated; connect with ?model= instead.", intent)}
	}
	name := cmp.Or(q.Get("model"), q.Get("deployment")) // Azure also uses deployment
	if name == "" && made != nil {
		name = made.model
	}
	m, ok := findModel(name)
	if !ok && c.azure && name != "" {
		// Azure's model is the name of a deployment and can be anything.
		m, ok = findModel("gpt-realtime")
	}
	if !ok {
		return refuseModel(name)
	}
	if m.unloadable {
		return loadError(name)
	}
	c.model = m
	c.sess = newSession(c.ids.New("sess"), name, m, c.azure, c.begun.Add(sessionLife(c.opts)))
	m.configure(c.sess)
	c.conv.id = c.ids.New("conv")
	if made != nil && made.session != nil {
		s, err := c.sess.Update(made.session)
		if err != nil {
			return &refusal{4000, err}
		}
		c.sess = s
	}
	c.in.configure(nil, c.sess)
	return nil
}

// sessionLife is the maximum age of a session: 60 min, unless the options say otherwise.
func sessionLife(o wire.Options) time.Duration {
	if o.ConnectionLife > 0 {
		return o.ConnectionLife
	}
	return 60 * time.Minute
}

func newSession(id, name string, m model, azure bool, expires time.Time) *openaiwire.Session {
	return openaiwire.NewSession(id, name, &openaiwire.Rules{
		Instructions: wire.Instructions, Voice: m.voice, SilenceMS: m.silenceMS,
		AnyTranscription: azure, // the name of a deployment can be anything
	}, expires)
}

// model is what differs between the models, as recorded.
type model struct {
	voice     string
	silenceMS int
	// phases: items carry "phase", a line is spoken before a call, items interleave, rate_limits.updated follows
	// response.done, and a session without tools counts reasoning_tokens.
	phases bool
	spaced bool

	// The rest is how a server on one's own machine differs from OpenAI's.

	// local servers need no key.
	local bool
	// names replaces types of events; an empty name means that the event is not sent.
	names map[string]string
	// hidden are the settings that the session does not show, by path.
	hidden []string
	// strict refuses a setting that is not shown; after maxRefusals errors the connection is closed.
	strict bool
	// rate is that of both directions in Hz; zero means 24,000.
	rate int
	// whole sends a line in one piece of audio.
	whole bool
	// conversation sends conversation.created after session.created.
	conversation bool
	// uncounted responses have no usage.
	uncounted bool
	// unloadable reports that the model cannot be loaded, instead of session.created.
	unloadable bool
}

// models are the models that the simulator knows (https://developers.openai.com/api/docs/models,
// read 2026-11-23). gpt-realtime, -2.1 and -2.1-mini are as recorded, the rest by
// analogy: -mini and -1.5 like gpt-realtime, all of the second generation like -2.1.
var models = map[string]model{
	"gpt-realtime-2.1":             {voice: "marin", silenceMS: 500, phases: true},
	"gpt-realtime-2.1-mini":        {voice: "marin", silenceMS: 500, phases: true},
	"gpt-realtime-2":               {voice: "marin", silenceMS: 500, phases: true},
	"gpt-realtime-1.5":             {voice: "alloy", silenceMS: 200, spaced: true},
	"gpt-realtime":                 {voice: "alloy", silenceMS: 200, spaced: true},
	"gpt-realtime-mini":            {voice: "alloy", silenceMS: 200, spaced: true},
	"gpt-4o-realtime-preview":      {voice: "alloy", silenceMS: 200, spaced: true},
	"gpt-4o-mini-realtime-preview": {voice: "alloy", silenceMS: 200, spaced: true},
}

var snapshot = regexp.MustCompile(`-20[0-9]{2}-[0-9]{2}-[0-9]{2}$`)

func findModel(name string) (model, bool) {
	if m, ok := localServers[name]; ok {
		return m, true
	}
	m, ok := models[snapshot.ReplaceAllString(name, "")]
	return m, ok
}
