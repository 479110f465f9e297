package session

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"voicegw/internal/auth"
	"voicegw/internal/logging"
	"voicegw/store"
)

// tokens are what a client must show to come back to a session. Of those that a client has, only
// the hashes are kept.
type tokens struct {
	spare  string // the next token
	newest [sha256.Size]byte
	// safe is closed when a client that gets spare can come back through another process, as far as that
	// depends on its hash; nil without a spare.
	safe      <-chan struct{}
	newestKey sealKey // made of the newest token
	// before is the one that the client last came back with; nil once the client has received the newest.
	before *formerToken
}

// formerToken is a token that is valid until the next one has been received, but not for longer than until.
type formerToken struct {
	hash  [sha256.Size]byte
	key   sealKey
	until time.Time
}

// tokenOverlap is how long the token before the newest stays valid, for a client whose
// session.started was lost on the way.
const tokenOverlap = 10 * time.Second

// tokenBytes is the length of a token: 256 random bits.
const tokenBytes = 32

// next returns the next token, which welcome tells the client. The client has come back with used; empty
// at the session's beginning.
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

// saved takes the channel that is closed when the hashes are in the directory, and returns the one for the
// newest token, which has been there for longer if it was the spare one.
func (t *tokens) saved(now <-chan struct{}) (safe <-chan struct{}) {
	safe = t.safe
	if t.safe = now; safe == nil {
		safe = now
	}
	return safe
}

// known forgets a channel that was closed.
func (t *tokens) forgetSafe(safe <-chan struct{}) {
	if t.safe == safe {
		t.safe = written
	}
}

// safeTime bounds how long a client waits for its token. While the store is away, sessions begin and go on
// with tokens that only this process knows.
const safeTime = 2 * time.Second

// welcome lets an attachment's session.started be written, and everything behind it, once a client that has
// its token could come back through another process: the token's hash, for which safe is closed, and the
// questions that it is to open are durable. The caller must hold mu.
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
			err = s.persist(ctx) // its questions are sealed with the tokens that are valid now
		}
		if err = errors.Join(err, ctx.Err()); err != nil && !s.isOver() {
			s.log().Warn("a client gets a token that may be unknown to other gateways", "attachment", gen, "error", err)
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

// received records that the client has got the newest token: the one before is not valid any more.
// It reports whether that one was valid until now.
func (t *tokens) received() bool {
	was := t.before != nil
	t.before = nil
	return was
}

// keys returns those of the tokens with which the client may come back, now or soon.
func (t *tokens) keys() []sealKey {
	keys := []sealKey{t.newestKey, keyOf(t.spare)}
	if t.before != nil {
		keys = append(keys, t.before.key)
	}
	return keys
}

// enter puts the hashes into the session's record: of the newest token, of the next one, so that a
// node which dies while it hands it out leaves nobody outside, and of the one before.
func (t *tokens) writeTo(r *store.SessionRecord) {
	spare := sha256.Sum256([]byte(t.spare))
	r.TokenHashes = []string{hex.EncodeToString(t.newest[:]), hex.EncodeToString(spare[:])}
	r.OldTokenHash, r.OldTokenUntil = "", time.Time{}
	if b := t.before; b != nil {
		r.OldTokenHash, r.OldTokenUntil = hex.EncodeToString(b.hash[:]), b.until
	}
}

// valid reports whether a client with that token may come back.
func (t *tokens) valid(token string, now time.Time) bool {
	hash := sha256.Sum256([]byte(token))
	newest := subtle.ConstantTimeCompare(hash[:], t.newest[:]) == 1
	before := t.before != nil && subtle.ConstantTimeCompare(hash[:], t.before.hash[:]) == 1 && now.Before(t.before.until)
	return newest || before
}

// Opens returns nil if the visitor may come back to a session of that record: with a token of it,
// from a page of its origin, and as its user or without a name, with credentials that may come back
// to it. Otherwise the error is ErrNoSession
// or, for a client that may come back and speaks at other rates, a *Cause.
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

// The number of refused attempts for a session, and the time in which they are counted. Attempts
// for sessions that do not exist are counted as well, or the answer would tell whether one does.
const (
	maxTries     = 5
	triesWindow  = 10 * time.Second
	triesCounted = 4096 // sessions whose attempts are counted at once
)

// tries counts refused attempts to come back, by the id of the session that was named. It may be
// used concurrently.
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
