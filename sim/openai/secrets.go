package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"voicegw/internal/openaiwire"
	"voicegw/sim/wire"
)

// Ephemeral keys (https://developers.openai.com/api/reference, client_secrets, read 2026-11-20): their times in
// seconds. Sessions outlive their key.
const (
	secretDefault = 600
	secretMin     = 10
	secretMax     = 7200

	secretPrefix   = "ek_"
	maxSecrets     = 10_000
	maxSecretBytes = 1 << 20 // of a request for one
)

type secret struct {
	expires time.Time
	model   string
	session json.RawMessage // without the model, because a connection may name its own
}

// secretStore holds the ephemeral keys. It may be used concurrently.
type secretStore struct {
	mu   sync.Mutex // guards the following fields
	made map[string]*secret
	ids  *wire.IDs
}

// find returns the session that a key was made for; nil for an ordinary key.
func (s *secretStore) find(key string, now time.Time) (*secret, *refusal) {
	if no := refuseKey(key); no != nil || !strings.HasPrefix(key, secretPrefix) {
		return nil, no
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch made := s.made[key]; {
	case made == nil:
		return nil, refuseKey("invalid")
	case now.After(made.expires):
		return nil, refuseKey("expired")
	default:
		return made, nil
	}
}

// keep adds a key. It drops keys that have expired a while ago, and all keys if there are too many.
func (s *secretStore) keep(made *secret, now time.Time) (value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, old := range s.made {
		if now.Sub(old.expires) > time.Hour {
			delete(s.made, key)
		}
	}
	if len(s.made) >= maxSecrets {
		clear(s.made)
	}
	value = secretPrefix + s.ids.Base62(32)
	s.made[value] = made
	return value
}

func (h *Handler) clientSecrets(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		writeError(w, http.StatusMethodNotAllowed, openaiwire.Invalid("method_not_allowed", "", "Only POST makes a client secret."))
		return
	}
	key := keyOf(r)
	if key == "" {
		h.unauthorized(w)
		return
	}
	if no := refuseKey(key); no != nil || strings.HasPrefix(key, secretPrefix) {
		no = cmp.Or(no, refuseKey("invalid")) // an ephemeral key makes no others
		h.opts.Stats.Refused.Add(1)
		writeError(w, http.StatusUnauthorized, no.err)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxSecretBytes))
	if err != nil {
		writeError(w, http.StatusBadRequest, openaiwire.Invalid("invalid_body", "",
			"The body could not be read, or has more than %d bytes.", maxSecretBytes))
		return
	}
	answer, bad := h.makeSecret(body, time.Now())
	if bad != nil {
		writeError(w, http.StatusBadRequest, bad)
		return
	}
	h.opts.Stats.Tokens.Add(1)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // fails only if the client is gone
}

type secretAnswer struct {
	Value     string              `json:"value"`
	ExpiresAt int64               `json:"expires_at"`
	Session   *openaiwire.Session `json:"session"`
}

func (h *Handler) makeSecret(body []byte, now time.Time) (*secretAnswer, *openaiwire.Error) {
	seconds, anchor := secretDefault, "created_at"
	var raw json.RawMessage
	if len(bytes.TrimSpace(body)) > 0 {
		if !json.Valid(body) {
			return nil, openaiwire.NotJSON(body)
		}
		if err := (openaiwire.Fields{
			"expires_after": openaiwire.Fields{
				"anchor": openaiwire.Word(&anchor, "created_at"), "seconds": openaiwire.Integer(&seconds, secretMin, secretMax),
			}.Read,
			"session": openaiwire.Raw(&raw),
		}).Read(body, ""); err != nil {
			return nil, err
		}
	}
	var asked map[string]json.RawMessage
	if len(raw) > 0 && json.Unmarshal(raw, &asked) != nil {
		return nil, openaiwire.WrongType("session", "an object", openaiwire.KindOf(raw))
	}
	name := "gpt-realtime"
	if model, has := asked["model"]; has && json.Unmarshal(model, &name) != nil {
		return nil, openaiwire.WrongType("session.model", "a string", openaiwire.KindOf(model))
	}
	m, ok := findModel(name)
	if !ok {
		return nil, refuseModel(name).err
	}
	s := newSession(h.secrets.id(), name, m, false, now.Add(sessionLife(h.opts)))
	made := &secret{expires: now.Add(time.Duration(seconds) * time.Second), model: name}
	if len(raw) > 0 {
		var err *openaiwire.Error
		if s, err = s.Update(raw); err != nil {
			return nil, err
		}
		delete(asked, "model")
		if made.session, _ = json.Marshal(asked); made.session == nil { // decoded JSON can be encoded
			made.session = raw
		}
	}
	return &secretAnswer{h.secrets.keep(made, now), made.expires.Unix(), s}, nil
}

func (s *secretStore) id() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids.New("sess")
}
