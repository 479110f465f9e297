package openai

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"voicegw/sim/fault"
	"voicegw/sim/wire"
)

// maxBody bounds the body of an HTTP request.
const maxBody = 1 << 20

// Handler serves the API. It may be used concurrently.
type Handler struct {
	opts   wire.Options
	speech speech
	held   atomic.Int64 // bytes of audio that conversations keep

	mu      sync.Mutex // guards the following fields
	secrets map[string]*secret
	ids     *wire.IDs
}

// secret is an ephemeral key with the session it was made for.
type secret struct {
	expires time.Time
	model   string
	session json.RawMessage
}

// maxSecrets bounds the ephemeral keys that are kept.
const maxSecrets = 10_000

// New makes the OpenAI side of the simulator.
func New(o wire.Options) *Handler {
	o = o.WithDefaults()
	return &Handler{opts: o, secrets: map[string]*secret{}, ids: wire.NewIDs(o.Seed ^ 0x656b)}
}

// ServeHTTP serves /v1/realtime and /openai/v1/realtime (WebSocket) and the
// client_secrets below them; everything else gets 404 with an explanation.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimSuffix(r.URL.Path, "/")
	azure := strings.HasPrefix(path, "/openai/")
	switch strings.TrimPrefix(path, "/openai") {
	case "/v1/realtime":
		h.realtime(w, r, azure)
	case "/v1/realtime/client_secrets":
		h.clientSecrets(w, r)
	default:
		writeError(w, http.StatusNotFound, invalid("unknown_url", "", "Unknown request URL: %s %s. The simulator serves /v1/realtime, /openai/v1/realtime and /v1/realtime/client_secrets.", r.Method, r.URL.Path))
	}
}

// writeError answers a request with the provider's error object.
func writeError(w http.ResponseWriter, status int, e *apiError) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	type plain struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    string  `json:"code"`
	}
	// The write fails only if the client is gone.
	_ = json.NewEncoder(w).Encode(struct {
		Error plain `json:"error"`
	}{plain{e.Message, e.Type, e.Param, e.Code}})
}

// keyOf returns the key: from a header, or from a subprotocol for browsers.
func keyOf(r *http.Request) string {
	if k := r.Header.Get("Api-Key"); k != "" {
		return k
	}
	if k, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
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

// unauthorized answers a request without a key.
func (h *Handler) unauthorized(w http.ResponseWriter) {
	h.opts.Stats.Refused.Add(1)
	writeError(w, http.StatusUnauthorized, invalid("missing_api_key", "", "You didn't provide an API key. Send it in an Authorization header: Authorization: Bearer YOUR_KEY."))
}

// realtime serves one WebSocket connection.
func (h *Handler) realtime(w http.ResponseWriter, r *http.Request, azure bool) {
	key := keyOf(r)
	if key == "" {
		h.unauthorized(w)
		return
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		writeError(w, http.StatusUpgradeRequired, invalid("websocket_required", "", "This is a WebSocket endpoint; connect with wss:// or ws://."))
		return
	}
	answer := func(a fault.Action) bool {
		if a.Kind != fault.HTTPError {
			return false
		}
		http.Error(w, cmp.Or(a.Reason, http.StatusText(a.Code)), a.Code)
		return true
	}
	o := wire.ConnOptions{Subprotocols: []string{"realtime"}, Answer: answer, UpgradeFirst: true}
	h.opts.Serve(w, r, fault.APIRealtime, o, func(ws *wire.Conn, begin wire.Begin, rest []fault.Action) {
		h.serve(ws, r, key, azure, begin, ws.Do(rest))
	})
}

// serve runs a connection from the first event to the last. first are the faults of the
// handshake that need the protocol.
func (h *Handler) serve(ws *wire.Conn, r *http.Request, key string, azure bool, begin wire.Begin, first []fault.Action) {
	log := h.opts.Logger.With("wire", "openai", "conn", begin.N)
	c := &conn{
		opts: h.opts, stats: h.opts.Stats, log: log, speech: &h.speech, w: ws, ids: wire.NewIDs(begin.Seed),
		azure: azure, quota: wire.ClassifyKey(key) == wire.KeyQuota, begun: time.Now(),
		dialogue: h.opts.Scenario.NewDialogue(begin.Seed), inputOf: map[string]inputTokens{},
		conv: conversation{held: &h.held},
	}
	defer c.conv.end()
	made, no := h.redeem(key)
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

// redeem returns the session for which an ephemeral key was made; nil for an ordinary key.
func (h *Handler) redeem(key string) (*secret, *refusal) {
	if no := refuseKey(key); no != nil {
		return nil, no
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.secrets[key]
	if s != nil && time.Now().After(s.expires) {
		return nil, refuseKey("expired")
	}
	return s, nil
}

// open makes the session, or returns why it cannot.
func (c *conn) open(r *http.Request, made *secret) *refusal {
	q := r.URL.Query()
	if strings.Contains(strings.ToLower(r.Header.Get("OpenAI-Beta")), "realtime=v1") {
		return refuseBeta()
	}
	if intent := q.Get("intent"); intent != "" {
		return refuseIntent(intent)
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
	c.model = m
	c.sess = newSession("sess_"+c.ids.Base62(21), name, m, c.begun.Add(sessionLife(c.opts)))
	c.conv.id = "conv_" + c.ids.Base62(21)
	if made != nil && made.session != nil {
		s, err := c.sess.update(made.session, updating{model: m, azure: c.azure})
		if err != nil {
			return &refusal{4000, err}
		}
		c.sess = s
	}
	c.in.configure(nil, c.sess)
	return nil
}

// Times of ephemeral keys, in seconds.
const (
	secretDefault = 600
	secretMin     = 10
	secretMax     = 7200
)

// clientSecrets makes an ephemeral key: POST /v1/realtime/client_secrets.
func (h *Handler) clientSecrets(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		writeError(w, http.StatusMethodNotAllowed, invalid("method_not_allowed", "", "Only POST makes a client secret."))
		return
	}
	key := keyOf(r)
	if key == "" {
		h.unauthorized(w)
		return
	}
	if no := refuseKey(key); no != nil {
		h.opts.Stats.Refused.Add(1)
		writeError(w, http.StatusUnauthorized, no.err)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		writeError(w, http.StatusBadRequest, invalid("invalid_body", "", "The body could not be read, or has more than %d bytes.", maxBody))
		return
	}
	answer, bad := h.makeSecret(body, time.Now())
	if bad != nil {
		writeError(w, http.StatusBadRequest, bad)
		return
	}
	h.opts.Stats.Tokens.Add(1)
	w.Header().Set("Content-Type", "application/json")
	// The write fails only if the client is gone.
	_ = json.NewEncoder(w).Encode(answer)
}

// secretAnswer is the form of a client secret.
type secretAnswer struct {
	Value     string   `json:"value"`
	ExpiresAt int64    `json:"expires_at"`
	Session   *session `json:"session"`
}

// makeSecret reads a request for an ephemeral key and makes it.
func (h *Handler) makeSecret(body []byte, now time.Time) (*secretAnswer, *apiError) {
	seconds := secretDefault
	var raw json.RawMessage
	anchor := "created_at"
	if len(strings.TrimSpace(string(body))) > 0 {
		if !json.Valid(body) {
			return nil, invalidEvent(body)
		}
		if err := (fields{
			"expires_after": fields{"anchor": word(&anchor, "created_at"), "seconds": integer(&seconds, secretMin, secretMax)}.apply,
			"session":       asIs(&raw),
		}).applyTop(body); err != nil {
			return nil, err
		}
	}
	var asked struct {
		Model string `json:"model"`
	}
	if len(raw) > 0 && json.Unmarshal(raw, &asked) != nil {
		return nil, invalidType("session", "an object", kindOf(raw))
	}
	name := cmp.Or(asked.Model, "gpt-realtime")
	m, ok := findModel(name)
	if !ok {
		return nil, refuseModel(name).err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := newSession("sess_"+h.ids.Base62(21), name, m, now.Add(sessionLife(h.opts)))
	if len(raw) > 0 {
		changed, err := s.update(raw, updating{model: m})
		if err != nil {
			return nil, err
		}
		s = changed
	}
	made := &secret{expires: now.Add(time.Duration(seconds) * time.Second), model: name, session: withoutModel(raw)}
	value := "ek_" + h.ids.Base62(32)
	h.forgetOld(now)
	h.secrets[value] = made
	return &secretAnswer{value, made.expires.Unix(), s}, nil
}

// withoutModel drops the model of a session, because the connection may name its own.
func withoutModel(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return raw
	}
	delete(m, "model")
	b, err := json.Marshal(m)
	if err != nil { // it was JSON before
		return raw
	}
	return b
}

// forgetOld drops keys that expired a while ago, and all keys if there are too many. The
// caller holds mu.
func (h *Handler) forgetOld(now time.Time) {
	for k, s := range h.secrets {
		if now.Sub(s.expires) > time.Hour {
			delete(h.secrets, k)
		}
	}
	if len(h.secrets) >= maxSecrets {
		clear(h.secrets)
	}
}
