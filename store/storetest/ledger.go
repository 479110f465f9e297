// Package storetest has in-memory parts of the store for tests: a ledger, confirmations and usage. They use time.Now, so
// they work in synctest. A hook can delay, observe or fail the operations of the ledger and the confirmations.
package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"voicegw/store"
)

// Op is a method of the Ledger or the Confirmations.
type Op string

// The methods.
const (
	Reserve Op = "reserve"
	Finish  Op = "finish"
	Release Op = "release"
	Create  Op = "create"
	Get     Op = "get"
	Resolve Op = "resolve"
	Settle  Op = "settle"
)

// Before is called at the start of each operation, on the caller's goroutine. key is the ledger's key, the
// confirmation's token or, for Settle, its reference. The operation returns Before's error without any effect.
type Before func(ctx context.Context, op Op, key string) error

func (b Before) allow(ctx context.Context, op Op, key string) error {
	if b == nil {
		return ctx.Err()
	}
	if err := b(ctx, op, key); err != nil {
		return err
	}
	return ctx.Err()
}

// Ledger is an in-memory execute.Ledger. The zero value is empty; it may be used concurrently.
type Ledger struct {
	// Before is the hook; set it before the first use.
	Before Before
	// MaxEnvelope is the maximum size of a result in bytes; zero means no limit.
	MaxEnvelope int

	mu      sync.Mutex // guards the following field
	entries map[string]store.Entry
}

// Reserve creates an entry or returns the existing one.
func (l *Ledger) Reserve(ctx context.Context, r store.Reservation) (store.Entry, bool, error) {
	if err := l.Before.allow(ctx, Reserve, r.Key); err != nil {
		return store.Entry{}, false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, has := l.entries[r.Key]; has {
		return e, false, nil
	}
	if l.entries == nil {
		l.entries = make(map[string]store.Entry)
	}
	now := time.Now().UTC()
	e := store.Entry{Reservation: r, State: store.Pending, At: now, LeaseUntil: now.Add(r.Lease)}
	l.entries[r.Key] = e
	return e, true, nil
}

// Finish records a result. The error is store.ErrChanged if the entry is not pending, or wraps store.ErrTooBig.
func (l *Ledger) Finish(ctx context.Context, e store.Entry, envelope json.RawMessage) error {
	if err := l.Before.allow(ctx, Finish, e.Key); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries[e.Key].State != store.Pending {
		return store.ErrChanged
	}
	if l.MaxEnvelope > 0 && len(envelope) > l.MaxEnvelope {
		return fmt.Errorf("%w: %d bytes", store.ErrTooBig, len(envelope))
	}
	e.State, e.Envelope = store.Done, envelope
	l.entries[e.Key] = e
	return nil
}

// Release removes an entry; store.ErrUsed if it is done, store.ErrChanged if missing.
func (l *Ledger) Release(ctx context.Context, e store.Entry) error {
	if err := l.Before.allow(ctx, Release, e.Key); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.entries[e.Key].State {
	case store.Pending:
		delete(l.entries, e.Key)
		return nil
	case store.Done:
		return store.ErrUsed
	}
	return store.ErrChanged
}

// Entry returns the entry with this key.
func (l *Ledger) Entry(key string) (store.Entry, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.entries[key]
	return e, ok
}

// Entries returns all entries, in any order.
func (l *Ledger) Entries() []store.Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []store.Entry
	for _, e := range l.entries {
		all = append(all, e)
	}
	return all
}
