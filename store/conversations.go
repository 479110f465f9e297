package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"voicegw/internal/conversation"
	"voicegw/store/witness"
)

// Revision identifies a stored state of a conversation.
type Revision uint64

// Conversations stores conversations for Options.ConversationLife after their last save. Its methods may be used
// concurrently.
type Conversations struct {
	// Immutable.
	bucket *bucket
	leases *bucket
	nodes  *Nodes
	life   time.Duration
	// listing is used by List only.
	listing *listing
}

func (s opener) openConversations(ctx context.Context) (*Conversations, error) {
	b, err := s.openBounded(ctx, witness.Conversations, "voicegw: what was said, by text and by voice", s.o.ConversationBytes)
	if err != nil {
		return nil, err
	}
	leases, err := s.openBucket(ctx, witness.Leases, "voicegw: conversations in which somebody is at work")
	if err == nil && s.embedded != nil {
		// No other process uses the store, so the holder of a lease was killed.
		err = s.within(ctx, openWait, "ending the leases of before", func(ctx context.Context) error { return leases.stream.Purge(ctx) })
	}
	if err != nil {
		return nil, err
	}
	c := &Conversations{bucket: b, leases: leases, nodes: s.nodes, life: s.o.ConversationLife}
	c.listing = newListing(c, mostListed)
	return c, nil
}

// Load returns the caller's own copy of a conversation and its revision for Save. The errors are ErrUnknown, with the
// revision for saving a new conversation, or wrap ErrUnavailable or ErrCorrupt.
func (c *Conversations) Load(ctx context.Context, id string) (*conversation.Conversation, Revision, error) {
	h, err := c.bucket.get(ctx, keyOf(id))
	if errors.Is(err, errNone) {
		return nil, Revision(h.revision), ErrUnknown
	} else if err != nil {
		return nil, 0, err
	}
	talk, err := decodeConversation(id, h.data)
	return talk, Revision(h.revision), err
}

// Save stores a conversation over the revision from Load, zero for one that can't exist yet, and returns its new
// revision. It is durable when Save returns. ErrChanged means that it was saved since or has expired; load it again. The
// other errors wrap ErrUnavailable or ErrTooBig, or describe an invalid ID.
func (c *Conversations) Save(ctx context.Context, talk *conversation.Conversation, rev Revision) (Revision, error) {
	if !conversation.ValidID(talk.ID) {
		return 0, fmt.Errorf("store: %.40q is not a valid conversation id", talk.ID)
	}
	data, err := encode(talk)
	if err != nil {
		return 0, err
	}
	key := keyOf(talk.ID)
	next, err := c.bucket.replaceNoted(ctx, key, data, noteOf(talk), uint64(rev), c.life)
	return Revision(next), err
}

// saveTries bounds Update's attempts after concurrent saves.
const saveTries = 16

// Update loads or creates a conversation, calls change and saves it, repeating after concurrent saves; change gets a new
// copy each time. It returns change's error, or those of Load and Save.
func (c *Conversations) Update(ctx context.Context, id string, change func(*conversation.Conversation) error) error {
	for range saveTries {
		talk, rev, err := c.Load(ctx, id)
		if errors.Is(err, ErrUnknown) {
			talk = conversation.New(id, "", "", time.Now())
		} else if err != nil {
			return err
		}
		if err := change(talk); err != nil {
			return err
		}
		if _, err = c.Save(ctx, talk, rev); !errors.Is(err, ErrChanged) {
			return err
		}
		if err := c.bucket.store.pause(ctx); err != nil {
			return err
		}
	}
	return ErrChanged
}

// Held is a held lease. Its methods may be used concurrently.
type Held interface {
	// Release gives it back, in at most Options.Wait. It may be called more than once.
	Release()
	// Check asks the store whether the caller still has the lease, and reacquires it if it is free: ErrFenced if another
	// holder has it, or an error wrapping ErrUnavailable.
	Check(ctx context.Context) error
	// WhenLost calls f on a new goroutine when another holder may have the lease.
	WhenLost(f func())
}

// leaseHolder is the record of a conversation's lease.
type leaseHolder struct {
	Holder string `json:"holder"`
	// Node is the holder's node; empty for a process that is not a node.
	Node string `json:"node,omitempty"`
}

// Lease reserves a conversation for the caller, on all nodes, until released, and renews the lease. If this process
// dies, the lease ends after d (at least a second), or when another node requests it and finds this one gone
// ([Nodes.Gone]). ErrBusy means that another holder has it. The other errors wrap ErrUnavailable.
//
// A holder loses the lease while its process is stopped or can't reach the store. The next holder changes the
// conversation's revision, so that a Save by the previous one gets ErrChanged. After ErrChanged a holder must call
// Held.Check before saving again, so that a conversation never has two writers.
func (c *Conversations) Lease(ctx context.Context, id string, d time.Duration) (Held, error) {
	data, err := encode(leaseHolder{Holder: rand.Text(), Node: c.nodes.own()})
	if err != nil {
		return nil, err
	}
	key := keyOf(id)
	for {
		l, err := c.leases.lease(ctx, key, data, d)
		if err == nil {
			return l, nil
		} else if !errors.Is(err, errConflict) {
			return nil, err
		}
		l, err = c.takeLease(ctx, key, data, wholeSeconds(d))
		if errors.Is(err, errNone) {
			continue // released in between
		} else if err != nil {
			return nil, err
		}
		if err := c.fence(ctx, key); err != nil {
			l.Release()
			return nil, err
		}
		return l, nil
	}
}

// takeLease takes over a lease of a gone node. ErrBusy: the node is alive, or another caller was faster. errNone: the
// lease is free.
func (c *Conversations) takeLease(ctx context.Context, key string, data []byte, d time.Duration) (*Lease, error) {
	h, err := c.leases.get(ctx, key)
	if err != nil {
		return nil, err
	}
	var holder leaseHolder
	if decode(h.data, &holder) != nil {
		return nil, ErrBusy // it expires
	}
	if gone, err := c.nodes.Gone(ctx, holder.Node); err != nil {
		return nil, err
	} else if !gone {
		return nil, ErrBusy
	}
	asked := time.Now()
	revision, err := c.leases.replace(ctx, key, data, h.revision, d)
	if errors.Is(err, ErrChanged) {
		return nil, ErrBusy
	} else if err != nil {
		return nil, err
	}
	return c.leases.hold(key, data, revision, d, asked)
}

// fence changes a conversation's revision, so that a caller that loaded it earlier gets ErrChanged from Save. A missing
// conversation gets a removal marker, which has a revision too.
func (c *Conversations) fence(ctx context.Context, key string) error {
	ctx, cancel := c.bucket.store.bounded(ctx)
	defer cancel()
	for {
		h, err := c.bucket.get(ctx, key)
		switch {
		case err == nil:
			_, err = c.bucket.replaceNoted(ctx, key, h.data, h.note, h.revision, c.life)
		case errors.Is(err, errNone):
			_, err = c.bucket.remove(ctx, key, h.revision)
		}
		if !errors.Is(err, ErrChanged) && !errors.Is(err, errConflict) {
			return err
		}
		if err := c.bucket.store.pause(ctx); err != nil {
			return err
		}
	}
}

func decodeConversation(id string, data []byte) (*conversation.Conversation, error) {
	talk := new(conversation.Conversation)
	if err := decode(data, talk); err != nil {
		return nil, err
	}
	if talk.ID != id || !conversation.ValidID(id) {
		return nil, fmt.Errorf("%w: a conversation with the id %.40q", ErrCorrupt, talk.ID)
	}
	if talk.Entries == nil {
		talk.Entries = []conversation.Entry{}
	}
	return talk, nil
}
