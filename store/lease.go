package store

import (
	"context"
	"errors"
	"sync"
	"time"
)

// lease is a key of a bucket that its holder alone keeps alive.
type lease struct {
	// Fixed after newLease.
	bucket *bucket
	key    string
	data   []byte
	life   time.Duration
	stop   context.CancelFunc
	over   chan struct{} // closed by keep when it has ended
	once   sync.Once

	// revision is keep's until over is closed, then release's.
	revision uint64
}

// lease takes a key that has no value. errConflict where it has one.
func (b *bucket) lease(ctx context.Context, key string, data []byte, life time.Duration) (*lease, error) {
	life = wholeSeconds(life)
	h, err := b.create(ctx, key, data, life)
	if err != nil {
		return nil, err
	}
	return b.hold(key, data, h.revision, life)
}

// hold keeps a key alive that the caller has just written, until release or the end of
// the Store.
func (b *bucket) hold(key string, data []byte, revision uint64, life time.Duration) (*lease, error) {
	ctx, stop := context.WithCancel(context.Background())
	l := &lease{bucket: b, key: key, data: data, life: life, stop: stop, over: make(chan struct{}), revision: revision}
	if !b.store.start(func() { l.keep(ctx) }) {
		stop()
		return nil, ErrClosed
	}
	return l, nil
}

// keep renews the lease, three times in its life.
func (l *lease) keep(ctx context.Context) {
	defer close(l.over)
	every := time.NewTicker(l.life / 3)
	defer every.Stop()
	for {
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		case <-l.bucket.store.done:
			return
		}
		revision, err := l.bucket.replace(ctx, l.key, l.data, l.revision, l.life)
		switch {
		case err == nil:
			l.revision = revision
		case errors.Is(err, ErrChanged):
			// The store was away for longer than the lease's life.
			l.bucket.store.log.Warn("store_lease_lost", "bucket", l.bucket.name)
			return
		case ctx.Err() == nil:
			l.bucket.store.log.Warn("store_lease_not_renewed", "bucket", l.bucket.name, "error", err)
		}
	}
}

// release gives the key back. What cannot be given back ends with the lease's life.
func (l *lease) release() {
	l.once.Do(func() {
		l.stop()
		<-l.over
		ctx, cancel := l.bucket.store.bounded(context.Background())
		defer cancel()
		_, err := l.bucket.remove(ctx, l.key, l.revision)
		if err != nil && !errors.Is(err, errConflict) && !errors.Is(err, ErrClosed) {
			l.bucket.store.log.Warn("store_lease_not_released", "bucket", l.bucket.name, "error", err)
		}
	})
}
