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
