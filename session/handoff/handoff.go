package handoff

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"voicegw/conversation"
	"voicegw/internal/user"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/session"
	"voicegw/store"
)

// ErrTaken is wrapped where a conversation is another user's.
var ErrTaken = errors.New("handoff: the conversation is another user's")

// ContextChars is how much of a conversation a voice agent is told, in characters.
const ContextChars = 4000

// Desk hands conversations over. Its methods may be used concurrently.
type Desk struct {
	// Fixed after New.
	talks     *store.Conversations
	voice     *store.VoiceSessions
	approvals *store.Approvals
	agent     string
}

// New returns a Desk over a store; agent names the agent of conversations that begin
// here.
func New(s *store.Store, agent string) *Desk {
	return &Desk{talks: s.Conversations(), voice: s.VoiceSessions(), approvals: s.Approvals(), agent: agent}
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
	Said    []conversation.Entry
	// ConversationID is the conversation that goes on; empty for a new one.
	ConversationID string
	// Origin is the only origin whose pages may use the ticket; empty for any client.
	Origin string
	// Inspect lets the client look inside its session, if it asks to.
	Inspect bool
}

// Invite makes a voice session. The error wraps ErrTaken, store.ErrVoiceActive,
// store.ErrUser, store.ErrFull, store.ErrUnavailable or store.ErrTooBig, or says
// that the origin is invalid.
func (d *Desk) Invite(ctx context.Context, in Invitation) (registry.VoiceOffer, error) {
	id := cmp.Or(in.ConversationID, conversation.NewID())
	fresh, err := d.begin(ctx, id, in)
	if err != nil {
		return registry.VoiceOffer{}, err
	}
	before := in.Context
	if before == "" && len(in.Said) > 0 && !fresh {
		// The conversation goes on here, and these are what its agent knows of it.
		c := conversation.New(id, in.User.String(), in.Agent, time.Now())
		c.Append(time.Now(), in.Said...)
		before = c.Brief(ContextChars)
	}
	return d.offer(ctx, store.Ticket{
		User: in.User.String(), Vouched: in.Vouched, Scopes: in.Scopes, Conversation: id, Agent: in.Agent,
		PendingRequest: in.PendingRequest, Context: before, Origin: in.Origin, Inspect: in.Inspect,
	})
}

// Offer makes a voice session for a tool's call: a Desk is a registry.VoiceSessions. The
// conversation is kept, or will be when the turn that calls the tool has ended.
func (d *Desk) Offer(ctx context.Context, r registry.VoiceRequest) (registry.VoiceOffer, error) {
	offer, err := d.offer(ctx, store.Ticket{
		User: r.UserID, Vouched: r.Vouched, Scopes: r.Scopes, Conversation: r.ConversationID, Agent: r.Agent,
		PendingRequest: r.PendingRequest, Origin: r.Origin,
	})
	for from, to := range map[error]error{store.ErrVoiceActive: registry.ErrVoiceActive, store.ErrUser: registry.ErrUser, store.ErrFull: registry.ErrFull} {
		if errors.Is(err, from) {
			err = fmt.Errorf("%w: %w", to, err)
		}
	}
	return offer, err
}

func (d *Desk) offer(ctx context.Context, t store.Ticket) (registry.VoiceOffer, error) {
	o, err := d.voice.Offer(ctx, t)
	if err != nil {
		return registry.VoiceOffer{}, err
	}
	return registry.VoiceOffer{
		SessionID: o.SessionID, ConversationID: o.Conversation, PendingRequest: o.PendingRequest, Ticket: o.Secret, ExpiresAt: o.ExpiresAt,
	}, nil
}

// begin makes the conversation where it is new, and says whether it was.
func (d *Desk) begin(ctx context.Context, id string, in Invitation) (fresh bool, err error) {
	c, _, err := d.talks.Load(ctx, id)
	switch {
	case errors.Is(err, store.ErrUnknown):
	case err != nil:
		return false, err
	default:
		return false, owned(c, in.User)
	}
	c = conversation.New(id, in.User.String(), cmp.Or(in.Agent, d.agent), time.Now())
	c.Append(time.Now(), in.Said...)
	if _, err = d.talks.Save(ctx, c, 0); errors.Is(err, store.ErrChanged) {
		return d.begin(ctx, id, in) // somebody has made it meanwhile
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

// Redeem is session.Options.Redeem.
func (d *Desk) Redeem(ctx context.Context, secret, origin string) (session.Ticketed, error) {
	t, held, err := d.voice.Redeem(ctx, secret, origin, time.Now())
	if err != nil {
		return session.Ticketed{}, err
	}
	who, err := user.Stored(t.User)
	if err != nil {
		held.Release()
		return session.Ticketed{}, fmt.Errorf("a ticket of an invalid user: %w", err)
	}
	out := session.Ticketed{
		SessionID: t.SessionID, User: who, Vouched: t.Vouched, Scopes: t.Scopes, Agent: t.Agent, ConversationID: t.Conversation,
		PendingRequest: t.PendingRequest, Context: t.Context, Inspect: t.Inspect,
		Over: held.Release, WhenLost: held.WhenLost,
	}
	if out.ConversationID == "" {
		return out, nil
	}
	// The ticket is used up, so a conversation that cannot be read does not keep its user out.
	if out.Context != "" {
		if notices, err := d.tell(ctx, t.Conversation, who); err == nil {
			out.Context = strings.Join(append([]string{out.Context}, notices...), "\n"+prompts.GatewayLine)
		}
		return out, nil
	}
	// As of now and not of when the ticket was made: the text side may have gone on.
	if before, err := d.Enter(ctx, t.Conversation, who); err == nil {
		out.Context = before
	}
	return out, nil
}

// Enter is session.Options.Enter.
func (d *Desk) Enter(ctx context.Context, id string, who user.User) (before string, err error) {
	_, err = d.tell(ctx, id, who)
	switch {
	case errors.Is(err, ErrTaken):
		return "", store.ErrUnknown // of somebody else's nobody learns anything
	case err != nil:
		return "", err
	}
	c, _, err := d.talks.Load(ctx, id)
	switch {
	case errors.Is(err, store.ErrUnknown):
		return "", nil // it begins now
	case err != nil:
		return "", err
	case owned(c, who) != nil:
		return "", store.ErrUnknown
	}
	return c.Brief(ContextChars), nil
}

// tell writes into a conversation what was approved in it and has not been told to it, because
// a gateway was killed in between; each once. It returns what it has written.
func (d *Desk) tell(ctx context.Context, id string, who user.User) (notices []string, err error) {
	all, err := d.approvals.OpenIn(ctx, id, time.Now())
	if err != nil {
		return nil, err
	}
	open := slices.DeleteFunc(all, func(a store.Approval) bool { return a.Told || !conversation.Owned(a.User, id, who) })
	if len(open) == 0 {
		return nil, nil
	}
	err = d.talks.Update(ctx, id, func(c *conversation.Conversation) error {
		if err := owned(c, who); err != nil {
			return err
		}
		c.User, c.Agent = who.String(), cmp.Or(c.Agent, d.agent)
		notices = nil
		for _, a := range open {
			if c.Told(a.Reference) {
				continue
			}
			text := prompts.UnknownNotice(a.Tool, a.Reference, a.ApprovedAt, a.Begun)
			if a.Result != nil {
				text = prompts.ApprovedNotice(a.Tool, a.Reference, a.Result)
			}
			notices = append(notices, text)
			c.Append(time.Now(), conversation.Entry{At: time.Now(), Side: conversation.SideVoice, Role: conversation.RoleNotice, Text: text, System: true})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, a := range open {
		if err := d.approvals.Told(ctx, a); err != nil && !errors.Is(err, store.ErrChanged) {
			return nil, err
		}
	}
	return notices, nil
}

// Decided is session.Options.Decided: it writes what came of an answer into the conversation of
// its question, once. A conversation that is not kept here, nor about to be, is not told.
func (d *Desk) Decided(ctx context.Context, c store.Confirmation, result json.RawMessage) error {
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
		if kept, err := d.kept(ctx, c.Conversation); err != nil || !kept {
			return err
		}
		return d.talks.Update(ctx, c.Conversation, func(talk *conversation.Conversation) error {
			if err := owned(talk, who); err != nil {
				return err
			}
			if talk.Told(c.Reference) {
				return nil // by a try that the store did not acknowledge
			}
			talk.User, talk.Agent = cmp.Or(talk.User, who.String()), cmp.Or(talk.Agent, c.Agent, d.agent)
			talk.Append(time.Now(), conversation.Entry{At: time.Now(), Side: side, Role: conversation.RoleNotice, Text: text, System: true, Turn: talk.Turns})
			return nil
		})
	})
}

// kept says whether a conversation is kept here, or will be: its first turn is under way.
// Otherwise its client keeps it, or its life is over.
func (d *Desk) kept(ctx context.Context, id string) (bool, error) {
	for range 2 {
		if _, _, err := d.talks.Load(ctx, id); !errors.Is(err, store.ErrUnknown) {
			return err == nil, err
		}
		release, err := d.talks.Lease(ctx, id, leaseLife)
		if errors.Is(err, store.ErrBusy) {
			return true, nil
		} else if err != nil {
			return false, err
		}
		release() // nobody is in a turn; one may have ended since it was looked up
	}
	return false, nil
}

// The lease that a handback waits for: a turn of text that is being answered would fail
// if the conversation changed under it.
const (
	leaseLife  = 30 * time.Second
	leaseWait  = 10 * time.Second
	leasePause = 100 * time.Millisecond
)

// HandBack is session.Options.HandBack. While the store is away it tries again until ctx
// ends. The error wraps ErrTaken or one of the store's.
func (d *Desk) HandBack(ctx context.Context, said session.HandBack) error {
	return untilStored(ctx, func() error { return d.handBack(ctx, said) })
}

// untilStored tries until the store is there, or ctx ends. A try that was not acknowledged may
// have been stored.
func untilStored(ctx context.Context, try func() error) error {
	for {
		err := try()
		if !errors.Is(err, store.ErrUnavailable) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(leasePause):
		}
	}
}

func (d *Desk) handBack(ctx context.Context, said session.HandBack) error {
	release, err := d.lease(ctx, said.ConversationID)
	if err != nil {
		return err
	}
	defer release()
	return d.talks.Update(ctx, said.ConversationID, func(c *conversation.Conversation) error {
		if err := owned(c, said.User); err != nil {
			return err
		}
		if said.SessionID != "" && slices.ContainsFunc(c.Entries, func(e conversation.Entry) bool { return e.SessionID == said.SessionID }) {
			return nil // by a try that the store did not acknowledge
		}
		c.User, c.Agent = said.User.String(), cmp.Or(c.Agent, said.Agent)
		c.Join(time.Now(), said.Entries...)
		return nil
	})
}

// lease waits for the conversation for a while, and goes on without where a turn of text
// takes longer: what was said by voice must not be lost.
func (d *Desk) lease(ctx context.Context, id string) (release func(), err error) {
	late := time.After(leaseWait)
	for {
		release, err = d.talks.Lease(ctx, id, leaseLife)
		if !errors.Is(err, store.ErrBusy) {
			return release, err
		}
		select {
		case <-late:
			return func() {}, nil
		case <-ctx.Done():
			return nil, fmt.Errorf("handoff: waiting for the conversation: %w", ctx.Err())
		case <-time.After(leasePause):
		}
	}
}

// Conversation returns everything that is kept of a conversation. The error is
// store.ErrUnknown, or one of the store's.
func (d *Desk) Conversation(ctx context.Context, id string) (*conversation.Conversation, error) {
	c, _, err := d.talks.Load(ctx, id)
	return c, err
}
