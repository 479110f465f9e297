package quota

import "container/list"

// Room holds provisional guests. If it is full, a newcomer evicts the oldest guest of the key with the most. It has no
// lock.
type Room[K comparable] struct {
	most, perKey int

	all   list.List // of *Guest[K] in order of entry
	byKey map[K]int
}

// Guest may be in a Room.
type Guest[K comparable] struct {
	// Key is what to count by; Exempt guests don't count towards their key's limit.
	Key    K
	Exempt bool
	// Evict is called by Enter's caller, not by the Room.
	Evict func()

	inside *list.Element // nil when not in the Room
}

// NewRoom returns a Room for at most most guests, perKey of each key; both at least 1.
func NewRoom[K comparable](most, perKey int) *Room[K] {
	return &Room[K]{most: most, perKey: perKey, byKey: make(map[K]int)}
}

// Limit sets other limits. Guests beyond them stay until newcomers evict them.
func (r *Room[K]) Limit(most, perKey int) { r.most, r.perKey = most, perKey }

// Enter admits g and returns the guest it evicted, or nil; the caller calls its Evict.
func (r *Room[K]) Enter(g *Guest[K]) (out *Guest[K]) {
	switch {
	case !g.Exempt && r.byKey[g.Key] >= r.perKey:
		out = r.oldest(func(other *Guest[K]) bool { return other.Key == g.Key })
	case r.all.Len() >= r.most:
		greediest := 0
		for _, n := range r.byKey {
			greediest = max(greediest, n)
		}
		out = r.oldest(func(other *Guest[K]) bool { return r.byKey[other.Key] == greediest })
	}
	if out != nil {
		r.Leave(out)
	}
	g.inside = r.all.PushBack(g)
	r.byKey[g.Key]++
	return out
}

// Leave removes g, if it is in the Room.
func (r *Room[K]) Leave(g *Guest[K]) {
	if g.inside == nil {
		return
	}
	r.all.Remove(g.inside)
	g.inside = nil
	if r.byKey[g.Key]--; r.byKey[g.Key] == 0 {
		delete(r.byKey, g.Key)
	}
}

// Len returns the number of guests.
func (r *Room[K]) Len() int { return r.all.Len() }

func (r *Room[K]) oldest(meant func(*Guest[K]) bool) *Guest[K] {
	for e := r.all.Front(); e != nil; e = e.Next() {
		if g := e.Value.(*Guest[K]); meant(g) {
			return g
		}
	}
	return nil
}
