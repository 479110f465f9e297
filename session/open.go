package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"voicegw/internal/auth"
	"voicegw/internal/conversation"
	"voicegw/internal/meter"
	"voicegw/internal/user"
	"voicegw/orchestrator"
	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/session/handoff"
	"voicegw/store"
	"voicegw/transport"
)

type startMessage = protocol.Start

// open identifies the user and connects to the requested model. After a cause, g.leave releases the rest.
func (g *startup) open(a *Admission) (transport.Conn, *Cause) {
	if a.returns {
		return nil, causeBehind
	}
	cause := a.takePlace()
	if cause != nil {
		return nil, cause
	}
	if cause = g.identify(a); cause != nil {
		return nil, cause
	}
	if cause = g.choose(); cause != nil {
		return nil, cause
	}
	if cause = g.options().blocked(g.User); cause != nil {
		return nil, cause
	}
	g.fixed = g.all.Draw(drawKey(g.User, g.start.ConversationID, g.SessionID), nil)
	if cause := g.declare(); cause != nil {
		return nil, cause
	}
	g.tools = g.options().toolsFor(g.agent, g.all,
		registry.Session{UserID: g.User.String(), Vouched: g.Vouched, Scopes: g.Scopes})
	g.knownAt = time.Now()
	if cause := g.meterUsage(false); cause != nil {
		return nil, cause
	}
	own := g.options().providerOf(&g.modelRequest)
	g.provider = g.m.breakers.instead(own, g.options().Fallback, g.start.Provider != "")
	g.mark = prompts.NewMark()
	if !g.m.breakers[g.provider].allows(time.Now()) {
		return nil, causeUnavailable
	}
	return g.connect(g.m.ctx())
}

func (g *startup) readStart(a *Admission, c Client) (*startMessage, *Cause) {
	ctx, cancel := context.WithTimeout(a.ctx(), g.options().Limits.StartTimeout)
	defer cancel()
	// Only closing the connection ends a read.
	closed := make(chan struct{}) // closed by the function below, once it has closed c
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		refuse(c, startCause(ctx))
	})
	in, err := c.Receive()
	if !stop() {
		<-closed
		return nil, startCause(ctx)
	}
	switch {
	case err != nil:
		return nil, gone(err)
	case in.Audio:
		return nil, refusal(protocol.CloseBadProtocol, protocol.CodeNotStarted,
			"Audio came before session.start; the first frame must be session.start.")
	case in.Mistake != nil:
		cause := refusal(protocol.CloseBadProtocol, in.Mistake.Code, "%s", in.Mistake.Message)
		cause.Field = in.Mistake.Field
		return nil, cause
	}
	start, ok := in.Message.(*startMessage)
	if !ok {
		return nil, refusal(protocol.CloseBadProtocol, protocol.CodeNotStarted, "The first message must be session.start.")
	}
	return start, g.checkStart(start)
}

// userOf returns the credentials' user (known), or the user that the client names, or its anonymous user.
func (a *Admission) userOf(start *startMessage) (who user.User, known bool, cause *Cause) {
	if self := a.Principal.Self(); !self.IsZero() && !a.Principal.Names() {
		return self, true, nil
	}
	if start.Client == nil || start.Client.ID == "" {
		nameless := a.Anonymous
		if nameless.IsZero() {
			nameless = user.Anonymous(netip.Addr{}, false)
		}
		return nameless, false, nil
	}
	who, err := user.Parse(start.Client.ID)
	if err != nil {
		return user.User{}, false, wrongField("client.id", "%v.", err)
	}
	return who, false, nil
}

func startCause(ctx context.Context) *Cause {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return causeStartTimeout
	}
	return causeOf(context.Cause(ctx))
}

func (g *startup) checkStart(start *startMessage) *Cause {
	if start.Resume != nil {
		if g.options().Policy.ResumeGrace <= 0 {
			return refusal(protocol.CloseBadProtocol, protocol.CodeNotAvailable,
				"This gateway does not let clients come back to a session; start a new one without the field resume.")
		}
		return nil
	}
	if cause := g.options().checkAgent(start); cause != nil {
		return cause
	}
	if _, ok := g.options().Transports[start.Provider]; start.Provider != "" && !ok {
		return refusal(protocol.CloseUnknownTarget, protocol.CodeUnknownProvider, "The provider %q is not configured here; available: %s.",
			clip(start.Provider), strings.Join(slices.Sorted(maps.Keys(g.options().Transports)), ", "))
	}
	return nil
}

func (o *Options) setup(w *modelRequest, provider string) transport.Setup {
	instructions := w.agent.Instructions
	if o.Instructions != nil {
		instructions = o.Instructions(w.agent, w.tools, w.mark, w.start.TimeZone)
	}
	model := w.agent.model(provider)
	return withExtra(transport.Setup{
		Model:          model,
		Voice:          o.voice(w, provider),
		Language:       w.agent.Language,
		Instructions:   instructions,
		Tools:          declarations(w.tools, o.Transports[provider].Capabilities(model).ToolSchemas, o.Policy.SpokenConfirmation),
		ManualActivity: w.start.TurnDetection == protocol.TurnDetectionClient,
		SilenceMS:      o.SilenceMS,
		PrefixMS:       o.PrefixMS, Checked: o.Checks != nil,
	}, w.start.Extra)
}

// voice returns the voice for a provider. A requested voice belongs to the requested provider.
func (o *Options) voice(w *modelRequest, provider string) string {
	if provider != o.providerOf(w) {
		return w.agent.Voices[provider]
	}
	return cmp.Or(w.start.Voice, w.agent.Voices[provider])
}

// attemptTimeOf is the time for one attempt. A provider that hangs leaves time for another attempt or provider; a model
// may have to be loaded first.
func (o *Options) attemptTimeOf(provider string) time.Duration {
	return max(o.Limits.ConnectTimeout*2/5, transport.LoadTime(o.Transports[provider]))
}

// connect connects to the model of g.provider, with retries. g.provider changes if the fallback takes over.
func (g *startup) connect(ctx context.Context) (transport.Conn, *Cause) {
	limit := g.options().Limits.ConnectTimeout
	other := g.options().Fallback
	if other == g.provider || g.start.Provider != "" {
		other = "" // no fallback, or the client wants this provider
	}
	loads := transport.LoadTime(g.options().Transports[g.provider]) + transport.LoadTime(g.options().Transports[other])
	ctx, cancel := context.WithTimeout(ctx, limit+loads)
	defer cancel()
	tries := orchestrator.NewAttempts(limit, uint16(rand.Uint32()))
	tries.Planned(time.Now())
	for {
		setup := g.options().setup(&g.modelRequest, g.provider)
		g.instructed, g.voice = int64(len(setup.Instructions)), setup.Voice
		setup.History = pastOf(g.start.Extra, g.options().Transports[g.provider].Capabilities(setup.Model))
		attempt, done := context.WithTimeout(ctx, g.options().attemptTimeOf(g.provider))
		conn, err := g.m.dial(attempt, g.provider, setup, orchestrator.LinkFresh)
		done()
		if err == nil {
			g.m.breakers[g.provider].report(true, time.Now())
			return conn, nil
		}
		if g.m.ctx().Err() != nil {
			return nil, causeOf(context.Cause(g.m.ctx()))
		}
		kind := modelError(err).Kind
		next := tries.Lost(time.Now(), orchestrator.Loss{Kind: kind, After: modelError(err).RetryAfter, Other: other != ""})
		over := next.Over || ctx.Err() != nil
		g.logger.Log(ctx, levelOf(err), "connecting to the model failed", "provider", g.provider, "kind", kind.String(),
			"again", !over, "error", err)
		if over || next.Other {
			g.m.breakers[g.provider].report(!kind.Retryable(), time.Now())
		}
		if over {
			return nil, unreachable(kind)
		}
		if next.Other {
			g.logger.Warn("another provider takes over", "from", g.provider, "to", other)
			g.provider, other = other, g.provider
		}
		select {
		case <-time.After(next.After):
		case <-ctx.Done():
		}
	}
}

func (m *Manager) dial(ctx context.Context, provider string, setup transport.Setup, how orchestrator.LinkHow) (transport.Conn, error) {
	began := time.Now()
	conn, err := m.options().Transports[provider].Connect(ctx, setup)
	tried := Dialed{How: how, Took: time.Since(began)}
	if err != nil {
		tried.Kind = cmp.Or(transport.KindOf(err), transport.KindRetry)
	}
	m.observers[provider](tried)
	return conn, err
}

func refuse(c Client, cause *Cause) {
	abort := time.AfterFunc(closeTimeout, c.Abort)
	defer abort.Stop()
	if cause.Code != "" {
		msg := &protocol.Error{Code: cause.Code, Message: cause.Message, Retryable: cause.retryable(), Ref: cause.Field,
			Until: protocol.Time{Time: cause.Until}}
		if text, err := protocol.EncodeServer(1, msg); err == nil {
			// The close code has the same meaning.
			_ = c.WriteText(text)
		}
	}
	// The client may be gone.
	_ = c.Close(cause.Close, cause.Reason)
	c.Abort()
}

const (
	// breakerFailures is how many sessions in a row must fail, after several tries each, before others are refused.
	breakerFailures = 3
	// breakerRest is how long others are refused; then one session tries again.
	breakerRest = 10 * time.Second
)

// breaker refuses sessions for an unreachable provider. It may be used concurrently; the zero value refuses none.
type breaker struct {
	mu     sync.Mutex // guards the following fields
	failed int        // failures since the last success
	until  time.Time  // all are refused before
}

func (b *breaker) open(now time.Time) (left time.Duration, open bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	left = b.until.Sub(now)
	return left, b.failed >= breakerFailures && left > 0
}

// After a rest, allows lets one caller at a time try. The caller must report the outcome.
func (b *breaker) allows(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.failed < breakerFailures:
		return true
	case now.Before(b.until):
		return false
	}
	b.until = now.Add(breakerRest)
	return true
}

func (b *breaker) report(reached bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if reached {
		b.failed, b.until = 0, time.Time{}
		return
	}
	b.failed++
	b.until = now.Add(breakerRest)
}

type breakers map[string]*breaker

// reachable reports whether new sessions may try any provider; otherwise, when the first may be tried.
func (bs breakers) reachable() (in time.Duration, ok bool) {
	now := time.Now()
	for _, b := range bs {
		left, open := b.open(now)
		if !open {
			return 0, true
		}
		if in == 0 || left < in {
			in = left
		}
	}
	return in, len(bs) == 0
}

func (bs breakers) instead(provider, fallback string, asked bool) string {
	if _, open := bs[provider].open(time.Now()); open && !asked && fallback != "" {
		return fallback
	}
	return provider
}

// Handoffs is documented by *handoff.Handoffs. Redeem, Enter and Decided get 5 s. It may be used concurrently.
type Handoffs interface {
	Redeem(ctx context.Context, secret, origin string) (handoff.Ticket, error)
	Enter(ctx context.Context, conversationID string, who user.User) (before string, err error)
	Adopt(ctx context.Context, session string, epoch uint64, conversationID string, who user.User) (handoff.Adopted, error)
	Save(ctx context.Context, said handoff.Part) error
	HandBack(ctx context.Context, said handoff.Part) error
	Decided(ctx context.Context, c store.Confirmation, result json.RawMessage) error
}

// modelRequest is the part of a connection's setup that stays the same for later connections.
type modelRequest struct {
	start *startMessage      // without the ticket's secret
	agent *Agent             // nil until it is known
	tools *registry.Snapshot // the agent's; nil without tools
	all   *registry.Snapshot // the set from which agents take their tools
	mark  prompts.Mark       // the mark before the gateway's own words to the model
}

type startup struct {
	m *Manager
	// Ticket is the client's ticket, or the same facts without one. Inspect means that it may see the inner state.
	handoff.Ticket
	admission *Admission // nil in some tests
	arrivedAt time.Time
	// When session.start arrived, and when the user was identified; see started.
	startedAt, knownAt time.Time
	entry              Entry
	addr               string
	modelRequest
	declares   bool               // the client declared some of the tools, or may do so later
	fixed      *registry.Snapshot // all without the client's tools
	voice      string             // requested from the model; empty for its default
	provider   string             // of the first connection
	instructed int64              // length of the model's instructions in bytes
	logger     *slog.Logger
	// principal let the client in; with a ticket, it is the ticket's creator.
	principal auth.Principal
	// restoring is the state of a session that another process has run; nil for a new one.
	restoring *restoring
	account   *meter.Session // counts usage; nil before that and without limits
}

func (g *startup) options() *Options { return g.m.options() }

// ticketTime bounds a call of Handoffs for a new session.
const ticketTime = 5 * time.Second

func (g *startup) identify(a *Admission) *Cause {
	secret := cmp.Or(g.start.Ticket, a.Ticket)
	if a.Ticket != "" && secret != a.Ticket {
		return causeTicketsDiffer
	}
	g.start.Ticket = "" // the secret is not needed any more
	who, known, cause := a.userOf(g.start)
	if cause != nil {
		return cause
	}
	ctx, cancel := context.WithTimeout(g.m.ctx(), ticketTime)
	defer cancel()
	switch {
	case secret != "" && g.options().Handoffs == nil:
		return refusal(protocol.CloseBadProtocol, protocol.CodeNotAvailable,
			"This gateway does not accept tickets; start without the field ticket.")
	case secret != "":
		return g.redeem(ctx, a, func(ctx context.Context) (handoff.Ticket, error) {
			return g.options().Handoffs.Redeem(ctx, secret, a.Origin)
		})
	case a.Redeem != nil:
		return g.redeem(ctx, a, a.Redeem)
	case a.TicketNeeded:
		return causeTicketMissing
	}
	g.Inspect, g.entry = g.mayInspect(a, false), entryOf(a.Principal)
	g.User, g.Vouched, g.principal, g.Scopes, g.Parent = who, known, a.Principal, a.Principal.Granted(), a.Parent
	return g.enter(ctx)
}

func (g *startup) redeem(ctx context.Context, a *Admission, redeem func(context.Context) (handoff.Ticket, error)) *Cause {
	t, err := redeem(ctx)
	switch {
	case err == nil:
	case errors.Is(err, store.ErrUnknown):
		return causeTicketWrong
	case errors.Is(err, store.ErrOrigin):
		return causeTicketOrigin
	case errors.Is(err, store.ErrUsed):
		return causeTicketUsed
	case errors.Is(err, store.ErrExpired):
		return causeTicketLate
	case errors.Is(err, store.ErrBusy):
		return causeVoiceActive
	default:
		g.logger.Error("a ticket could not be looked up", "error", err)
		return causeStore
	}
	g.Ticket, g.entry = t, EntryTicket
	if t.Parent.IsZero() {
		g.Parent = a.Parent
	}
	by := t.Guarantor
	g.principal = auth.Principal{Kind: auth.KindTicket, ID: by.ID, Mark: by.Mark, Expires: by.Expires, User: t.User,
		Scopes: auth.ScopeVoice}
	if !g.options().stillIn(g.principal) || !by.Expires.IsZero() && !time.Now().Before(by.Expires) {
		return causeTicketWrong
	}
	g.Inspect = g.mayInspect(a, t.Inspect)
	g.logger = g.options().Logger.With("session_id", g.SessionID)
	g.start.ConversationID, g.start.PendingRequest, g.start.Agent = t.ConversationID, t.PendingRequest, t.Agent
	return g.options().checkAgent(g.start)
}

func (g *startup) enter(ctx context.Context) *Cause {
	id := g.start.ConversationID
	if id == "" {
		return nil
	}
	if !conversation.ValidID(id) {
		return wrongField("conversation_id", "must be 1 to %d letters, digits, dots, hyphens and underscores.", conversation.MaxID)
	}
	if !conversation.May(g.User, id) {
		return wrongField("conversation_id",
			"must have at least %d characters, drawn at random, where no user is named: anyone who knows it can "+
				"continue the conversation.", conversation.MinSecret)
	}
	if g.options().Handoffs == nil {
		return nil
	}
	before, err := g.options().Handoffs.Enter(ctx, id, g.User)
	switch {
	case err == nil:
		g.Context = before
		return nil
	case errors.Is(err, store.ErrUnknown):
		return causeNotYours
	default:
		g.logger.Error("a conversation could not be looked up", "error", err)
		return causeStore
	}
}

func (g *startup) started() Started {
	now := time.Now()
	if g.entry == EntryTakeover {
		return Started{Entry: g.entry, Total: now.Sub(g.arrivedAt)}
	}
	return Started{Entry: g.entry, Waited: g.startedAt.Sub(g.arrivedAt), Identified: g.knownAt.Sub(g.startedAt),
		Connected: now.Sub(g.knownAt), Total: now.Sub(g.arrivedAt)}
}

func (g *startup) leave() { g.leaving()() }

func (g *startup) leaving() func() {
	account, over := g.account, g.Over
	return func() {
		account.Leave()
		if over != nil {
			over()
		}
	}
}

// Credentials checks accepted credentials; *auth.Current implements it. Locks are held: its methods must not wait.
type Credentials interface {
	// Admits reports whether an admitted principal would be admitted now.
	Admits(p auth.Principal, now time.Time) bool
	// Lapses returns when a session that p started must end; zero if it need not.
	Lapses(p auth.Principal) time.Time
}

func (o *Options) stillIn(p auth.Principal) bool {
	return o.Credentials == nil || o.Credentials.Admits(p, time.Now())
}

// lapses returns when the session must end with its client's credentials. The caller must hold mu.
func (s *session) lapses() time.Time {
	if s.opts.Credentials == nil {
		return time.Time{}
	}
	return s.opts.Credentials.Lapses(s.principal.Value())
}

func (s *session) watchLapse() {
	s.mu.Lock()
	at := s.lapses()
	s.mu.Unlock()
	s.dispatch(orchestrator.Lapse{At: at})
}

// WatchLapses applies the present configuration of credentials to all sessions.
func (m *Manager) WatchLapses() {
	all := m.roster.all()
	for _, s := range all {
		s.watchLapse()
	}
}
