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

// The limits' names in refusals, headers and counters.
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
	return []string{LimitUserSessions, LimitUserRate, LimitUserCost, LimitUserMinutes,
		LimitKeySessions, LimitKeyRate, LimitKeyCost, LimitKeyMinutes}
}

// Limited is the key of a refusal counter: a limit, and the name of the client's key or issuer, or NoKey.
type Limited struct{ Limit, Key string }

// NoKey counts clients without a configured credential, and OtherKey names beyond mostNames.
const (
	NoKey    = "none"
	OtherKey = "other"
)

// mostNames bounds the names in refusal counters.
const mostNames = 30

// Refusal reports a reached limit.
type Refusal struct {
	// Limit is one of the constants above.
	Limit string
	// Quota is the limit's value: sessions, micro-dollars or seconds.
	Quota int64
	// Window is the quota's period; zero for a limit on concurrent sessions.
	Window time.Duration
	// RetryIn is the wait before another attempt: for a daily limit, until midnight UTC.
	RetryIn time.Duration
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("limit %s reached; retry in %v", r.Limit, r.RetryIn.Round(time.Second))
}

// Day reports whether a daily limit is exhausted.
func (r *Refusal) Day() bool { return r.Window == day }

// Reconfigure sets the limits of each user and reads those of keys again from Options.Key. It also affects running
// sessions, but ends none because there are too many.
func (m *Meter) Reconfigure(user auth.Limits) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opts.User = user
	for of, t := range m.totals {
		m.affected(of, t)
	}
}

const day = 24 * time.Hour

// busyRetry is the suggested wait for a free session slot.
const busyRetry = 5 * time.Second

// limited is a subject with its limits and their names.
type limited struct {
	of                             subject
	limits                         auth.Limits
	sessions, pace, costs, minutes string
}

// limitsOf yields the limited subjects among the user and the key. It must not allocate: it runs for each session on
// every count.
func (m *Meter) limitsOf(who Who) iter.Seq[limited] {
	return func(yield func(limited) bool) {
		for of := range who.subjects() {
			if l, ok := m.limited(of); ok && !yield(l) {
				return
			}
		}
	}
}

// limited returns a subject's limits; ok is false if it has none.
func (m *Meter) limited(of subject) (l limited, ok bool) {
	switch {
	case of.kind == user:
		return limited{of, m.opts.User, LimitUserSessions, LimitUserRate, LimitUserCost, LimitUserMinutes}, true
	case m.opts.Key != nil:
		return limited{of, m.opts.Key(of.id), LimitKeySessions, LimitKeyRate, LimitKeyCost, LimitKeyMinutes}, true
	}
	return limited{}, false
}

// costLimit returns the daily cost limit; zero means none.
func (l limited) costLimit() cost.Micros { return micros(l.limits.CostPerDay) }

func micros(dollars float64) cost.Micros {
	return cost.Micros(min(math.Round(dollars*1e6), 1<<60))
}

// timeLimit returns the daily voice limit in ms; zero means none.
func (l limited) timeLimit() int64 {
	return int64(min(math.Round(l.limits.MinutesPerDay*60_000), 1<<60))
}

// allows returns nil if a daily limit isn't exhausted. The caller must hold mu.
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

// room returns nil if the subject may have another session now. The caller must hold mu.
func (m *Meter) room(who Who) *Refusal {
	for l := range m.limitsOf(who) {
		if t := m.totals[l.of]; t != nil && l.limits.Sessions > 0 && t.running >= l.limits.Sessions {
			return m.refuse(who, &Refusal{Limit: l.sessions, Quota: int64(l.limits.Sessions), RetryIn: busyRetry})
		}
	}
	return nil
}

// begins counts a new session, or returns the reached limit. The caller must hold mu.
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

// Door checks a connecting client before it has sent session.start: it returns nil, or the limit that would refuse any
// session. With returns, the client may want to resume, so a user with a running session is not refused. It counts no
// session. A nil Meter allows all.
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

// tooFast returns the rate limit that would refuse a session now. The caller must hold mu.
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

// pace is the rate limiter of a subject's new sessions.
type pace struct {
	limiter *rate.Limiter
	used    time.Time
}

// mostPaces bounds the remembered rate limiters. A forgotten subject starts with a full allowance.
const mostPaces = 8192

// burst returns the number of sessions that may start at once.
func burst(perSecond float64) int64 { return max(int64(math.Ceil(perSecond)), 1) }

// pace returns a subject's rate limiter. The caller must hold mu.
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

// Allows returns nil, or the daily limit that the user or the key has exhausted. It is called for text turns and before
// a session is offered. A nil Meter allows all.
func (m *Meter) Allows(who Who) *Refusal {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.allows(who, time.Now())
}
