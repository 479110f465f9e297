// Package handoff moves a conversation from text to voice and back. [Handoffs] makes and redeems tickets, and writes
// into conversations; [Transcript] records a voice session, and [Saver.HandBack] hands it back at the session's end.
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

// ErrTaken means that the conversation belongs to another user.
var ErrTaken = errors.New("handoff: the conversation is another user's")

// ContextChars is the length of the conversation's end for a voice agent, in characters.
const ContextChars = 4000

// Handoffs hands conversations over between text and voice. Its methods may be used concurrently.
type Handoffs struct {
	// Fixed after New.
	talks     *store.Conversations
	voice     *store.VoiceSessions
	approvals *store.Approvals
	agent     string

	jobs Jobs // fixed after SetJobs; nil without jobs
}

// Jobs returns finished jobs; *jobs.Runner implements it.
type Jobs interface {
	// OwedTo returns the finished jobs that were not reported to a conversation.
	OwedTo(ctx context.Context, conversation string) ([]store.Job, error)
	// Told records that one was reported.
	Told(ctx context.Context, id string) (first bool, err error)
}

// SetJobs enables reports of finished jobs to voice sessions. It must be called before other methods.
func (d *Handoffs) SetJobs(j Jobs) { d.jobs = j }

// New returns Handoffs over a store; agent is the agent of conversations that begin here.
func New(s *store.Store, agent string) *Handoffs {
	return &Handoffs{talks: s.Conversations(), voice: s.VoiceSessions(), approvals: s.Approvals(), agent: agent}
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
	// Context is the conversation before, as text. Entries are the same as entries; a new conversation begins with
	// them, and the newest become the agent's context. Both may be empty.
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
	before := in.Context
	if before == "" && len(in.Entries) > 0 && !fresh {
		// The conversation exists, and its agent knows only these entries.
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

// Offer makes a voice session for a tool's call, as a registry.VoiceSessions. A conversation that the gateway keeps is
// stored by the end of the calling turn.
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

// storeRequest stores a conversation that only its client keeps. Each entry is a millisecond later than the previous
// one, which keeps their order.
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

// Conversations returns a page of the stored conversations, the last used ones first. The error is store.ErrCursor, or
// one of the store's.
func (d *Handoffs) Conversations(ctx context.Context, q store.Query) (store.Page, error) {
	return d.talks.List(ctx, q)
}

// Conversation returns a stored conversation. The error is store.ErrUnknown, or one of the store's.
func (d *Handoffs) Conversation(ctx context.Context, id string) (*conversation.Conversation, error) {
	c, _, err := d.talks.Load(ctx, id)
	return c, err
}
