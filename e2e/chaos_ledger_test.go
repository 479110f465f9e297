package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"voicegw/orchestrator/execute"
	"voicegw/store"
)

// moods are the ledger's failures, which all gateways share, and its record of actions.
type moods struct {
	// Fixed.
	began time.Time
	all   []mood

	mu   sync.Mutex           // guards the following fields
	done map[string]time.Time // time at which the ledger recorded an action as done, by the handler's key
	met  map[moodKind]int
}

// moodyLedger is a gateway's ledger with failures.
type moodyLedger struct {
	inner execute.Ledger
	*moods
}

func newMoods(all []mood) *moods {
	return &moods{began: time.Now(), all: all, done: map[string]time.Time{}, met: map[moodKind]int{}}
}

// mood returns the current failure; empty without one.
func (l *moods) mood() moodKind {
	at := time.Since(l.began)
	for _, m := range l.all {
		if at >= m.from && at < m.to {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.met[m.kind]++
			return m.kind
		}
	}
	return ""
}

// moodTime is the duration of an operation of a slow ledger.
const moodTime = 300 * time.Millisecond

// through performs an operation under the current failure.
func (l *moods) through(ctx context.Context, do func() error) error {
	away := fmt.Errorf("injected failure: %w", store.ErrUnavailable)
	switch l.mood() {
	case moodSlow:
		select {
		case <-time.After(moodTime):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", away, ctx.Err())
		}
	case moodRefuses:
		return away
	case moodLoses:
		if err := do(); err != nil {
			return err
		}
		return away
	}
	return do()
}

func (l moodyLedger) Reserve(ctx context.Context, r store.Reservation) (e store.Entry, fresh bool, err error) {
	err = l.through(ctx, func() error {
		var err error
		e, fresh, err = l.inner.Reserve(ctx, r)
		return err
	})
	if err != nil {
		return store.Entry{}, false, err
	}
	return e, fresh, nil
}

func (l moodyLedger) Finish(ctx context.Context, e store.Entry, envelope json.RawMessage) error {
	return l.through(ctx, func() error {
		err := l.inner.Finish(ctx, e, envelope)
		if err == nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.done[handlersKey(e.Key)] = time.Now()
		}
		return err
	})
}

// handlersKey returns the handler's key of a ledger action.
func handlersKey(action string) string {
	sum := sha256.Sum256([]byte(action))
	return "vg-" + hex.EncodeToString(sum[:16])
}

func (l moodyLedger) Release(ctx context.Context, e store.Entry) error {
	return l.through(ctx, func() error { return l.inner.Release(ctx, e) })
}

// doneAt returns the time at which the ledger recorded an action; zero if never.
func (l *moods) doneAt(action string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.done[action]
}

func (l *moods) counts() map[moodKind]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.met
}
