package session

import (
	"container/list"
	"net/netip"
)

// waitingRoom holds those who are connected and have not sent session.start. They take no
// session's place, and no more of them than its bounds stay: the one that has waited longest
// of the address that has the most waiting makes room for another. So an address that only
// connects pushes out itself, and whoever sends session.start at once is heard.
//
// It is a value without a lock.
type waitingRoom struct {
	most, perAddress int // fixed

	all    list.List // of *Admission, who came first is first
	byAddr map[netip.Addr]int
}

// enter lets a in, and returns who has to leave for it; nil for nobody.
func (r *waitingRoom) enter(a *Admission) (out *Admission) {
	switch {
	case !a.exempt && r.byAddr[a.key] >= r.perAddress:
		out = r.oldest(func(b *Admission) bool { return b.key == a.key })
	case r.all.Len() >= r.most:
		greediest := 0
		for _, n := range r.byAddr {
			greediest = max(greediest, n)
		}
		out = r.oldest(func(b *Admission) bool { return r.byAddr[b.key] == greediest })
	}
	if out != nil {
		r.leave(out)
	}
	a.waits = r.all.PushBack(a)
	r.byAddr[a.key]++
	return out
}

// leave takes a out, if it waits.
func (r *waitingRoom) leave(a *Admission) {
	if a.waits == nil {
		return
	}
	r.all.Remove(a.waits)
	a.waits = nil
	if r.byAddr[a.key]--; r.byAddr[a.key] == 0 {
		delete(r.byAddr, a.key)
	}
}

// oldest returns who has waited longest of those that are meant.
func (r *waitingRoom) oldest(meant func(*Admission) bool) *Admission {
	for e := r.all.Front(); e != nil; e = e.Next() {
		if a := e.Value.(*Admission); meant(a) {
			return a
		}
	}
	return nil
}
