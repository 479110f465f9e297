package handoff

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"voicegw/protocol"

	"voicegw/internal/conversation"
	"voicegw/internal/user"
	"voicegw/registry"
	"voicegw/store"
)

// ErrTaken is wrapped where a conversation is another user's.
var ErrTaken = errors.New("handoff: the conversation is another user's")

// ContextChars is how much of a conversation a voice agent is told, in characters.
const ContextChars = 4000

// Desk hands conversations over. Its methods may be used concurrently.
type Handoffs struct {
	// Fixed after New.
	talks     *store.Conversations
	voice     *store.VoiceSessions
	approvals *store.Approvals
	agent     string

	jobs Jobs // fixed after TellJobs; nil if calls begin no long work
}

// Jobs tells of long work that has ended; *jobs.Runner implements it.
type Jobs interface {
	// OwedTo returns the jobs of whose end a conversation has not been told.
	OwedTo(ctx context.Context, conversation string) ([]store.Job, error)
	// Told notes that it has been told of one.
	Told(ctx context.Context, id string) (first bool, err error)
}

// TellJobs has voice sessions that go on with a conversation told of long work that has ended. It must be
// called before anything else.
func (d *Handoffs) SetJobs(j Jobs) { d.jobs = j }

// New returns a Desk over a store; agent names the agent of conversations that begin
// here.
func New(s *store.Store, agent string) *Handoffs {
	return &Handoffs{talks: s.Conversations(), voice: s.VoiceSessions(), approvals: s.Approvals(), agent: agent}
}

// Invitation asks for a voice session.
type Invitation struct {
	// User is who will speak; not nobody.
	User user.User
	// Vouched says that a trusted caller named the user, Scopes what it has granted.
	Vouched bool
	Scopes  []string
	// Agent is whom the user speaks with; empty for the gateway's.
	Agent string
	// PendingRequest is answered first; may be empty.
	PendingRequest string
	// Context is what was said before, in lines. Said is the same as entries, of which
	// the newest are told; a new conversation begins with them. Both may be empty.
	Context string
	Entries []conversation.Entry
	// ConversationID is the conversation that goes on; empty for a new one.
	ConversationID string
	// Origin is the only origin whose pages may use the ticket; empty for any client.
	Origin string
	// Inspect lets the client look inside its session, if it asks to.
	Inspect bool
	// Guarantor is the principal that asks for the session.
	Guarantor registry.Guarantor
}

// Invite makes a voice session. The error wraps ErrTaken, store.ErrVoiceActive,
// store.ErrUser, store.ErrFull, store.ErrUnavailable or store.ErrTooBig, or says
// that the origin is invalid.
func (d *Handoffs) Invite(ctx context.Context, in Invitation) (registry.VoiceOffer, error) {
	id := cmp.Or(in.ConversationID, conversation.NewID())
	fresh, err := d.begin(ctx, id, in)
	if err != nil {
		return registry.VoiceOffer{}, err
	}
	before := in.Context
	if before == "" && len(in.Entries) > 0 && !fresh {
		// The conversation goes on here, and these are what its agent knows of it.
		c := conversation.New(id, in.User.String(), in.Agent, time.Now())
		c.Append(time.Now(), in.Entries...)
		before = c.Brief(ContextChars)
	}
	return d.offer(ctx, store.Ticket{
		User: in.User.String(), Vouched: in.Vouched, Scopes: in.Scopes, Conversation: id, Agent: in.Agent,
		PendingRequest: in.PendingRequest, Context: before, Origin: in.Origin, Inspect: in.Inspect,
		Principal: in.Guarantor.ID, Mark: in.Guarantor.Mark, PrincipalExpires: in.Guarantor.Expires,
	})
}

// Offer makes a voice session for a tool's call: a Desk is a registry.VoiceSessions. A conversation
// that the gateway keeps is stored when the turn that calls the tool has ended, at the latest.
func (d *Handoffs) Offer(ctx context.Context, r registry.VoiceRequest) (offer registry.VoiceOffer, err error) {
	if err = d.storeRequest(ctx, r); err == nil {
		offer, err = d.offer(ctx, store.Ticket{
			User: r.UserID, Vouched: r.Vouched, Scopes: r.Scopes, Conversation: r.ConversationID, Agent: r.Agent,
			PendingRequest: r.PendingRequest, Origin: r.Origin,
			Principal: r.Guarantor.ID, Mark: r.Guarantor.Mark, PrincipalExpires: r.Guarantor.Expires,
		})
	}
	for from, to := range map[error]error{store.ErrVoiceActive: registry.ErrVoiceActive, store.ErrUser: registry.ErrUser, store.ErrFull: registry.ErrFull} {
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

// keep stores a conversation that only its client keeps. Each entry is a millisecond later than the
// one before, so that they stay in order when others join them.
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
		e := conversation.Entry{At: now.Add(time.Duration(i-len(r.Said)) * time.Millisecond), Side: conversation.SideText, Role: conversation.RoleAssistant, Text: u.Text}
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

// begin makes the conversation if it is new, and says whether it was.
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
		return d.begin(ctx, id, in) // it was made meanwhile
	}
	return err == nil, err
}

// owned says whether a conversation is a user's.
func owned(c *conversation.Conversation, who user.User) error {
	if !c.OwnedBy(who) {
		return ErrTaken
	}
	return nil
}

// Conversations returns a page of the conversations that are kept, the one first that was used last. The
// error is store.ErrCursor, or one of the store's.
func (d *Handoffs) Conversations(ctx context.Context, q store.Query) (store.Page, error) {
	return d.talks.List(ctx, q)
}

// Conversation returns everything that is kept of a conversation. The error is
// store.ErrUnknown, or one of the store's.
func (d *Handoffs) Conversation(ctx context.Context, id string) (*conversation.Conversation, error) {
	c, _, err := d.talks.Load(ctx, id)
	return c, err
}
