// Package handoff moves a conversation from text to voice and back. [Handoffs] makes and redeems tickets, and writes
// into conversations; [Transcript] records a voice session, and [Saver.HandBack] hands it back at the session's end.
package handoff

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"voicegw/internal/conversation"
	"voicegw/internal/user"
	"voicegw/orchestrator/execute"
	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/store"
)

// ErrTaken means that the conversation belongs to another user.
var ErrTaken = errors.New("handoff: the conversation is another user's")

// ContextChars is the length of the conversation's end for a voice agent, in characters.
const ContextChars = 4000

// Handoffs hands conversations over between text and voice. Its methods may be used concurrently.
type Handoffs struct {
	// Fixed after New.
	talks     *store.Conversations
	voice     *store.VoiceSessions
	tickets   *store.Tickets
	approvals *store.Approvals
	agent     string

	jobs execute.EndedJobs // fixed after SetJobs; nil without jobs
}

// SetJobs enables reports of finished jobs to voice sessions. It must be called before other methods.
func (d *Handoffs) SetJobs(j execute.EndedJobs) { d.jobs = j }

// New returns Handoffs over a store; agent is the agent of conversations that begin here.
func New(s *store.Store, agent string) *Handoffs {
	return &Handoffs{talks: s.Conversations, voice: s.VoiceSessions, tickets: s.Tickets, approvals: s.Approvals, agent: agent}
}

// Invitation asks for a voice session.
type Invitation struct {
	// User will speak; not zero.
	User user.User
	// Vouched: a trusted caller named the user. Scopes are the granted ones.
	Vouched bool
	Scopes  []string
	// Agent speaks with the user; empty for the default.
	Agent string
	// PendingRequest is answered first; may be empty.
	PendingRequest string
	// Context is the conversation before, as text; Entries are its entries, with which a new conversation begins.
	Context string
	Entries []conversation.Entry
	// ConversationID is the conversation to continue; empty for a new one.
	ConversationID string
	// Origin is the only origin whose pages may use the ticket; empty for any client.
	Origin string
	// Inspect allows the client to see its session's inner state on request.
	Inspect bool
	// Guarantor is the principal that requests the session.
	Guarantor registry.Guarantor
}

// Invite makes a voice session. The error wraps ErrTaken, store.ErrVoiceActive, store.ErrUser, store.ErrFull,
// store.ErrUnavailable or store.ErrTooBig, or reports an invalid origin.
func (d *Handoffs) Invite(ctx context.Context, in Invitation) (registry.VoiceOffer, error) {
	id := cmp.Or(in.ConversationID, conversation.NewID())
	fresh, err := d.begin(ctx, id, in)
	if err != nil {
		return registry.VoiceOffer{}, err
	}
	return d.offer(ctx, in.ticket(id, fresh))
}

func (in Invitation) ticket(id string, fresh bool) store.Ticket {
	before := in.Context
	if before == "" && len(in.Entries) > 0 && !fresh {
		// The conversation exists, and its agent knows only these entries.
		c := conversation.New(id, in.User.String(), in.Agent, time.Now())
		c.Append(time.Now(), in.Entries...)
		before = c.Brief(ContextChars)
	}
	return store.Ticket{
		User: in.User.String(), Vouched: in.Vouched, Scopes: in.Scopes, Conversation: id, Agent: in.Agent,
		PendingRequest: in.PendingRequest, Context: before, Origin: in.Origin, Inspect: in.Inspect,
		Principal: in.Guarantor.ID, Mark: in.Guarantor.Mark, PrincipalExpires: in.Guarantor.Expires,
	}
}

// Offer makes a voice session for a tool's call. The conversation is stored by the end of the calling turn.
func (d *Handoffs) Offer(ctx context.Context, r registry.VoiceRequest) (offer registry.VoiceOffer, err error) {
	if err = d.storeRequest(ctx, r); err == nil {
		offer, err = d.offer(ctx, store.Ticket{
			User: r.UserID, Vouched: r.Vouched, Scopes: r.Scopes, Conversation: r.ConversationID, Agent: r.Agent,
			PendingRequest: r.PendingRequest, Origin: r.Origin,
			Principal: r.Guarantor.ID, Mark: r.Guarantor.Mark, PrincipalExpires: r.Guarantor.Expires,
		})
	}
	for from, to := range map[error]error{store.ErrVoiceActive: registry.ErrVoiceActive, store.ErrUser: registry.ErrUser,
		store.ErrFull: registry.ErrFull} {
		if errors.Is(err, from) {
			err = fmt.Errorf("%w: %w", to, err)
		}
	}
	return offer, err
}

// offer makes the ticket; the session belongs to the trace of ctx.
func (d *Handoffs) offer(ctx context.Context, t store.Ticket) (registry.VoiceOffer, error) {
	t.Trace = protocol.TraceParentFrom(ctx).String()
	o, err := d.voice.Offer(ctx, t)
	if err != nil {
		return registry.VoiceOffer{}, err
	}
	return registry.VoiceOffer{
		SessionID: o.SessionID, ConversationID: o.Conversation, PendingRequest: o.PendingRequest, Ticket: o.Secret, ExpiresAt: o.ExpiresAt,
	}, nil
}

// Each entry is a millisecond later than the previous one, which keeps their order.
func (d *Handoffs) storeRequest(ctx context.Context, r registry.VoiceRequest) error {
	if len(r.Said) == 0 {
		return nil
	}
	who, err := user.Stored(r.UserID)
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrUser, err)
	}
	in, turn, now := Invitation{User: who, Agent: r.Agent}, 0, time.Now()
	for i, u := range r.Said {
		e := conversation.Entry{At: now.Add(time.Duration(i-len(r.Said)) * time.Millisecond), Side: conversation.SideText,
			Role: conversation.RoleAssistant, Text: u.Text}
		if !u.Assistant {
			e.Role = conversation.RoleUser
			turn++
		}
		if e.Turn = max(turn, 1); e.Text != "" {
			in.Entries = append(in.Entries, e)
		}
	}
	_, err = d.begin(ctx, r.ConversationID, in)
	return err
}

func (d *Handoffs) begin(ctx context.Context, id string, in Invitation) (fresh bool, err error) {
	c, rev, err := d.talks.Load(ctx, id)
	switch {
	case errors.Is(err, store.ErrUnknown):
	case err != nil:
		return false, err
	default:
		return false, owned(c, in.User)
	}
	c = conversation.New(id, in.User.String(), cmp.Or(in.Agent, d.agent), time.Now())
	c.Append(time.Now(), in.Entries...)
	if _, err = d.talks.Save(ctx, c, rev); errors.Is(err, store.ErrChanged) {
		return d.begin(ctx, id, in) // another request made it first
	}
	return err == nil, err
}

func owned(c *conversation.Conversation, who user.User) error {
	if !c.OwnedBy(who) {
		return ErrTaken
	}
	return nil
}

// Conversations returns a page, the last used ones first. The error is store.ErrCursor, or one of the store's.
func (d *Handoffs) Conversations(ctx context.Context, q store.Query) (store.Page, error) {
	return d.talks.List(ctx, q)
}

// Conversation returns a stored conversation. The error is store.ErrUnknown, or one of the store's.
func (d *Handoffs) Conversation(ctx context.Context, id string) (*conversation.Conversation, error) {
	c, _, err := d.talks.Load(ctx, id)
	return c, err
}

// deliverNotices writes a notice into a conversation, once, for each unreported job and approval, which a gateway that
// was killed may have left.
func (d *Handoffs) deliverNotices(ctx context.Context, id string, who user.User) (notices []string, err error) {
	all, err := execute.OwedJobs(ctx, d.jobs, id, who, prompts.Mark{})
	if err != nil {
		return nil, err
	}
	approved, err := execute.OwedApprovals(ctx, d.approvals, id, who, prompts.Mark{})
	if all = append(all, approved...); err != nil || len(all) == 0 {
		return nil, err
	}
	err = d.talks.Update(ctx, id, func(c *conversation.Conversation) error {
		if err := owned(c, who); err != nil {
			return err
		}
		c.User, c.Agent = who.String(), cmp.Or(c.Agent, d.agent)
		notices = nil
		for _, o := range all {
			if !c.HasOutcome(o.Reference) {
				notices = append(notices, o.Notice)
				c.Append(time.Now(), conversation.Entry{At: time.Now(), Side: conversation.SideVoice,
					Role: conversation.RoleNotice, Text: o.Notice, System: true})
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, o := range all {
		if err := o.Told(ctx); err != nil {
			return nil, err
		}
	}
	return notices, nil
}

// Decided writes an API answer's outcome into the question's conversation, once, if that is stored or its first turn
// runs. result is the envelope of an approved call; nil if it was declined.
func (d *Handoffs) Decided(ctx context.Context, c store.Confirmation, result json.RawMessage) error {
	if c.Conversation == "" {
		return nil
	}
	who, err := user.Stored(c.User)
	if err != nil {
		return fmt.Errorf("a question to an invalid user: %w", err)
	}
	text := prompts.DeclinedNotice(c.Tool, c.Reference)
	if result != nil {
		text = prompts.ApprovedNotice(c.Tool, c.Reference, result)
	}
	side := conversation.SideText
	if strings.HasPrefix(c.Session, "voice-") {
		side = conversation.SideVoice
	}
	return untilStored(ctx, func() error {
		if kept, err := d.isStored(ctx, c.Conversation); err != nil || !kept {
			return err
		}
		return d.talks.Update(ctx, c.Conversation, func(talk *conversation.Conversation) error {
			if err := owned(talk, who); err != nil {
				return err
			}
			if talk.HasOutcome(c.Reference) {
				return nil // an unacknowledged earlier try wrote it
			}
			talk.User, talk.Agent = cmp.Or(talk.User, who.String()), cmp.Or(talk.Agent, c.Agent, d.agent)
			talk.Append(time.Now(), conversation.Entry{At: time.Now(), Side: side, Role: conversation.RoleNotice, Text: text,
				System: true, Turn: talk.Turns})
			return nil
		})
	})
}

// isStored: it is, or will be as its first turn runs. Otherwise its client keeps it, or it has expired.
func (d *Handoffs) isStored(ctx context.Context, id string) (bool, error) {
	for range 2 {
		if _, _, err := d.talks.Load(ctx, id); !errors.Is(err, store.ErrUnknown) {
			return err == nil, err
		}
		held, err := d.talks.Lease(ctx, id, leaseLife)
		if errors.Is(err, store.ErrBusy) {
			return true, nil
		} else if err != nil {
			return false, err
		}
		held.Release() // no turn is running; one may have ended since Load
	}
	return false, nil
}

// Ticket is a redeemed ticket: the user of its session, and the conversation to continue.
type Ticket struct {
	// SessionID is the session's id, and User its user. Both are set.
	SessionID string
	User      user.User
	// Vouched: a trusted caller named the user. Scopes are the granted ones.
	Vouched bool
	Scopes  []string
	// Agent speaks with the user; empty for the default.
	Agent string
	// ConversationID is the conversation to continue; empty without one.
	ConversationID string
	// PendingRequest is answered first; Context is the conversation before.
	PendingRequest, Context string
	// Inspect allows the client to see the session's inner state on request.
	Inspect bool
	// Guarantor is the principal that made the ticket.
	Guarantor registry.Guarantor
	// Parent is the ticket's span in the traces; it may be zero.
	Parent protocol.TraceParent
	// Over must be called once, after the session's end and handback. It may be nil.
	Over func()
	// WhenLost calls f, on any goroutine, when the session must end because another one of its conversation may begin,
	// even if that is already so. Nil means that none can begin.
	WhenLost func(f func())
}

// Redeem uses a ticket for a page of that origin; empty for other clients. The error wraps store.ErrUnknown,
// ErrOrigin, ErrUsed, ErrExpired or ErrBusy, or reports that the ticket could not be looked up.
func (d *Handoffs) Redeem(ctx context.Context, secret, origin string) (Ticket, error) {
	t, held, err := d.voice.Redeem(ctx, secret, origin, time.Now())
	if err != nil {
		return Ticket{}, err
	}
	return d.redeemed(ctx, t, held)
}

func (d *Handoffs) redeemed(ctx context.Context, t store.Ticket, held *store.Lease) (Ticket, error) {
	who, err := user.Stored(t.User)
	if err != nil {
		held.Release()
		return Ticket{}, fmt.Errorf("a ticket of an invalid user: %w", err)
	}
	above, _ := protocol.ParseTraceParent(t.Trace) // gateways without traces leave it out
	out := Ticket{
		SessionID: t.SessionID, User: who, Vouched: t.Vouched, Scopes: t.Scopes, Agent: t.Agent, ConversationID: t.Conversation,
		PendingRequest: t.PendingRequest, Context: t.Context, Inspect: t.Inspect,
		Guarantor: registry.Guarantor{ID: t.Principal, Mark: t.Mark, Expires: t.PrincipalExpires},
		Parent:    above, Over: held.Release, WhenLost: held.WhenLost,
	}
	if out.ConversationID == "" {
		return out, nil
	}
	// The ticket is used, so its user is admitted even if the conversation cannot be read.
	if out.Context != "" {
		if notices, err := d.deliverNotices(ctx, t.Conversation, who); err == nil {
			out.Context = strings.Join(append([]string{out.Context}, notices...), "\n"+prompts.GatewayLine)
		}
		return out, nil
	}
	// It is read now, because the text conversation may have continued since the ticket was made.
	if before, err := d.Enter(ctx, t.Conversation, who); err == nil {
		out.Context = before
	}
	return out, nil
}

// Enter lets a user continue a conversation without a ticket. The error wraps store.ErrUnknown for another user's.
func (d *Handoffs) Enter(ctx context.Context, id string, who user.User) (before string, err error) {
	_, err = d.deliverNotices(ctx, id, who)
	switch {
	case errors.Is(err, ErrTaken):
		return "", store.ErrUnknown // does not reveal that it exists
	case err != nil:
		return "", err
	}
	c, _, err := d.talks.Load(ctx, id)
	switch {
	case errors.Is(err, store.ErrUnknown):
		return "", nil // the conversation begins now
	case err != nil:
		return "", err
	case owned(c, who) != nil:
		return "", store.ErrUnknown
	}
	return c.Brief(ContextChars), nil
}

// Adopted is the conversation of a session that another node ran before.
type Adopted struct {
	// Entries are the session's, in the order of time.
	Entries []conversation.Entry
	// Over and WhenLost are those of a Ticket.
	Over     func()
	WhenLost func(f func())
}

// Adopt makes this node the writer of a session into its conversation. The error wraps store.ErrFenced for a later
// owner, store.ErrVoiceActive if another session runs, ErrTaken, or another error of the store.
func (d *Handoffs) Adopt(ctx context.Context, session string, epoch uint64, id string, who user.User) (Adopted, error) {
	held, err := d.voice.Adopt(ctx, session, epoch, who.String(), id)
	if err != nil {
		return Adopted{}, err
	}
	a := Adopted{Over: held.Release, WhenLost: held.WhenLost}
	c, _, err := d.talks.Load(ctx, id)
	switch {
	case errors.Is(err, store.ErrUnknown):
		return a, nil // no entry was written yet
	case err == nil:
		err = owned(c, who)
	}
	if err != nil {
		held.Release()
		return Adopted{}, err
	}
	for _, e := range c.Entries {
		if e.SessionID == session {
			a.Entries = append(a.Entries, e)
		}
	}
	return a, nil
}
