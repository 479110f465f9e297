package session

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"voicegw/internal/auth"
	"voicegw/internal/logging"
	"voicegw/orchestrator/calls"
	"voicegw/store"
)

// tokens are the session's resume tokens. Of those that the client has, only hashes are kept.
type tokens struct {
	spare  string // the next token
	newest [sha256.Size]byte
	// safe is closed when spare's hash is stored, so that it also works in other processes; nil without a spare.
	safe      <-chan struct{}
	newestKey sealKey // derived from the newest token
	// before is the token that the client used last; nil once the client has received the newest.
	before *formerToken
}

// formerToken is valid until the client has received the next token, and at most until until.
type formerToken struct {
	hash  [sha256.Size]byte
	key   sealKey
	until time.Time
}

// tokenOverlap is how long the previous token stays valid, for a client that did not receive its session.started.
const tokenOverlap = 10 * time.Second

// tokenBytes: 256 random bits.
const tokenBytes = 32

// used is the token that the client came with; empty at the session's beginning.
func (t *tokens) next(used string, now time.Time) string {
	token := t.spare
	if token == "" {
		token = newToken()
	}
	t.newest, t.spare = sha256.Sum256([]byte(token)), newToken()
	t.newestKey = keyOf(token)
	if used != "" {
		t.before = &formerToken{sha256.Sum256([]byte(used)), keyOf(used), now.Add(tokenOverlap)}
	}
	return token
}

// saved returns the channel of the newest token, which was stored earlier if it was the spare.
func (t *tokens) saved(now <-chan struct{}) (safe <-chan struct{}) {
	safe = t.safe
	if t.safe = now; safe == nil {
		safe = now
	}
	return safe
}

func (t *tokens) forgetSafe(safe <-chan struct{}) {
	if t.safe == safe {
		t.safe = written
	}
}

// safeTime bounds a client's wait for its token. Without the store, only this process knows it.
const safeTime = 2 * time.Second

// welcome releases an attachment's session.started and the messages behind it when the client could resume in another
// process: safe is closed (the token's hash is stored) and its open questions are saved. It gives up after safeTime.
// The caller must hold mu.
func (s *session) welcome(gen int, safe <-chan struct{}) {
	asks := s.state.Questions() > 0 && s.canSave()
	select {
	case <-safe:
		if !asks {
			s.down.Speak(gen)
			return
		}
	default:
	}
	s.client.leaving.Go(func() {
		defer s.down.Speak(gen)
		ctx, cancel := context.WithTimeout(s.context(), safeTime)
		defer cancel()
		select {
		case <-safe:
			s.mu.Lock()
			s.client.tokens.forgetSafe(safe)
			s.mu.Unlock()
		case <-ctx.Done():
		}
		var err error
		if asks {
			err = s.persist(ctx) // its questions are sealed with the present tokens
		}
		if err = errors.Join(err, ctx.Err()); err != nil && !s.isOver() {
			s.log().Warn("a client got a token that other gateways may not know", "attachment", gen, "error", err)
		}
	})
}

func newToken() string {
	raw := make([]byte, tokenBytes)
	rand.Read(raw)
	token := base64.RawURLEncoding.EncodeToString(raw)
	logging.Made(logging.Resume, token)
	return token
}

func (t *tokens) received() bool {
	was := t.before != nil
	t.before = nil
	return was
}

func (t *tokens) keys() []sealKey {
	keys := []sealKey{t.newestKey, keyOf(t.spare)}
	if t.before != nil {
		keys = append(keys, t.before.key)
	}
	return keys
}

// writeTo stores the hash of the next token too, because a node may die while it hands it out.
func (t *tokens) writeTo(r *store.SessionRecord) {
	spare := sha256.Sum256([]byte(t.spare))
	r.TokenHashes = []string{hex.EncodeToString(t.newest[:]), hex.EncodeToString(spare[:])}
	r.OldTokenHash, r.OldTokenUntil = "", time.Time{}
	if b := t.before; b != nil {
		r.OldTokenHash, r.OldTokenUntil = hex.EncodeToString(b.hash[:]), b.until
	}
}

func (t *tokens) valid(token string, now time.Time) bool {
	hash := sha256.Sum256([]byte(token))
	newest := subtle.ConstantTimeCompare(hash[:], t.newest[:]) == 1
	before := t.before != nil && subtle.ConstantTimeCompare(hash[:], t.before.hash[:]) == 1 && now.Before(t.before.until)
	return newest || before
}

// Opens returns nil if the visitor may resume the session of that record: it has a token, the page's origin, no other
// user's name, and sufficient credentials. Otherwise the error is ErrNoSession or, for other audio rates, a *Cause.
func (v Visitor) Opens(r store.SessionRecord, now time.Time) error {
	hash := sha256.Sum256([]byte(v.Start.Resume.Token))
	shown, valid := []byte(hex.EncodeToString(hash[:])), 0
	for _, known := range r.TokenHashes {
		valid |= subtle.ConstantTimeCompare(shown, []byte(known))
	}
	if now.Before(r.OldTokenUntil) {
		valid |= subtle.ConstantTimeCompare(shown, []byte(r.OldTokenHash))
	}
	switch {
	case valid != 1, v.Origin != r.Origin, !namesUser(v.Start, r.User, r.ClientID), r.InputRate == 0,
		!mayComeBack(v.Principal, auth.Principal{Kind: auth.Kind(r.Entry), ID: r.Principal, Mark: r.Mark}, r.User):
		return ErrNoSession
	}
	if cause := sameRates(v.Start, r.InputRate, r.OutputRate); cause != nil {
		return cause
	}
	return nil
}

// The limit of refused attempts. Unknown sessions count too, or the response would reveal which exist.
const (
	maxTries     = 5
	triesWindow  = 10 * time.Second
	triesCounted = 4096 // sessions counted at once
)

// resumeAttempts counts refused attempts to resume, by session id. It may be used concurrently.
type resumeAttempts struct {
	mu    sync.Mutex // guards the following fields
	since time.Time  // when the counting began
	count map[string]int
}

// refuse counts an attempt. It reports false if there were too many.
func (t *resumeAttempts) refuse(id string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.since) >= triesWindow || len(t.count) >= triesCounted {
		t.since, t.count = now, make(map[string]int)
	}
	t.count[id]++
	return t.count[id] <= maxTries
}

// The tokens of open questions are secrets and must not be readable in the store. A checkpoint has them encrypted with
// keys derived from the client's resume tokens, so only a node that the client returns to can read them.

// sealKey is derived from a resume token and reveals nothing of it.
type sealKey [sha256.Size]byte

func keyOf(token string) sealKey { return sha256.Sum256([]byte("voicegw questions\x00" + token)) }

func (k sealKey) aead() (cipher.AEAD, error) {
	block, err := aes.NewCipher(k[:])
	if err != nil {
		return nil, err //nolint:wrapcheck // it cannot fail with a key of that length
	}
	return cipher.NewGCM(block) //nolint:wrapcheck // a block of that size has none
}

// sealed returns the questions' tokens, encrypted with each key; nil without questions. context is the session's id.
func sealed(questions []calls.OpenQuestion, context string, keys []sealKey) ([][]byte, error) {
	if len(questions) == 0 {
		return nil, nil
	}
	tokens := make(map[string]string, len(questions))
	for _, q := range questions {
		tokens[q.Name] = q.Token
	}
	text, err := json.Marshal(tokens)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names it
	}
	var all [][]byte
	for _, k := range keys {
		c, err := k.aead()
		if err != nil {
			return nil, err
		}
		nonce := make([]byte, c.NonceSize())
		rand.Read(nonce)
		all = append(all, c.Seal(nonce, nonce, text, []byte(context)))
	}
	return all, nil
}

// unseal leaves out questions without a token; the API can still answer them.
func unseal(questions []calls.OpenQuestion, all [][]byte, context, token string) (known []calls.OpenQuestion) {
	c, err := keyOf(token).aead()
	if err != nil {
		return nil
	}
	for _, one := range all {
		if len(one) < c.NonceSize() {
			continue
		}
		text, err := c.Open(nil, one[:c.NonceSize()], one[c.NonceSize():], []byte(context))
		var tokens map[string]string
		if err != nil || json.Unmarshal(text, &tokens) != nil {
			continue
		}
		for _, q := range questions {
			if q.Token = tokens[q.Name]; q.Token != "" {
				known = append(known, q)
			}
		}
		return known
	}
	return nil
}
