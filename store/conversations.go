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

// Revision identifies one stored state of a conversation.
type Revision uint64

// Conversations keeps conversations for Options.ConversationLife after they were last
// saved. Its methods may be used concurrently.
type Conversations struct {
	// Fixed after openConversations.
	bucket *bucket
	leases *bucket
	nodes  *Nodes
	life   time.Duration
	// listing is for List alone.
	listing *listing
}

func (s *Store) openConversations(ctx context.Context) (*Conversations, error) {
	b, err := s.openBounded(ctx, witness.Conversations, "voicegw: what was said, by text and by voice", s.o.ConversationBytes)
	if err != nil {
		return nil, err
	}
	leases, err := s.openBucket(ctx, witness.Leases, "voicegw: conversations in which somebody is at work")
	if err == nil && s.embedded != nil {
		// Nobody else uses the store, so the process that held a lease was killed.
		err = s.within(ctx, openWait, "ending the leases of before", func(ctx context.Context) error { return leases.stream.Purge(ctx) })
	}
	if err != nil {
		return nil, err
	}
	c := &Conversations{bucket: b, leases: leases, nodes: s.nodes, life: s.o.ConversationLife}
	c.listing = newListing(c, mostListed)
	return c, nil
}

// Load returns a conversation, which is the caller's own copy, and its revision for
// Save. The errors are ErrUnknown, with the revision for the Save of a new conversation, or wrap
// ErrUnavailable or ErrCorrupt.
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

// Save stores a conversation with the revision that Load has returned, zero for one that cannot
// exist yet, and returns its new revision. It is durable when Save returns, and lives for
// another Options.ConversationLife. ErrChanged: somebody else has saved it since, or its
// life is over; load it again. The other errors wrap ErrUnavailable or ErrTooBig, or say
// why the id is invalid.
func (c *Conversations) Save(ctx context.Context, talk *conversation.Conversation, rev Revision) (Revision, error) {
	if !conversation.ValidID(talk.ID) {
		return 0, fmt.Errorf("store: %.40q cannot name a conversation", talk.ID)
	}
	data, err := encode(talk)
	if err != nil {
		return 0, err
	}
	key := keyOf(talk.ID)
	next, err := c.bucket.replaceNoted(ctx, key, data, noteOf(talk), uint64(rev), c.life)
	return Revision(next), err
}

// saveTries bounds how often Update starts again because somebody else has saved.
const saveTries = 16

// Update loads a conversation, or creates one with that id, lets change edit it and saves it.
// It starts again whenever somebody else has saved in between, so change may be called more
// than once, each time with a new copy. An error of change ends Update and is returned. The
// other errors are those of Load and Save.
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

// Held is a lease that somebody holds. Its methods may be used concurrently.
type Held interface {
	// Release gives it back. It may be called more than once and waits for at most Options.Wait.
	Release()
	// Check asks the store whether the lease is still the caller's, and takes it again if nobody
	// holds it: ErrFenced if somebody else does, or an error that wraps ErrUnavailable.
	Check(ctx context.Context) error
	// WhenLost calls f, on a goroutine of its own, when somebody else may hold the lease.
	WhenLost(f func())
}

// leaseHolder is the record of a lease of a conversation.
type leaseHolder struct {
	Holder string `json:"holder"`
	// Node is the node of the holder; empty for a process that is not a node.
	Node string `json:"node,omitempty"`
}

// Lease reserves a conversation for the caller, on all nodes, until it is released. It is renewed
// meanwhile. If this process dies it ends after d, which is at least a second, or as soon as another
// node wants it and finds this one gone ([Nodes.Gone]). ErrBusy: somebody else holds it. The other
// errors wrap ErrUnavailable.
//
// A holder may lose it: while its process stood still, or could not reach the store. Whoever takes
// the lease of a node that is gone moves the conversation's revision on, so that a Save of the
// holder of before is ErrChanged. A holder that gets ErrChanged asks Held.Check before it saves
// again, and a conversation is never written by two.
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
			continue // it was released meanwhile
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

// takeLease takes a lease from a node that is gone. ErrBusy: the node is there, or somebody else
// was faster. errNone: nobody holds it any more.
func (c *Conversations) takeLease(ctx context.Context, key string, data []byte, d time.Duration) (*Lease, error) {
	h, err := c.leases.get(ctx, key)
	if err != nil {
		return nil, err
	}
	var holder leaseHolder
	if decode(h.data, &holder) != nil {
		return nil, ErrBusy // it has an end
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

// fence moves the revision of a conversation on, so that nobody who has loaded it before can save
// it without noticing. A conversation that does not exist gets a note that it was removed, which
// has a revision too.
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

// decodeConversation reads a conversation of the bucket.
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
