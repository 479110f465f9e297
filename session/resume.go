package session

import (
	"cmp"
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
	"slices"
	"sync"
	"time"
	"unique"

	"voicegw/internal/auth"
	"voicegw/internal/logging"
	"voicegw/internal/user"
	"voicegw/orchestrator"
	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/store"
)

// resume owns c. It returns the session if it was taken over from another node.
func (g *startup) resume(a *Admission, c Client) *session {
	id := ""
	if g.start.Resume != nil {
		id = g.start.Resume.SessionID
	}
	var s *session
	cause := causeResume // another node carries only returning clients
	if g.start.Resume != nil {
		s, cause = g.findSession(a, c)
	}
	if cause != nil {
		g.m.throttle.Info("resume refused", cause.Reason, "session_id", clip(id), "addr", a.addr.String())
		g.m.observe(Returned{Outcome: cause.Reason})
		refuse(c, cause)
	}
	return s
}

// findSession connects a client to its session on any node. It returns the session if it was taken over.
func (g *startup) findSession(a *Admission, c Client) (taken *session, cause *Cause) {
	s := g.m.roster.visit(g.start.Resume.SessionID)
	if s == nil {
		return g.resumeElsewhere(a, c)
	}
	if s.isOver() && s.hasLeft(locked(s, s.model.currentHandover)) {
		s.visitors.Done() // carrying may take long
		return g.resumeElsewhere(a, c)
	}
	defer s.visitors.Done()
	if cause = g.resumeHere(s, a, c); cause == nil {
		back := Returned{Outcome: ReturnedHere, Took: time.Since(g.arrivedAt)}
		g.m.observe(back)
		s.mu.Lock()
		s.watch.event(back)
		s.mu.Unlock()
	}
	return nil, cause
}

func (g *startup) resumeHere(s *session, a *Admission, c Client) *Cause {
	s.inbound.Lock()
	s.mu.Lock()
	at, cause := g.attachAgain(s, a, c)
	s.mu.Unlock()
	s.inbound.Unlock()
	switch {
	case cause == causeResume:
		return g.m.refuseResume(s.id)
	case cause != nil:
		return cause
	}
	at.start()
	return nil
}

func (m *Manager) refuseResume(id string) *Cause {
	if !m.attempts.refuse(id, time.Now()) {
		return causeResumes
	}
	return causeResume
}

// mayResume refuses a client that cannot resume s. The caller must hold mu.
func (g *startup) mayResume(s *session, a *Admission, c Client) *Cause {
	if c.Gone() {
		return causeGone // it may have reconnected since; this connection must not replace that one
	}
	if !s.client.tokens.valid(g.start.Resume.Token) || a.Origin != s.origin ||
		!namesUser(g.start, s.user.String(), clientID(s.start)) || !mayComeBack(a.Principal, s.principal.Value(), s.user.String()) {
		return causeResume
	}
	if cause := cmp.Or(s.movedAway(), sameRates(g.start, s.start.InputRate, s.start.OutputRate)); cause != nil {
		return cause
	}
	if last := s.down.LastSeq(); g.start.Resume.LastSeq > last {
		return wrongField("resume.last_seq", "is higher than every seq of the session (%d).", last)
	}
	cause := s.opts.blocked(s.user)
	if cause != nil {
		s.end(cause)
	}
	return cause
}

// attachAgain needs inbound and mu; without them, the caller must start the attachment.
func (g *startup) attachAgain(s *session, a *Admission, c Client) (*attachment, *Cause) {
	if cause := g.mayResume(s, a, c); cause != nil {
		return nil, cause
	}
	now, r := time.Now(), g.start.Resume
	if old := s.client.attachment(); old != nil {
		s.stepSent(now)
		old.detach(causeElsewhere)
		s.step(orchestrator.ClientLost{}, now)
		if cause := s.movedAway(); cause != nil { // without a client it leaves a draining process
			s.shown.state(s)
			s.setClock()
			return nil, cause
		}
	}
	away := now.Sub(s.state.AwaySince())
	back := s.down.Resume(r.LastSeq, r.Audio, away, func(item string) bool { // whether it has just begun
		ms, sounds := s.state.Heard(item, s.state.AwaySince())
		return sounds && ms < firstSound.Milliseconds()
	})
	at := s.attach(c)
	token := s.client.tokens.next(r.Token)
	who := s.principal.Value()
	if sameCredentials(a.Principal, who) {
		who.Expires, who.Mark = a.Principal.Expires, a.Principal.Mark // a token may have been renewed
		s.principal = unique.Make(who)
	}
	s.place.Update(func(r *store.SessionRecord) {
		s.client.tokens.writeTo(r)
		r.State, r.PrincipalExpires, r.Mark = store.SessionLive, who.Expires, who.Mark
	})
	safe := s.client.tokens.saved(s.place.Written())
	recalled := s.client.state.messages() // before the next step, whose messages are sent anyway
	s.step(orchestrator.ClientBack{Again: back.Again, Gone: back.Gone}, now)
	s.checkQueue(true, back.Flush(&s.down))
	s.step(orchestrator.Lapse{At: s.lapses()}, now)
	s.byClient.askAgain()
	started := s.startedMessage(token, true, back.Snapshot)
	started.InputAgain = s.mic.rest(r.Input)
	first := []protocol.ServerMessage{started}
	if back.Snapshot {
		first = append(first, recalled...)
	}
	s.checkQueue(true, s.down.Lead(first...))
	s.admission.transferTo(a)
	s.down.Attach(at.gen)
	s.welcome(at.gen, safe)
	s.shown = inspector{} // a reloaded page has no view
	s.shown.state(s)
	s.setClock()
	s.log().Info("client back", "attachment", at.gen, "away_ms", away.Milliseconds(), "last_seq", r.LastSeq, "snapshot", back.Snapshot,
		"addr", a.addr.String(), "client", clientName(g.start))
	return at, nil
}

// firstSound: an item starts again if at most this much was heard. A player reports every 200 ms.
const firstSound = 250 * time.Millisecond

// movedAway refuses for a session that is over or being handed over; nil if it runs here. The caller must hold mu.
func (s *session) movedAway() *Cause {
	switch over := s.isOver(); {
	case !over && s.model.handover == nil:
		return nil
	case !over, s.hasLeft(s.model.handover):
		return causeMoving // the client retries when the outcome is known
	}
	return causeResume
}

// hasLeft reports whether another process continues a session that is over here, or may. g is its handover.
func (s *session) hasLeft(g *handover) bool { return g != nil || s.cause().continues() }

// known is the name that the client gave at the beginning; a ticket's user may differ.
func namesUser(start *startMessage, who, known string) bool {
	return start.Client == nil || start.Client.ID == "" || start.Client.ID == who || start.Client.ID == known
}

// mayComeBack reports whether visitor may resume a session of the user who, begun with in, with a valid token. That
// suffices for sessions begun with a ticket or without credentials, except for another user's name.
func mayComeBack(visitor, in auth.Principal, who string) bool {
	switch in.Kind {
	case "", auth.KindTicket, auth.KindLocal, auth.KindOpen:
		self := visitor.Self()
		return visitor.Names() || self.IsZero() || self.String() == who
	case auth.KindConsole: // a console's token ends with its gateway
		return visitor.Unauthenticated() || visitor.Kind == in.Kind
	default:
		return sameCredentials(visitor, in)
	}
}

func sameCredentials(visitor, in auth.Principal) bool {
	return visitor.ID == in.ID && visitor.Kind == in.Kind && auth.SameMark(visitor.Mark, in.Mark)
}

func sameRates(start *startMessage, input, output int) *Cause {
	switch {
	case start.InputRate != input:
		return wrongField("input_rate", "must be that of the session, %d Hz.", input)
	case start.OutputRate != output:
		return wrongField("output_rate", "must be that of the session, %d Hz.", output)
	}
	return nil
}

// End ends a session for an operator. It reports whether it ran here; a handed-over session does not.
func (m *Manager) End(id string) bool {
	s := m.roster.visit(id)
	if s == nil {
		return false
	}
	defer s.visitors.Done()
	s.end(causeOperator)
	return !s.cause().continues()
}

// Runs reports whether the session runs on this node, so that its client can resume here.
func (m *Manager) Runs(id string) bool {
	s := m.roster.get(id)
	return s != nil && !s.isOver()
}

// Holds reports whether the session runs here or is being taken over: its client must retry.
func (m *Manager) Holds(id string) bool {
	return m.roster.isTaking(id) || m.Runs(id)
}

// EndDetached ends the voice sessions of a user's conversation whose client is absent, because the conversation
// continues elsewhere. It waits for the handback until ctx is done.
func (m *Manager) EndDetached(ctx context.Context, conversationID string, who user.User) {
	if conversationID == "" {
		return
	}
	for _, s := range m.roster.away() {
		if s.start.ConversationID != conversationID || s.user != who {
			continue
		}
		s.end(causeText)
		select {
		case <-s.left:
		case <-ctx.Done():
		}
	}
}

// tokens are the session's resume tokens. Of those that the client has, only hashes are kept.
type tokens struct {
	spare  string // the next token
	newest [sha256.Size]byte
	// safe is closed when spare's hash is stored, so that it also works in other processes; nil without a spare.
	safe      <-chan struct{}
	newestKey sealKey // derived from the newest token
	// before is the token that the client used last, which stays valid until the client has received the newest: any
	// number of answers may be lost, for any time. Nil afterwards.
	before *formerToken
}

type formerToken struct {
	hash [sha256.Size]byte
	key  sealKey
}

const tokenBytes = 32

// used is the token that the client came with; empty at the session's beginning.
func (t *tokens) next(used string) string {
	token := t.spare
	if token == "" {
		token = newToken()
	}
	t.newest, t.spare = sha256.Sum256([]byte(token)), newToken()
	t.newestKey = keyOf(token)
	if used != "" {
		t.before = &formerToken{sha256.Sum256([]byte(used)), keyOf(used)}
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

// welcome releases an attachment's messages when its token's hash (safe) and open questions are stored, so that it
// could resume elsewhere, or after safeTime. The caller must hold mu.
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
	r.OldTokenHash = ""
	if b := t.before; b != nil {
		r.OldTokenHash = hex.EncodeToString(b.hash[:])
	}
}

func (t *tokens) valid(token string) bool {
	hash := sha256.Sum256([]byte(token))
	newest := subtle.ConstantTimeCompare(hash[:], t.newest[:]) == 1
	before := t.before != nil && subtle.ConstantTimeCompare(hash[:], t.before.hash[:]) == 1
	return newest || before
}

// Opens returns nil if the visitor may resume the session of that record: it has a token, the page's origin, no other
// user's name, and sufficient credentials. Otherwise the error is ErrNoSession or, for other audio rates, a *Cause.
func (v Visitor) Opens(r store.SessionRecord) error {
	hash := sha256.Sum256([]byte(v.Start.Resume.Token))
	shown, valid := []byte(hex.EncodeToString(hash[:])), 0
	for _, known := range append(slices.Clone(r.TokenHashes), r.OldTokenHash) {
		valid |= subtle.ConstantTimeCompare(shown, []byte(known))
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
	return cipher.NewGCMWithRandomNonce(block) //nolint:wrapcheck // a block of that size has none
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
		all = append(all, c.Seal(nil, nil, text, []byte(context)))
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
		text, err := c.Open(nil, nil, one, []byte(context))
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
