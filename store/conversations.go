package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"voicegw/internal/conversation"
)

// Revision identifies a stored state of a conversation.
type Revision uint64

// Conversations stores conversations for Options.ConversationLife after their last save.
type Conversations struct {
	// Immutable.
	bucket *bucket
	leases *bucket
	nodes  *Nodes
	life   time.Duration
	// listing is used by List only.
	listing *listing
}

func newConversations(b, leases *bucket, nodes *Nodes) *Conversations {
	c := &Conversations{bucket: b, leases: leases, nodes: nodes, life: b.store.o.ConversationLife}
	c.listing = newListing(c, mostListed)
	return c
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
	w := &write{data: data, note: noteOf(talk), ttl: c.life}
	next, err := c.bucket.overwrite(ctx, keyOf(talk.ID), w, uint64(rev), ErrChanged)
	return Revision(next), err
}

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

// Held is a held lease; *Lease implements it and documents the methods.
type Held interface {
	Release()
	Check(ctx context.Context) error
	WhenLost(f func())
}

type leaseHolder struct {
	Holder string `json:"holder"`
	// Node is the holder's node; empty for a process that is not a node.
	Node string `json:"node,omitempty"`
}

// Lease reserves a conversation for the caller, on all nodes, until released, and renews the lease. If this process
// dies, the lease ends after d (at least a second), or when another node requests it and finds this one gone
// ([Nodes.Gone]). ErrBusy means that another holder has it.
//
// A holder loses the lease while its process is stopped or can't reach the store. The next holder changes the
// conversation's revision, so that a Save by the previous one gets ErrChanged. After ErrChanged a holder must call
// Held.Check before saving again, so that a conversation never has two writers.
func (c *Conversations) Lease(ctx context.Context, id string, d time.Duration) (Held, error) {
	data, err := encode(leaseHolder{Holder: rand.Text(), Node: c.nodes.own()})
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.bucket.store.bounded(ctx)
	defer cancel()
	d = wholeSeconds(d)
	key, asked, taken := keyOf(id), time.Now(), false
	w := &write{data: data, ttl: d}
	h, err := c.leases.set(ctx, key, w, 0, func(h held) (*write, error) {
		if taken = h.exists(); taken {
			if err := c.left(ctx, h); err != nil {
				return nil, err
			}
		}
		asked = time.Now()
		return w, nil
	})
	if err != nil {
		return nil, err
	}
	l, err := c.leases.hold(key, data, h.revision, d, asked)
	if err != nil || !taken {
		return l, err
	}
	if err := c.fence(ctx, key); err != nil {
		l.Release()
		return nil, err
	}
	return l, nil
}

// left returns nil if the holder of a lease is gone, otherwise ErrBusy.
func (c *Conversations) left(ctx context.Context, h held) error {
	var holder leaseHolder
	if decode(h.data, &holder) != nil {
		return ErrBusy // it expires
	}
	gone, err := c.nodes.Gone(ctx, holder.Node)
	if err == nil && !gone {
		err = ErrBusy
	}
	return err
}

// fence changes a conversation's revision, so that a caller that loaded it earlier gets ErrChanged from Save. A missing
// conversation gets a removal marker, which has a revision too.
func (c *Conversations) fence(ctx context.Context, key string) error {
	_, err := c.bucket.change(ctx, key, func(h held) (*write, error) {
		return &write{data: h.data, note: h.note, ttl: c.life, remove: !h.exists()}, nil
	})
	return err
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

// Answers stores the outcome of messages, for clients that send a message again. The content is opaque.
type Answers struct {
	// Immutable.
	bucket *bucket
}

// Load returns a message's outcome by any name, with its revision for Save. The errors are ErrUnknown, with revision
// zero.
func (a *Answers) Load(ctx context.Context, name string) ([]byte, Revision, error) {
	h, err := a.bucket.get(ctx, keyOf(name))
	if err != nil {
		return nil, 0, err
	}
	return h.data, Revision(h.revision), nil
}

// Save stores a message's outcome for life over revision rev, zero for a new record, and returns the new revision. It is
// durable when Save returns. Only the SHA-256 of the name is stored. ErrChanged means that it was saved since or has
// expired. The other errors wrap ErrUnavailable or ErrTooBig.
func (a *Answers) Save(ctx context.Context, name string, data []byte, rev Revision, life time.Duration) (Revision, error) {
	next, err := a.bucket.replace(ctx, keyOf(name), data, uint64(rev), life)
	return Revision(next), err
}
