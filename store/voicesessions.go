package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"voicegw/store/witness"
)

// voiceLife is how long a conversation counts as being in a voice session after the node
// that ran the session has died, unless it is known earlier that it has.
const voiceLife = 30 * time.Second

// VoiceSessions says which conversation is in a voice session, for all nodes: each
// conversation has at most one. Its methods may be used concurrently.
type VoiceSessions struct {
	// Fixed after openVoiceSessions.
	bucket  *bucket
	tickets *Tickets
	nodes   *Nodes
}

// voiceState is a conversation's offer of a voice session, or its running session.
type voiceState struct {
	SessionID string `json:"session_id"`
	Running   bool   `json:"running,omitempty"`
	// Node is the node that runs the session, Epoch the session's epoch there; 0 where the session
	// is not in the directory.
	Node  string `json:"node,omitempty"`
	Epoch uint64 `json:"epoch,omitempty"`
}

func (s *Store) openVoiceSessions(ctx context.Context) (*VoiceSessions, error) {
	b, err := s.openBucket(ctx, witness.Voice, "voicegw: conversations that are in voice")
	return &VoiceSessions{bucket: b, tickets: s.tickets, nodes: s.nodes}, err
}

// voiceKey is the key of a user's conversation; the only conversation of a user has no id.
func voiceKey(user, conversation string) string { return keyOf(user + "\x00" + conversation) }

// Offer is a voice session that waits for its client.
type Offer struct {
	Ticket
	// Secret opens the session once, as that of [Tickets.Create].
	Secret string
}

// Offer makes a voice session and the ticket that opens it. The ticket given says whom it is
// for; its SessionID and ExpiresAt are set here. An offer of the same conversation that was
// not taken yet is replaced: its ticket opens nothing any more. The error is ErrVoiceActive
// while the conversation's voice session runs, or wraps ErrUser, ErrFull, ErrUnavailable or
// ErrTooBig, or says that the origin is invalid.
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
	// A ticket whose session is missing here opens nothing, so this comes second.
	offered := voiceState{SessionID: t.SessionID}
	if _, err := v.set(ctx, voiceKey(t.User, t.Conversation), offered, v.tickets.life+voiceLife, idle); err != nil {
		return Offer{}, err
	}
	return Offer{Ticket: t, Secret: secret}, nil
}

// longestConversation bounds the id of a conversation, in bytes.
const longestConversation = 256

// idle says that an offer may replace anything except a running session.
func idle(old *voiceState) error {
	if old != nil && old.Running {
		return ErrVoiceActive
	}
	return nil
}

// opens says whether a ticket opens its session in a conversation whose voice state is old;
// nil means that it has none. A ticket's own offer stays there for longer than the ticket can
// be used, so without one a newer offer or a session without a ticket has replaced it, and has
// ended.
func opens(session string, old *voiceState) error {
	if err := idle(old); err != nil {
		return err
	}
	if old == nil || old.SessionID != session {
		return fmt.Errorf("%w: a newer ticket or session has replaced it", ErrUsed)
	}
	return nil
}

// Redeem uses a ticket as [Tickets.Redeem] does. From then on its session runs, until its lease
// is released or this process dies: a node of the [Nodes] that is gone holds nothing, and without
// Join the lease ends half a minute later. A session that loses its lease must end. A ticket that a
// newer offer has replaced is ErrUsed; ErrBusy: another session of the conversation is running.
func (v *VoiceSessions) Redeem(ctx context.Context, secret, origin string, now time.Time) (t Ticket, held *Lease, err error) {
	t, err = v.tickets.Redeem(ctx, secret, origin, now)
	if err != nil {
		return Ticket{}, nil, err
	}
	held, err = v.begin(ctx, voiceState{SessionID: t.SessionID}, t.User, t.Conversation, func(old *voiceState) error { return opens(t.SessionID, old) })
	if errors.Is(err, ErrVoiceActive) {
		err = fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return t, held, err
}

// Begin says that a session without a ticket, whose id no other session has, runs in a user's
// conversation, until its lease is released or lost. An offer that waits is worth nothing from then on. The error is
// ErrVoiceActive, or wraps ErrUnavailable.
func (v *VoiceSessions) Begin(ctx context.Context, session, user, conversation string) (*Lease, error) {
	return v.begin(ctx, voiceState{SessionID: session}, user, conversation, idle)
}

// Adopt says that a session which another node has run goes on here, at that epoch of the
// [Directory], which begins at 1: at once, without waiting for the lease of before, whose holder
// is told that it is lost. Among all nodes the highest epoch holds the lease. The conversation's
// revision moves on, so that the holder of before cannot save what it has loaded.
//
// ErrFenced: the session runs at this epoch or a later one. ErrVoiceActive: another session of the
// conversation runs. The other errors wrap ErrUnavailable.
func (v *VoiceSessions) Adopt(ctx context.Context, session string, epoch uint64, user, conversation string) (*Lease, error) {
	l, err := v.begin(ctx, voiceState{SessionID: session, Epoch: epoch}, user, conversation, func(old *voiceState) error {
		switch {
		case old == nil || !old.Running:
			return nil // its lease has ended
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
	if err := v.bucket.store.talks.fence(ctx, keyOf(conversation)); err != nil {
		l.Release()
		return nil, err
	}
	return l, nil
}

// Fenced says whether another node goes on with a session, at a higher epoch than the caller's: then
// the error is ErrFenced, and the caller must write nothing of the session any more. The other
// errors wrap ErrUnavailable.
func (v *VoiceSessions) Fenced(ctx context.Context, session string, epoch uint64, user, conversation string) error {
	h, err := v.bucket.get(ctx, voiceKey(user, conversation))
	if errors.Is(err, errNone) {
		return nil
	} else if err != nil {
		return err
	}
	if is, err := decodeVoice(h.data); err == nil && is.Running && is.SessionID == session && is.Epoch > epoch {
		return ErrFenced
	}
	return nil
}

func (v *VoiceSessions) begin(ctx context.Context, running voiceState, user, conversation string, may func(*voiceState) error) (*Lease, error) {
	key := voiceKey(user, conversation)
	running.Running, running.Node = true, v.nodes.own()
	asked := time.Now()
	h, err := v.set(ctx, key, running, voiceLife, may)
	if err != nil {
		return nil, err
	}
	return v.bucket.hold(key, h.data, h.revision, voiceLife, asked)
}

// set writes a conversation's voice state if the present one may be replaced; nil means that
// it has none.
func (v *VoiceSessions) set(ctx context.Context, key string, state voiceState, life time.Duration, may func(*voiceState) error) (held, error) {
	data, err := encode(state)
	if err != nil {
		return held{}, err
	}
	ctx, cancel := v.bucket.store.bounded(ctx)
	defer cancel()
	mark := newMark()
	for {
		h, err := v.bucket.get(ctx, key)
		if err != nil && !errors.Is(err, errNone) {
			return held{}, err
		}
		var old *voiceState
		if err == nil {
			if h.mark == mark {
				return h, v.bucket.claimHeld(ctx, key, h) // it is this caller's own write, whose acknowledgement was lost
			}
			// An unreadable record is not a running session, and is overwritten.
			if s, err := decodeVoice(h.data); err == nil {
				old = &s
			}
		}
		if err := may(old); errors.Is(err, ErrVoiceActive) {
			// A session whose node is gone does not run.
			if gone, asked := v.nodes.Gone(ctx, old.Node); asked != nil {
				return held{}, asked
			} else if !gone {
				return held{}, err
			}
			if err := may(nil); err != nil {
				return held{}, err
			}
		} else if err != nil {
			return held{}, err
		}
		revision, err := v.bucket.put(ctx, key, data, mark, h.revision, life)
		if !errors.Is(err, errConflict) {
			return held{data: data, revision: revision, mark: mark}, err
		}
		if err := v.bucket.store.pause(ctx); err != nil {
			return held{}, err
		}
	}
}

// decodeVoice reads a record of the bucket.
func decodeVoice(data []byte) (voiceState, error) {
	var s voiceState
	if err := decode(data, &s); err != nil {
		return voiceState{}, err
	}
	if s.SessionID == "" {
		return voiceState{}, fmt.Errorf("%w: a voice session without an id", ErrCorrupt)
	}
	return s, nil
}
