package main

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// figure is a list of durations of one kind. They are only logged: speed is measured on a quiet machine.
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

// figures logs the durations of the resumes.
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
	t.Logf("with a snapshot: %d; turns that were spoken during a lost connection and dropped: %d", snapshots, unheard)
}

// figuresAfter logs the waiting times of the affected talkers after a moment.
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
	t.Logf("affected talkers: from the loss to session.started: %v", back)
	t.Logf("affected talkers: until the next audio of the model: %v", spoke)
	t.Logf("affected talkers in a turn: until the next audio of the model: %v", busy)
	cr.figures(t)
}
