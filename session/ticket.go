package session

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"voicegw/conversation"
	"voicegw/internal/mark"
	"voicegw/internal/user"
	"voicegw/protocol/closecode"
	"voicegw/protocol/errcode"
	"voicegw/store"
)

// Ticketed is what a ticket says of its session. It stands above what the client says.
type Ticketed struct {
	// SessionID is the session's, User who speaks. Both must be set.
	SessionID string
	User      user.User
	// Vouched says that a trusted caller named the user, Scopes what it has granted.
	Vouched bool
	Scopes  []string
	// Agent is whom the user speaks with; empty for the gateway's.
	Agent string
	// ConversationID is the conversation that goes on by voice; empty for none.
	ConversationID string
	// PendingRequest is answered first; Context is what was said before.
	PendingRequest, Context string
	// Inspect lets the client look inside the session, if it asks to.
	Inspect bool
	// Over is called once, when the session is over and was handed back. Nil is nothing.
	Over func()
	// WhenLost calls f, on any goroutine, when the session must end because it may not be
	// the only one of its conversation any more; at once where that is so already. Nil: it
	// always is the only one.
	WhenLost func(f func())
}

// guest is a client that is let in, and what its session is to be.
type guest struct {
	came    time.Time
	id      string // of the session
	addr    string
	user    user.User
	vouched bool          // by a ticket
	scopes  []string      // of a ticket
	start   *startMessage // without its ticket
	before  string        // what was said before
	inspect bool          // it is shown the inside
	voice   string        // that its model is asked for; empty for the model's own
	over    func()        // of its ticket
	// whenLost is its ticket's; nil where nothing can be lost.
	whenLost func(f func())
	mark     mark.Mark // of the gateway's own words to the model
	logger   *slog.Logger
}

// ticketTime bounds the question whether a ticket is good, and what a conversation was.
const ticketTime = 5 * time.Second

// identify finds out who the client is and what its session goes on with: from its ticket,
// or by what it says itself where it needs none.
func (m *Manager) identify(a *Admission, g *guest) *Cause {
	secret := g.start.Ticket
	if secret != "" && a.Ticket != "" && secret != a.Ticket {
		return causeTicketsDiffer
	}
	if secret == "" {
		secret = a.Ticket
	}
	g.start.Ticket = "" // nobody needs the secret any more
	who, cause := userOf(g.start, a.Anonymous)
	if cause != nil {
		return cause
	}
	ctx, cancel := context.WithTimeout(m.ctx(), ticketTime)
	defer cancel()
	switch {
	case secret != "" && m.opts.Redeem == nil:
		return refusal(closecode.BadProtocol, errcode.NotAvailable, "This gateway takes no tickets; start without the field ticket.")
	case secret != "":
		return m.redeem(ctx, secret, a, g)
	case m.opts.TicketRequired:
		return causeTicketMissing
	}
	g.inspect = g.mayInspect(a, false)
	g.user = who
	return m.enter(ctx, g)
}

// redeem uses a ticket up.
func (m *Manager) redeem(ctx context.Context, secret string, a *Admission, g *guest) *Cause {
	t, err := m.opts.Redeem(ctx, secret, a.Origin)
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
	g.id, g.user, g.over, g.whenLost, g.before = t.SessionID, t.User, t.Over, t.WhenLost, t.Context
	g.vouched, g.scopes = t.Vouched, t.Scopes
	g.inspect = g.mayInspect(a, t.Inspect)
	g.logger = m.opts.Logger.With("session_id", g.id)
	g.start.ConversationID, g.start.PendingRequest, g.start.Agent = t.ConversationID, t.PendingRequest, t.Agent
	return m.checkAgent(g.start)
}

// enter lets a client without a ticket go on with a conversation.
func (m *Manager) enter(ctx context.Context, g *guest) *Cause {
	id := g.start.ConversationID
	if id == "" {
		return nil
	}
	if !conversation.ValidID(id) {
		cause := refusal(closecode.BadProtocol, errcode.InvalidMessage,
			"session.start: the field conversation_id must be 1 to %d letters, digits, dots, hyphens and underscores.", conversation.MaxID)
		cause.Field = "conversation_id"
		return cause
	}
	if !conversation.May(g.user, id) {
		cause := refusal(closecode.BadProtocol, errcode.InvalidMessage,
			"session.start: the field conversation_id must have at least %d characters, drawn at random, where no user is named: whoever knows it goes on with the conversation.", conversation.MinSecret)
		cause.Field = "conversation_id"
		return cause
	}
	if m.opts.Enter == nil {
		return nil
	}
	before, err := m.opts.Enter(ctx, id, g.user)
	switch {
	case err == nil:
		g.before = before
		return nil
	case errors.Is(err, store.ErrUnknown):
		return causeNotYours
	default:
		g.logger.Error("a conversation could not be looked up", "error", err)
		return causeStore
	}
}

// leave ends what the guest's ticket has begun.
func (g *guest) leave() {
	if g.over != nil {
		g.over()
	}
}
