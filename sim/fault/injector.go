package fault

import (
	"math/rand/v2"
	"sort"
	"time"
)

// Injector is one connection's use of a script. It is not safe for concurrent use. A nil Injector injects nothing.
type Injector struct {
	rules []rule
	fired []int
	rand  *rand.Rand
}

// NewInjector returns the injector of a connection or a request. The same seed gives the same faults at the same
// points. Wires get theirs from wire.Options.Begin.
func (s *Script) NewInjector(seed uint64, c Connection) *Injector {
	if s == nil {
		return nil
	}
	i := &Injector{rand: rand.New(rand.NewPCG(seed, 0x6661756c74))}
	for _, u := range s.rules {
		if u.meant(c) {
			i.rules = append(i.rules, u)
		}
	}
	i.fired = make([]int, len(i.rules))
	return i
}

func (u *rule) meant(c Connection) bool {
	n := c.N
	if u.api != "" {
		if u.api != string(c.API) {
			return false
		}
		n = c.OfAPI
	}
	return u.connection == 0 || u.connection == n
}

// At returns and counts the faults due at p, in the script's order.
func (i *Injector) At(p Point) []Action {
	if i == nil {
		return nil
	}
	var due []Action
	for k := range i.rules {
		u := &i.rules[k]
		if u.at == string(p.At) && u.matches(p) && i.fires(k) {
			due = append(due, i.decide(u))
		}
	}
	return due
}

func (u *rule) matches(p Point) bool {
	return (u.n == 0 || u.n == p.N) && (u.turn == 0 || u.turn == p.Turn) && (u.event == "" || u.event == p.Event)
}

func (i *Injector) fires(k int) bool {
	u := &i.rules[k]
	if u.limit > 0 && i.fired[k] >= u.limit {
		return false
	}
	if u.chance > 0 && u.chance < 1 && i.rand.Float64() >= u.chance {
		return false
	}
	i.fired[k]++
	return true
}

func (i *Injector) decide(u *rule) Action {
	a := u.action
	if u.jitter > 0 {
		a.For += time.Duration(i.rand.Int64N(int64(u.jitter) + 1))
	}
	return a
}

// Timed returns the timed faults, earliest first. It is called once, when the connection is accepted.
func (i *Injector) Timed() []Timed {
	if i == nil {
		return nil
	}
	var all []Timed
	for k := range i.rules {
		if u := &i.rules[k]; u.at == atTime && i.fires(k) {
			all = append(all, Timed{After: u.after, Action: i.decide(u)})
		}
	}
	sort.SliceStable(all, func(a, b int) bool { return all[a].After < all[b].After })
	return all
}
