package e2e

import (
	"fmt"
	"strings"
	"time"

	"voicegw/store"
)

// ownership is that a gateway has a session from a moment on.
type ownership struct {
	node  *chaosNode
	epoch uint64
	at    time.Time
}

// chaosLinksPerEpoch is by how much the numbers of a session's connections to models go up when
// another gateway takes it.
const chaosLinksPerEpoch = 1000

// owns notes that a node has a session from now on.
func (s *linkSide) owns(r store.SessionRecord, n *chaosNode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.of(r.Voice)
	epoch := max(r.Epoch, 1) // it is set later when a session begins
	s.owners[r.ID] = append(s.owners[r.ID], ownership{n, epoch, time.Now()})
	if epoch > 1 {
		v.epoch, v.newest = epoch, int(epoch-1)*chaosLinksPerEpoch
	}
}

// died notes that all connections of a node are lost.
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

// owner is the gateway that has a session; nil if none was seen to have it.
func (s *linkSide) owner(session string) *chaosNode {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.owners[session]
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1].node
}

// tell names the gateways that had a session, for whoever reads of a finding.
func (s *linkSide) tell(session string) string {
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

// ownerDeath is that a gateway was killed that had a session.
type ownerDeath struct {
	at    time.Time
	lag   time.Duration // what the store took for the writes of all its sessions
	taken time.Time     // when the next one took the session; zero if none did
}

// deaths are those of the gateways that had the session when they were killed.
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

// keptLate is how long before its death a gateway may have begun to write what was not written then, if the store
// keeps up. It counts as a pulse counts.
const keptLate = 2 * time.Second

// before reports whether something that was seen at that moment came from the gateway that died: its client
// may read it after the death.
func (d ownerDeath) before(at time.Time) bool { return d.taken.IsZero() || at.Before(d.taken) }

// justAfter reports whether the gateway died soon after something of its own was seen.
func (d ownerDeath) justAfter(at time.Time, p *pulse) bool {
	return d.before(at) && (at.After(d.at) || p.between(at, d.at) < keptLate+d.lag)
}

// cutShort reports whether a gateway that had the session was killed before something was surely written
// that happened from one moment to another. A zero to means that it never ended.
func (e *evidence) cutShort(session string, from, to time.Time) bool {
	for _, died := range e.links.deaths(session) {
		if died.before(from) && (to.IsZero() || to.After(died.at) || died.justAfter(to, e.pulse)) {
			return true
		}
	}
	return false
}

// lost reports whether the gateway of a run was killed before the run's record was surely written.
func (e *evidence) lost(r *run) bool {
	died := r.node.death()
	return !died.IsZero() && (r.ended.IsZero() || r.ended.After(died) || e.pulse.between(r.ended, died) < keptLate+r.node.storeLag())
}

// abandoned reports whether the last gateway that had a session was killed, and nobody has taken the session
// since. An answer that waited there until the model could be told is recorded nowhere.
func (e *evidence) abandoned(session string) bool {
	owner := e.links.owner(session)
	return owner != nil && !owner.death().IsZero()
}

// oneOwner is S7: the epochs of a session follow each other, and no gateway but the one that has the session
// begins a tool or opens a connection to a model for the session.
func (e *evidence) oneOwner(f *findings) {
	const promise = "S7: one gateway at a time"
	for id, all := range e.links.owners {
		for i, o := range all {
			if i > 0 && o.epoch <= all[i-1].epoch {
				f.add(promise, "%s took epoch %d of %s, and %s has had epoch %d", o.node.name, o.epoch, id, all[i-1].node.name, all[i-1].epoch)
			}
		}
	}
	// A gateway may be noted a moment after it has begun.
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
		if !has(r.session, r.node, r.at) {
			f.add(promise, "%s began %s for %s, which another one had taken", r.node.name, r.tool, r.session)
		}
	}
	for _, v := range e.visits {
		var before *chaosLink
		for _, l := range e.links.of(v.voice()).links {
			if !has(v.session, l.node, l.opened) && v.session != "" {
				f.add(promise, "%s connected %s with a model, which another one had taken", l.node.name, v.name())
			}
			if before != nil && before.node != l.node && (before.ended().IsZero() || before.ended().After(l.opened)) {
				f.add(promise, "%s connected %s with a model at %s, and %s closed its own connection at %s", l.node.name, v.name(), l.opened.Format("05.000"), before.node.name,
					before.ended().Format("05.000"))
			}
			before = l
		}
	}
}

// ended is when the connection was closed or lost; zero if it was not.
func (l *chaosLink) ended() time.Time {
	if l.closed.IsZero() {
		return l.lost
	}
	return l.closed
}
