package meter

import (
	"time"

	"voicegw/internal/cost"
)

// State is how close a session's user or key is to a limit.
type State uint8

// The states, in order of severity.
const (
	Fine  State = iota
	Near        // 80 % of a limit is used
	Spent       // a limit is reached
)

const nearShare = 0.8

// Session is a counted voice session. Its methods may be used concurrently.
type Session struct {
	m   *Meter
	who Who

	// Guarded by Meter.mu.
	counted time.Time // its time is counted up to here
	over    bool
	state   State
	watch   func(State)
}

// Enter counts a new session, or returns the limit that refuses it. goesOn means it moved here: it is always admitted.
// The caller must call Leave. A nil Meter returns a nil Session.
func (m *Meter) Enter(who Who, goesOn bool) (*Session, *Refusal) {
	if m == nil {
		return nil, nil
	}
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !goesOn {
		if no := m.refuses(who, now, true); no != nil {
			return nil, no
		}
	}
	s := &Session{m: m, who: who, counted: now}
	more := cost.Sum{}
	if !goesOn {
		more.Sessions = 1
	}
	m.add(who, more, now)
	for l := range m.limitsOf(who) {
		m.total(l.of).sessions[s] = struct{}{}
	}
	m.runs(who, 1)
	return s, nil
}

// runs changes the number of running sessions. The caller must hold mu.
func (m *Meter) runs(who Who, by int) {
	s := slot{node: m.opts.Node, user: who.User, key: who.Key}
	if e := m.entry(s); e != nil {
		m.set(s, e, e.sum, max(e.running+by, 0))
		m.tell(s, e)
	}
}

// Watch calls f when the state changes, and now unless it is Fine, sequentially; f must not block.
func (s *Session) Watch(f func(State)) {
	if s == nil {
		return
	}
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.watch = f
	s.m.changed[s] = struct{}{}
	s.m.poke()
}

// Used counts usage that a model reported.
func (s *Session) Used(a cost.Amount, tokens cost.Usage) {
	s.count(cost.Sum{Amount: a, Tokens: tokens})
}

// Turn counts a finished turn.
func (s *Session) Turn() { s.count(cost.Sum{Turns: 1}) }

func (s *Session) count(more cost.Sum) {
	if s == nil {
		return
	}
	now := time.Now()
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	more.VoiceMS = s.elapsed(now)
	s.m.add(s.who, more, now)
}

// elapsed returns the uncounted time and marks it as counted. The caller must hold Meter.mu.
func (s *Session) elapsed(now time.Time) int64 {
	if s.over {
		return 0
	}
	ms := max(now.Sub(s.counted), 0).Milliseconds()
	s.counted = s.counted.Add(time.Duration(ms) * time.Millisecond)
	return ms
}

// Leave ends the session. It may be called more than once. Later usage still counts.
func (s *Session) Leave() {
	if s == nil {
		return
	}
	now := time.Now()
	m := s.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.over {
		return
	}
	m.add(s.who, cost.Sum{VoiceMS: s.elapsed(now)}, now)
	s.over = true
	delete(m.changed, s)
	m.runs(s.who, -1)
	for l := range m.limitsOf(s.who) {
		if t := m.totals[l.of]; t != nil {
			delete(t.sessions, s)
			if t.empty() {
				delete(m.totals, l.of)
			}
		}
	}
}

func (m *Meter) accrue(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.totals {
		for s := range t.sessions { // a session listed under both its user and its key adds 0 the second time
			if now.Sub(s.counted) >= accrueEvery {
				m.add(s.who, cost.Sum{VoiceMS: s.elapsed(now)}, now)
			}
		}
	}
}

// stateOf returns a session's state. The caller must hold mu.
func (m *Meter) stateOf(who Who) State {
	state := Fine
	for l := range m.limitsOf(who) {
		if t := m.totals[l.of]; t != nil {
			state = max(state, l.state(t))
		}
	}
	return state
}

func (l limited) state(t *total) State {
	state := Fine
	for _, c := range [...]struct{ used, most int64 }{{int64(t.micros), int64(l.costLimit())}, {t.voiceMS, l.timeLimit()}} {
		switch {
		case c.most <= 0:
		case c.used >= c.most:
			return Spent
		case float64(c.used) >= nearShare*float64(c.most):
			state = Near
		}
	}
	return state
}

func (m *Meter) notify() {
	type news struct {
		watch func(State)
		state State
	}
	var all []news
	m.mu.Lock()
	for s := range m.changed {
		delete(m.changed, s)
		if state := m.stateOf(s.who); s.watch != nil && !s.over && state != s.state {
			s.state = state
			all = append(all, news{s.watch, state})
		}
	}
	m.mu.Unlock()
	for _, n := range all {
		n.watch(n.state)
	}
}
