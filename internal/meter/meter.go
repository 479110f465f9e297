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
	// writeEvery is how often an entry is written at most.
	writeEvery = 5 * time.Second
	// accrueEvery is how often the time of a running session is counted although nothing happens.
	accrueEvery = 15 * time.Second
	// beat is how often the meter looks what is due.
	beat = time.Second
	// tellEvery is how often the running sessions are told again, and runningLife how long others
	// believe that: a process that is killed gives its sessions' places back after that.
	tellEvery   = 5 * time.Second
	runningLife = 3 * tellEvery
	// rereadEvery is how often the day is read again from the store, for what was told and not heard.
	rereadEvery = time.Minute
	// mostEntries bounds how many entries are known. What is beyond counts for no limit, and what this process itself
	// cannot count is not stored.
	mostEntries = 100_000
	// mostUnwritten bounds how many entries wait to be written.
	mostUnwritten = 50_000
	// writers is how many entries are written at the same time.
	writers = 4
)

// Store keeps the entries; *store.Usage implements it.
type Store interface {
	Save(ctx context.Context, r store.UsageRecord, known uint64) (uint64, error)
	Days(ctx context.Context, first, last time.Time, f func(store.UsageRecord)) (unreadable int, err error)
	Tell(data []byte) error
	Hear(f func(data []byte)) (stop func(), err error)
}

// Options configure a Meter. Store is required.
type Options struct {
	Store Store
	// Node is this process among all that share the store: drawn at random for each.
	Node string
	// User is what each user may use, and Key what a key may use, by its ID. Key is called with a lock
	// held and must not wait; nil means that no key is limited.
	User auth.Limits
	Key  func(id string) auth.Limits
	// Name returns the name of the key or issuer of a key's ID, of which there are only as many as are
	// configured; empty for none. It is called as Key is. Nil knows no names.
	Name func(id string) string
	// Logger gets what cannot be written. Nil means no logging.
	Logger *slog.Logger
}

// Who names the user and the key to which usage is charged.
type Who struct {
	// User is a user's identity, Key the ID of the principal whose credentials were shown. Either may
	// be empty.
	User, Key string
}

// slot names an entry of a process.
type slot struct{ node, day, user, key string }

// entry is what a process has counted.
type entry struct {
	sum     cost.Sum
	running int       // voice sessions that run now; for a slot without a day
	heard   time.Time // when the process last told it; for running ones of other processes

	// The following are for this process's own entries.
	revision uint64    // of the record in the store
	next     time.Time // not written again before
	writing  bool
}

// kind says whether a subject is a user or a key.
type kind uint8

const (
	user kind = iota
	key
)

// subject is what is limited: a user or a key.
type subject struct {
	kind kind
	id   string
}

// total is what a subject has used today, over all processes, and what runs now.
type total struct {
	micros  cost.Micros
	voiceMS int64
	running int
	state   State // of the limits of this subject
	// sessions run in this process.
	sessions map[*Session]struct{}
}

func (t *total) empty() bool {
	return t.micros == 0 && t.voiceMS == 0 && t.running == 0 && len(t.sessions) == 0
}

// Meter counts. Its methods may be used concurrently, and none but Close, Report and New waits for
// the store.
type Meter struct {
	// Fixed after New, but for opts.User, which mu guards.
	opts  Options
	stop  func() // hears no more
	end   context.CancelFunc
	wake  chan struct{} // holds a note that sessions are to be told; never closed
	loops sync.WaitGroup

	closing sync.Once

	mu      sync.Mutex // guards the following fields
	day     string
	entries map[slot]*entry
	totals  map[subject]*total
	dirty   map[slot]*entry       // own entries that are not written
	changed map[*Session]struct{} // sessions whose allowance may have changed
	paces   map[subject]*pace     // how fast users and keys begin
	failing bool                  // the last write failed, which was logged
	refused map[Limited]int64     // refusals so far
	names   map[string]struct{}   // of Limited.Key; bounded by mostNames
	dropped int64                 // entries that were not counted, because there was no room
}

// New begins to count, with what the store knows of today. Close must be called.
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

// Close writes what is not written yet, until ctx is done. It may be called more than once. What is
// counted later is not written.
func (m *Meter) Close(ctx context.Context) error {
	m.end()
	m.loops.Wait()
	m.closing.Do(m.stop)
	return m.flush(ctx, time.Time{})
}

func dayOf(at time.Time) string { return at.UTC().Format(time.DateOnly) }

// turnDay begins a new day if there is one. The caller must hold mu.
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

// entry returns the entry of a slot; nil if there is no room for a new one. The caller must hold mu.
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

// add counts something of this process. The caller must hold mu.
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

// set changes an entry, and the totals that it counts for. The caller must hold mu.
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

// subjects yields the users and keys that are counted.
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

// affected notes that the sessions of a subject must be told, if its state has changed: a subject may
// have thousands of sessions, and each of them counts something. The caller must hold mu.
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

// poke has run tell the sessions that have changed. The caller must hold mu.
func (m *Meter) poke() {
	if len(m.changed) == 0 {
		return
	}
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Turn counts a turn by text, and what it has used. A nil Meter counts nothing.
func (m *Meter) Turn(who Who, a cost.Amount, tokens cost.Usage) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(who, cost.Sum{Amount: a, Turns: 1, Tokens: tokens}, time.Now())
}

// Figures are for an operator.
type Figures struct {
	// Entries is how many entries are known, Unwritten how many of them wait to be written, and
	// Dropped how often something was not counted because there was no room.
	Entries, Unwritten int
	Dropped            int64
	// Refused is how often each limit has refused somebody.
	Refused map[Limited]int64
}

// Figures returns what an operator may want to see.
func (m *Meter) Figures() Figures {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := Figures{Entries: len(m.entries), Unwritten: len(m.dirty), Dropped: m.dropped, Refused: maps.Clone(m.refused)}
	return f
}
