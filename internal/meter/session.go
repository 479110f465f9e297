package meter

import (
	"time"

	"voicegw/internal/cost"
)

// State is how much of what its user and key may use a session's user and key have used.
type State uint8

// The states.
const (
	Fine  State = iota
	Near        // 80 % of a limit is used
	Spent       // a limit is reached
)

// nearShare is the share of a limit at which a session is told that it comes near.
const nearShare = 0.8

// Session is a voice session that is counted. Its methods may be used concurrently.
type Session struct {
	// Fixed after Enter.
	m   *Meter
	who Who

	// Guarded by Meter.mu.
	counted time.Time // up to then, its time is counted
	over    bool
	state   State
	watch   func(State)
}

// Enter counts a voice session that begins, or returns which limit refuses it. A session that goes on
// here, after another process, is let in whatever the limits say; it counts as none that begins. Leave
// must be called. A nil Meter returns a nil Session, which counts nothing.
func (m *Meter) Enter(who Who, goesOn bool) (*Session, *Refusal) {
	if m == nil {
		return nil, nil
	}
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !goesOn {
		for _, no := range []func() *Refusal{
			func() *Refusal { return m.allows(who, now) },
			func() *Refusal { return m.room(who) },
			func() *Refusal { return m.begins(who, now) },
		} {
			if r := no(); r != nil {
				return nil, r
			}
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

// runs changes how many sessions run. The caller must hold mu.
func (m *Meter) runs(who Who, by int) {
	s := slot{node: m.opts.Node, user: who.User, key: who.Key}
	if e := m.entry(s); e != nil {
		m.set(s, e, e.sum, max(e.running+by, 0))
		m.tell(s, e)
	}
}

// Watch calls f, on a goroutine of the meter and one after another, when the session's state changes,
// and once now if it is not Fine. f must not wait.
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

// Used counts what a model has reported.
func (s *Session) Used(a cost.Amount, tokens cost.Usage) {
	s.count(cost.Sum{Amount: a, Tokens: tokens})
}

// Turn counts a turn that has ended.
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

// elapsed returns the time that is not counted yet, and counts it. The caller must hold Meter.mu.
func (s *Session) elapsed(now time.Time) int64 {
	if s.over {
		return 0
	}
	ms := max(now.Sub(s.counted), 0).Milliseconds()
	s.counted = s.counted.Add(time.Duration(ms) * time.Millisecond)
	return ms
}

// Leave counts the end of the session. It may be called more than once, and what is used later is
// still counted.
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

// accrue counts the time of sessions in which nothing else is counted.
func (m *Meter) accrue(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.totals {
		for s := range t.sessions { // twice, where a user and a key have it: nothing is left then
			if now.Sub(s.counted) >= accrueEvery {
				m.add(s.who, cost.Sum{VoiceMS: s.elapsed(now)}, now)
			}
		}
	}
}

// stateOf returns how much is used. The caller must hold mu.
func (m *Meter) stateOf(who Who) State {
	state := Fine
	for l := range m.limitsOf(who) {
		if t := m.totals[l.of]; t != nil {
			state = max(state, l.state(t))
		}
	}
	return state
}

// state returns how much of its limits the subject has used.
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

// notify tells the sessions whose state has changed.
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
