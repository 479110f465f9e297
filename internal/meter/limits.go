package meter

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"time"

	"golang.org/x/time/rate"

	"voicegw/internal/auth"
	"voicegw/internal/cost"
)

// The limits, by their names in refusals, headers and counters.
const (
	LimitUserSessions = "user-sessions"
	LimitUserRate     = "user-new-sessions"
	LimitUserCost     = "user-day-cost"
	LimitUserMinutes  = "user-day-minutes"
	LimitKeySessions  = "key-sessions"
	LimitKeyRate      = "key-new-sessions"
	LimitKeyCost      = "key-day-cost"
	LimitKeyMinutes   = "key-day-minutes"
)

// Limits returns the names of all limits.
func Limits() []string {
	return []string{LimitUserSessions, LimitUserRate, LimitUserCost, LimitUserMinutes, LimitKeySessions, LimitKeyRate, LimitKeyCost, LimitKeyMinutes}
}

// Limited names what refusals are counted by: a limit, and the name of the key or issuer whose
// credentials were shown, or NoKey.
type Limited struct{ Limit, Key string }

// NoKey stands for whoever has shown nothing that is configured under a name, and OtherKey for what is beyond
// the number of names that are counted.
const (
	NoKey    = "none"
	OtherKey = "other"
)

// mostNames bounds the names under which refusals are counted.
const mostNames = 30

// Refusal says which limit is reached.
type Refusal struct {
	// Limit is its name: one of the constants above.
	Limit string
	// Quota is how much the limit allows: sessions, micro-dollars or seconds.
	Quota int64
	// Window is the time that the quota is for; zero if it is for what runs at once.
	Window time.Duration
	// RetryIn is when it may be tried again: for a day's limit, when the day in UTC is over.
	RetryIn time.Duration
}

// Error describes the refusal.
func (r *Refusal) Error() string {
	return fmt.Sprintf("the limit %s is reached; again in %v", r.Limit, r.RetryIn.Round(time.Second))
}

// Day reports whether the refusal is about what is used up for the day.
func (r *Refusal) Day() bool { return r.Window == day }

// Reconfigure sets what each user may use, and asks Options.Key again what keys may: at once, also for
// sessions that run. They are not ended for being too many.
func (m *Meter) Reconfigure(user auth.Limits) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opts.User = user
	for of, t := range m.totals {
		m.affected(of, t)
	}
}

const day = 24 * time.Hour

// busyRetry is when a place may be free again: nobody knows.
const busyRetry = 5 * time.Second

// limited is a subject with its limits, and their names.
type limited struct {
	of                             subject
	limits                         auth.Limits
	sessions, pace, costs, minutes string
}

// limitsOf yields the subjects that are limited: the user, the key. It allocates nothing: it is asked for each session whenever
// something is counted.
func (m *Meter) limitsOf(who Who) iter.Seq[limited] {
	return func(yield func(limited) bool) {
		for of := range who.subjects() {
			if l, ok := m.limited(of); ok && !yield(l) {
				return
			}
		}
	}
}

// limited returns the limits of a subject; ok is false if it has none.
func (m *Meter) limited(of subject) (l limited, ok bool) {
	switch {
	case of.kind == user:
		return limited{of, m.opts.User, LimitUserSessions, LimitUserRate, LimitUserCost, LimitUserMinutes}, true
	case m.opts.Key != nil:
		return limited{of, m.opts.Key(of.id), LimitKeySessions, LimitKeyRate, LimitKeyCost, LimitKeyMinutes}, true
	}
	return limited{}, false
}

// costLimit returns the limit on a day's money; zero for none.
func (l limited) costLimit() cost.Micros { return micros(l.limits.CostPerDay) }

func micros(dollars float64) cost.Micros {
	return cost.Micros(min(math.Round(dollars*1e6), 1<<60))
}

// timeLimit returns the limit on a day's voice, in ms; zero for none.
func (l limited) timeLimit() int64 {
	return int64(min(math.Round(l.limits.MinutesPerDay*60_000), 1<<60))
}

// allows returns nil if the subject may use more today. The caller must hold mu.
func (m *Meter) allows(who Who, now time.Time) *Refusal {
	m.turnDay(now)
	over := now.UTC().Truncate(day).Add(day).Sub(now)
	for l := range m.limitsOf(who) {
		t := m.totals[l.of]
		if t == nil {
			continue
		}
		if most := l.costLimit(); most > 0 && t.micros >= most {
			return m.refuse(who, &Refusal{Limit: l.costs, Quota: int64(most), Window: day, RetryIn: over})
		}
		if most := l.timeLimit(); most > 0 && t.voiceMS >= most {
			return m.refuse(who, &Refusal{Limit: l.minutes, Quota: most / 1000, Window: day, RetryIn: over})
		}
	}
	return nil
}

// room returns nil if the subject may have one more session now. The caller must hold mu.
func (m *Meter) room(who Who) *Refusal {
	for l := range m.limitsOf(who) {
		if t := m.totals[l.of]; t != nil && l.limits.Sessions > 0 && t.running >= l.limits.Sessions {
			return m.refuse(who, &Refusal{Limit: l.sessions, Quota: int64(l.limits.Sessions), RetryIn: busyRetry})
		}
	}
	return nil
}

// begins counts a session that begins, or returns why it may not yet. The caller must hold mu.
func (m *Meter) begins(who Who, now time.Time) *Refusal {
	var taken []*rate.Reservation
	for l := range m.limitsOf(who) {
		if l.limits.NewPerSecond <= 0 {
			continue
		}
		r := m.pace(l, now).ReserveN(now, 1)
		taken = append(taken, r)
		if wait := r.DelayFrom(now); wait > 0 {
			for _, t := range taken {
				t.CancelAt(now)
			}
			return m.refuse(who, &Refusal{Limit: l.pace, Quota: burst(l.limits.NewPerSecond), Window: time.Second, RetryIn: wait})
		}
	}
	return nil
}

// Door returns nil if a client of that user and key may connect, as with a nil Meter, or which limit refuses every session
// that it could begin. It is for a client that has not said yet what it wants. returns says that it may
// want to go on with a session: then a user who has one is not refused. Nothing is counted as begun.
func (m *Meter) Door(who Who, returns bool) *Refusal {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for l := range m.limitsOf(who) {
		if t := m.totals[l.of]; returns && t != nil && t.running > 0 {
			return nil
		}
	}
	now := time.Now()
	if no := m.allows(who, now); no != nil {
		return no
	}
	if no := m.room(who); no != nil {
		return no
	}
	return m.tooFast(who, now)
}

// tooFast returns which limit on the pace would refuse a session that began now. The caller must hold mu.
func (m *Meter) tooFast(who Who, now time.Time) *Refusal {
	for l := range m.limitsOf(who) {
		if l.limits.NewPerSecond <= 0 {
			continue
		}
		if missing := 1 - m.pace(l, now).TokensAt(now); missing > 0 {
			wait := time.Duration(missing / l.limits.NewPerSecond * float64(time.Second))
			return m.refuse(who, &Refusal{Limit: l.pace, Quota: burst(l.limits.NewPerSecond), Window: time.Second, RetryIn: wait})
		}
	}
	return nil
}

// pace is how fast a subject begins sessions.
type pace struct {
	limiter *rate.Limiter
	used    time.Time
}

// mostPaces bounds how many subjects' paces are remembered. Forgetting one gives it its whole
// allowance back.
const mostPaces = 8192

// burst returns how many sessions may begin at once.
func burst(perSecond float64) int64 { return max(int64(math.Ceil(perSecond)), 1) }

// pace returns what limits the pace of a subject. The caller must hold mu.
func (m *Meter) pace(l limited, now time.Time) *rate.Limiter {
	p := m.paces[l.of]
	if p == nil || p.limiter.Limit() != rate.Limit(l.limits.NewPerSecond) {
		if len(m.paces) >= mostPaces {
			maps.DeleteFunc(m.paces, func(_ subject, old *pace) bool { return now.Sub(old.used) > time.Minute })
		}
		if len(m.paces) >= mostPaces {
			clear(m.paces)
		}
		p = &pace{limiter: rate.NewLimiter(rate.Limit(l.limits.NewPerSecond), int(burst(l.limits.NewPerSecond)))}
		m.paces[l.of] = p
	}
	p.used = now
	return p.limiter
}

// refuse counts a refusal. The caller must hold mu.
func (m *Meter) refuse(who Who, r *Refusal) *Refusal {
	name := NoKey
	if m.opts.Name != nil && who.Key != "" {
		name = cmp.Or(m.opts.Name(who.Key), NoKey)
	}
	if _, known := m.names[name]; !known {
		if len(m.names) >= mostNames {
			name = OtherKey
		}
		m.names[name] = struct{}{}
	}
	m.refused[Limited{r.Limit, name}]++
	return r
}

// Allows returns nil if the user and the key may use more, as with a nil Meter, or which limit of the day is reached: for a turn by text,
// and before a session is offered.
func (m *Meter) Allows(who Who) *Refusal {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.allows(who, time.Now())
}
