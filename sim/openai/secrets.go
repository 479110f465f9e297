package openai

import (
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

const (
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

func (h *Handler) makeSecret(body []byte, now time.Time) (*openaiwire.SecretAnswer, *openaiwire.Error) {
	q, err := openaiwire.ReadSecretRequest(body, "", nil)
	if err != nil {
		return nil, err
	}
	name := cmp.Or(q.Model, "gpt-realtime")
	m, ok := findModel(name)
	if !ok {
		return nil, refuseModel(name).err
	}
	s, kept, err := q.Apply(newSession(h.secrets.id(), name, m, false, now.Add(sessionLife(h.opts))))
	if err != nil {
		return nil, err
	}
	made := &secret{expires: now.Add(q.Life), model: name, session: kept}
	return &openaiwire.SecretAnswer{Value: h.secrets.keep(made, now), ExpiresAt: made.expires.Unix(), Session: s}, nil
}

func (s *secretStore) id() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids.New("sess")
}
