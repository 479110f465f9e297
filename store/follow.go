package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// heartbeat is how often the server sends a sign of life while a stream is silent; after two
	// and a half of them without a sign it counts as gone.
	heartbeat = 4 * time.Second
	silence   = heartbeat * 5 / 2
	// consumerLife is how long the server keeps the state of a follower that ended without
	// telling it.
	consumerLife = time.Minute
)

// errBroken says that a follower missed something, or heard nothing for too long, and
// must start again. The messages that it delivered before are right.
var errBroken = errors.New("the stream of messages broke")

// follower is one reading of a stream.
type follower struct {
	// Fixed after follow.
	store    *Store
	stream   string
	consumer string
	// pending is how many messages the stream held when the follower began.
	pending uint64
	sub     *nats.Subscription

	// Owned by the goroutine that calls next.
	seen uint64
}

// message is one message of a stream.
type message struct {
	subject string
	header  nats.Header
	data    []byte
	seq     uint64
	at      time.Time // when it was stored
	pending uint64    // how many follow it
}

// end is when its life is over.
func (m message) end() time.Time { return m.at.Add(lifeOf(m.header)) }

// follow begins to read a stream, in order, from where config says. close must be
// called.
func (s *Store) follow(ctx context.Context, stream string, config jetstream.ConsumerConfig) (*follower, error) {
	// Subscribe first: the server sends nothing without a subscription.
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

// next waits for the next message. errBroken if the follower must start again.
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
			return message{}, fmt.Errorf("%w: message %d came as number %d", errBroken, meta.Sequence.Consumer, f.seen)
		}
		return message{subject: m.Subject, header: m.Header, data: m.Data, seq: meta.Sequence.Stream, at: meta.Timestamp, pending: meta.NumPending}, nil
	}
}

// control answers the server's messages that carry no data: heartbeats, and requests to
// confirm that this follower keeps up.
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

// close ends the reading. If the server cannot be told, it forgets the consumer by itself.
func (f *follower) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = f.sub.Unsubscribe()                                  // fails only on a closed connection
	_ = f.store.js.DeleteConsumer(ctx, f.stream, f.consumer) // the server removes it by itself
}
