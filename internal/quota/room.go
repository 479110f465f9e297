package quota

import "container/list"

// Room holds those who are let in provisionally: at most so many, and at most so many of one
// key. Who comes always finds room: where it is full, the one that has been inside longest
// of the key that has the most inside has to leave. So whoever fills it pushes out itself.
//
// It has no lock.
type Room[K comparable] struct {
	most, perKey int // fixed

	all   list.List // of *Guest[K], who came first is first
	byKey map[K]int
}

// Guest is one of a Room.
type Guest[K comparable] struct {
	// Key is what it counts by, Exempt that the bound of one key does not hold for it.
	Key    K
	Exempt bool
	// Evict is for whoever called Enter: it is not called here.
	Evict func()

	inside *list.Element // nil where it is not inside
}

// NewRoom returns a Room for at most most guests, of them perKey of one key; both at least 1.
func NewRoom[K comparable](most, perKey int) *Room[K] {
	return &Room[K]{most: most, perKey: perKey, byKey: make(map[K]int)}
}

// Enter lets g in, and returns who has to leave for it; nil for nobody. That one is outside
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

// Len is how many are inside.
func (r *Room[K]) Len() int { return r.all.Len() }

// oldest returns who has been inside longest of those that are meant.
func (r *Room[K]) oldest(meant func(*Guest[K]) bool) *Guest[K] {
	for e := r.all.Front(); e != nil; e = e.Next() {
		if g := e.Value.(*Guest[K]); meant(g) {
			return g
		}
	}
	return nil
}
