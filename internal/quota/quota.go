// Package quota bounds each key's concurrent uses and rate, and detects overload. Its own memory is bounded too.
package quota

import (
	"cmp"
	"container/list"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Options are the limits of each key. A zero field means no limit.
type Options struct {
	AtOnce int
	// PerSecond is a key's average rate, Burst its burst. A zero Burst means PerSecond.
	PerSecond, Burst int
}

// remembered bounds the idle keys. The least recently used are forgotten, and start with a full allowance.
const remembered = 8192

// Quota counts uses by key; safe for concurrent use. Keys in use are always remembered: callers of Take bound their
// number.
type Quota[K comparable] struct {
	mu   sync.Mutex // guards the following fields
	opts Options
	keys map[K]*entry[K]
	idle list.List // of idle *entry[K], least recently used first
}

type entry[K comparable] struct {
	key   K
	taken int
	begun *rate.Limiter
	idle  *list.Element // nil while in use
}

// New returns a Quota.
func New[K comparable](opts Options) *Quota[K] {
	return &Quota[K]{opts: opts, keys: make(map[K]*entry[K])}
}

// Limit sets other limits. Uses beyond them stay, and rates continue.
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

// Begin counts an event of the key. It returns 0, or the time to wait without counting.
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

// Wait returns Begin's result without counting.
func (q *Quota[K]) Wait(key K) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.keys[key]
	if e == nil || q.opts.PerSecond == 0 {
		return 0
	}
	return e.begin(false)
}

func (e *entry[K]) begin(counts bool) time.Duration {
	now := time.Now()
	r := e.begun.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 || !counts {
		r.CancelAt(now)
	}
	return wait
}

// Room reports whether Take would succeed now.
func (q *Quota[K]) Room(key K) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.keys[key]
	return e == nil || q.opts.AtOnce == 0 || e.taken < q.opts.AtOnce
}

// Take takes a slot for the key, if one is free. After a success the caller must call Give once.
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

// Give returns a slot.
func (q *Quota[K]) Give(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.keys[key]
	if e.taken--; e.taken == 0 {
		e.idle = q.idle.PushBack(e)
		q.forget()
	}
}

// entry returns the key's entry, creating it if missing. mu is held.
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

// forget bounds the remembered keys. mu is held.
func (q *Quota[K]) forget() {
	for q.idle.Len() > remembered {
		e := q.idle.Remove(q.idle.Front()).(*entry[K])
		delete(q.keys, e.key)
	}
}

// AddressKey is a whole IPv4 address, or the first 64 bits of an IPv6 one: one customer has at least that many (RFC
// 6177, 2).
func AddressKey(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if !addr.Is6() || addr.IsLoopback() {
		return addr
	}
	p, err := addr.Prefix(64)
	if err != nil {
		return addr // cannot fail: it has 128 bits
	}
	return p.Addr()
}

// Room holds members that are not yet admitted. If it is full, a newcomer evicts the oldest member of the key with the
// most. It has no lock.
type Room[K comparable] struct {
	most, perKey int

	all   list.List // of *Member[K] in order of entry
	byKey map[K]int
}

// Member may be in a Room.
type Member[K comparable] struct {
	// Key is what to count by; Exempt members don't count towards their key's limit.
	Key    K
	Exempt bool
	// Evict is called by Enter's caller, not by the Room.
	Evict func()

	inside *list.Element // nil when not in the Room
}

// NewRoom returns a Room for at most most members, perKey of each key; both at least 1.
func NewRoom[K comparable](most, perKey int) *Room[K] {
	return &Room[K]{most: most, perKey: perKey, byKey: make(map[K]int)}
}

// Limit sets other limits. Members beyond them stay until newcomers evict them.
func (r *Room[K]) Limit(most, perKey int) { r.most, r.perKey = most, perKey }

// Enter admits g and returns the member it evicted, or nil; the caller calls its Evict.
func (r *Room[K]) Enter(g *Member[K]) (out *Member[K]) {
	switch {
	case !g.Exempt && r.byKey[g.Key] >= r.perKey:
		out = r.oldest(func(other *Member[K]) bool { return other.Key == g.Key })
	case r.all.Len() >= r.most:
		greediest := 0
		for _, n := range r.byKey {
			greediest = max(greediest, n)
		}
		out = r.oldest(func(other *Member[K]) bool { return r.byKey[other.Key] == greediest })
	}
	if out != nil {
		r.Leave(out)
	}
	g.inside = r.all.PushBack(g)
	r.byKey[g.Key]++
	return out
}

// Leave removes g, if it is in the Room.
func (r *Room[K]) Leave(g *Member[K]) {
	if g.inside == nil {
		return
	}
	r.all.Remove(g.inside)
	g.inside = nil
	if r.byKey[g.Key]--; r.byKey[g.Key] == 0 {
		delete(r.byKey, g.Key)
	}
}

// Len returns the number of members.
func (r *Room[K]) Len() int { return r.all.Len() }

func (r *Room[K]) oldest(meant func(*Member[K]) bool) *Member[K] {
	for e := r.all.Front(); e != nil; e = e.Next() {
		if g := e.Value.(*Member[K]); meant(g) {
			return g
		}
	}
	return nil
}
