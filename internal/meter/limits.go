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
	Limit string
	// Quota is the limit's value: sessions, micro-dollars or seconds.
	Quota  int64
	Window time.Duration
	// RetryIn is the wait before another attempt: for a daily limit, until midnight UTC.
	RetryIn time.Duration
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("limit %s reached; retry in %v", r.Limit, r.RetryIn.Round(time.Second))
}

// Day reports whether a daily limit is exhausted.
func (r *Refusal) Day() bool { return r.Window == day }

// Reconfigure sets the limits of users and reads those of keys again. It ends no session.
func (m *Meter) Reconfigure(user auth.Limits) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opts.User = user
	for of, t := range m.totals {
		m.affected(of, t)
	}
}

const day = 24 * time.Hour

const busyRetry = 5 * time.Second

type limited struct {
	of                             subject
	limits                         auth.Limits
	sessions, pace, costs, minutes string
}

// limitsOf yields the limited subjects of who. It must not allocate: it runs for each session on every count.
func (m *Meter) limitsOf(who Who) iter.Seq[limited] {
	return func(yield func(limited) bool) {
		for of := range who.subjects() {
			if l, ok := m.limited(of); ok && !yield(l) {
				return
			}
		}
	}
}

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

// Refuses returns the limit that would refuse a connecting client; it counts nothing. With returns, a user with a running
// session may resume. A nil Meter allows all.
func (m *Meter) Refuses(who Who, returns bool) *Refusal {
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
	return m.refuses(who, time.Now(), false)
}

// refuses returns the limit that refuses a session now; begins counts an admitted one. The caller must hold mu.
func (m *Meter) refuses(who Who, now time.Time, begins bool) *Refusal {
	if no := m.allows(who, now); no != nil {
		return no
	}
	if no := m.room(who); no != nil {
		return no
	}
	for l := range m.limitsOf(who) {
		if l.limits.NewPerSecond <= 0 {
			continue
		}
		missing := 1 - m.pace(l, now).TokensAt(now)
		if wait := time.Duration(missing / l.limits.NewPerSecond * float64(time.Second)); wait > 0 {
			return m.refuse(who, &Refusal{Limit: l.pace, Quota: burst(l.limits.NewPerSecond), Window: time.Second, RetryIn: wait})
		}
	}
	for l := range m.limitsOf(who) {
		if begins && l.limits.NewPerSecond > 0 {
			m.pace(l, now).AllowN(now, 1)
		}
	}
	return nil
}

type pace struct {
	limiter *rate.Limiter
	used    time.Time
}

// mostPaces bounds the remembered rate limiters. A forgotten subject starts with a full allowance.
const mostPaces = 8192

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

// Allows returns the exhausted daily limit of the user or the key, for text turns and offers. A nil Meter allows all.
func (m *Meter) Allows(who Who) *Refusal {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.allows(who, time.Now())
}
