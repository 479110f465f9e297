package gemini

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"voicegw/internal/strict"
	"voicegw/sim/wire"
)

// Ephemeral tokens (https://ai.google.dev/gemini-api/docs/ephemeral-tokens, read 2026-11-20): by default one use,
// 1 minute to begin a session, 30 minutes to send messages; 20 hours at most. Resuming costs no use.
const (
	tokenUses       = 1
	tokenBegin      = time.Minute
	tokenLife       = 30 * time.Minute
	tokenLifeMax    = 20 * time.Hour
	tokenPrefix     = "auth_tokens/"
	maxTokens       = 10_000
	maxTokenRequest = 1 << 20
)

type token struct {
	left    int // uses; 0 in the request means no limit
	endless bool
	begin   time.Time
	expires time.Time
	// setup overrides the client's setup: the fields of mask, or all of it if locked is set.
	setup  map[string]any
	mask   []string
	locked bool
}

// tokenStore holds the tokens made. It may be used concurrently.
type tokenStore struct {
	mu     sync.Mutex // guards the following fields
	tokens map[string]*token
	order  []string
}

type tokenRequest struct {
	Uses             *int            `json:"uses"`
	ExpireTime       *time.Time      `json:"expireTime"`
	NewSessionExpire *time.Time      `json:"newSessionExpireTime"`
	Setup            json.RawMessage `json:"bidiGenerateContentSetup"`
	FieldMask        string          `json:"fieldMask"`
}

func (h *Handler) serveTokens(w http.ResponseWriter, r *http.Request) {
	refused := wire.GoogleKey(wire.GoogleKeyOf(r))
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		refused = &wire.Error{Status: http.StatusMethodNotAllowed, Message: "auth_tokens are made with POST."}
	}
	name := ""
	if refused == nil {
		name, refused = h.tokens.create(http.MaxBytesReader(w, r.Body, maxTokenRequest), time.Now())
	}
	if refused != nil {
		h.opts.Stats.Refused.Add(1)
		wire.Refuse(w, wire.GoogleError, refused)
		return
	}
	h.opts.Stats.Tokens.Add(1)
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	_ = json.NewEncoder(w).Encode(map[string]string{"name": name}) // fails only if the client is gone
}

func (t *tokenStore) create(body io.Reader, now time.Time) (name string, refused *wire.Error) {
	text, err := io.ReadAll(body)
	if err != nil {
		return "", &wire.Error{Status: http.StatusRequestEntityTooLarge, Message: "Request payload size exceeds the limit."}
	}
	tok, problem := parseToken(text, now)
	if problem != "" {
		return "", &wire.Error{Status: http.StatusBadRequest, Message: problem}
	}
	name = tokenPrefix + strings.ToLower(rand.Text())
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tokens == nil {
		t.tokens = map[string]*token{}
	}
	t.tokens[name] = tok
	if t.order = append(t.order, name); len(t.order) > maxTokens {
		delete(t.tokens, t.order[0])
		t.order = append(t.order[:0:0], t.order[1:]...)
	}
	return name, nil
}

func parseToken(body []byte, now time.Time) (*token, string) {
	var req tokenRequest
	if len(bytes.TrimSpace(body)) > 0 {
		if err := json.Unmarshal(body, &req); err != nil {
			return nil, "Invalid JSON payload received. " + jsonProblem(body)
		}
	}
	return req.token(now)
}

func (q tokenRequest) token(now time.Time) (*token, string) {
	tok := &token{left: tokenUses, begin: now.Add(tokenBegin), expires: now.Add(tokenLife)}
	if q.Uses != nil {
		if *q.Uses < 0 {
			return nil, "uses must not be negative"
		}
		tok.left, tok.endless = *q.Uses, *q.Uses == 0
	}
	if q.ExpireTime != nil {
		tok.expires = *q.ExpireTime
	}
	if q.NewSessionExpire != nil {
		tok.begin = *q.NewSessionExpire
	}
	if tok.expires.Before(now) || tok.begin.Before(now) {
		return nil, "expire_time and new_session_expire_time must be in the future"
	}
	if tok.expires.Sub(now) > tokenLifeMax || tok.begin.Sub(now) > tokenLifeMax {
		return nil, "expire_time and new_session_expire_time must be less than 20 hours in the future"
	}
	if len(q.Setup) > 0 && string(q.Setup) != "null" {
		setup, err := tokenSetup(q.Setup)
		if err != nil {
			return nil, err.Reason
		}
		tok.setup, tok.locked = setup, q.FieldMask == ""
	}
	for f := range strings.SplitSeq(q.FieldMask, ",") {
		if f = strings.TrimSpace(f); f != "" {
			tok.mask = append(tok.mask, f)
		}
	}
	return tok, ""
}

// tokenSetup checks the constraint like a setup message. The SDKs send it bare or within {"setup": …}.
func tokenSetup(raw json.RawMessage) (map[string]any, *closeError) {
	if !wellFormed(raw) {
		return nil, invalid("Invalid JSON payload received. %s", jsonProblem(raw))
	}
	if members, ok := strict.Members(raw); ok && len(members) == 1 && members[0].Key == "setup" {
		raw = members[0].Value
	}
	var c checker
	out, _ := c.object(messageSchema().fields["setup"].node, raw, "bidi_generate_content_setup").(map[string]any)
	return out, c.err()
}

// use spends a token for a connection's setup, resumed or new, and applies the
// token's constraints to the setup. It returns when the token ends.
func (t *tokenStore) use(name string, setup map[string]any, resumed bool, now time.Time) (time.Time, *closeError) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tok := t.tokens[name]
	switch {
	case tok == nil:
		return time.Time{}, invalid(reasonBadToken)
	case now.After(tok.expires) || (!resumed && now.After(tok.begin)):
		return time.Time{}, invalid(reasonExpiredToken)
	case !resumed && !tok.endless && tok.left == 0:
		return time.Time{}, invalid(reasonUsedToken)
	}
	if !resumed && !tok.endless {
		tok.left--
	}
	tok.constrain(setup)
	return tok.expires, nil
}

// constrain applies the token's setup to the client's. The resumption handle
// stays the client's own: it cannot be known when the token is made.
func (t *token) constrain(setup map[string]any) {
	if t.locked {
		resumption, has := setup["sessionResumption"]
		clear(setup)
		for k, v := range t.setup {
			setup[k] = v
		}
		if has {
			setup["sessionResumption"] = resumption
		}
		return
	}
	for k, v := range t.setup {
		if _, client := setup[k]; !client {
			setup[k] = v
		}
	}
	for _, path := range t.mask {
		override(setup, t.setup, strings.Split(path, "."))
	}
}

func override(dst, src map[string]any, path []string) {
	key := camelCase(path[0])
	val, ok := src[key]
	if len(path) == 1 {
		if ok {
			dst[key] = val
		} else {
			delete(dst, key)
		}
		return
	}
	inner, inSource := val.(map[string]any)
	target, isMap := dst[key].(map[string]any)
	switch {
	case !isMap && (dst[key] != nil || !inSource):
		return // the path leads below a value that has no fields
	case !isMap:
		target = map[string]any{}
		dst[key] = target
	}
	override(target, inner, path[1:])
}

func camelCase(snake string) string {
	head, rest, found := strings.Cut(snake, "_")
	for found {
		var word string
		word, rest, found = strings.Cut(rest, "_")
		if word != "" {
			head += strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return head
}
