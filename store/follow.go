package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// heartbeat is the server's heartbeat interval on a silent stream; after two and a half missed ones it counts as gone.
	heartbeat = 4 * time.Second
	silence   = heartbeat * 5 / 2
	// consumerLife is how long the server keeps the state of a follower that vanished.
	consumerLife = time.Minute
)

// errBroken means that a follower missed a message or heartbeats and must restart. Messages delivered before are
// correct.
var errBroken = errors.New("the message stream broke")

type follower struct {
	// Immutable.
	store    *Store
	stream   string
	consumer string
	// pending is the number of messages at the start.
	pending uint64
	sub     *nats.Subscription

	// Owned by next's goroutine.
	seen uint64
}

type message struct {
	held
	subject string
	pending uint64 // the number of messages after it
}

// follow starts reading a stream in order, as config says. The caller must call close.
func (s *Store) follow(ctx context.Context, stream string, config jetstream.ConsumerConfig) (*follower, error) {
	// The server sends nothing without a subscription.
	sub, err := s.conn.SubscribeSync(s.conn.NewInbox())
	if err != nil {
		return nil, err
	}
	config.DeliverSubject = sub.Subject
	config.AckPolicy = jetstream.AckNonePolicy
	config.MemoryStorage = true
	config.Replicas = 1
	config.IdleHeartbeat = heartbeat
	config.FlowControl = true
	config.InactiveThreshold = consumerLife
	consumer, err := s.js.CreatePushConsumer(ctx, stream, config)
	if err != nil {
		return nil, errors.Join(err, sub.Unsubscribe())
	}
	info := consumer.CachedInfo()
	return &follower{store: s, stream: stream, consumer: info.Name, pending: info.NumPending, sub: sub}, nil
}

// next waits for the next message; errBroken if the follower must restart.
func (f *follower) next(ctx context.Context) (message, error) {
	for {
		bounded, cancel := context.WithTimeout(ctx, silence)
		m, err := f.sub.NextMsgWithContext(bounded)
		cancel()
		switch {
		case err != nil && ctx.Err() != nil:
			return message{}, ctx.Err()
		case err != nil:
			return message{}, fmt.Errorf("%w: %w", errBroken, err)
		case m.Header.Get("Status") != "":
			if err := control(m); err != nil {
				return message{}, err
			}
			continue
		}
		meta, err := m.Metadata()
		if err != nil {
			return message{}, fmt.Errorf("%w: %w", errBroken, err)
		}
		if f.seen++; meta.Sequence.Consumer != f.seen {
			return message{}, fmt.Errorf("%w: got message %d as number %d", errBroken, meta.Sequence.Consumer, f.seen)
		}
		h := heldOf(m.Header, m.Data, meta.Sequence.Stream, meta.Timestamp)
		return message{held: h, subject: m.Subject, pending: meta.NumPending}, nil
	}
}

func control(m *nats.Msg) error {
	if m.Header.Get("Status") != "100" {
		return fmt.Errorf("%w: the server says %s %s", errBroken, m.Header.Get("Status"), m.Header.Get("Description"))
	}
	stalled := m.Header.Get("Nats-Consumer-Stalled")
	switch {
	case strings.HasPrefix(m.Header.Get("Description"), "FlowControl") && m.Reply != "":
		return m.Respond(nil)
	case stalled != "" && m.Sub != nil:
		m.Reply = stalled
		return m.Respond(nil)
	}
	return nil
}

// close stops reading. The server also removes an abandoned consumer.
func (f *follower) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = f.sub.Unsubscribe()                                  // fails only on a closed connection
	_ = f.store.js.DeleteConsumer(ctx, f.stream, f.consumer) // the server removes it eventually
}

const watchPause = 250 * time.Millisecond

// fresh is how long a recent change survives a full read that misses it: the follower being read may be behind the
// leader that accepted this node's write.
const fresh = 10 * time.Second

// copied is a record in memory, or a tombstone that stops an older message that arrives late from restoring the record.
type copied[T any] struct {
	value    T
	revision uint64
	none     bool
	at       time.Time // when this was learned
}

// copies is an in-memory copy of a bucket. It follows the bucket until the Store is closed; this node's own writes are
// added at once.
type copies[T any] struct {
	// Immutable after open.
	bucket *bucket
	under  string // prefix of the copied keys, ending in a dot; empty for all
	what   string // for errors and the log
	// headersOnly reads messages without values.
	headersOnly bool
	// newest limits a full read to the last messages; zero means all. skip gets the last revision left out; it is required
	// with newest.
	newest uint64
	skip   func(revision uint64)
	// decode decodes a message. Unreadable records count as missing and are logged.
	decode     func(key string, m held) (T, error)
	unreadable string
	// changed is called on each change, under mu. It may be nil.
	changed func(key string, is copied[T])
	// back is signalled when a lost connection is restored; capacity 1, never closed.
	back chan struct{}

	mu  sync.Mutex // guards the following fields
	all map[string]copied[T]
	// followed is the last revision copied from the bucket, and changes counts the changes of all. moved is closed when
	// either rises.
	followed, changes uint64
	moved             chan struct{}
}

func (c *copies[T]) open(b *bucket) {
	c.bucket, c.back = b, make(chan struct{}, 1)
	c.all, c.moved = map[string]copied[T]{}, make(chan struct{})
	b.store.mirroring.Lock()
	defer b.store.mirroring.Unlock()
	b.store.backs = append(b.store.backs, c.back)
}

// begin starts to follow the bucket and waits until the copy is complete.
func (c *copies[T]) begin() error {
	first := make(chan struct{}) // closed by keepUp when the copy is complete
	c.bucket.store.running.Go(func() { c.keepUp(first) })
	select {
	case <-first:
		return nil
	case <-time.After(openWait):
		return fmt.Errorf("%w: the %s could not be read within %v", ErrUnavailable, c.what, openWait)
	}
}

// keepUp maintains the copy until the Store is closed, and closes first when it is complete. After a lost connection or
// any other irregularity it rereads everything, because it may have missed changes.
func (c *copies[T]) keepUp(first chan<- struct{}) {
	s := c.bucket.store
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
		ended := make(chan error) // from the goroutine below; never closed
		go func() { ended <- c.watch(round, whole) }()
		var err error
		select {
		case <-s.done:
			end()
			<-ended
			return
		case <-c.back:
			end()
			<-ended
			continue
		case err = <-ended:
			end()
		}
		s.log.Debug("store_"+c.what+"_reread", "error", err)
		select {
		case <-s.done:
			return
		case <-c.back:
		case <-time.After(watchPause):
		}
	}
}

// watch reads all records and then every change, until ctx ends or reading breaks. It calls whole when the copy is
// complete.
func (c *copies[T]) watch(ctx context.Context, whole func()) error {
	start := time.Now()
	bounded, cancel := context.WithTimeout(ctx, c.bucket.store.o.Wait)
	info, err := c.bucket.stream.Info(bounded)
	if err != nil {
		cancel()
		return err
	}
	f, err := c.bucket.store.follow(bounded, info.Config.Name,
		jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, FilterSubject: c.bucket.before + c.under + ">",
			HeadersOnly: c.headersOnly})
	cancel()
	if err != nil {
		return err
	}
	defer f.close()
	seen := make(map[string]bool)
	left := f.pending
	for {
		if left == 0 && seen != nil {
			c.dropUnseen(seen, info.State.LastSeq, start.Add(-fresh))
			seen = nil
			whole()
		}
		m, err := f.next(ctx)
		if err != nil {
			return err
		}
		if seen != nil && c.newest > 0 && m.pending >= c.newest {
			c.skip(m.revision)
			left = min(left-1, m.pending)
			continue
		}
		key := strings.TrimPrefix(m.subject, c.bucket.before)
		c.take(key, m.held)
		if seen != nil {
			seen[key] = true
			left = min(left-1, m.pending)
		}
	}
}

func (c *copies[T]) put(key string, is copied[T]) {
	is.at = time.Now()
	c.all[key] = is
	c.stir(key, is)
}

func (c *copies[T]) drop(key string) {
	delete(c.all, key)
	c.stir(key, copied[T]{none: true})
}

func (c *copies[T]) stir(key string, is copied[T]) {
	c.changes++
	c.move()
	if c.changed != nil {
		c.changed(key, is)
	}
}

func (c *copies[T]) move() {
	close(c.moved)
	c.moved = make(chan struct{})
}

// see adds a value that this node wrote or read, unless the copy is newer.
func (c *copies[T]) see(key string, is copied[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if is.revision > c.followed && is.revision >= c.all[key].revision {
		c.put(key, is)
	}
}

func (c *copies[T]) take(key string, m held) {
	is := copied[T]{revision: m.revision, none: m.removed}
	if !is.none {
		var err error
		if is.value, err = c.decode(key, m); err != nil {
			c.bucket.store.log.Warn(c.unreadable, "key", strings.TrimPrefix(key, c.under), "error", err)
			is.none = true
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.revision > c.followed {
		c.followed = m.revision
		c.move()
	}
	was, known := c.all[key]
	switch {
	case is.revision < was.revision:
	case is.none:
		if known {
			c.drop(key)
		}
	case is.revision == was.revision && !was.none: // already copied
	default:
		c.put(key, is)
	}
}

// dropUnseen removes keys missing from a full read that began at revision last, except those written later or changed
// after since.
func (c *copies[T]) dropUnseen(seen map[string]bool, last uint64, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, is := range c.all {
		if !seen[key] && is.revision <= last && is.at.Before(since) {
			c.drop(key)
		}
	}
}
