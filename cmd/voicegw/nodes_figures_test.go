package main

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// figure is times of one kind. They are told, and hold nothing: speed is measured on a quiet machine.
type figure []time.Duration

// at returns a quantile.
func (f figure) at(q float64) time.Duration {
	if len(f) == 0 {
		return 0
	}
	slices.Sort(f)
	return f[min(int(q*float64(len(f))), len(f)-1)]
}

func (f figure) String() string {
	return fmt.Sprintf("p50 %v, p99 %v, longest %v (%d)", f.at(0.5).Round(time.Millisecond), f.at(0.99).Round(time.Millisecond), f.at(1).Round(time.Millisecond), len(f))
}

// figures tells how long the ways back to the sessions took.
func (cr *crowd) figures(t *testing.T) {
	t.Helper()
	var away, took figure
	snapshots, unheard := 0, 0
	for _, c := range cr.talkers {
		c.mu.Lock()
		unheard += c.unheard
		for _, r := range c.returns {
			away, took = append(away, r.how.Away), append(took, r.how.Took)
			if r.how.Snapshot {
				snapshots++
			}
		}
		c.mu.Unlock()
	}
	t.Logf("from the loss to session.started: %v", away)
	t.Logf("from session.start to session.started: %v", took)
	t.Logf("with a snapshot: %d; turns that were spoken into a lost connection and not heard: %d", snapshots, unheard)
}

// figuresAfter tells how long those who were hit had to wait after that moment.
func (cr *crowd) figuresAfter(t *testing.T, hit []*talker, at time.Time) {
	t.Helper()
	var back, spoke, busy figure
	for _, c := range hit {
		c.mu.Lock()
		for _, r := range c.returns {
			if r.at.After(at) {
				back = append(back, r.at.Sub(r.lost))
			}
		}
		c.mu.Unlock()
		if first := c.firstHeard(at); !first.IsZero() {
			spoke = append(spoke, first.Sub(at))
			if c.busy(at) {
				busy = append(busy, first.Sub(at))
			}
		}
	}
	t.Logf("those who were hit: from the loss to session.started: %v", back)
	t.Logf("those who were hit: until they heard the model again: %v", spoke)
	t.Logf("those of them in a turn: until they heard the model again: %v", busy)
	cr.figures(t)
}
