package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"voicegw/conversation"
	"voicegw/store/witness"
)

// Revision identifies one stored state of a conversation. Zero means never saved.
type Revision uint64

// Conversations keeps conversations for Options.ConversationLife after they were last
// saved. Its methods may be used concurrently.
type Conversations struct {
	// Fixed after openConversations.
	bucket *bucket
	leases *bucket
	life   time.Duration
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
	return &Conversations{bucket: b, leases: leases, life: s.o.ConversationLife}, err
}

// Load returns a conversation, which is the caller's own copy, and its revision for
// Save. The errors are ErrUnknown, with the revision zero, or wrap ErrUnavailable or
// ErrCorrupt.
func (c *Conversations) Load(ctx context.Context, id string) (*conversation.Conversation, Revision, error) {
	h, err := c.bucket.get(ctx, keyOf(id))
	if errors.Is(err, errNone) {
		return nil, 0, ErrUnknown
	} else if err != nil {
		return nil, 0, err
	}
	talk, err := decodeConversation(id, h.data)
	return talk, Revision(h.revision), err
}

// Save stores a conversation that was loaded with rev, or a new one with the revision
// zero, and returns its new revision. It is durable when Save returns, and lives for
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
	if rev == 0 {
		h, err := c.bucket.create(ctx, key, data, c.life)
		if errors.Is(err, errConflict) {
			return 0, ErrChanged
		}
		return Revision(h.revision), err
	}
	next, err := c.bucket.replace(ctx, key, data, uint64(rev), c.life)
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

// Lease reserves a conversation for the caller, on all nodes, until release. It is renewed
// meanwhile; if this process dies it ends after d, which is at least a second. ErrBusy:
// somebody else holds it. The other errors wrap ErrUnavailable.
//
// A lease keeps two nodes from answering at the same time, unless the store is unreachable for
// longer than d. Stored data does not depend on it, because Save compares the revision, so
// nobody needs to be told that a lease was lost. release may be called more than once and
// waits for at most Options.Wait.
func (c *Conversations) Lease(ctx context.Context, id string, d time.Duration) (release func(), err error) {
	data, err := encode(struct {
		Holder string `json:"holder"`
	}{rand.Text()})
	if err != nil {
		return nil, err
	}
	l, err := c.leases.lease(ctx, keyOf(id), data, d)
	if errors.Is(err, errConflict) {
		return nil, ErrBusy
	} else if err != nil {
		return nil, err
	}
	return l.Release, nil
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
