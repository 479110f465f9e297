package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// watchPause is how long a copy waits before it is read again.
const watchPause = 250 * time.Millisecond

// fresh is how long a recent change outlives a whole reading that has not seen it: the
// follower that is read may be behind the leader that accepted this node's own write.
const fresh = 10 * time.Second

// mirror keeps a copy of a bucket's records in memory until the Store is closed.
type mirror struct {
	// Fixed.
	bucket *bucket
	under  string // the beginning of the keys that it copies, with its dot; empty for all
	what   string // for errors and the log
	// headersOnly has the messages come without their values.
	headersOnly bool
	// newest is how many messages of a whole reading are taken: the last ones. Zero means all. skipped
	// is told of the others, up to which revision they go; it is required with newest.
	newest  uint64
	skipped func(revision uint64)
	// back holds one note from the client library: the connection was lost and is there again. It is
	// never closed.
	back chan struct{}
	// take puts one message into the copy.
	take func(key string, m message)
	// dropUnseen forgets keys that a whole reading has not seen; it began when last was the last
	// message of the stream. Keys that were written after that stay, and so do those that changed
	// after since.
	dropUnseen func(seen map[string]bool, last uint64, since time.Time)
}

// newMirror returns a mirror that the client library tells of the connection.
func (s *Store) newMirror(m mirror) *mirror {
	m.back = make(chan struct{}, 1)
	s.mirroring.Lock()
	defer s.mirroring.Unlock()
	s.mirrors = append(s.mirrors, &m)
	return &m
}

// connected tells all mirrors that the connection is there again.
func (s *Store) connected() {
	s.mirroring.Lock()
	defer s.mirroring.Unlock()
	for _, m := range s.mirrors {
		select {
		case m.back <- struct{}{}:
		default:
		}
	}
}

// follow makes the copy and keeps it until the Store is closed.
func (r *mirror) follow() error {
	first := make(chan struct{}) // from keepUp to here, closed when the copy is whole
	r.bucket.store.running.Go(func() { r.keepUp(first) })
	select {
	case <-first:
		return nil
	case <-time.After(openWait):
		return fmt.Errorf("%w: the %s could not be read within %v", ErrUnavailable, r.what, openWait)
	}
}

// keepUp keeps the copy in memory until the Store is closed. It closes first once the copy is
// complete. After a lost connection or any other irregularity everything is read again: a
// change in between may have been forgotten since.
func (r *mirror) keepUp(first chan<- struct{}) {
	s := r.bucket.store
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
		go func() { ended <- r.watch(round, whole) }()
		var err error
		select {
		case <-s.done:
			end()
			<-ended
			return
		case <-r.back:
			end()
			<-ended
			continue
		case err = <-ended:
			end()
		}
		s.log.Debug("store_"+r.what+"_reread", "error", err)
		select {
		case <-s.done:
			return
		case <-r.back:
		case <-time.After(watchPause):
		}
	}
}

// watch reads all records and then every change, until ctx is done or the reading breaks. It
// calls whole when the copy is complete.
func (r *mirror) watch(ctx context.Context, whole func()) error {
	start := time.Now()
	bounded, cancel := context.WithTimeout(ctx, r.bucket.store.o.Wait)
	info, err := r.bucket.stream.Info(bounded)
	if err != nil {
		cancel()
		return err
	}
	f, err := r.bucket.store.follow(bounded, info.Config.Name, jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, FilterSubject: r.bucket.before + r.under + ">", HeadersOnly: r.headersOnly})
	cancel()
	if err != nil {
		return err
	}
	defer f.close()
	seen := make(map[string]bool)
	left := f.pending
	for {
		if left == 0 && seen != nil {
			r.dropUnseen(seen, info.State.LastSeq, start.Add(-fresh))
			seen = nil
			whole()
		}
		m, err := f.next(ctx)
		if err != nil {
			return err
		}
		if seen != nil && r.newest > 0 && m.pending >= r.newest {
			r.skipped(m.seq)
			left = min(left-1, m.pending)
			continue
		}
		key := strings.TrimPrefix(m.subject, r.bucket.before)
		r.take(key, m)
		if seen != nil {
			seen[key] = true
			left = min(left-1, m.pending)
		}
	}
}
