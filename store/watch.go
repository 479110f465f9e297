package store

import (
	"context"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// watchPause is how long the copy of the blocks waits before it is read again.
const watchPause = 250 * time.Millisecond

// fresh is how long a recent change outlives a whole reading that has not seen it: the
// follower that is read may be behind the leader that accepted this node's own write.
const fresh = 10 * time.Second

// keepUp keeps the copy in memory until the Store is closed. It closes first once the copy is
// complete. After a lost connection or any other irregularity everything is read again: a
// change in between may have been forgotten since.
func (b *Blocks) keepUp(first chan<- struct{}) {
	s := b.bucket.store
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	whole := func() {
		if first != nil {
			close(first)
			first = nil
		}
	}
	for {
		round, end := context.WithCancel(ctx)
		ended := make(chan error) // from the goroutine below to this one; never closed
		go func() { ended <- b.watch(round, whole) }()
		var err error
		select {
		case <-s.done:
			end()
			<-ended
			return
		case <-s.back:
			end()
			<-ended
			continue
		case err = <-ended:
			end()
		}
		s.log.Debug("store_blocks_reread", "error", err)
		select {
		case <-s.done:
			return
		case <-s.back:
		case <-time.After(watchPause):
		}
	}
}

// watch reads all blocks and then every change, until ctx is done or the reading breaks. It
// calls whole when the copy is complete.
func (b *Blocks) watch(ctx context.Context, whole func()) error {
	start := time.Now()
	bounded, cancel := context.WithTimeout(ctx, b.bucket.store.o.Wait)
	info, err := b.bucket.stream.Info(bounded)
	if err != nil {
		cancel()
		return err
	}
	f, err := b.bucket.store.follow(bounded, info.Config.Name, jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, FilterSubject: b.bucket.before + ">"})
	cancel()
	if err != nil {
		return err
	}
	defer f.close()
	seen := make(map[string]bool)
	left := f.pending
	for {
		if left == 0 && seen != nil {
			b.dropUnseen(seen, info.State.LastSeq, start.Add(-fresh))
			seen = nil
			whole()
		}
		m, err := f.next(ctx)
		if err != nil {
			return err
		}
		key := strings.TrimPrefix(m.subject, b.bucket.before)
		b.take(key, m)
		if seen != nil {
			seen[key] = true
			left = min(left-1, m.pending)
		}
	}
}

// take puts one message into the copy.
func (b *Blocks) take(key string, m message) {
	is := blocked{revision: m.seq, none: true}
	if m.header.Get(opHeader) == "" {
		if value, err := decodeBlock(key, m.data); err == nil {
			is.block, is.none = value, false
		} else {
			b.bucket.store.log.Warn("store_block_unreadable", "key", key, "error", err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.followed = max(b.followed, m.seq)
	switch {
	case is.revision < b.users[key].revision:
	case is.none:
		b.drop(key)
	default:
		is.at = time.Now()
		b.hold(key, is)
	}
}

// dropUnseen forgets keys that a whole reading has not seen; it began when last was the last
// message of the stream. Keys that were written after that stay, and so do those that changed
// after since.
func (b *Blocks) dropUnseen(seen map[string]bool, last uint64, since time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, is := range b.users {
		if !seen[key] && is.revision <= last && is.at.Before(since) {
			b.drop(key)
		}
	}
}
