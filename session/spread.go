package session

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// When sessions leave a process that drains, as parts of the time that the drain has.
const (
	moveWithin = 2  // within half of it, the last session is asked to move
	moveLate   = 10 // a tenth before its end, every session leaves
)

// moveAgain is how long after a session was asked to move it is asked again, if it is still there:
// the store may not have taken it. carriedStay is how long a client may stay that was carried to
// another node after the drain began.
const (
	moveAgain   = 3 * time.Second
	carriedStay = 5 * time.Second
)

// DrainState is how far the drain of a Manager is.
type DrainState struct {
	Draining bool
	// Sessions is how many sessions run, and Away how many of them have no client at the moment.
	Sessions, Away int
	// Moved is how many were given up for another process to go on with.
	Moved int
	// Carried is how many clients are carried to sessions of other nodes.
	Carried int
}

// DrainState says how far the drain is.
func (m *Manager) DrainState() DrainState {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := DrainState{Draining: m.draining, Sessions: m.running, Moved: m.moved, Carried: m.carrying}
	at.Away = len(m.roster.away())
	return at
}

// spread is when each session leaves, and each client that is carried to another node: spread over
// the drain, because the other nodes have to take all of them.
type drainPlan struct {
	m       *Manager
	began   time.Time
	whole   time.Duration
	by      time.Time // when every session leaves
	first   bool      // nothing was planned yet
	due     map[*session]time.Time
	carried map[*Admission]time.Time
}

// moveAll moves sessions until idle is closed or ctx is done. Without a deadline nothing moves.
func (m *Manager) moveAll(ctx context.Context, idle <-chan struct{}) {
	until, ok := ctx.Deadline()
	whole := time.Until(until)
	if !ok || whole <= 0 || m.options().Cluster == nil {
		return
	}
	now := time.Now()
	p := &drainPlan{m: m, began: now, whole: whole, by: until.Add(-whole / moveLate), first: true, due: map[*session]time.Time{}, carried: map[*Admission]time.Time{}}
	every := time.NewTicker(min(max(whole/200, 10*time.Millisecond), 200*time.Millisecond))
	defer every.Stop()
	for {
		p.plan(time.Now())
		p.move(time.Now())
		select {
		case <-idle:
			return
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

// plan gives each session and each carried client that is new a time. The first ones are spread;
// a session that begins or comes later leaves at once.
func (p *drainPlan) plan(now time.Time) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	var fresh []*session
	for _, s := range p.m.roster.all() {
		if _, planned := p.due[s]; !planned {
			fresh = append(fresh, s)
		}
	}
	slices.SortFunc(fresh, func(a, b *session) int {
		return cmp.Or(a.startedAt.Compare(b.startedAt), cmp.Compare(a.id, b.id))
	})
	for i, s := range fresh {
		p.due[s] = p.slot(now, i, len(fresh), 0)
	}
	n := 0
	for a := range p.m.admitted {
		if _, planned := p.carried[a]; a.phase == PhaseCarried && !planned {
			p.carried[a] = p.slot(now, n, p.m.carrying, carriedStay)
			n++
		}
	}
	p.first = false
	for s := range p.due {
		if p.m.roster.get(s.id) != s {
			delete(p.due, s)
		}
	}
	for a := range p.carried {
		if _, there := p.m.admitted[a]; !there {
			delete(p.carried, a)
		}
	}
}

// slot is when the i-th of n leaves.
func (p *drainPlan) slot(now time.Time, i, n int, later time.Duration) time.Time {
	if !p.first {
		return now.Add(later)
	}
	return p.began.Add(p.whole / moveWithin * time.Duration(i) / time.Duration(max(n, 1)))
}

// move asks those to move whose time has come, and those whose client is away.
func (p *drainPlan) move(now time.Time) {
	for s, at := range p.due {
		if at.After(now) && s.client.attachment() != nil {
			continue
		}
		p.due[s] = now.Add(moveAgain)
		s.askToMove(p.by)
	}
	for a, at := range p.carried {
		if !at.After(now) {
			a.evict(causeShutdown)
		}
	}
}
