package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"voicegw/store/witness"
)

// EntryState is what is known about a side effect.
type EntryState string

// The states of an entry.
const (
	// Pending: somebody has announced it. Whether it was done is unknown until Finish, and
	// stays unknown if LeaseUntil passes first.
	Pending EntryState = "pending"
	// Done: it was done, and Envelope is its result.
	Done EntryState = "done"
)

// Reservation is the announcement of a side effect.
type Reservation struct {
	// Key names the side effect: the same key, the same effect. Any text; only its
	// SHA-256 is stored.
	Key string `json:"-"`
	// Tool, Session, Call and Turn say who announced it, for whoever reads the entry.
	Tool    string `json:"tool"`
	Session string `json:"session"`
	Call    string `json:"call,omitempty"`
	Turn    int    `json:"turn,omitempty"`
	// Lease is how long the announcer may still be working on it, from now.
	Lease time.Duration `json:"-"`
}

// Entry is what the ledger holds for a key.
type Entry struct {
	Reservation
	State EntryState `json:"state"`
	// Envelope is the result, in the bytes that Finish was given without the white space
	// between them; nil while it is pending.
	Envelope json.RawMessage `json:"envelope,omitempty"`
	// At is when it was announced, LeaseUntil until when the announcer may be working on it;
	// both by the clock of the announcer's node.
	At         time.Time `json:"at"`
	LeaseUntil time.Time `json:"lease_until"`

	revision uint64
}

// Ledger remembers side effects so that none is done twice: callers ask it before the side
// effect and tell it the result afterwards. Its methods may be used concurrently.
type Ledger struct {
	// Fixed after openLedger.
	bucket *bucket
	life   time.Duration
}

func (s *Store) openLedger(ctx context.Context) (*Ledger, error) {
	b, err := s.openBucket(ctx, witness.Ledger, "voicegw: side effects, before and after they are done")
	return &Ledger{bucket: b, life: s.o.LedgerLife}, err
}

// Reserve announces a side effect. fresh says that the caller alone may do it, and must then
// call Finish or Release; the announcement is durable when Reserve returns. Otherwise somebody
// announced it before, and the entry is what is known: call Reserve again to learn more about
// a pending one. The ledger forgets an entry after Options.LedgerLife.
//
// The errors wrap ErrUnavailable, ErrTooBig or ErrCorrupt. After ErrUnavailable the
// announcement may have been stored: the side effect must not be done, and the key is pending
// until its life ends unless it is released.
func (l *Ledger) Reserve(ctx context.Context, r Reservation) (Entry, bool, error) {
	now := time.Now().UTC()
	if s := l.bucket.store; s.journal != nil && now.Before(s.journal.Doubt()) {
		return l.inDoubt(ctx, r, now)
	}
	e := Entry{Reservation: r, State: Pending, At: now, LeaseUntil: now.Add(r.Lease)}
	data, err := encode(e)
	if err != nil {
		return Entry{}, false, err
	}
	h, err := l.bucket.create(ctx, keyOf(r.Key), data, l.life)
	switch {
	case err == nil:
		e.revision = h.revision
		return e, true, nil
	case !errors.Is(err, errConflict):
		return Entry{}, false, err
	}
	e, err = decodeEntry(h)
	e.Key = r.Key
	return e, false, err
}

// inDoubt is Reserve after a damage whose extent is unknown: a key that the ledger lacks may
// have been lost, so it counts as announced by somebody who never finished.
func (l *Ledger) inDoubt(ctx context.Context, r Reservation, now time.Time) (Entry, bool, error) {
	h, err := l.bucket.get(ctx, keyOf(r.Key))
	if errors.Is(err, errNone) {
		return Entry{Reservation: Reservation{Key: r.Key}, State: Pending, At: now, LeaseUntil: now}, false, nil
	} else if err != nil {
		return Entry{}, false, err
	}
	e, err := decodeEntry(h)
	e.Key = r.Key
	return e, false, err
}

// Finish records the result of a side effect, for another Options.LedgerLife. It is durable
// when Finish returns, and may be called again with the same envelope after an error.
// ErrChanged: somebody else finished or released it since. The other errors wrap
// ErrUnavailable or ErrTooBig; the entry is pending then.
func (l *Ledger) Finish(ctx context.Context, e Entry, envelope json.RawMessage) error {
	if e.revision == 0 {
		return fmt.Errorf("%w: it was not reserved", ErrChanged)
	}
	pending := e.revision
	e.State, e.Envelope = Done, envelope
	data, err := encode(e)
	if err != nil {
		return err
	}
	ctx, cancel := l.bucket.store.bounded(ctx)
	defer cancel()
	key, mark := keyOf(e.Key), newMark()
	for {
		_, err = l.bucket.put(ctx, key, data, mark, pending, l.life)
		if !errors.Is(err, errConflict) {
			return err
		}
		h, err := l.bucket.get(ctx, key)
		switch {
		case errors.Is(err, errNone):
			return ErrChanged
		case err != nil:
			return err
		case bytes.Equal(h.data, data):
			// An earlier call was stored although its caller was told otherwise.
			return l.bucket.claimHeld(ctx, key, h)
		case h.revision != pending:
			return ErrChanged
		}
		if err := l.bucket.store.pause(ctx); err != nil {
			return err
		}
	}
}

// Release forgets a reservation for which nothing was done, so that it can be made again.
// It may be called again after an error. ErrUsed: the entry is done. ErrChanged: somebody
// else changed it since. The other errors wrap ErrUnavailable.
func (l *Ledger) Release(ctx context.Context, e Entry) error {
	switch {
	case e.State == Done:
		return fmt.Errorf("%w: what was done cannot be released", ErrUsed)
	case e.revision == 0:
		return fmt.Errorf("%w: it was not reserved", ErrChanged)
	}
	ctx, cancel := l.bucket.store.bounded(ctx)
	defer cancel()
	key := keyOf(e.Key)
	for {
		_, err := l.bucket.remove(ctx, key, e.revision)
		if !errors.Is(err, errConflict) {
			return err
		}
		h, err := l.bucket.get(ctx, key)
		switch {
		case errors.Is(err, errNone):
			return nil
		case err != nil:
			return err
		case h.revision != e.revision:
			return ErrChanged
		}
		if err := l.bucket.store.pause(ctx); err != nil {
			return err
		}
	}
}

// decodeEntry reads an entry of the bucket.
func decodeEntry(h held) (Entry, error) {
	var e Entry
	if err := decode(h.data, &e); err != nil {
		return Entry{}, err
	}
	if e.State != Pending && (e.State != Done || e.Envelope == nil) {
		return Entry{}, fmt.Errorf("%w: an entry of the ledger in state %.20q", ErrCorrupt, e.State)
	}
	e.revision = h.revision
	return e, nil
}
