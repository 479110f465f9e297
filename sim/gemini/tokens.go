package gemini

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"voicegw/sim/wire"
)

// Ephemeral tokens (https://ai.google.dev/gemini-api/docs/ephemeral-tokens, read
// 2026-11-20): by default one use, 1 minute to begin a
// session, 30 minutes to send messages; 20 hours at most. Resuming costs no use.
const (
	tokenUses       = 1
	tokenBegin      = time.Minute
	tokenLife       = 30 * time.Minute
	tokenLifeMax    = 20 * time.Hour
	tokenPrefix     = "auth_tokens/"
	maxTokens       = 10_000
	maxTokenRequest = 1 << 20
)

// token is one ephemeral credential.
type token struct {
	left    int // uses; 0 in the request means no limit
	endless bool
	begin   time.Time
	expires time.Time
	// setup overrides the client's setup: the fields of mask, or all of it if
	// locked is set.
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

// create answers POST /v1alpha/auth_tokens.
func (t *tokenStore) create(w http.ResponseWriter, r *http.Request, now time.Time) bool {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxTokenRequest))
	if err != nil {
		writeError(w, http.StatusRequestEntityTooLarge, "INVALID_ARGUMENT", "Request payload size exceeds the limit.")
		return false
	}
	var req tokenRequest
	if len(strings.TrimSpace(string(body))) > 0 {
		if err := json.Unmarshal(body, &req); err != nil {
			writeError(w, http.StatusBadRequest, "INVALID_ARGUMENT", "Invalid JSON payload received. "+jsonProblem(body))
			return false
		}
	}
	tok, problem := req.token(now)
	if problem != "" {
		writeError(w, http.StatusBadRequest, "INVALID_ARGUMENT", problem)
		return false
	}
	var secret [32]byte
	// Since Go 1.24 this cannot fail.
	_, _ = rand.Read(secret[:])
	name := tokenPrefix + hex.EncodeToString(secret[:])
	t.mu.Lock()
	if t.tokens == nil {
		t.tokens = map[string]*token{}
	}
	t.tokens[name] = tok
	if t.order = append(t.order, name); len(t.order) > maxTokens {
		delete(t.tokens, t.order[0])
		t.order = append(t.order[:0:0], t.order[1:]...)
	}
	t.mu.Unlock()
	writeJSON(w, http.StatusOK, map[string]string{"name": name})
	return true
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

// tokenSetup checks the constraint like a setup message. The SDKs send it bare
// or within {"setup": …}.
func tokenSetup(raw json.RawMessage) (map[string]any, *closeError) {
	v, err := decodeOrdered(raw)
	if err != nil {
		return nil, invalid("Invalid JSON payload received. %s", jsonProblem(raw))
	}
	if obj, ok := v.(object); ok && len(obj) == 1 && obj[0].key == "setup" {
		v = obj[0].val
	}
	var c checker
	out, _ := c.object(messageSchema().fields["setup"].node, v, "bidi_generate_content_setup").(map[string]any)
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

// override copies the value at a path from src to dst.
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
	inner, _ := val.(map[string]any)
	target, isMap := dst[key].(map[string]any)
	if !isMap {
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

// refuseKey answers an HTTP request with the provider's error for its key;
// false if the key is good.
func refuseKey(w http.ResponseWriter, fate wire.Key) bool {
	switch fate {
	case wire.KeyMissing:
		writeError(w, http.StatusForbidden, "PERMISSION_DENIED", "Method doesn't allow unregistered callers "+
			"(callers without established identity). Please use API Key or other form of API consumer identity to call this API.")
	case wire.KeyInvalid:
		writeError(w, http.StatusBadRequest, "INVALID_ARGUMENT", reasonBadKey)
	case wire.KeyExpired:
		writeError(w, http.StatusBadRequest, "INVALID_ARGUMENT", reasonExpiredKey)
	case wire.KeyQuota:
		writeError(w, http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", reasonQuota)
	default:
		return false
	}
	return true
}

// writeError answers with Google's error object.
func writeError(w http.ResponseWriter, code int, status, message string) {
	writeJSON(w, code, map[string]any{"error": map[string]any{"code": code, "message": message, "status": status}})
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(code)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	// The client may be gone, which does not matter.
	_ = enc.Encode(v)
}
