package store

import (
	"context"
	"errors"
	"time"

	"voicegw/store/witness"
)

// Answers keeps the outcome of messages, for clients that send a message again. Only the
// writer interprets what an answer holds. Its methods may be used concurrently.
type Answers struct {
	// Fixed after openAnswers.
	bucket *bucket
}

func (s *Store) openAnswers(ctx context.Context) (*Answers, error) {
	b, err := s.openBounded(ctx, witness.Answers, "voicegw: what became of messages that may be sent again", s.o.AnswerBytes)
	return &Answers{bucket: b}, err
}

// Load returns the outcome of the message with that name, which may be any text, and its
// revision for Save. The errors are ErrUnknown, with the revision zero, or wrap ErrUnavailable.
func (a *Answers) Load(ctx context.Context, name string) ([]byte, Revision, error) {
	h, err := a.bucket.get(ctx, keyOf(name))
	if err != nil {
		return nil, 0, err
	}
	return h.data, Revision(h.revision), nil
}

// Save stores the outcome of a message whose record was loaded with rev, or a new record with
// the revision zero, for that life, and returns its new revision. It is durable when Save
// returns. Only the SHA-256 of the name is stored. ErrChanged: somebody else has saved it
// since, or its life is over. The other errors wrap ErrUnavailable or ErrTooBig.
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
