package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// EntryState is the state of a side effect.
type EntryState string

// The states of an entry.
const (
	// Pending: announced. Whether it was done is unknown until Finish, and stays unknown if LeaseUntil passes first.
	Pending EntryState = "pending"
	// Done: done, with its result in Envelope.
	Done EntryState = "done"
)

// Reservation announces a side effect.
type Reservation struct {
	// Key identifies the side effect. Any text; only its SHA-256 is stored.
	Key string `json:"-"`
	// Tool, Session, Call and Turn describe the caller for readers.
	Tool    string `json:"tool"`
	Session string `json:"session"`
	Call    string `json:"call,omitempty"`
	Turn    int    `json:"turn,omitempty"`
	// Lease is how long the caller may be working on it, from now.
	Lease time.Duration `json:"-"`
}

// Entry is the ledger's record for a key.
type Entry struct {
	Reservation
	State EntryState `json:"state"`
	// Envelope is the result as given to Finish, without white space between values; nil while pending.
	Envelope json.RawMessage `json:"envelope,omitempty"`
	// At is the time of the announcement, LeaseUntil the end of its lease, by the caller's clock.
	At         time.Time `json:"at"`
	LeaseUntil time.Time `json:"lease_until"`

	revision uint64
}

// Ledger prevents repeated side effects: callers reserve a key before the side effect and record the result afterwards.
type Ledger struct {
	// Immutable.
	bucket *bucket
	life   time.Duration
}

// Reserve announces a side effect durably. fresh means that only the caller may do it, and must then call Finish or
// Release. Otherwise the key was reserved before; call Reserve again to follow a pending entry. Entries expire after
// Options.LedgerLife.
//
// The errors wrap ErrUnavailable, ErrTooBig or ErrCorrupt. After ErrUnavailable the reservation may exist: the side
// effect must not be done, and the key is pending until it expires unless it is released.
func (l *Ledger) Reserve(ctx context.Context, r Reservation) (Entry, bool, error) {
	now := time.Now().UTC()
	if s := l.bucket.store; s.journal != nil && now.Before(s.journal.Doubt) {
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

// inDoubt is Reserve after damage of unknown extent: a missing key may have been lost, so it counts as reserved and
// unfinished.
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

// Finish records a side effect's result durably, for another Options.LedgerLife. It may be repeated with the same
// envelope after an error. ErrChanged means that another caller finished or released it. The other errors wrap
// ErrUnavailable or ErrTooBig, and leave the entry pending.
func (l *Ledger) Finish(ctx context.Context, e Entry, envelope json.RawMessage) error {
	if e.revision == 0 {
		return fmt.Errorf("%w: it was not reserved", ErrChanged)
	}
	e.State, e.Envelope = Done, envelope
	data, err := encode(e)
	if err != nil {
		return err
	}
	ctx, cancel := l.bucket.store.bounded(ctx)
	defer cancel()
	key := keyOf(e.Key)
	_, err = l.bucket.set(ctx, key, &write{data: data, ttl: l.life}, e.revision, func(h held) (*write, error) {
		if !h.exists() || !bytes.Equal(h.data, data) {
			return nil, ErrChanged
		}
		// An earlier call was stored although it returned an error.
		return nil, l.bucket.claim(ctx, key, data, h.revision, h.until)
	})
	return err
}

// Release removes a reservation whose side effect was not done, so that it can be made again. It may be repeated after
// an error. ErrUsed means that the entry is done, ErrChanged that another caller changed it.
func (l *Ledger) Release(ctx context.Context, e Entry) error {
	switch {
	case e.State == Done:
		return fmt.Errorf("%w: a finished entry cannot be released", ErrUsed)
	case e.revision == 0:
		return fmt.Errorf("%w: it was not reserved", ErrChanged)
	}
	_, err := l.bucket.remove(ctx, keyOf(e.Key), e.revision)
	if errors.Is(err, errNone) {
		err = nil
	}
	return err
}

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
