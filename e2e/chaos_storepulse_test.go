package e2e

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// storePulse measures the store's write time with its own writes over its own connection. A starved store is not the
// gateway's fault.
type storePulse struct {
	mu     sync.Mutex   // guards the following fields
	began  time.Time    // start of the current write; zero without one
	writes []storeWrite // in the order of their starts
}

type storeWrite struct{ began, ended time.Time }

const storePulseEvery = 100 * time.Millisecond

// run writes until the channel is closed.
func (p *storePulse) run(until <-chan struct{}, url string) error {
	conn, err := nats.Connect(url)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { <-until; cancel() }()
	const subject = "chaos.pulse"
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "chaos_pulse", Subjects: []string{subject}, MaxMsgs: 1}); err != nil {
		return err
	}
	size := make([]byte, 4<<10) // the size of a checkpoint
	for {
		began := time.Now()
		p.begins(began)
		_, err := js.Publish(ctx, subject, size)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			p.wrote(began, time.Now())
		}
		select {
		case <-until:
			return nil
		case <-time.After(storePulseEvery):
		}
	}
}

func (p *storePulse) begins(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.began = at
}

func (p *storePulse) wrote(began, ended time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.began = time.Time{}
	p.writes = append(p.writes, storeWrite{began, ended})
}

// slowStore is the write time up to which a store keeps up. On an idle machine a write takes a few ms.
const slowStore = 100 * time.Millisecond

// keepsUp reports whether the store accepts writes without delay.
func (p *storePulse) keepsUp(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.began.IsZero() && now.Sub(p.began) > slowStore {
		return false
	}
	n := len(p.writes)
	return n == 0 || p.writes[n-1].ended.Sub(p.writes[n-1].began) <= slowStore
}

// slowest returns the longest write in progress during an interval.
func (p *storePulse) slowest(from, to time.Time) (took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.writes {
		if w.ended.After(from) && w.began.Before(to) {
			took = max(took, w.ended.Sub(w.began))
		}
	}
	return took
}

const storeWriters = 8

// lag returns a gateway's time for one write of each session, at the store's recent speed.
func (p *storePulse) lag(sessions int, at time.Time) time.Duration {
	const window = 10 * time.Second
	p.mu.Lock()
	defer p.mu.Unlock()
	all, took := 0, time.Duration(0)
	for _, w := range p.writes {
		if w.ended.After(at.Add(-window)) && w.began.Before(at) {
			all, took = all+1, took+w.ended.Sub(w.began)
		}
	}
	if !p.began.IsZero() && p.began.Before(at) {
		all, took = all+1, took+at.Sub(p.began)
	}
	if all == 0 {
		return 0
	}
	return took / time.Duration(all) * time.Duration(sessions) / storeWriters
}

// usual returns the median and the 90th percentile of the write times.
func (p *storePulse) usual() (half, most time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []time.Duration
	for _, w := range p.writes {
		all = append(all, w.ended.Sub(w.began))
	}
	if len(all) == 0 {
		return 0, 0
	}
	slices.Sort(all)
	return all[len(all)/2], all[len(all)*9/10]
}

// TestStorePulse finds the slowest write in progress.
func TestStorePulse(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	var p storePulse
	p.wrote(at(0), at(10))
	p.wrote(at(100), at(2100))
	p.wrote(at(2200), at(2230))
	for _, tc := range []struct{ from, to, want int }{{0, 50, 10}, {20, 90, 0}, {50, 150, 2000}, {2000, 2210, 2000}, {2110, 2300, 30}, {2300, 5000, 0}} {
		if got := p.slowest(at(tc.from), at(tc.to)); got != time.Duration(tc.want)*time.Millisecond {
			t.Errorf("from %d to %d ms: %v, want %d ms", tc.from, tc.to, got, tc.want)
		}
	}
	if got := p.lag(80, at(2300)); got != 6800*time.Millisecond {
		t.Errorf("the writes of 80 sessions take %v, want ten times 680 ms", got)
	}
	if !p.keepsUp(at(2300)) {
		t.Error("a store that takes 30 ms does not keep up")
	}
	p.begins(at(2400))
	if !p.keepsUp(at(2450)) || p.keepsUp(at(2550)) {
		t.Error("only a write that takes more than 150 ms is slow")
	}
	if half, most := p.usual(); half != 30*time.Millisecond || most != 2*time.Second {
		t.Errorf("half of them took %v, and most %v", half, most)
	}
}
