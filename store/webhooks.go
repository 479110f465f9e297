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
	// WebhookLife is how long an event waits for its receiver at most.
	WebhookLife = 24 * time.Hour
	// mostWebhooks bounds the events that wait for one receiver, webhookBytes those of all receivers
	// together; memoryWebhooks is the same for a Store in memory.
	mostWebhooks   = 10_000
	webhookBytes   = 128 << 20
	memoryWebhooks = 16 << 20
	// mostWebhook bounds one event, in bytes.
	mostWebhook = 64 << 10
	// webhookLease is how long whoever has taken an event has for it. After that, another one gets it.
	webhookLease = time.Minute
	// webhookIdle is how long the server remembers a receiver that nobody asks for.
	webhookIdle = 7 * 24 * time.Hour
	// takeWait is how long one question for an event waits at the server.
	takeWait = 10 * time.Second
)

// Webhook is an event on its way to one receiver.
type Webhook struct {
	// ID is the event's, the same for all receivers.
	ID string `json:"id"`
	// Type is what has happened.
	Type string `json:"type"`
	// At is when it was told.
	At time.Time `json:"at"`
	// Body is what is sent, byte for byte.
	Body []byte `json:"body"`
}

// storedWebhook is a Webhook in the stream.
type storedWebhook struct {
	V int `json:"v"`
	Webhook
}

// Webhooks keeps events until their receivers have them: in the order in which they come, and each of them
// for one taker at a time, of all nodes. Its methods may be used concurrently.
type Webhooks struct {
	// Fixed after openWebhooks.
	store   *Store
	stream  jetstream.Stream
	subject string // with a dot at its end

	mu        sync.Mutex // guards the following field
	consumers map[string]jetstream.Consumer
}

// validReceiver matches the names of receivers.
var validReceiver = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)

func (s *Store) openWebhooks(ctx context.Context) (*Webhooks, error) {
	w := &Webhooks{store: s, subject: s.o.Prefix + ".webhooks.", consumers: map[string]jetstream.Consumer{}}
	storage, most := jetstream.FileStorage, int64(webhookBytes)
	if s.o.Memory {
		storage, most = jetstream.MemoryStorage, memoryWebhooks
	}
	var err error
	w.stream, err = s.openStream(ctx, witness.Webhooks, jetstream.StreamConfig{
		Name:                 streamName(s.o.Prefix, witness.Webhooks),
		Description:          "voicegw: events that are on their way to webhooks",
		Subjects:             []string{w.subject + "*"},
		Retention:            jetstream.WorkQueuePolicy,
		MaxAge:               WebhookLife,
		MaxBytes:             most,
		MaxMsgsPerSubject:    mostWebhooks,
		Discard:              jetstream.DiscardNew,
		DiscardNewPerSubject: true,
		Storage:              storage,
		Replicas:             s.o.Replicas,
		Duplicates:           2 * time.Minute,
	})
	if err != nil || s.embedded == nil {
		return w, err
	}
	return w, w.forgetTakers(ctx)
}

// forgetTakers removes what the embedded server remembers of those who have taken events: they were of an
// earlier process. What they had not done with is there, and is taken again.
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

// decodeWebhook reads an event of the stream.
func decodeWebhook(data []byte) (Webhook, error) {
	var r storedWebhook
	if err := decodeVersioned(data, &r); err != nil {
		return Webhook{}, err
	}
	if r.ID == "" || r.Type == "" || r.At.IsZero() || len(r.Body) == 0 {
		return Webhook{}, fmt.Errorf("%w: an event without an id, a type, a time or a body", ErrCorrupt)
	}
	return r.Webhook, nil
}

// Add stores an event for a receiver. One with an ID that was added for it within two minutes is not added
// again. The errors wrap ErrFull if as many wait for the receiver as may, ErrTooBig or ErrUnavailable, or
// say what is wrong.
func (w *Webhooks) Add(ctx context.Context, receiver string, e Webhook) error {
	if !validReceiver.MatchString(receiver) {
		return fmt.Errorf("store: %.80q cannot be the name of a webhook", receiver)
	}
	data, err := encode(storedWebhook{V: recordVersion, Webhook: e})
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
			return final{fmt.Errorf("%w: events for %s wait, and no more are taken: %w", ErrFull, receiver, err)}
		}
		return err
	})
}

// Taken is an event that its taker has for a minute.
type Taken interface {
	// Event returns the event, and how often it has been taken, this time included; nobody knows of tries
	// before a restart.
	Event() (e Webhook, tries int)
	// Done removes the event. If the error wraps ErrUnavailable, it may be taken again.
	Done(ctx context.Context) error
	// Later gives the event back, to be taken again after a time. The error wraps ErrUnavailable; then it is
	// taken again when the minute is over.
	Later(ctx context.Context, after time.Duration) error
}

// taken implements Taken.
type taken struct {
	Webhook
	tries int

	of *Webhooks
	m  jetstream.Msg
}

// consumer returns what the server knows of the events of a receiver.
func (w *Webhooks) consumer(ctx context.Context, receiver string) (jetstream.Consumer, error) {
	if !validReceiver.MatchString(receiver) {
		return nil, fmt.Errorf("store: %.80q cannot be the name of a webhook", receiver)
	}
	w.mu.Lock()
	known := w.consumers[receiver]
	w.mu.Unlock()
	if known != nil {
		return known, nil
	}
	err := w.store.within(ctx, w.store.o.Wait, "asking for events", func(ctx context.Context) (err error) {
		known, err = w.stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
			Durable: receiver, FilterSubject: w.subject + receiver, AckPolicy: jetstream.AckExplicitPolicy, AckWait: webhookLease,
			MaxAckPending: mostWebhooks, InactiveThreshold: webhookIdle, Replicas: w.store.o.Replicas, MemoryStorage: w.store.o.Memory,
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.consumers[receiver] = known
	return known, nil
}

// forget has the server asked again for a receiver: it may have forgotten it.
func (w *Webhooks) forget(receiver string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.consumers, receiver)
}

// Take waits for the next event for a receiver, until ctx ends; then the error is ctx's. An event that
// cannot be read is removed, and the error wraps ErrCorrupt. Other errors wrap ErrUnavailable, or say what
// is wrong with the name.
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
			w.forget(receiver)
			if failing.IsZero() {
				failing = time.Now()
			}
			if time.Since(failing) >= w.store.o.Wait {
				return nil, fmt.Errorf("store: asking for events: %w: %w", ErrUnavailable, err)
			}
			// In a cluster a server does not know a new consumer at once.
			select {
			case <-time.After(retryPause):
			case <-ctx.Done():
			}
			continue
		case m == nil:
			failing = time.Time{}
			continue // no event has come
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

// next returns the next message; nil if none comes in time.
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

// Waiting returns how many events wait for a receiver, those that somebody has taken included. The error
// wraps ErrUnavailable, or says what is wrong with the name.
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
		w.forget(receiver)
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
