// Package quota bounds how many things each key may have at once and begin within a time:
// sessions, messages, connections of an address or a user. Its own memory is bounded too.
package quota

import (
	"cmp"
	"container/list"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Options are the limits of each key. A zero field does not limit.
type Options struct {
	// AtOnce is how many one key may hold at once.
	AtOnce int
	// PerSecond is how many one key may begin in a second on average, Burst how many together.
	// A zero Burst means PerSecond.
	PerSecond, Burst int
}

// remembered is how many keys that hold nothing are remembered for their rate. The keys that
// were used longest ago are forgotten first, which gives them their whole allowance back.
const remembered = 8192

// Quota counts for each key. It may be used concurrently.
//
// Keys that hold something are always remembered: the caller of Take bounds their number by a
// limit for all keys together.
type Quota[K comparable] struct {
	mu   sync.Mutex // guards the following fields
	opts Options
	keys map[K]*entry[K]
	idle list.List // of *entry[K]: those that hold nothing, the one used longest ago first
}

type entry[K comparable] struct {
	key   K
	taken int
	begun *rate.Limiter
	idle  *list.Element // nil while it holds something
}

// New returns a Quota.
func New[K comparable](opts Options) *Quota[K] {
	return &Quota[K]{opts: opts, keys: make(map[K]*entry[K])}
}

// Limit sets other limits. What is held beyond them stays, and how fast each key has begun counts on.
func (q *Quota[K]) Limit(opts Options) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.opts = opts
	for _, e := range q.keys {
		e.begun.SetLimit(rate.Limit(opts.PerSecond))
		e.begun.SetBurst(opts.burst())
	}
}

func (o Options) burst() int { return cmp.Or(o.Burst, o.PerSecond) }

// Begin counts one beginning of the key. It returns 0 if the key may begin now. Otherwise it
// returns how long until it may, and counts nothing.
func (q *Quota[K]) Begin(key K) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.opts.PerSecond == 0 {
		return 0
	}
	e := q.entry(key)
	if e.idle != nil {
		q.idle.MoveToBack(e.idle)
	}
	return e.begin(true)
}

// Wait returns what Begin would, and counts nothing.
func (q *Quota[K]) Wait(key K) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.keys[key]
	if e == nil || q.opts.PerSecond == 0 {
		return 0
	}
	return e.begin(false)
}

// begin returns how long until the key may begin. If that is 0 and it counts, it has begun.
func (e *entry[K]) begin(counts bool) time.Duration {
	now := time.Now()
	r := e.begun.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 || !counts {
		r.CancelAt(now)
	}
	return wait
}

// Room says whether Take would succeed now.
func (q *Quota[K]) Room(key K) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.keys[key]
	return e == nil || q.opts.AtOnce == 0 || e.taken < q.opts.AtOnce
}

// Take takes one for the key, unless it holds as many as it may. After a success the caller must
// call Give once.
func (q *Quota[K]) Take(key K) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entry(key)
	if q.opts.AtOnce > 0 && e.taken >= q.opts.AtOnce {
		return false
	}
	if e.taken++; e.idle != nil {
		q.idle.Remove(e.idle)
		e.idle = nil
	}
	return true
}

// Give gives back what Take has taken for the key.
func (q *Quota[K]) Give(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.keys[key]
	if e.taken--; e.taken == 0 {
		e.idle = q.idle.PushBack(e)
		q.forget()
	}
}

// entry returns the key's entry, and creates a missing one. mu is held.
func (q *Quota[K]) entry(key K) *entry[K] {
	e := q.keys[key]
	if e == nil {
		e = &entry[K]{key: key, begun: rate.NewLimiter(rate.Limit(q.opts.PerSecond), q.opts.burst())}
		q.keys[key] = e
		e.idle = q.idle.PushBack(e)
		q.forget()
	}
	return e
}

// forget bounds the number of remembered keys. mu is held.
func (q *Quota[K]) forget() {
	for q.idle.Len() > remembered {
		e := q.idle.Remove(q.idle.Front()).(*entry[K])
		delete(q.keys, e.key)
	}
}

// AddressKey is the part of an address that is counted: a whole IPv4 address, and the first 64
// bits of an IPv6 one, because one customer has at least that many addresses (RFC 6177,
// section 2).
func AddressKey(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if !addr.Is6() || addr.IsLoopback() {
		return addr
	}
	p, err := addr.Prefix(64)
	if err != nil {
		return addr // it has 128 bits, so there is no error
	}
	return p.Addr()
}
