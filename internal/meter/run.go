package meter

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"voicegw/internal/cost"
	"voicegw/store"
)

// Filter selects usage records.
type Filter struct {
	// An empty User or Key matches all.
	User, Key string
	// First and Last are UTC days, inclusive.
	First, Last time.Time
}

// Day is the usage of one day.
type Day struct {
	Date string `json:"date"`
	cost.Sum
}

// Report returns the usage by day, oldest first, without empty days; others' last 5 s may be missing.
func (m *Meter) Report(ctx context.Context, f Filter) (days []Day, unreadable int, err error) {
	all := map[slot]cost.Sum{}
	unreadable, err = m.opts.Store.Days(ctx, f.First, f.Last, func(r store.UsageRecord) {
		if f.wants(r.User, r.Key) {
			all[slot{node: r.Writer, day: r.Day, user: r.User, key: r.Key}] = r.Sum
		}
	})
	if err != nil {
		return nil, 0, err //nolint:wrapcheck // it names the store
	}
	first, last := dayOf(f.First), dayOf(f.Last)
	m.mu.Lock()
	for s, e := range m.dirty {
		if s.day >= first && s.day <= last && f.wants(s.user, s.key) {
			all[s] = e.sum
		}
	}
	m.mu.Unlock()
	sums := map[string]cost.Sum{}
	for s, sum := range all {
		sums[s.day] = sums[s.day].Plus(sum)
	}
	for _, date := range slices.Sorted(maps.Keys(sums)) {
		days = append(days, Day{Date: date, Sum: sums[date]})
	}
	return days, unreadable, nil
}

func (f Filter) wants(user, key string) bool {
	return (f.User == "" || f.User == user) && (f.Key == "" || f.Key == key)
}

func (m *Meter) run(ctx context.Context) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	told := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		case now := <-ticker.C:
			m.accrue(now)
			if now.Sub(told) >= tellEvery {
				told = now
				m.tellRunning(now)
			}
		}
		m.notify()
	}
}

func (m *Meter) keep(ctx context.Context) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	read := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			err := m.flush(ctx, now)
			if err == nil && now.Sub(read) >= rereadEvery {
				read = now
				err = m.reread(ctx)
			}
			m.warn(err)
		}
	}
}

// warn logs a store failure once until it recovers.
func (m *Meter) warn(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	m.mu.Lock()
	was := m.failing
	m.failing = err != nil
	waits := len(m.dirty)
	m.mu.Unlock()
	switch {
	case err != nil && !was:
		m.opts.Logger.Warn("cannot store usage, will retry", "error", err, "entries", waits)
	case err == nil && was:
		m.opts.Logger.Info("usage is stored again")
	}
}

func (m *Meter) due(now time.Time) []slot {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []slot
	for s, e := range m.dirty {
		if !e.writing && (now.IsZero() || !e.next.After(now)) {
			e.writing = true
			all = append(all, s)
		}
	}
	return all
}

// flush writes the due entries until the first error: each would wait for the unavailable store.
func (m *Meter) flush(ctx context.Context, now time.Time) error {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(writers)
	for _, s := range m.due(now) {
		all.Go(func() error { return m.write(ctx, s) })
	}
	return all.Wait() //nolint:wrapcheck // it names the store
}

func (m *Meter) write(ctx context.Context, s slot) error {
	m.mu.Lock()
	e := m.dirty[s]
	sum, known := e.sum, e.revision
	m.mu.Unlock()
	revision, err := known, ctx.Err() // of an earlier write
	if err == nil {
		revision, err = m.opts.Store.Save(ctx, store.UsageRecord{Day: s.day, Writer: s.node, User: s.user, Key: s.key, Sum: sum}, known)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e.writing, e.next = false, time.Now().Add(writeEvery)
	if err != nil {
		return err //nolint:wrapcheck // it names the store
	}
	e.revision = revision
	if e.sum == sum {
		delete(m.dirty, s)
		if s.day != m.day {
			delete(m.entries, s)
		}
	}
	return nil
}

func (m *Meter) reread(ctx context.Context) error {
	var found []store.UsageRecord
	now := time.Now()
	unreadable, err := m.opts.Store.Days(ctx, now, now, func(r store.UsageRecord) {
		if len(found) < mostEntries {
			found = append(found, r)
		}
	})
	if err != nil {
		return err //nolint:wrapcheck // it names the store
	}
	if unreadable > 0 {
		m.opts.Logger.Warn("ignoring unreadable usage records", "records", unreadable)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range found {
		m.learn(message{Node: r.Writer, Day: r.Day, User: r.User, Key: r.Key, Sum: r.Sum}, now)
	}
	return nil
}

// message is a broadcast: a day's entry or, without a day, a number of running sessions.
type message struct {
	Node    string   `json:"node"`
	Day     string   `json:"day,omitempty"`
	User    string   `json:"user,omitempty"`
	Key     string   `json:"key,omitempty"`
	Sum     cost.Sum `json:"sum,omitzero"`
	Running int      `json:"running,omitempty"`
}

const mostMessage = 4 << 10

// tell broadcasts an entry. A failure is harmless: the store has the entry within seconds. The caller must hold mu.
func (m *Meter) tell(s slot, e *entry) {
	data, err := json.Marshal(message{Node: s.node, Day: s.day, User: s.user, Key: s.key, Sum: e.sum, Running: e.running})
	if err == nil {
		err = m.opts.Store.Tell(data)
	}
	if err != nil {
		m.opts.Logger.Debug("cannot broadcast usage", "error", err)
	}
}

// tellRunning broadcasts running sessions, and drops those of processes silent for runningLife.
func (m *Meter) tellRunning(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for s, e := range m.entries {
		switch {
		case s.day != "":
		case s.node == m.opts.Node && e.running > 0:
			m.tell(s, e)
		case s.node == m.opts.Node:
			delete(m.entries, s)
		case now.Sub(e.heard) >= runningLife:
			m.set(s, e, e.sum, 0)
			delete(m.entries, s)
		}
	}
}

// hear handles a broadcast from another process. It is untrusted input.
func (m *Meter) hear(data []byte) {
	if len(data) > mostMessage {
		return
	}
	var is message
	if json.Unmarshal(data, &is) != nil || is.Node == "" || is.Node == m.opts.Node ||
		is.Running < 0 || is.Sum.Micros < 0 || is.Sum.VoiceMS < 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.learn(is, time.Now())
}

// learn merges an entry of another process if it is larger. The caller must hold mu.
func (m *Meter) learn(is message, now time.Time) {
	m.turnDay(now)
	if is.Node == m.opts.Node || is.Day != "" && is.Day != m.day {
		return
	}
	s := slot{node: is.Node, day: is.Day, user: is.User, key: is.Key}
	e := m.entry(s)
	if e == nil {
		return
	}
	e.heard = now
	if is.Day == "" {
		m.set(s, e, e.sum, is.Running)
		return
	}
	sum := e.sum
	sum.Micros, sum.VoiceMS = max(sum.Micros, is.Sum.Micros), max(sum.VoiceMS, is.Sum.VoiceMS)
	m.set(s, e, sum, 0)
}
