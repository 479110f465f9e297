package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// errLost says that somebody else holds a lease. It does not leave the package.
var errLost = errors.New("store: the lease is somebody else's")

const (
	// renewals is how often a lease is renewed during its life.
	renewals = 3
	// fencePart is the fraction of its life by which a holder stops before the life ends: the
	// clocks of the holder and of the servers need not run alike.
	fencePart = 10
	// againPart is the fraction of its life after which a failed renewal is tried again.
	againPart = 30
)

// leaseKeys is what a lease needs of its bucket; *bucket is one.
type leaseKeys interface {
	get(ctx context.Context, key string) (held, error)
	create(ctx context.Context, key string, data []byte, ttl time.Duration) (held, error)
	replace(ctx context.Context, key string, data []byte, expected uint64, ttl time.Duration) (uint64, error)
	remove(ctx context.Context, key string, expected uint64) (uint64, error)
}

// Lease is a key that only its holder keeps alive, until Release. A holder that cannot renew
// it is told so before the key's life ends, by the holder's own monotonic clock, so nobody
// else can hold the key yet. (That clock stops while a machine sleeps; the holder then learns
// at the next renewal whether somebody else has taken the key.) Its methods may be used
// concurrently.
type Lease struct {
	// Fixed after begin.
	keys     leaseKeys
	name     string // of the bucket
	log      *slog.Logger
	wait     time.Duration // bounds release
	key      string
	data     []byte // identifies this lease: no other lease has the same
	life     time.Duration
	stop     context.CancelFunc
	lost     context.CancelFunc
	whenLost func(f func())
	fence    *time.Timer   // loses the lease before its life ends
	over     chan struct{} // closed by keep when it returns
	losing   sync.Once
	once     sync.Once

	// revision is owned by keep until over is closed, then by Release.
	revision uint64
}

// lease takes a key that has no value, with data that no other lease has. errConflict if it
// has a value.
func (b *bucket) lease(ctx context.Context, key string, data []byte, life time.Duration) (*Lease, error) {
	life = wholeSeconds(life)
	asked := time.Now()
	h, err := b.create(ctx, key, data, life)
	if err != nil {
		return nil, err
	}
	return b.hold(key, data, h.revision, life, asked)
}

// hold keeps a key alive that the caller requested at that time and has just written for a
// life of whole seconds, until Release or the end of the Store.
func (b *bucket) hold(key string, data []byte, revision uint64, life time.Duration, asked time.Time) (*Lease, error) {
	l := &Lease{keys: b, name: b.name, log: b.store.log, wait: b.store.o.Wait, key: key, data: data, life: life, revision: revision}
	ctx := l.begin(asked)
	if !b.store.start(func() { l.keep(ctx, b.store.done) }) {
		l.stop()
		l.fence.Stop()
		return nil, errClosed
	}
	return l, nil
}

// begin prepares the lease for its possible loss, and returns the context of its keep.
func (l *Lease) begin(asked time.Time) context.Context {
	held, lost := context.WithCancel(context.Background())
	ctx, stop := context.WithCancel(held)
	l.stop, l.lost, l.over = stop, lost, make(chan struct{})
	l.whenLost = func(f func()) { context.AfterFunc(held, f) }
	l.fence = time.AfterFunc(l.left(asked), func() { l.lose("it could not be renewed in time") })
	return ctx
}

// left is how long the holder may rely on a key that it requested at that time.
func (l *Lease) left(asked time.Time) time.Duration {
	return time.Until(asked.Add(l.life - l.life/fencePart))
}

// WhenLost calls f, on a goroutine of its own, when the lease is lost: somebody else may hold
// it soon, or holds it already. If it is lost already, f is called at once. A released lease
// is never lost.
func (l *Lease) WhenLost(f func()) { l.whenLost(f) }

// lose tells the holder.
func (l *Lease) lose(why string) {
	l.losing.Do(func() {
		l.log.Warn("store_lease_lost", "bucket", l.name, "why", why)
		l.lost()
	})
}

// keep renews the lease, until Release, its loss, or until done is closed.
func (l *Lease) keep(ctx context.Context, done <-chan struct{}) {
	defer close(l.over)
	next := time.NewTimer(l.life / renewals)
	defer next.Stop()
	failed := false
	for {
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		case <-done:
			// The lease is no longer renewed.
			l.lose("the store was closed")
			return
		}
		err := l.renew(ctx)
		switch {
		case err == nil:
			failed = false
			next.Reset(l.life / renewals)
		case ctx.Err() != nil:
			return
		case errors.Is(err, errLost):
			l.lose("somebody else holds it")
			return
		default:
			if !failed {
				l.log.Warn("store_lease_not_renewed", "bucket", l.name, "error", err)
			}
			failed = true
			next.Reset(l.life / againPart)
		}
	}
}

// renew writes the lease again and moves the fence. errLost if somebody else holds it.
func (l *Lease) renew(ctx context.Context) error {
	asked := time.Now()
	revision, err := l.write(ctx)
	if err != nil {
		return err
	}
	l.revision = revision
	if l.fence.Stop() { // otherwise the lease is lost, and stays lost
		l.fence.Reset(l.left(asked))
	}
	return nil
}

// write replaces the value that the lease wrote last. That may be a renewal that seemed to
// fail because its acknowledgement was lost. If the key has no value, the lease takes it again.
func (l *Lease) write(ctx context.Context) (uint64, error) {
	for expected := l.revision; ; {
		revision, err := l.keys.replace(ctx, l.key, l.data, expected, l.life)
		if !errors.Is(err, ErrChanged) {
			return revision, err
		}
		h, err := l.keys.get(ctx, l.key)
		if errors.Is(err, errNone) {
			if h, err = l.keys.create(ctx, l.key, l.data, l.life); err == nil {
				return h.revision, nil
			}
		}
		switch {
		case err != nil && !errors.Is(err, errConflict):
			return 0, fmt.Errorf("store: taking a lease again: %w", err)
		case !bytes.Equal(h.data, l.data):
			return 0, errLost
		}
		expected = h.revision
	}
}

// Check asks the store whether the lease is still the caller's, and takes it again if nobody holds
// it: ErrFenced if somebody else does, or an error that wraps ErrUnavailable. A lease that was taken
// again is not renewed.
func (l *Lease) Check(ctx context.Context) error {
	h, err := l.keys.get(ctx, l.key)
	if errors.Is(err, errNone) {
		if h, err = l.keys.create(ctx, l.key, l.data, l.life); errors.Is(err, errConflict) {
			err = nil
		}
	}
	if err == nil && !bytes.Equal(h.data, l.data) {
		return ErrFenced
	}
	return err
}

// Release gives the key back. If that fails, the key ends with the lease's life. It may be
// called more than once and waits for at most Options.Wait.
func (l *Lease) Release() {
	l.once.Do(func() {
		l.stop()
		<-l.over
		l.fence.Stop()
		l.losing.Do(func() {}) // a released lease cannot be lost
		ctx, cancel := context.WithTimeout(context.Background(), l.wait)
		defer cancel()
		_, err := l.keys.remove(ctx, l.key, l.revision)
		if errors.Is(err, errConflict) {
			if h, got := l.keys.get(ctx, l.key); got == nil && bytes.Equal(h.data, l.data) {
				_, err = l.keys.remove(ctx, l.key, h.revision)
			}
		}
		if err != nil && !errors.Is(err, errConflict) && !errors.Is(err, errClosed) {
			l.log.Warn("store_lease_not_released", "bucket", l.name, "error", err)
		}
	})
}
