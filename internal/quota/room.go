package quota

import "container/list"

// Room holds guests who are let in provisionally: at most so many, and at most so many of one
// key. A newcomer always finds room: if it is full, the guest that has been inside longest, of
// the key with the most guests, has to leave. So a key that fills the room pushes out its own guests.
//
// It has no lock.
type Room[K comparable] struct {
	most, perKey int

	all   list.List // of *Guest[K], in the order of entry
	byKey map[K]int
}

// Guest is somebody who may be in a Room.
type Guest[K comparable] struct {
	// Key is what it is counted by; Exempt says that the bound of one key does not apply to it.
	Key    K
	Exempt bool
	// Evict is called by the caller of Enter, not by the Room.
	Evict func()

	inside *list.Element // nil where it is not inside
}

// NewRoom returns a Room for at most most guests, perKey of them of one key; both at least 1.
func NewRoom[K comparable](most, perKey int) *Room[K] {
	return &Room[K]{most: most, perKey: perKey, byKey: make(map[K]int)}
}

// Limit sets other limits. Guests who are inside stay, also those beyond them: newcomers push them out.
func (r *Room[K]) Limit(most, perKey int) { r.most, r.perKey = most, perKey }

// Enter lets g in, and returns the guest who has to leave for it, or nil. That guest is outside
// already; the caller calls its Evict.
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

// Leave takes g out, if it is inside.
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

// Len returns how many are inside.
func (r *Room[K]) Len() int { return r.all.Len() }

// oldest returns the guest that has been inside longest of those that match.
func (r *Room[K]) oldest(meant func(*Guest[K]) bool) *Guest[K] {
	for e := r.all.Front(); e != nil; e = e.Next() {
		if g := e.Value.(*Guest[K]); meant(g) {
			return g
		}
	}
	return nil
}
