package traces

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// Sender brings spans to a collector. Its methods are called by one goroutine.
type Sender interface {
	// UploadTraces returns when the collector has answered, or ctx is done.
	UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error
	// Stop ends all connections, and returns when nothing of them is left.
	Stop(ctx context.Context) error
}

// outbox is the queue of spans that wait to be sent, and the goroutine that sends them.
type outbox struct {
	// Fixed after newOutbox.
	opts   Options
	send   Sender
	frame  frame
	logger *slog.Logger
	wake   chan struct{} // from put and close to run: something has changed; holds one, never closed
	gone   chan struct{} // closed when run has ended
	// patience ends what is being sent; its cancel is called by close.
	patience func() context.Context
	cancel   context.CancelFunc

	mu      sync.Mutex // guards the following fields
	waiting [][]span
	count   int // of all waiting spans
	closed  bool
	sent    int64
	failed  int64
	dropped int64

	away bool // owned by run: the last batch could not be sent
}

func newOutbox(o Options, send Sender) *outbox {
	ctx, cancel := context.WithCancel(context.Background())
	b := &outbox{
		opts: o, send: send, frame: newFrame(o), logger: o.Logger, wake: make(chan struct{}, 1), gone: make(chan struct{}),
		patience: func() context.Context { return ctx }, cancel: cancel,
	}
	go b.run()
	return b
}

// put queues spans, all or none of them, without waiting.
func (b *outbox) put(spans []span) {
	b.mu.Lock()
	room := !b.closed && b.count+len(spans) <= b.opts.queue
	if room {
		b.waiting, b.count = append(b.waiting, spans), b.count+len(spans)
	} else {
		b.dropped += int64(len(spans))
	}
	b.mu.Unlock()
	if room {
		b.stir()
	}
}

// stir wakes run.
func (b *outbox) stir() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// run sends until the outbox is closed and nothing waits.
func (b *outbox) run() {
	defer close(b.gone)
	pause := time.NewTimer(b.opts.pause)
	defer pause.Stop()
	for {
		<-b.wake
		// Others may follow soon, and travel with it.
		if !b.full() {
			pause.Reset(b.opts.pause)
			b.gather(pause.C)
		}
		for batch, n := b.take(); n > 0; batch, n = b.take() {
			b.ship(batch, n)
		}
		if b.over() {
			return
		}
	}
}

// gather waits until there is a batch, the pause is over or the outbox is closed.
func (b *outbox) gather(pause <-chan time.Time) {
	for {
		select {
		case <-pause:
			return
		case <-b.wake:
			if b.full() {
				return
			}
		}
	}
}

// full reports whether nothing is to be waited for.
func (b *outbox) full() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed || b.count >= b.opts.batch
}

// over reports whether everything has been sent, and nothing more will come.
func (b *outbox) over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed && b.count == 0
}

// take takes a batch out of the queue: whole trees, as long as they fit.
func (b *outbox) take() (batch [][]span, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := 0
	for i < len(b.waiting) && (i == 0 || n+len(b.waiting[i]) <= b.opts.batch) {
		n += len(b.waiting[i])
		i++
	}
	batch = b.waiting[:i:i]
	b.waiting, b.count = b.waiting[i:], b.count-n
	if len(b.waiting) == 0 {
		b.waiting = nil // so that what was sent is not kept
	}
	return batch, n
}

// ship sends a batch. What the collector does not take is lost, and counted.
func (b *outbox) ship(batch [][]span, n int) {
	ctx, cancel := context.WithTimeout(b.patience(), sendTime)
	defer cancel()
	err := b.send.UploadTraces(ctx, b.frame.around(batch))
	b.mu.Lock()
	if err != nil {
		b.failed += int64(n)
	} else {
		b.sent += int64(n)
	}
	b.mu.Unlock()
	if failed := err != nil; failed != b.away {
		b.away = failed
		if failed {
			b.logger.Warn("spans cannot be sent; those that come meanwhile are lost, and counted", "error", err)
		} else {
			b.logger.Info("spans are sent again")
		}
	}
}

func (b *outbox) stats() (sent, failed, dropped, waiting int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sent, b.failed, b.dropped, int64(b.count)
}

// close sends what waits until ctx is done, and then ends the goroutine and the connections. ctx also bounds
// what a batch that is under way may still take.
func (b *outbox) close(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.stir()
	stop := context.AfterFunc(ctx, b.cancel)
	defer stop()
	<-b.gone // run ends soon after cancel: each batch that is left then fails at once
	b.cancel()
	ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := b.send.Stop(ended); err != nil {
		return fmt.Errorf("the connection to the collector of traces: %w", err)
	}
	return nil
}
