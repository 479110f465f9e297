package e2e

import (
	"math/rand/v2"
	"time"
)

// exitWay is how a gateway ends.
type exitWay string

const (
	endKill  exitWay = "killed"
	endDrain exitWay = "drained"
)

// gatewayExit is the end of a gateway, which another one replaces.
type gatewayExit struct {
	after  time.Duration // since the previous one
	end    exitWay
	which  int           // index among those alive, the oldest first
	within time.Duration // the drain's limit
	away   time.Duration // until the replacement starts
}

// gatewayExits draws the exits: one or two in the smallest run.
func gatewayExits(rng *rand.Rand, lasting time.Duration) []gatewayExit {
	ends := weighted[exitWay]{{endKill, 3}, {endDrain, 2}}
	var all []gatewayExit
	rest := lasting + 10*time.Second // more for a longer run
	for rest > 0 {
		f := gatewayExit{
			after: between(rng, 1500*time.Millisecond, 3*time.Second), end: ends.draw(rng), which: rng.IntN(*chaosGateways),
			within: between(rng, 1500*time.Millisecond, 5*time.Second), away: between(rng, 0, 1500*time.Millisecond),
		}
		if len(all) > 0 {
			f.after += between(rng, 0, 4*time.Second)
		}
		rest -= f.after + f.away
		all = append(all, f)
	}
	return all
}

// direct ends and starts gateways until the time is over. At least one is always alive.
func (ch *chaos) direct() {
	wait := func(d time.Duration) bool {
		select {
		case <-ch.over:
			return false
		case <-time.After(d):
			return true
		}
	}
	for _, f := range ch.ends {
		if !wait(f.after) {
			return
		}
		n := ch.living()[f.which]
		if f.end == endKill {
			ch.count(&ch.kills)
			n.kill()
		} else {
			ch.count(&ch.drains)
			n.drain(f.within)
		}
		more := wait(f.away)
		if _, err := ch.newNode(); err != nil {
			ch.broke("%v", err)
			return
		}
		if !more {
			return
		}
	}
}

func (ch *chaos) count(n *int) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	*n++
}

// living returns the serving and draining gateways, the oldest first.
func (ch *chaos) living() []*chaosNode {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	var all []*chaosNode
	for _, n := range ch.nodes {
		if n.serves() {
			all = append(all, n)
		}
	}
	return all
}

// serves reports whether clients can connect.
func (n *chaosNode) serves() bool {
	n.life.Lock()
	defer n.life.Unlock()
	return !n.killed && !n.left
}

// balance picks gateways in turn. It includes draining ones, as a balancer with infrequent readiness checks does.
func (ch *chaos) balance() *chaosNode {
	all := ch.living()
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.turn++
	return all[ch.turn%len(all)]
}
