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

// be changes the bucket.
func (k *oneKey) be(f func()) {
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

// read returns the present value; mu is held.
func (k *oneKey) read() held {
	if k.value() == nil {
		return held{}
	}
	return held{data: k.data, revision: k.revision}
}

// write is every write. Like a bucket's, it decides again with the value if the key has another revision.
func (k *oneKey) write(w *write, expected uint64, again func(held) (*write, error)) (held, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var is held
	var err error
	carryOut := func() {
		if is = k.read(); is.revision != expected {
			if w, err = again(is); w == nil || err != nil {
				return
			}
		}
		k.revision++
		k.data, k.end = w.data, time.Now().Add(w.ttl)
		is = held{data: w.data, revision: k.revision, removed: w.remove}
	}
	if k.mood != nil {
		if failed := k.mood(carryOut); failed != nil {
			return held{}, failed
		}
		return is, err
	}
	carryOut()
	return is, err
}

func (k *oneKey) set(_ context.Context, _ string, w *write, expected uint64, again func(held) (*write, error)) (held, error) {
	return k.write(w, expected, again)
}

func (k *oneKey) change(_ context.Context, _ string, decide func(held) (*write, error)) (held, error) {
	k.mu.Lock()
	is := k.read()
	k.mu.Unlock()
	w, err := decide(is)
	if w == nil || err != nil {
		return is, err
	}
	return k.write(w, is.revision, decide)
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
	h, err := l.keys.write(&write{data: []byte("mine"), ttl: 30 * time.Second}, 0, nil)
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
				l.keys.be(func() { l.keys.mood = mood(l.keys, end) })
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
			l.keys.be(func() { l.keys.mood = away })
			pass(16 * time.Second)
			l.keys.be(func() { l.keys.mood = nil })
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
		l.keys.be(func() { l.keys.mood = deaf })
		pass(25500 * time.Millisecond)
		l.keys.be(func() { l.keys.mood = nil })
		pass(time.Minute)
		if l.losses.Load() != 0 {
			t.Error("its own write counts as another's")
		}
		l.keys.be(func() { l.keys.mood = deaf })
		pass(11 * time.Second)
		l.keys.be(func() { l.keys.mood = nil })
		l.Release()
		if l.keys.has() != "" {
			t.Errorf("after its release the key has %q", l.keys.has())
		}

		l = takeLease(t)
		l.keys.be(func() { l.keys.mood = deaf })
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
		l.keys.be(func() { l.keys.data = nil })
		pass(10 * time.Second)
		if l.losses.Load() != 0 || l.keys.has() != "mine" {
			t.Errorf("informed %d times, the key has %q", l.losses.Load(), l.keys.has())
		}
		l.keys.be(func() { l.keys.data, l.keys.end = []byte("theirs"), time.Now().Add(time.Hour); l.keys.revision++ })
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
		l.keys.be(func() {
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
