package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"
)

// voiceLife is how long a conversation counts as in a voice session after its node died, unless the death is known
// earlier.
const voiceLife = 30 * time.Second

// VoiceSessions records which conversations are in a voice session, at most one each, for all nodes.
type VoiceSessions struct {
	// Immutable.
	bucket  *bucket
	tickets *Tickets
	nodes   *Nodes
}

type voiceState struct {
	SessionID string `json:"session_id"`
	Running   bool   `json:"running,omitempty"`
	// Node runs the session, at Epoch; 0 if the session isn't in the directory.
	Node  string `json:"node,omitempty"`
	Epoch uint64 `json:"epoch,omitempty"`
}

// voiceKey is the key of a user's conversation; a user's only conversation has no ID.
func voiceKey(user, conversation string) string { return keyOf(user + "\x00" + conversation) }

// Offer is a voice session waiting for its client.
type Offer struct {
	Ticket
	// Secret admits one client once, as from [Tickets.Create].
	Secret string
}

// Offer creates a voice session and its ticket; it sets the ticket's SessionID and ExpiresAt. It replaces an unused
// offer of the same conversation, whose ticket becomes invalid. The error is ErrVoiceActive while the conversation's
// voice session runs, or wraps ErrUser, ErrFull, ErrUnavailable or ErrTooBig, or describes an invalid origin.
func (v *VoiceSessions) Offer(ctx context.Context, t Ticket) (Offer, error) {
	who, ok := identity(t.User)
	if !ok || len(t.Conversation) > longestConversation {
		return Offer{}, ErrUser
	}
	t.SessionID, t.User, t.ExpiresAt = "voice-"+strings.ToLower(rand.Text()), who, time.Now().UTC().Add(v.tickets.life)
	secret, err := v.tickets.Create(ctx, t)
	if err != nil {
		return Offer{}, err
	}
	// A ticket without its session here is invalid, so this comes second.
	offered := voiceState{SessionID: t.SessionID}
	if _, err := v.set(ctx, voiceKey(t.User, t.Conversation), offered, v.tickets.life+voiceLife, idle); err != nil {
		return Offer{}, err
	}
	return Offer{Ticket: t, Secret: secret}, nil
}

const longestConversation = 256

// idle permits replacing anything except a running session.
func idle(old *voiceState) error {
	if old != nil && old.Running {
		return ErrVoiceActive
	}
	return nil
}

// opens checks whether a ticket may start its session in a conversation with voice state old, nil for none. An offer
// outlives its ticket, so without one a newer offer or session has replaced it and ended.
func opens(session string, old *voiceState) error {
	if err := idle(old); err != nil {
		return err
	}
	if old == nil || old.SessionID != session {
		return fmt.Errorf("%w: a newer ticket or session has replaced it", ErrUsed)
	}
	return nil
}

// Redeem uses a ticket like [Tickets.Redeem]. Its session then runs until its lease is released or this process dies: a
// gone node of [Nodes] holds nothing, and without Join the lease ends half a minute later. A session that loses its
// lease must end. ErrUsed: a newer offer has replaced the ticket. ErrBusy: another session of the conversation is
// running.
func (v *VoiceSessions) Redeem(ctx context.Context, secret, origin string, now time.Time) (t Ticket, held *Lease, err error) {
	t, err = v.tickets.Redeem(ctx, secret, origin, now)
	if err != nil {
		return Ticket{}, nil, err
	}
	held, err = v.begin(ctx, voiceState{SessionID: t.SessionID}, t.User, t.Conversation,
		func(old *voiceState) error { return opens(t.SessionID, old) })
	if errors.Is(err, ErrVoiceActive) {
		err = fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return t, held, err
}

// Begin starts a session without a ticket, with a new ID, in a user's conversation, until its lease is released or lost.
// It invalidates a waiting offer. The error is ErrVoiceActive or wraps ErrUnavailable.
func (v *VoiceSessions) Begin(ctx context.Context, session, user, conversation string) (*Lease, error) {
	return v.begin(ctx, voiceState{SessionID: session}, user, conversation, idle)
}

// Adopt continues another node's session here, at the given epoch of the [Directory], which begins at 1, without
// waiting for the previous lease, whose holder is notified of the loss. Among all nodes the highest epoch holds the
// lease. The conversation's revision changes, so that the previous holder can't save its copy.
//
// ErrFenced: the session runs at this epoch or a later one. ErrVoiceActive: another session of the conversation runs.
func (v *VoiceSessions) Adopt(ctx context.Context, session string, epoch uint64, user, conversation string) (*Lease, error) {
	l, err := v.begin(ctx, voiceState{SessionID: session, Epoch: epoch}, user, conversation, func(old *voiceState) error {
		switch {
		case old == nil || !old.Running:
			return nil // its lease has expired
		case old.SessionID != session:
			return ErrVoiceActive
		case old.Epoch >= epoch:
			return ErrFenced
		}
		return nil
	})
	if err != nil || conversation == "" {
		return l, err
	}
	if err := v.bucket.store.Conversations.fence(ctx, keyOf(conversation)); err != nil {
		l.Release()
		return nil, err
	}
	return l, nil
}

// Fenced returns ErrFenced if another node continues a session at a higher epoch than the caller's; then the caller
// must write nothing of it any more.
func (v *VoiceSessions) Fenced(ctx context.Context, session string, epoch uint64, user, conversation string) error {
	is, _, err := read(ctx, v.bucket, voiceKey(user, conversation), decodeVoice)
	switch {
	case errors.Is(err, errNone), errors.Is(err, ErrCorrupt):
		return nil
	case err == nil && is.Running && is.SessionID == session && is.Epoch > epoch:
		return ErrFenced
	}
	return err
}

func (v *VoiceSessions) begin(ctx context.Context, running voiceState, user, conversation string,
	may func(*voiceState) error) (*Lease, error) {
	key := voiceKey(user, conversation)
	running.Running, running.Node = true, v.nodes.own()
	asked := time.Now()
	h, err := v.set(ctx, key, running, voiceLife, may)
	if err != nil {
		return nil, err
	}
	return v.bucket.hold(key, h.data, h.revision, voiceLife, asked)
}

// set writes a conversation's voice state if may permits replacing the current one; nil means none.
func (v *VoiceSessions) set(ctx context.Context, key string, state voiceState, life time.Duration,
	may func(*voiceState) error) (held, error) {
	data, err := encode(state)
	if err != nil {
		return held{}, err
	}
	ctx, cancel := v.bucket.store.bounded(ctx)
	defer cancel()
	w := &write{data: data, ttl: life}
	return v.bucket.change(ctx, key, func(h held) (*write, error) {
		var old *voiceState
		// An unreadable record is not a running session and is overwritten.
		if s, err := decodeVoice(h.data); h.exists() && err == nil {
			old = &s
		}
		err := may(old)
		if errors.Is(err, ErrVoiceActive) {
			// A session of a gone node doesn't run.
			if gone, asked := v.nodes.Gone(ctx, old.Node); asked != nil {
				return nil, asked
			} else if gone {
				err = may(nil)
			}
		}
		return w, err
	})
}

func decodeVoice(data []byte) (voiceState, error) {
	return decodeAs(data, decode, "a voice session without an id", func(s voiceState) bool { return s.SessionID != "" })
}
