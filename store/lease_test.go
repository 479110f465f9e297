package store

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// oneKey is a bucket of one key, which expires by the clock of the bubble.
type oneKey struct {
	mu       sync.Mutex // guards the following fields
	data     []byte     // nil if the key has no value
	revision uint64
	end      time.Time
	mood     func(write func()) error // of a write; nil performs it
}

// set changes the bucket.
func (k *oneKey) set(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
}

// value is the present value of the key; mu is held.
func (k *oneKey) value() []byte {
	if k.data != nil && !time.Now().Before(k.end) {
		k.data = nil
	}
	return k.data
}

// has returns the value of the key.
func (k *oneKey) has() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return string(k.value())
}

func (k *oneKey) get(context.Context, string) (held, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.value() == nil {
		return held{}, errNone
	}
	return held{data: k.data, revision: k.revision}, nil
}

// write is every write; it returns refused if may is false.
func (k *oneKey) write(data []byte, ttl time.Duration, refused error, may func() bool) (uint64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var err error
	carryOut := func() {
		if err = refused; may() {
			err = nil
			k.revision++
			k.data, k.end = data, time.Now().Add(ttl)
		}
	}
	if k.mood != nil {
		if failed := k.mood(carryOut); failed != nil {
			return 0, failed
		}
		return k.revision, err
	}
	carryOut()
	return k.revision, err
}

func (k *oneKey) create(_ context.Context, _ string, data []byte, ttl time.Duration) (held, error) {
	revision, err := k.write(data, ttl, errConflict, func() bool { return k.value() == nil })
	if err != nil {
		return held{data: k.data, revision: k.revision}, err
	}
	return held{data: data, revision: revision}, nil
}

func (k *oneKey) replace(_ context.Context, _ string, data []byte, expected uint64, ttl time.Duration) (uint64, error) {
	return k.write(data, ttl, ErrChanged, func() bool { return k.value() != nil && k.revision == expected })
}

func (k *oneKey) remove(_ context.Context, _ string, expected uint64) (uint64, error) {
	return k.write(nil, 0, ErrChanged, func() bool { return k.value() != nil && k.revision == expected })
}

// away is the mood of an unreachable bucket.
func away(func()) error { return fmt.Errorf("%w: away", ErrUnavailable) }

// deaf is the mood of a bucket that writes but loses its acknowledgements.
func deaf(write func()) error {
	write()
	return fmt.Errorf("%w: no answer", ErrUnavailable)
}

// leased is a lease of 30 s under test.
type leased struct {
	*Lease
	keys   *oneKey
	done   chan struct{}
	losses atomic.Int32 // how often its holder was informed of the loss
	log    bytes.Buffer // read it after the end of the lease
}

func takeLease(t *testing.T) *leased {
	t.Helper()
	l := &leased{keys: &oneKey{}, done: make(chan struct{})}
	h, err := l.keys.create(t.Context(), "k", []byte("mine"), 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	l.Lease = &Lease{keys: l.keys, name: "voice", log: slog.New(slog.NewTextHandler(&l.log, nil)), wait: 5 * time.Second,
		key: "k", data: []byte("mine"), life: 30 * time.Second, revision: h.revision}
	ctx := l.begin(time.Now())
	l.WhenLost(func() { l.losses.Add(1) })
	go l.keep(ctx, l.done)
	return l
}

// pass lets time pass, and everything that is due happen.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// TestLeaseIsLostBeforeItsLifeEnds: the holder is informed before another one can take the key, even if the store
// does not answer.
func TestLeaseIsLostBeforeItsLifeEnds(t *testing.T) {
	for name, mood := range map[string]func(*oneKey, chan struct{}) func(func()) error{
		"away": func(*oneKey, chan struct{}) func(func()) error { return away },
		"silent": func(k *oneKey, end chan struct{}) func(func()) error {
			return func(func()) error {
				k.mu.Unlock()
				<-end
				k.mu.Lock()
				return ErrUnavailable
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, end := takeLease(t), make(chan struct{})
				l.keys.set(func() { l.keys.mood = mood(l.keys, end) })
				pass(27*time.Second - time.Millisecond)
				if l.losses.Load() != 0 {
					t.Error("the holder was informed too early")
				}
				pass(time.Millisecond)
				if l.losses.Load() != 1 || l.keys.has() != "mine" {
					t.Errorf("informed %d times, while the key has %q", l.losses.Load(), l.keys.has())
				}
				pass(3 * time.Second)
				if l.keys.has() != "" {
					t.Error("its life does not end")
				}
				late := false
				l.WhenLost(func() { late = true })
				synctest.Wait()
				if !late {
					t.Error("a caller that asks after the loss is not informed")
				}
				close(end)
				l.Release()
				synctest.Wait()
				if l.losses.Load() != 1 || strings.Count(l.log.String(), "store_lease_lost") != 1 {
					t.Errorf("informed %d times; the log: %s", l.losses.Load(), l.log.String())
				}
			})
		})
	}
}

// TestLeaseOutlivesAShortAbsence: a store that returns before the lease has nearly expired costs nothing, and the log
// has one line about it.
func TestLeaseOutlivesAShortAbsence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := takeLease(t)
		for range 5 {
			l.keys.set(func() { l.keys.mood = away })
			pass(16 * time.Second)
			l.keys.set(func() { l.keys.mood = nil })
			pass(15 * time.Second)
			if l.losses.Load() != 0 || l.keys.has() != "mine" {
				t.Fatalf("informed %d times, the key has %q", l.losses.Load(), l.keys.has())
			}
		}
		l.Release()
		if l.keys.has() != "" || strings.Count(l.log.String(), "store_lease_not_renewed") != 5 {
			t.Errorf("the key has %q; the log: %s", l.keys.has(), l.log.String())
		}
	})
}

// TestLeaseKnowsItsOwnWrites: a renewal without an acknowledgement does not count as another holder's, nor as
// renewed; and it is released with the rest.
func TestLeaseKnowsItsOwnWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := takeLease(t)
		l.keys.set(func() { l.keys.mood = deaf })
		pass(25500 * time.Millisecond)
		l.keys.set(func() { l.keys.mood = nil })
		pass(time.Minute)
		if l.losses.Load() != 0 {
			t.Error("its own write counts as another's")
		}
		l.keys.set(func() { l.keys.mood = deaf })
		pass(11 * time.Second)
		l.keys.set(func() { l.keys.mood = nil })
		l.Release()
		if l.keys.has() != "" {
			t.Errorf("after its release the key has %q", l.keys.has())
		}

		l = takeLease(t)
		l.keys.set(func() { l.keys.mood = deaf })
		pass(27 * time.Second)
		if l.losses.Load() != 1 {
			t.Error("an unacknowledged renewal counts")
		}
		l.Release()
	})
}

// TestLeaseIsTakenAgain: a holder whose key has expired early takes it again, but not from another holder.
func TestLeaseIsTakenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := takeLease(t)
		l.keys.set(func() { l.keys.data = nil })
		pass(10 * time.Second)
		if l.losses.Load() != 0 || l.keys.has() != "mine" {
			t.Errorf("informed %d times, the key has %q", l.losses.Load(), l.keys.has())
		}
		l.keys.set(func() { l.keys.data, l.keys.end = []byte("theirs"), time.Now().Add(time.Hour); l.keys.revision++ })
		pass(10 * time.Second)
		if l.losses.Load() != 1 {
			t.Error("the holder continues after another one took the lease")
		}
		l.Release()
		if l.keys.has() != "theirs" {
			t.Errorf("the other one's key has %q", l.keys.has())
		}
	})
}

// TestLeaseEndsInSilence: a holder that has released its lease gets no notice of a loss; one that has not, and whose
// store is closed, does.
func TestLeaseEndsInSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := takeLease(t)
		pass(15 * time.Second)
		l.Release()
		l.Release()
		pass(time.Hour)
		if l.losses.Load() != 0 || l.keys.has() != "" {
			t.Errorf("informed %d times, the key has %q", l.losses.Load(), l.keys.has())
		}
		l = takeLease(t)
		close(l.done)
		synctest.Wait()
		if l.losses.Load() != 1 {
			t.Error("a holder continues without renewals")
		}
		l.Release()
	})
}

// TestLeaseCountsFromTheRequest: the life of a slowly acknowledged renewal counts from its request, as the key's life
// does.
func TestLeaseCountsFromTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := takeLease(t)
		l.keys.set(func() {
			l.keys.mood = func(write func()) error {
				write()
				l.keys.mood = away
				l.keys.mu.Unlock()
				defer l.keys.mu.Lock()
				<-time.After(4 * time.Second)
				return nil
			}
		})
		pass(10*time.Second + 27*time.Second)
		if l.losses.Load() != 1 || l.keys.has() != "mine" {
			t.Errorf("informed %d times, the key has %q", l.losses.Load(), l.keys.has())
		}
		l.Release()
	})
}
