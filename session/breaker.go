package session

import (
	"sync"
	"time"
)

const (
	// breakerFailures is the number of sessions in a row that must fail to reach a provider before others are refused.
	// Each has tried several times.
	breakerFailures = 3
	// breakerRest is how long others are refused; then one session tries again.
	breakerRest = 10 * time.Second
)

// breaker refuses new sessions for a provider that cannot be reached. It may be used concurrently. The zero value
// refuses none.
type breaker struct {
	mu     sync.Mutex // guards the following fields
	failed int        // failures since the last success
	until  time.Time  // all are refused before
}

func (b *breaker) open(now time.Time) (left time.Duration, open bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	left = b.until.Sub(now)
	return left, b.failed >= breakerFailures && left > 0
}

// allows reports whether the caller may try to reach the provider, and must then report the outcome. After a rest, one
// caller at a time may.
func (b *breaker) allows(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.failed < breakerFailures:
		return true
	case now.Before(b.until):
		return false
	}
	b.until = now.Add(breakerRest)
	return true
}

func (b *breaker) report(reached bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if reached {
		b.failed, b.until = 0, time.Time{}
		return
	}
	b.failed++
	b.until = now.Add(breakerRest)
}

// breakers has a breaker for each provider.
type breakers map[string]*breaker

// reachable reports whether new sessions may try any provider; otherwise, when the first may be tried.
func (bs breakers) reachable() (in time.Duration, ok bool) {
	now := time.Now()
	for _, b := range bs {
		left, open := b.open(now)
		if !open {
			return 0, true
		}
		if in == 0 || left < in {
			in = left
		}
	}
	return in, len(bs) == 0
}

// instead returns the provider for a new session: the fallback if provider cannot be reached and the client has not
// requested it.
func (bs breakers) instead(provider, fallback string, asked bool) string {
	if _, open := bs[provider].open(time.Now()); open && !asked && fallback != "" {
		return fallback
	}
	return provider
}
