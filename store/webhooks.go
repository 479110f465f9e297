package store

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"voicegw/store/witness"
)

const (
	// WebhookLife is the maximum time an event waits for its receiver.
	WebhookLife = 24 * time.Hour
	// mostWebhooks bounds the events waiting for one receiver.
	mostWebhooks = 10_000
	// mostWebhook bounds an event in bytes.
	mostWebhook = 64 << 10
	// webhookLease is how long a taken event is reserved for its taker.
	webhookLease = time.Minute
	// webhookIdle is how long the server remembers an unused receiver.
	webhookIdle = 7 * 24 * time.Hour
	// takeWait is how long one request for an event waits at the server.
	takeWait = 10 * time.Second
)

// Webhook is an event for one receiver.
type Webhook struct {
	// ID is the same for all receivers.
	ID   string    `json:"id"`
	Type string    `json:"type"`
	At   time.Time `json:"at"`
	// Body is sent as is.
	Body []byte `json:"body"`
}

// Webhooks stores events until they are delivered, in order; each is reserved for one taker at a time, of all nodes.
type Webhooks struct {
	// Immutable.
	store   *Store
	stream  jetstream.Stream
	subject string // ends in a dot
	// consumers has each receiver's jetstream.Consumer.
	consumers sync.Map
}

var validReceiver = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)

func (s *Store) openWebhooks(ctx context.Context) (*Webhooks, error) {
	w := &Webhooks{store: s, subject: prefix + ".webhooks."}
	var err error
	w.stream, err = s.openStream(ctx, witness.Webhooks, jetstream.StreamConfig{
		Name:                 streamName(witness.Webhooks),
		Description:          "voicegw: events that are on their way to webhooks",
		Subjects:             []string{w.subject + "*"},
		Retention:            jetstream.WorkQueuePolicy,
		MaxAge:               WebhookLife,
		MaxBytes:             most{128 << 20, 16 << 20}.of(s.o),
		MaxMsgsPerSubject:    mostWebhooks,
		Discard:              jetstream.DiscardNew,
		DiscardNewPerSubject: true,
		Duplicates:           2 * time.Minute,
	})
	if err != nil || s.embedded == nil {
		return w, err
	}
	return w, w.forgetTakers(ctx)
}

// forgetTakers removes an earlier process's takers from the embedded server, so that their unfinished events are taken
// again.
func (w *Webhooks) forgetTakers(ctx context.Context) error {
	return w.store.within(ctx, openWait, "opening the webhooks", func(ctx context.Context) error {
		names := w.stream.ConsumerNames(ctx)
		for name := range names.Name() {
			if err := w.stream.DeleteConsumer(ctx, name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
				return err
			}
		}
		return names.Err()
	})
}

func decodeWebhook(data []byte) (Webhook, error) {
	return decodeAs(data, decodeVersioned, "an event without an id, a type, a time or a body", func(w Webhook) bool {
		return w.ID != "" && w.Type != "" && !w.At.IsZero() && len(w.Body) > 0
	})
}

// Add stores an event for a receiver. It ignores repeats of an ID within two minutes. The errors wrap ErrFull,
// ErrTooBig or ErrUnavailable, or name the invalid part.
func (w *Webhooks) Add(ctx context.Context, receiver string, e Webhook) error {
	if !validReceiver.MatchString(receiver) {
		return fmt.Errorf("store: %.80q is not a valid webhook name", receiver)
	}
	data, err := encodeVersioned(e)
	if err != nil {
		return err
	}
	if len(data) > mostWebhook {
		return fmt.Errorf("%w: an event of %d bytes; the limit is %d", ErrTooBig, len(data), mostWebhook)
	}
	if _, err := decodeWebhook(data); err != nil {
		return err
	}
	return w.store.within(ctx, w.store.o.Wait, "writing an event", func(ctx context.Context) error {
		_, err := w.store.js.Publish(ctx, w.subject+receiver, data, jetstream.WithMsgID(receiver+" "+e.ID))
		var refused *jetstream.APIError
		if errors.As(err, &refused) && refused.ErrorCode == codeStreamStoreFailed {
			return final{fmt.Errorf("%w: too many events wait for %s: %w", ErrFull, receiver, err)}
		}
		return err
	})
}

// Taken is an event reserved for its taker for a minute.
type Taken interface {
	// Event returns the event and the number of times it was taken, including this one; attempts before a restart don't
	// count.
	Event() (e Webhook, tries int)
	// Done removes the event. If the error wraps ErrUnavailable, it may be taken again.
	Done(ctx context.Context) error
	// Later returns the event, to be taken again after a delay. If the error wraps ErrUnavailable, that happens when the
	// minute is over.
	Later(ctx context.Context, after time.Duration) error
}

type taken struct {
	Webhook
	tries int

	of *Webhooks
	m  jetstream.Msg
}

// consumer returns the server's consumer of a receiver's events.
func (w *Webhooks) consumer(ctx context.Context, receiver string) (jetstream.Consumer, error) {
	if !validReceiver.MatchString(receiver) {
		return nil, fmt.Errorf("store: %.80q is not a valid webhook name", receiver)
	}
	if known, ok := w.consumers.Load(receiver); ok {
		return known.(jetstream.Consumer), nil
	}
	var made jetstream.Consumer
	err := w.store.within(ctx, w.store.o.Wait, "asking for events", func(ctx context.Context) (err error) {
		made, err = w.stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
			Durable: receiver, FilterSubject: w.subject + receiver, AckPolicy: jetstream.AckExplicitPolicy, AckWait: webhookLease,
			MaxAckPending: mostWebhooks, InactiveThreshold: webhookIdle, Replicas: w.store.o.Replicas, MemoryStorage: w.store.o.Memory,
		})
		return err
	})
	if err == nil {
		w.consumers.Store(receiver, made)
	}
	return made, err
}

// Take waits for a receiver's next event until ctx ends, and then returns ctx's error. An unreadable event is removed,
// with an error wrapping ErrCorrupt. Other errors wrap ErrUnavailable or describe an invalid name.
func (w *Webhooks) Take(ctx context.Context, receiver string) (Taken, error) {
	var failing time.Time // since when; zero while the server answers
	for {
		from, err := w.consumer(ctx, receiver)
		if err != nil {
			return nil, err
		}
		bounded, cancel := context.WithTimeout(ctx, takeWait)
		m, err := next(bounded, from)
		cancel()
		switch {
		case m == nil && ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			w.consumers.Delete(receiver) // the server may have removed it
			if failing.IsZero() {
				failing = time.Now()
			}
			if time.Since(failing) >= w.store.o.Wait {
				return nil, fmt.Errorf("store: asking for events: %w: %w", ErrUnavailable, err)
			}
			// In a cluster a server learns of a new consumer with a delay.
			select {
			case <-time.After(retryPause):
			case <-ctx.Done():
			}
			continue
		case m == nil:
			failing = time.Time{}
			continue // no event yet
		}
		t := &taken{of: w, m: m, tries: 1}
		if about, err := m.Metadata(); err == nil {
			t.tries = int(about.NumDelivered)
		}
		if t.Webhook, err = decodeWebhook(m.Data()); err != nil {
			return nil, errors.Join(err, t.Done(ctx))
		}
		return t, nil
	}
}

// next returns the next message, or nil if none comes in time.
func next(ctx context.Context, from jetstream.Consumer) (jetstream.Msg, error) {
	batch, err := from.Fetch(1, jetstream.FetchContext(ctx))
	if end, _ := ctx.Deadline(); errors.Is(err, jetstream.ErrInvalidOption) && !time.Now().Before(end) {
		<-ctx.Done() // its time was over before it began
		return nil, nil
	}
	if err != nil {
		return nil, err //nolint:wrapcheck // Take does
	}
	m := <-batch.Messages()
	err = batch.Error()
	if m != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return m, nil
	}
	return nil, err //nolint:wrapcheck // Take does
}

// Waiting returns the number of events waiting for a receiver, including taken ones. The error wraps ErrUnavailable or
// describes an invalid name.
func (w *Webhooks) Waiting(ctx context.Context, receiver string) (int, error) {
	from, err := w.consumer(ctx, receiver)
	if err != nil {
		return 0, err
	}
	n := 0
	err = w.store.within(ctx, w.store.o.Wait, "asking how many events wait", func(ctx context.Context) error {
		info, err := from.Info(ctx)
		if err == nil {
			n = int(info.NumPending) + info.NumAckPending
		}
		return err
	})
	if err != nil {
		w.consumers.Delete(receiver)
	}
	return n, err
}

func (t *taken) Event() (Webhook, int) { return t.Webhook, t.tries }

func (t *taken) Done(ctx context.Context) error {
	return t.of.store.within(ctx, t.of.store.o.Wait, "writing that an event has arrived", t.m.DoubleAck)
}

func (t *taken) Later(ctx context.Context, after time.Duration) error {
	return t.of.store.within(ctx, t.of.store.o.Wait, "writing that an event has not arrived", func(context.Context) error {
		return t.m.NakWithDelay(after)
	})
}
