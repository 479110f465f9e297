package store

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

const (
	// renewals is the number of renewals in a lease's life.
	renewals = 3
	// fencePart is the fraction of its life by which a holder stops early: the clocks of holder and servers may differ.
	fencePart = 10
	// againPart is the fraction of its life before a failed renewal is retried.
	againPart = 30
)

type leaseKeys interface {
	get(ctx context.Context, key string) (held, error)
	create(ctx context.Context, key string, data []byte, ttl time.Duration) (held, error)
	replace(ctx context.Context, key string, data []byte, expected uint64, ttl time.Duration) (uint64, error)
	remove(ctx context.Context, key string, expected uint64) (uint64, error)
}

// Lease is a key that only its holder keeps alive, until Release. A holder that can't renew it is notified before the
// key expires, by its own monotonic clock, so no other holder can exist yet. (That clock stops while a machine sleeps;
// then the next renewal shows whether the key was taken.)
type Lease struct {
	// Immutable after begin.
	keys     leaseKeys
	name     string // of the bucket
	log      *slog.Logger
	wait     time.Duration // bounds release
	key      string
	data     []byte // unique to this lease
	life     time.Duration
	stop     context.CancelFunc
	lost     context.CancelFunc
	whenLost func(f func())
	fence    *time.Timer   // loses the lease before its life ends
	over     chan struct{} // closed when keep returns
	losing   sync.Once
	once     sync.Once

	// revision is owned by keep until over is closed, then by Release.
	revision uint64
}

// hold keeps a key alive, requested at the given time and just written for whole seconds, until Release or the Store's
// end.
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

// begin prepares for loss and returns the context of keep.
func (l *Lease) begin(asked time.Time) context.Context {
	held, lost := context.WithCancel(context.Background())
	ctx, stop := context.WithCancel(held)
	l.stop, l.lost, l.over = stop, lost, make(chan struct{})
	l.whenLost = func(f func()) { context.AfterFunc(held, f) }
	l.fence = time.AfterFunc(l.left(asked), func() { l.lose("it could not be renewed in time") })
	return ctx
}

// left returns how long the holder may rely on a key requested at the given time.
func (l *Lease) left(asked time.Time) time.Duration {
	return time.Until(asked.Add(l.life - l.life/fencePart))
}

// WhenLost calls f on a new goroutine when the lease is lost, meaning that another holder may have it now or soon; at
// once if already lost. A released lease is never lost.
func (l *Lease) WhenLost(f func()) { l.whenLost(f) }

func (l *Lease) lose(why string) {
	l.losing.Do(func() {
		l.log.Warn("store_lease_lost", "bucket", l.name, "why", why)
		l.lost()
	})
}

// keep renews the lease until Release, its loss, or done is closed.
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
		case errors.Is(err, ErrFenced):
			l.lose("another holder has it")
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

// renew writes the lease again and moves the fence; ErrFenced if another holder has it.
func (l *Lease) renew(ctx context.Context) error {
	asked := time.Now()
	revision, err := l.write(ctx)
	if err != nil {
		return err
	}
	l.revision = revision
	if l.fence.Stop() { // otherwise the lease is lost
		l.fence.Reset(l.left(asked))
	}
	return nil
}

// write replaces the lease's last value, which may be a renewal whose acknowledgement was lost.
func (l *Lease) write(ctx context.Context) (uint64, error) {
	for expected := l.revision; ; {
		revision, err := l.keys.replace(ctx, l.key, l.data, expected, l.life)
		if !errors.Is(err, ErrChanged) {
			return revision, err
		}
		if expected, err = l.own(ctx); err != nil {
			return 0, err
		}
	}
}

// own returns the lease's revision, and reacquires the lease if the key has no value; ErrFenced if another holder has it.
func (l *Lease) own(ctx context.Context) (uint64, error) {
	h, err := l.keys.get(ctx, l.key)
	if errors.Is(err, errNone) {
		if h, err = l.keys.create(ctx, l.key, l.data, l.life); errors.Is(err, errConflict) {
			err = nil
		}
	}
	if err == nil && !bytes.Equal(h.data, l.data) {
		return 0, ErrFenced
	}
	return h.revision, err
}

// Check asks the store whether the caller still has the lease, and reacquires it if it is free: ErrFenced if another
// holder has it, or an error wrapping ErrUnavailable. A reacquired lease is not renewed.
func (l *Lease) Check(ctx context.Context) error {
	_, err := l.own(ctx)
	return err
}

// Release removes the key, in at most Options.Wait; if that fails, the key expires. It may be called more than once.
func (l *Lease) Release() {
	l.once.Do(func() {
		l.stop()
		<-l.over
		l.fence.Stop()
		l.losing.Do(func() {}) // a released lease can't be lost
		ctx, cancel := context.WithTimeout(context.Background(), l.wait)
		defer cancel()
		_, err := l.keys.remove(ctx, l.key, l.revision)
		if errors.Is(err, ErrChanged) {
			if h, got := l.keys.get(ctx, l.key); got == nil && bytes.Equal(h.data, l.data) {
				_, err = l.keys.remove(ctx, l.key, h.revision)
			}
		}
		if err != nil && !errors.Is(err, ErrChanged) && !errors.Is(err, errNone) && !errors.Is(err, errClosed) {
			l.log.Warn("store_lease_not_released", "bucket", l.name, "error", err)
		}
	})
}
