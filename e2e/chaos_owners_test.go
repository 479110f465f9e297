package e2e

import (
	"fmt"
	"strings"
	"time"

	"voicegw/store"
)

// ownership is the beginning of a gateway's ownership of a session.
type ownership struct {
	node  *chaosNode
	epoch uint64
	at    time.Time
}

// chaosLinksPerEpoch is the step in a session's connection numbers at a takeover.
const chaosLinksPerEpoch = 1000

// owns records a node as the owner of a session.
func (s *linkSide) owns(r store.SessionRecord, n *chaosNode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.of(r.Voice)
	epoch := max(r.Epoch, 1) // set later when a session begins
	s.owners[r.ID] = append(s.owners[r.ID], ownership{n, epoch, time.Now()})
	if epoch > 1 {
		v.epoch, v.newest = epoch, int(epoch-1)*chaosLinksPerEpoch
	}
}

// died records the loss of all connections of a node.
func (s *linkSide) died(n *chaosNode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.visits {
		for _, l := range v.links {
			if l.node == n && l.closed.IsZero() && l.lost.IsZero() {
				l.lost = n.death()
			}
		}
	}
}

// owner returns the owner of a session; nil if none was observed.
func (s *linkSide) owner(session string) *chaosNode {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.owners[session]
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1].node
}

// moves counts the changes of a session's gateway.
func (s *linkSide) moves(session string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.owners[session]) - 1
}

// describe names a session's owners for a finding.
func (s *linkSide) describe(session string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, o := range s.owners[session] {
		fmt.Fprintf(&b, "; %s had it from %s", o.node.name, o.at.Format("05.000"))
		if died := o.node.death(); !died.IsZero() {
			fmt.Fprintf(&b, ", and was killed at %s", died.Format("05.000"))
		}
	}
	return strings.TrimPrefix(b.String(), "; ")
}

// leftAfter reports whether a session had another owner after a moment.
func (s *linkSide) leftAfter(session string, at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	owners := s.owners[session]
	return len(owners) > 1 && owners[len(owners)-1].at.After(at)
}

// ownerDeath is the kill of an owner.
type ownerDeath struct {
	at    time.Time
	lag   time.Duration // the store's time for the writes of all its sessions
	taken time.Time     // when the next owner took the session; zero if none did
}

// deaths returns the kills of a session's owners.
func (s *linkSide) deaths(session string) []ownerDeath {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []ownerDeath
	owners := s.owners[session]
	for i, o := range owners {
		d := ownerDeath{at: o.node.death(), lag: o.node.storeLag()}
		if i+1 < len(owners) {
			d.taken = owners[i+1].at
		}
		if !d.at.IsZero() && (d.taken.IsZero() || d.taken.After(d.at)) {
			all = append(all, d)
		}
	}
	return all
}

// keptLate is the latest time before a gateway's death at which a lost write may have started if the store keeps up, in
// pulse time.
const keptLate = 2 * time.Second

// before reports whether an observation came from the killed gateway: its client may read it after the death.
func (d ownerDeath) before(at time.Time) bool { return d.taken.IsZero() || at.Before(d.taken) }

// justAfter reports whether the gateway died soon after its own observation.
func (d ownerDeath) justAfter(at time.Time, p *pulse) bool {
	return d.before(at) && (at.After(d.at) || p.between(at, d.at) < keptLate+d.lag)
}

// cutShort reports whether an owner was killed before an event in this interval was surely stored. A zero to means that
// the event never ended.
func (e *evidence) cutShort(session string, from, to time.Time) bool {
	for _, died := range e.links.deaths(session) {
		if died.before(from) && (to.IsZero() || to.After(died.at) || died.justAfter(to, e.pulse)) {
			return true
		}
	}
	return false
}

// lost reports whether a run's gateway was killed before the record was surely stored.
func (e *evidence) lost(r *run) bool {
	died := r.node.death()
	return !died.IsZero() && (r.ended.IsZero() || r.ended.After(died) || e.pulse.between(r.ended, died) < keptLate+r.node.storeLag())
}

// abandoned reports whether a session's last owner was killed without a takeover. An undelivered answer then has no
// record.
func (e *evidence) abandoned(session string) bool {
	owner := e.links.owner(session)
	return owner != nil && !owner.death().IsZero()
}

// oneOwner checks S7: epochs follow each other, and only the owner starts tools or opens connections to a model for a
// session.
func (e *evidence) oneOwner(f *findings) {
	const promise = "S7: one gateway at a time"
	for id, all := range e.links.owners {
		for i, o := range all {
			if i > 0 && o.epoch <= all[i-1].epoch {
				f.add(promise, "%s took epoch %d of %s, and %s has had epoch %d", o.node.name, o.epoch, id, all[i-1].node.name, all[i-1].epoch)
			}
		}
	}
	// A gateway may be recorded shortly after it began.
	has := func(id string, n *chaosNode, at time.Time) bool {
		all := e.links.owners[id]
		for i, o := range all {
			ended := i+1 < len(all) && all[i+1].at.Before(at)
			if o.node == n && !ended {
				return true
			}
		}
		return false
	}
	for _, r := range e.runs {
		if r.session != "" && !has(r.session, r.node, r.at) {
			f.add(promise, "%s began %s for %s, although another one had taken it", r.node.name, r.tool, r.session)
		}
	}
	for _, v := range e.visits {
		var before *chaosLink
		for _, l := range e.links.of(v.voice()).links {
			if !has(v.session, l.node, l.opened) && v.session != "" {
				f.add(promise, "%s connected %s with a model, although another one had taken it", l.node.name, v.name())
			}
			if before != nil && before.node != l.node && (before.ended().IsZero() || before.ended().After(l.opened)) {
				f.add(promise, "%s connected %s with a model at %s, and %s closed its own connection at %s", l.node.name, v.name(), l.opened.Format("05.000"), before.node.name,
					before.ended().Format("05.000"))
			}
			before = l
		}
	}
}

// ended returns the time at which the connection was closed or lost; zero before that.
func (l *chaosLink) ended() time.Time {
	if l.closed.IsZero() {
		return l.lost
	}
	return l.closed
}
