package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
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
)

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

// startup is a session that is being started: its client, and its settings.
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
	declares   bool   // the client declared some of the tools
	voice      string // requested from the model; empty for its default
	provider   string // of the first connection
	instructed int64  // length of the model's instructions in bytes
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
			"This gateway takes no tickets; start without the field ticket.")
	case secret != "":
		return g.redeem(ctx, secret, a)
	case a.TicketNeeded:
		return causeTicketMissing
	}
	g.Inspect, g.entry = g.mayInspect(a, false), entryOf(a.Principal)
	g.User, g.Vouched, g.principal, g.Scopes, g.Parent = who, known, a.Principal, a.Principal.Granted(), a.Parent
	return g.enter(ctx)
}

func (g *startup) redeem(ctx context.Context, secret string, a *Admission) *Cause {
	t, err := g.options().Handoffs.Redeem(ctx, secret, a.Origin)
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
			"must have at least %d characters, drawn at random, where no user is named: whoever knows it goes on with "+
				"the conversation.", conversation.MinSecret)
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
