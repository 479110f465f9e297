// Package meter counts usage by day, user and key across all nodes with one store, and enforces limits. Each process
// counts in its own entries, which only grow; it broadcasts each change at once and stores it at most every 5 s. An
// entry's value is the larger of the two. So lost or repeated messages never count usage twice, and a killed process
// loses at most seconds.
package meter

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"maps"
	"sync"
	"time"

	"voicegw/internal/auth"
	"voicegw/internal/cost"
	"voicegw/store"
)

const (
	// writeEvery is the minimum interval between two writes of an entry.
	writeEvery = 5 * time.Second
	// accrueEvery is the interval for counting the time of an idle session.
	accrueEvery = 15 * time.Second
	beat        = time.Second
	// tellEvery is the interval for broadcasting running sessions; after runningLife a killed process's no longer
	// count.
	tellEvery   = 5 * time.Second
	runningLife = 3 * tellEvery
	// rereadEvery is the interval for rereading the day from the store, in case a broadcast was lost.
	rereadEvery = time.Minute
	// mostEntries bounds the known entries. Those of other processes beyond it don't count, own ones are not stored.
	mostEntries = 100_000
	// mostUnwritten bounds the entries waiting to be written.
	mostUnwritten = 50_000
	writers       = 4
)

// Store stores the entries; *store.Usage implements it.
type Store interface {
	Save(ctx context.Context, r store.UsageRecord, known uint64) (uint64, error)
	Days(ctx context.Context, first, last time.Time, f func(store.UsageRecord)) (unreadable int, err error)
	Tell(data []byte) error
	Hear(f func(data []byte)) (stop func(), err error)
}

// Options configure a Meter. Store is required.
type Options struct {
	Store Store
	Node  string
	// User is the limits of each user, Key of a key ID; it must not block. Nil means keys have no limits.
	User auth.Limits
	Key  func(id string) auth.Limits
	// Name returns the configured name of a key or issuer ID, or "". It must not block, and may be nil.
	Name   func(id string) string
	Logger *slog.Logger
}

// Who is the user and the key charged for usage.
type Who struct {
	User, Key string
}

// slot identifies an entry of a process.
type slot struct{ node, day, user, key string }

type entry struct {
	sum     cost.Sum
	running int       // running voice sessions; for a slot without a day
	heard   time.Time // time of the last broadcast; for running sessions of other processes

	// For this process's own entries only:
	revision uint64    // of the stored record
	next     time.Time // the earliest time of the next write
	writing  bool
}

type kind uint8

const (
	user kind = iota
	key
)

type subject struct {
	kind kind
	id   string
}

// total is a subject's usage today and its running sessions, over all processes.
type total struct {
	micros   cost.Micros
	voiceMS  int64
	running  int
	state    State // of this subject's limits
	sessions map[*Session]struct{}
}

func (t *total) empty() bool {
	return t.micros == 0 && t.voiceMS == 0 && t.running == 0 && len(t.sessions) == 0
}

// Meter may be used concurrently. Only New, Close and Report wait for the store.
type Meter struct {
	// Immutable after New, except opts.User, which mu guards.
	opts  Options
	stop  func() // unsubscribes from broadcasts
	end   context.CancelFunc
	wake  chan struct{} // requests notify; capacity 1, never closed
	loops sync.WaitGroup

	closing sync.Once

	mu      sync.Mutex // guards the following fields
	day     string
	entries map[slot]*entry
	totals  map[subject]*total
	dirty   map[slot]*entry       // own entries not yet written
	changed map[*Session]struct{} // sessions whose state may have changed
	paces   map[subject]*pace     // rate limiters of new sessions
	failing bool                  // the last write failed and was logged
	refused map[Limited]int64
	names   map[string]struct{} // the names in Limited.Key; bounded by mostNames
	dropped int64               // entries not counted because mostEntries was reached
}

// New starts with the stored usage of today. The caller must call Close.
func New(ctx context.Context, o Options) (*Meter, error) {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	m := &Meter{
		opts: o, wake: make(chan struct{}, 1), day: dayOf(time.Now()),
		entries: map[slot]*entry{}, totals: map[subject]*total{}, dirty: map[slot]*entry{}, changed: map[*Session]struct{}{},
		paces: map[subject]*pace{}, refused: map[Limited]int64{}, names: map[string]struct{}{},
	}
	stop, err := o.Store.Hear(m.hear)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the store
	}
	m.stop = stop
	if err := m.reread(ctx); err != nil {
		stop()
		return nil, err
	}
	running, end := context.WithCancel(context.Background())
	m.end = end
	m.loops.Go(func() { m.run(running) })
	m.loops.Go(func() { m.keep(running) })
	return m, nil
}

// Close writes the pending entries until ctx ends. It may be called more than once. Later usage is not written.
func (m *Meter) Close(ctx context.Context) error {
	m.end()
	m.loops.Wait()
	m.closing.Do(m.stop)
	return m.flush(ctx, time.Time{})
}

func dayOf(at time.Time) string { return at.UTC().Format(time.DateOnly) }

// turnDay resets the totals at midnight UTC. The caller must hold mu.
func (m *Meter) turnDay(now time.Time) {
	today := dayOf(now)
	if today == m.day {
		return
	}
	m.day = today
	for s, e := range m.entries {
		if s.day != "" && s.day != today && m.dirty[s] == nil && !e.writing {
			delete(m.entries, s)
		}
	}
	for of, t := range m.totals {
		t.micros, t.voiceMS = 0, 0
		m.affected(of, t)
		if t.empty() {
			delete(m.totals, of)
		}
	}
}

// entry returns a slot's entry; nil if mostEntries is reached. The caller must hold mu.
func (m *Meter) entry(s slot) *entry {
	e := m.entries[s]
	if e == nil {
		if len(m.entries) >= mostEntries {
			m.dropped++
			return nil
		}
		e = &entry{}
		m.entries[s] = e
	}
	return e
}

// add counts usage in this process. The caller must hold mu.
func (m *Meter) add(who Who, more cost.Sum, now time.Time) {
	m.turnDay(now)
	s := slot{node: m.opts.Node, day: m.day, user: who.User, key: who.Key}
	e := m.entry(s)
	if e == nil {
		return
	}
	if m.dirty[s] == nil && len(m.dirty) >= mostUnwritten {
		m.dropped++
		return
	}
	m.dirty[s] = e
	m.set(s, e, e.sum.Plus(more), e.running)
	m.tell(s, e)
}

// set updates an entry and the totals it belongs to. The caller must hold mu.
func (m *Meter) set(s slot, e *entry, sum cost.Sum, running int) {
	for of := range (Who{s.user, s.key}).subjects() {
		t := m.total(of)
		if s.day == m.day {
			t.micros += sum.Micros - e.sum.Micros
			t.voiceMS += sum.VoiceMS - e.sum.VoiceMS
		}
		t.running += running - e.running
		m.affected(of, t)
		if t.empty() {
			delete(m.totals, of)
		}
	}
	e.sum, e.running = sum, running
}

func (w Who) subjects() iter.Seq[subject] {
	return func(yield func(subject) bool) {
		if w.User != "" && !yield(subject{user, w.User}) {
			return
		}
		if w.Key != "" {
			yield(subject{key, w.Key})
		}
	}
}

func (m *Meter) total(of subject) *total {
	t := m.totals[of]
	if t == nil {
		t = &total{sessions: map[*Session]struct{}{}}
		m.totals[of] = t
	}
	return t
}

// affected marks a subject's sessions for notification if its state changed: it may have thousands. The caller must
// hold mu.
func (m *Meter) affected(of subject, t *total) {
	state := Fine
	if l, ok := m.limited(of); ok {
		state = l.state(t)
	}
	if state == t.state {
		return
	}
	t.state = state
	for s := range t.sessions {
		m.changed[s] = struct{}{}
	}
	m.poke()
}

// poke requests notify. The caller must hold mu.
func (m *Meter) poke() {
	if len(m.changed) == 0 {
		return
	}
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Turn counts a text turn and its usage. A nil Meter does nothing.
func (m *Meter) Turn(who Who, a cost.Amount, tokens cost.Usage) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(who, cost.Sum{Amount: a, Turns: 1, Tokens: tokens}, time.Now())
}

// Figures are the meter's own statistics.
type Figures struct {
	// Dropped is the usage lost because mostEntries was reached.
	Entries, Unwritten int
	Dropped            int64
	Refused            map[Limited]int64
}

// Figures returns the current statistics.
func (m *Meter) Figures() Figures {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Figures{Entries: len(m.entries), Unwritten: len(m.dirty), Dropped: m.dropped, Refused: maps.Clone(m.refused)}
}
