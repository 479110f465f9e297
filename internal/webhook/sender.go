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
	// mostTold bounds the events that are not in the store yet.
	mostTold = 1024
	// workers is how many events are sent to one receiver at once, by one node.
	workers = 4
	// lookEvery is how often the number of waiting events is asked for.
	lookEvery = 15 * time.Second
	// trouble is how long is waited when the store cannot be reached.
	trouble = time.Second
	// settleTime bounds writing what became of an attempt when the Sender ends.
	settleTime = time.Second
)

// pauses are those between attempts; the last one stays. They are varied by a fifth.
var pauses = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour}

// longestPause bounds what a receiver may ask for with Retry-After.
const longestPause = 2 * time.Hour

// Queue keeps events until receivers have them. *store.Webhooks does.
type Queue interface {
	// Add keeps an event for a receiver.
	Add(ctx context.Context, receiver string, e store.Webhook) error
	// Take waits for an event for a receiver, until ctx ends.
	Take(ctx context.Context, receiver string) (store.Taken, error)
	// Waiting returns how many events wait for a receiver.
	Waiting(ctx context.Context, receiver string) (int, error)
}

// Options configure a Sender. Queue is required.
type Options struct {
	Queue     Queue
	Endpoints []Endpoint
	// Logger is told what is not delivered, and what is lost. Nil means no logging.
	Logger *slog.Logger
}

// Stats are the counters of one endpoint.
type Stats struct {
	// Delivered are events that have arrived, Failed attempts after which another one comes. Dropped are
	// events that were not kept, GivenUp those that were kept and will not arrive.
	Delivered, Failed, Dropped, GivenUp uint64
	// Waiting is how many events wait for the endpoint, in the whole cluster, as it was a few seconds ago.
	Waiting int
}

// counters are Stats that are counted.
type counters struct {
	delivered, failed, dropped, givenUp atomic.Uint64
	waiting                             atomic.Int64
}

// line is one endpoint and what sends to it.
type line struct {
	// Fixed after newLine.
	name  string
	count counters
	stop  context.CancelFunc

	to atomic.Pointer[poster] // as it is configured now
}

// Sender tells receivers of events. Its methods may be used concurrently.
type Sender struct {
	// Fixed after New.
	queue  Queue
	logger *slog.Logger
	seldom *logging.Throttle
	told   chan Event    // from Tell to keep; dropped if it is full; never closed
	ending chan struct{} // closed by Close
	end    context.CancelFunc
	ctx    func() context.Context // of everything that it does

	closing sync.Once
	keeping sync.WaitGroup // keep
	running sync.WaitGroup // everything else

	mu    sync.Mutex // guards the following fields
	ended bool
	lines map[string]*line
}

// New begins to send. Close must be called.
func New(o Options) *Sender {
	ctx, end := context.WithCancel(context.Background())
	s := &Sender{
		queue: o.Queue, logger: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		told: make(chan Event, mostTold), ending: make(chan struct{}), end: end, ctx: func() context.Context { return ctx },
		lines: map[string]*line{},
	}
	s.seldom = logging.NewThrottle(s.logger)
	s.Reconfigure(o.Endpoints)
	s.keeping.Go(s.keep)
	return s
}

// Reconfigure replaces the endpoints, for events that are told and attempts that begin from now on. What
// waits for one that is gone is sent if it comes back within a day.
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

// begin starts what sends to an endpoint. The caller must hold mu.
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

// Tell tells the endpoints of an event. It never waits: if too many events wait to be kept, because the
// store is away, the event is dropped and counted.
func (s *Sender) Tell(e Event) {
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
		s.drop(l, e, "too many wait to be kept")
	}
}

// wanting returns the endpoints that get events of a type.
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

func (s *Sender) drop(l *line, e Event, why string) {
	l.count.dropped.Add(1)
	s.seldom.Info("an event is lost before it was sent", l.name+": "+why, "endpoint", l.name, "type", e.Type, "event", e.ID)
}

// keep writes what is told into the store, until Close and until nothing is left.
func (s *Sender) keep() {
	for {
		select {
		case e := <-s.told:
			s.keepOne(e)
			continue
		default:
		}
		select {
		case e := <-s.told:
			s.keepOne(e)
		case <-s.ending:
			select {
			case e := <-s.told: // both were ready
				s.keepOne(e)
			default:
				return
			}
		}
	}
}

// keepOne keeps an event for each endpoint that wants it. While the store is away it tries again.
func (s *Sender) keepOne(e Event) {
	for _, l := range s.wanting(e.Type) {
		for {
			err := s.queue.Add(s.ctx(), l.name, store.Webhook{ID: e.ID, Type: e.Type, At: e.At, Body: e.Body})
			if err == nil {
				break
			}
			if !errors.Is(err, store.ErrUnavailable) || s.ctx().Err() != nil {
				why := "it cannot be kept"
				if errors.Is(err, store.ErrFull) {
					why = "too many wait for the endpoint"
				}
				s.drop(l, e, why)
				break
			}
			s.seldom.Info("events wait for the store", l.name, "endpoint", l.name, "error", err)
			s.pause(s.ctx(), trouble)
		}
	}
}

// pause waits, unless ctx ends first.
func (s *Sender) pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// send sends one event after another to an endpoint, until ctx ends.
func (s *Sender) send(ctx context.Context, l *line) {
	for ctx.Err() == nil {
		t, err := s.queue.Take(ctx, l.name)
		if err != nil {
			if ctx.Err() == nil {
				s.seldom.Info("events cannot be read", l.name, "endpoint", l.name, "error", err)
				s.pause(ctx, trouble)
			}
			continue
		}
		s.attempt(ctx, l, t)
	}
}

// attempt sends an event once, and settles what becomes of it.
func (s *Sender) attempt(ctx context.Context, l *line, t store.Taken) {
	e, tries := t.Event()
	got := l.to.Load().post(ctx, e.ID, e.Body)
	// What became of it is written although the Sender may end meanwhile.
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
		l.count.delivered.Add(1)
		err = t.Done(settle)
	case ctx.Err() != nil:
		err = t.Later(settle, 0) // somebody else sends it, or the next start
	case got.gone || time.Since(e.At)+pause > store.WebhookLife:
		l.count.givenUp.Add(1)
		s.logger.Error("an event is given up", "endpoint", l.name, "type", e.Type, "event", e.ID, "tries", tries, "why", got.why)
		err = t.Done(settle)
	default:
		l.count.failed.Add(1)
		s.seldom.Info("an event was not delivered, and is sent again", l.name+": "+got.why, "endpoint", l.name, "event", e.ID, "tries", tries, "again_in_ms", pause.Milliseconds())
		err = t.Later(settle, pause)
	}
	if err != nil && ctx.Err() == nil {
		s.seldom.Info("what became of an event could not be written, so it may be sent again", l.name, "endpoint", l.name, "event", e.ID, "error", err)
	}
}

// pauseAfter returns how long to wait after that many attempts. A receiver may ask for more.
func pauseAfter(tries int, asked time.Duration) time.Duration {
	d := pauses[min(max(tries, 1), len(pauses))-1]
	d += time.Duration((rand.Float64() - 0.5) * 0.4 * float64(d)) // so that not all come back together
	return max(d, min(asked, longestPause))
}

// look asks from time to time how many events wait for an endpoint, until ctx ends.
func (s *Sender) look(ctx context.Context, l *line) {
	for ctx.Err() == nil {
		if n, err := s.queue.Waiting(ctx, l.name); err == nil {
			l.count.waiting.Store(int64(n))
		}
		s.pause(ctx, lookEvery)
	}
}

// Stats returns the counters of each endpoint, by its name.
func (s *Sender) Stats() map[string]Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]Stats, len(s.lines))
	for name, l := range s.lines {
		c := &l.count
		all[name] = Stats{
			Delivered: c.delivered.Load(), Failed: c.failed.Load(), Dropped: c.dropped.Load(), GivenUp: c.givenUp.Load(), Waiting: int(c.waiting.Load()),
		}
	}
	return all
}

// Close keeps what was told, until ctx is done, and ends. What is being sent is broken off, and sent again
// by another node, or after the next start. It may be called more than once. A nil Sender has nothing to close.
func (s *Sender) Close(ctx context.Context) error {
	if s == nil {
		return nil
	}
	s.closing.Do(func() { close(s.ending) })
	kept := make(chan struct{}) // closed when all is kept
	go func() {
		s.keeping.Wait()
		close(kept)
	}()
	var err error
	select {
	case <-kept:
	case <-ctx.Done():
		err = errors.New("webhook: events of the last moments are lost, because the store did not take them")
	}
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.end()
	<-kept
	s.running.Wait()
	return err
}
