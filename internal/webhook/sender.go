// Package webhook sends signed events to other programs. Bodies and signatures follow Standard Webhooks 1.0.0
// (github.com/standard-webhooks/standard-webhooks, spec/standard-webhooks.md, read 2026-11-26).
//
// The store keeps an event until each receiver has accepted it, and one node at a time sends it. A receiver gets every
// event at least once, in any order, and recognises repeats by the ID. An event that can't be stored, or that the
// receiver doesn't accept within a day, is dropped, logged and counted.
package webhook

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"voicegw/internal/logging"
	"voicegw/store"
)

const (
	// mostTold bounds the events not yet stored.
	mostTold = 1024
	// workers is a node's number of concurrent attempts to one receiver.
	workers = 4
	// lookEvery is the interval for counting waiting events.
	lookEvery = 15 * time.Second
	// trouble is the retry pause while the store is unavailable.
	trouble = time.Second
	// settleTime bounds saving an attempt's result after Close.
	settleTime = time.Second
)

// pauses are the pauses between attempts, varied by a fifth; the last one repeats.
var pauses = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour,
	2 * time.Hour}

const longestPause = 2 * time.Hour

// Queue stores events until they are delivered; *store.Webhooks implements it and documents each method.
type Queue interface {
	Add(ctx context.Context, receiver string, e store.Webhook) error
	Take(ctx context.Context, receiver string) (store.Taken, error)
	Waiting(ctx context.Context, receiver string) (int, error)
}

// Options configure a Sender. Queue is required.
type Options struct {
	Queue     Queue
	Endpoints []Endpoint
	// Logger logs failed and lost events. May be nil.
	Logger *slog.Logger
}

// Stats are the counters of one endpoint.
type Stats struct {
	// Failed counts attempts that will be retried, Dropped events that could not be stored, and GivenUp stored events
	// that will not be delivered.
	Delivered, Failed, Dropped, GivenUp uint64
	// Waiting is the number of waiting events in the whole cluster, a few seconds old.
	Waiting int
}

// line is an endpoint with its sending goroutines.
type line struct {
	// Immutable.
	name string
	stop context.CancelFunc

	to atomic.Pointer[poster] // the current configuration

	stats Stats // guarded by Sender.mu
}

// Sender delivers events. Its methods may be used concurrently.
type Sender struct {
	// Immutable.
	queue  Queue
	logger *slog.Logger
	seldom *logging.Throttle
	told   chan store.Webhook // events to store; dropped when full; never closed
	ending chan struct{}      // closed by Close
	end    context.CancelFunc
	ctx    func() context.Context // of all work

	closing sync.Once
	keeping sync.WaitGroup // for keep
	running sync.WaitGroup // for all other goroutines

	mu    sync.Mutex // guards the following fields
	ended bool
	lines map[string]*line
}

// New starts sending. The caller must call Close.
func New(o Options) *Sender {
	ctx, end := context.WithCancel(context.Background())
	s := &Sender{
		queue: o.Queue, logger: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		told: make(chan store.Webhook, mostTold), ending: make(chan struct{}), end: end, ctx: func() context.Context { return ctx },
		lines: map[string]*line{},
	}
	s.seldom = logging.NewThrottle(s.logger)
	s.Reconfigure(o.Endpoints)
	s.keeping.Go(s.keep)
	return s
}

// Reconfigure replaces the endpoints for new events and attempts. Events waiting for a removed endpoint are sent if it
// returns within a day.
func (s *Sender) Reconfigure(endpoints []Endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	gone := s.lines
	s.lines = make(map[string]*line, len(endpoints))
	for _, e := range endpoints {
		l := gone[e.Name]
		delete(gone, e.Name)
		if l == nil {
			l = s.begin(e)
		} else {
			l.to.Swap(newPoster(e)).close()
		}
		s.lines[e.Name] = l
	}
	for _, l := range gone {
		l.stop()
	}
}

func (s *Sender) begin(e Endpoint) *line {
	ctx, stop := context.WithCancel(s.ctx())
	l := &line{name: e.Name, stop: stop}
	l.to.Store(newPoster(e))
	var all sync.WaitGroup
	for range workers {
		all.Go(func() { s.send(ctx, l) })
	}
	all.Go(func() { s.look(ctx, l) })
	s.running.Go(func() {
		all.Wait()
		l.to.Load().close()
	})
	return l
}

// Tell queues an event for the endpoints. It never blocks: if too many events wait for the store, it drops the event and
// counts it.
func (s *Sender) Tell(e store.Webhook) {
	select {
	case <-s.ending:
	default:
		select {
		case s.told <- e:
			return
		default:
		}
	}
	for _, l := range s.wanting(e.Type) {
		s.drop(l, e, "too many events wait for the store")
	}
}

func (s *Sender) wanting(kind string) []*line {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*line
	for _, l := range s.lines {
		if l.to.Load().wants(kind) {
			all = append(all, l)
		}
	}
	return all
}

func (s *Sender) count(of *uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*of++
}

func (s *Sender) drop(l *line, e store.Webhook, why string) {
	s.count(&l.stats.Dropped)
	s.seldom.Info("webhook event lost before sending", l.name+": "+why, "endpoint", l.name, "type", e.Type, "event", e.ID)
}

// keep stores queued events until Close and the queue is empty.
func (s *Sender) keep() {
	for {
		select {
		case e := <-s.told:
			s.keepOne(e)
			continue
		case <-s.ending:
		}
		select {
		case e := <-s.told:
			s.keepOne(e)
		default:
			return
		}
	}
}

// keepOne stores an event for each subscribed endpoint, and retries while the store is unavailable.
func (s *Sender) keepOne(e store.Webhook) {
	for _, l := range s.wanting(e.Type) {
		for {
			err := s.queue.Add(s.ctx(), l.name, e)
			if err == nil {
				break
			}
			if !errors.Is(err, store.ErrUnavailable) || s.ctx().Err() != nil {
				why := "cannot store event"
				if errors.Is(err, store.ErrFull) {
					why = "too many events wait for the endpoint"
				}
				s.drop(l, e, why)
				break
			}
			s.seldom.Info("webhook events wait for the store", l.name, "endpoint", l.name, "error", err)
			s.pause(s.ctx(), trouble)
		}
	}
}

func (s *Sender) pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (s *Sender) send(ctx context.Context, l *line) {
	for ctx.Err() == nil {
		t, err := s.queue.Take(ctx, l.name)
		if err != nil {
			if ctx.Err() == nil {
				s.seldom.Info("cannot read webhook events", l.name, "endpoint", l.name, "error", err)
				s.pause(ctx, trouble)
			}
			continue
		}
		s.attempt(ctx, l, t)
	}
}

func (s *Sender) attempt(ctx context.Context, l *line, t store.Taken) {
	e, tries := t.Event()
	got := l.to.Load().post(ctx, e.ID, e.Body)
	// Save the result even if the Sender is closing.
	settle, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	if ctx.Err() == nil {
		cancel()
		settle, cancel = context.WithCancel(ctx)
	}
	defer cancel()
	pause := pauseAfter(tries, got.after)
	var err error
	switch {
	case got.ok:
		s.count(&l.stats.Delivered)
		err = t.Done(settle)
	case ctx.Err() != nil:
		err = t.Later(settle, 0) // another node or the next start sends it
	case got.gone || time.Since(e.At)+pause > store.WebhookLife:
		s.count(&l.stats.GivenUp)
		s.logger.Error("webhook event given up", "endpoint", l.name, "type", e.Type, "event", e.ID, "tries", tries, "why", got.why)
		err = t.Done(settle)
	default:
		s.count(&l.stats.Failed)
		s.seldom.Info("webhook event not delivered, will retry", l.name+": "+got.why, "endpoint", l.name, "event", e.ID, "tries",
			tries, "again_in_ms", pause.Milliseconds())
		err = t.Later(settle, pause)
	}
	if err != nil && ctx.Err() == nil {
		s.seldom.Info("cannot save the result of a webhook event, it may be sent again", l.name, "endpoint", l.name,
			"event", e.ID, "error", err)
	}
}

// pauseAfter returns the pause after an attempt. A receiver may ask for a longer one.
func pauseAfter(tries int, asked time.Duration) time.Duration {
	d := pauses[min(max(tries, 1), len(pauses))-1]
	d += time.Duration((rand.Float64() - 0.5) * 0.4 * float64(d)) // jitter
	return max(d, min(asked, longestPause))
}

// look counts an endpoint's waiting events periodically until ctx ends.
func (s *Sender) look(ctx context.Context, l *line) {
	for ctx.Err() == nil {
		if n, err := s.queue.Waiting(ctx, l.name); err == nil {
			s.mu.Lock()
			l.stats.Waiting = n
			s.mu.Unlock()
		}
		s.pause(ctx, lookEvery)
	}
}

// Stats returns the counters by endpoint name.
func (s *Sender) Stats() map[string]Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]Stats, len(s.lines))
	for name, l := range s.lines {
		all[name] = l.stats
	}
	return all
}

// Close stores queued events until ctx ends, and stops. Interrupted attempts are repeated by another node or after the
// next start. It may be called more than once, and on a nil Sender.
func (s *Sender) Close(ctx context.Context) error {
	if s == nil {
		return nil
	}
	s.closing.Do(func() { close(s.ending) })
	kept := make(chan struct{}) // closed when all events are stored
	go func() {
		s.keeping.Wait()
		close(kept)
	}()
	var err error
	select {
	case <-kept:
	case <-ctx.Done():
		err = errors.New("webhook: the last events are lost because the store was unavailable")
	}
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.end()
	<-kept
	s.running.Wait()
	return err
}
