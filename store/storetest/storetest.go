// Package storetest has in-memory parts of the store for tests: a ledger, confirmations and usage. They use time.Now, so
// they work in synctest. A hook can delay, observe or fail the operations of the ledger and the confirmations.
package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"voicegw/store"
)

// Confirmations is an in-memory execute.Confirmations. The zero value is empty; it may be used concurrently.
type Confirmations struct {
	// Before is the hook; set it before the first use.
	Before Before

	mu      sync.Mutex // guards the following fields
	all     map[string]store.Confirmation
	settled []string // references in order of Settle
}

// Create records a confirmation; store.ErrUsed if its token exists.
func (c *Confirmations) Create(ctx context.Context, question store.Confirmation) error {
	if err := c.Before.allow(ctx, Create, question.Token); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, has := c.all[question.Token]; has {
		return store.ErrUsed
	}
	if c.all == nil {
		c.all = make(map[string]store.Confirmation)
	}
	c.all[question.Token] = question
	return nil
}

// Named returns a confirmation by store.QuestionName, or store.ErrUnknown.
func (c *Confirmations) Named(ctx context.Context, name string) (store.Confirmation, error) {
	if err := c.Before.allow(ctx, Get, name); err != nil {
		return store.Confirmation{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for token, question := range c.all {
		if store.QuestionName(token) == name {
			return question, nil
		}
	}
	return store.Confirmation{}, store.ErrUnknown
}

// Resolve answers a confirmation once, with the store's errors.
func (c *Confirmations) Resolve(ctx context.Context, token, session string, approved bool, now time.Time) (store.Confirmation, error) {
	if err := c.Before.allow(ctx, Resolve, token); err != nil {
		return store.Confirmation{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	question, has := c.all[token]
	outcome, err := question.Answer(session, approved, now)
	if !has || errors.Is(err, store.ErrUnknown) {
		return store.Confirmation{}, store.ErrUnknown
	}
	question.Outcome = outcome
	c.all[token] = question
	if err == nil && outcome == store.Expired {
		err = store.ErrExpired
	}
	return question, err
}

// ResolveNamed answers the confirmation with that store.QuestionName once, with the store's errors.
func (c *Confirmations) ResolveNamed(ctx context.Context, name, session string, approved bool, now time.Time) (store.Confirmation, error) {
	question, err := c.Named(ctx, name)
	if err != nil {
		return question, err
	}
	return c.Resolve(ctx, question.Token, session, approved, now)
}

// Settle records that the outcome of an approved call is known.
func (c *Confirmations) Settle(ctx context.Context, _, _, reference string) error {
	if err := c.Before.allow(ctx, Settle, reference); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settled = append(c.settled, reference)
	return nil
}

// Settled returns the references passed to Settle, in order.
func (c *Confirmations) Settled() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.settled)
}

// All returns all confirmations, in any order.
func (c *Confirmations) All() []store.Confirmation {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []store.Confirmation
	for _, question := range c.all {
		all = append(all, question)
	}
	return all
}

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

// Usage is an in-memory meter.Store that several meters share. It may be used concurrently.
type Usage struct {
	mu         sync.Mutex
	records    map[string]store.UsageRecord
	writes     map[string][]time.Time
	ears       map[int]func([]byte)
	last       int
	told       [][]byte // not delivered yet
	delivering bool
	down, deaf bool
}

// NewUsage returns an empty Usage.
func NewUsage() *Usage {
	return &Usage{records: map[string]store.UsageRecord{}, writes: map[string][]time.Time{}, ears: map[int]func([]byte){}}
}

// ErrDown is the error of a Usage that is down.
var ErrDown = errors.New("the store is down")

// Down makes every call fail, or stops that.
func (u *Usage) Down(down bool) { u.set(func() { u.down = down }) }

// Deaf drops all broadcasts, or stops that.
func (u *Usage) Deaf(deaf bool) { u.set(func() { u.deaf = deaf }) }

func (u *Usage) set(change func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change()
}

// Stored returns a record and the times it was written.
func (u *Usage) Stored(day, writer, user, key string) (store.UsageRecord, []time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	k := day + writer + user + key
	return u.records[k], slices.Clone(u.writes[k])
}

// Save implements meter.Store.
func (u *Usage) Save(_ context.Context, r store.UsageRecord, known uint64) (uint64, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.down {
		return 0, ErrDown
	}
	k := r.Day + r.Writer + r.User + r.Key
	u.records[k] = r
	u.writes[k] = append(u.writes[k], time.Now())
	return known + 1, nil
}

// Days implements meter.Store.
func (u *Usage) Days(_ context.Context, first, last time.Time, f func(store.UsageRecord)) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.down {
		return 0, ErrDown
	}
	for _, r := range u.records {
		if r.Day >= first.UTC().Format(time.DateOnly) && r.Day <= last.UTC().Format(time.DateOnly) {
			f(r)
		}
	}
	return 0, nil
}

// Tell delivers in order, like the store, on a separate goroutine.
func (u *Usage) Tell(data []byte) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.deaf {
		return nil
	}
	u.told = append(u.told, data)
	if !u.delivering {
		u.delivering = true
		go u.deliver()
	}
	return nil
}

func (u *Usage) deliver() {
	for {
		u.mu.Lock()
		if len(u.told) == 0 {
			u.delivering = false
			u.mu.Unlock()
			return
		}
		data, ears := u.told[0], slices.Collect(maps.Values(u.ears))
		u.told = u.told[1:]
		u.mu.Unlock()
		for _, f := range ears {
			f(data)
		}
	}
}

// Hear implements meter.Store.
func (u *Usage) Hear(f func([]byte)) (func(), error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last++
	id := u.last
	u.ears[id] = f
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.ears, id)
	}, nil
}
