package store

import (
	"context"
	"errors"
	"time"
)

// Answers stores the outcome of messages, for clients that send a message again. The content is opaque. Its methods may
// be used concurrently.
type Answers struct {
	// Immutable.
	bucket *bucket
}

// Load returns a message's outcome by any name, with its revision for Save. The errors are ErrUnknown, with revision
// zero, or wrap ErrUnavailable.
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
	key := keyOf(name)
	if rev == 0 {
		h, err := a.bucket.create(ctx, key, data, life)
		if errors.Is(err, errConflict) {
			return 0, ErrChanged
		}
		return Revision(h.revision), err
	}
	next, err := a.bucket.replace(ctx, key, data, uint64(rev), life)
	return Revision(next), err
}
