package e2e

import (
	"slices"
	"sync"
	"testing"
	"time"
)

const pulseEvery = 20 * time.Millisecond

// pulse measures the time in which this process could work. Deadlines count only that time, because a busy or paused
// machine is not the gateway's fault.
type pulse struct {
	mu      sync.Mutex // guards the following fields
	beats   []beat     // in order
	longest time.Duration
}

// beat is a late beat.
type beat struct {
	at   time.Time
	late time.Duration // total delay up to this beat
}

// run beats until the channel is closed.
func (p *pulse) run(until <-chan struct{}) {
	tick := time.NewTicker(pulseEvery)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-until:
			return
		case <-tick.C:
			now := time.Now()
			p.beat(last, now)
			last = now
		}
	}
}

// beat records a beat and the previous one.
func (p *pulse) beat(last, now time.Time) {
	late := now.Sub(last) - pulseEvery
	if late <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.longest = max(p.longest, late)
	if n := len(p.beats); n > 0 {
		late += p.beats[n-1].late
	}
	p.beats = append(p.beats, beat{now, late})
}

// between returns the working time in an interval.
func (p *pulse) between(from, to time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return to.Sub(from) - (p.lost(to) - p.lost(from))
}

// lost returns the total delay of the beats up to a moment. mu is held.
func (p *pulse) lost(at time.Time) time.Duration {
	i, _ := slices.BinarySearchFunc(p.beats, at, func(b beat, at time.Time) int {
		if b.at.After(at) {
			return 1
		}
		return -1
	})
	if i == 0 {
		return 0
	}
	return p.beats[i-1].late
}

// pause returns the longest single delay.
func (p *pulse) pause() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.longest
}

// TestPulse: time during which the machine stood still does not count.
func TestPulse(t *testing.T) {
	var p pulse
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	last := at(0)
	for _, ms := range []int{20, 40, 3040, 3045, 3080, 4080} { // still for 3 s, and for 1 s
		p.beat(last, at(ms))
		last = at(ms)
	}
	for _, tc := range []struct{ from, to, want int }{
		{0, 40, 40}, {0, 3040, 60}, {40, 3040, 20}, {0, 4080, 4080 - 2980 - 15 - 980}, {3040, 3080, 25}, {4080, 5080, 1000},
	} {
		if got := p.between(at(tc.from), at(tc.to)); got != time.Duration(tc.want)*time.Millisecond {
			t.Errorf("from %d to %d ms: %v, want %d ms", tc.from, tc.to, got, tc.want)
		}
	}
	if p.pause() != 2980*time.Millisecond {
		t.Errorf("the longest pause was %v", p.pause())
	}
}
