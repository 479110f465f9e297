package session

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// When sessions leave a draining process, as parts of the drain's time.
const (
	moveWithin = 2  // the last session is asked to move within half of it
	moveLate   = 10 // every session leaves a tenth before its end
)

// moveAgain is the interval after which a session is asked again: the store may have failed. carriedStay is how long a
// client may stay that is carried to another node after the drain began.
const (
	moveAgain   = 3 * time.Second
	carriedStay = 5 * time.Second
)

// DrainState is the progress of a drain.
type DrainState struct {
	Draining bool
	// Sessions is the number of running sessions, Away that of those without a client.
	Sessions, Away int
	// Moved counts sessions handed over to another process.
	Moved int
	// Carried counts clients carried to sessions of other nodes.
	Carried int
}

// DrainState returns the progress of the drain.
func (m *Manager) DrainState() DrainState {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := DrainState{Draining: m.draining, Sessions: m.running, Moved: m.moved, Carried: m.carrying}
	at.Away = len(m.roster.away())
	return at
}

// drainPlan spreads the departure of sessions and carried clients over the drain, because the other nodes must take
// all of them.
type drainPlan struct {
	m       *Manager
	began   time.Time
	whole   time.Duration
	by      time.Time // when every session leaves
	first   bool      // no plan was made yet
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
	p := &drainPlan{m: m, began: now, whole: whole, by: until.Add(-whole / moveLate), first: true,
		due: map[*session]time.Time{}, carried: map[*Admission]time.Time{}}
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

// plan gives new sessions and carried clients a time. The first ones are spread; later ones leave at once.
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

func (p *drainPlan) slot(now time.Time, i, n int, later time.Duration) time.Time {
	if !p.first {
		return now.Add(later)
	}
	return p.began.Add(p.whole / moveWithin * time.Duration(i) / time.Duration(max(n, 1)))
}

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
