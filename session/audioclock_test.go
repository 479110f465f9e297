package session

import (
	"testing"
	"time"
)

// TestAudioClock: the clock knows when a sample arrived, to within a frame, for the last 6 s, also across a pause of
// the client.
func TestAudioClock(t *testing.T) {
	c := audioClock{rate: 16000}
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	now := began
	for i := range 500 { // 10 s in frames of 20 ms, with a gap of 3 s at 5 s
		if i == 250 {
			now = now.Add(3 * time.Second)
		}
		if _, _, ok := c.add(640, now, now, time.Second); !ok {
			t.Fatalf("frame %d was refused", i)
		}
		now = now.Add(20 * time.Millisecond)
	}
	for _, tc := range []struct{ ms, want int64 }{
		{10000, 12980}, {9000, 12000}, {6000, 9000}, {5100, 8100}, {4900, 4900}, {12000, 13000}, {0, 4000},
	} {
		got := c.when(tc.ms, now).Sub(began).Milliseconds()
		if diff := got - tc.want; tc.ms > 4500 && (diff < -25 || diff > 25) {
			t.Errorf("the sample at %d ms arrived at %d ms, want about %d", tc.ms, got, tc.want)
		}
		if tc.ms == 0 && (got < 3000 || got > 5000) {
			t.Errorf("an old sample arrived at %d ms, want the oldest known one", got)
		}
	}
	if c.ms() != 10000 {
		t.Errorf("%d ms have arrived", c.ms())
	}
}

// TestLateReader: a client that sends in real time is never too fast, however late the reader; a client that sends
// faster is. The recording of an outage may arrive at once.
func TestLateReader(t *testing.T) {
	const frame, ms = 640, time.Millisecond
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := audioClock{rate: 16000}
	since := now
	read := func(frames int) (refused int) {
		for range frames {
			if _, _, ok := c.add(frame, since, now, 5*time.Second); !ok {
				refused++
			}
		}
		since = now // everything is read
		return refused
	}
	for round, late := range []time.Duration{20 * ms, 20 * ms, 7 * time.Second, 20 * ms, 30 * time.Second, 12 * time.Second, 20 * ms} {
		now = now.Add(late)
		if n := read(int(late / (20 * ms))); n > 0 {
			t.Errorf("round %d, late by %v: %d frames were refused", round, late, n)
		}
	}
	// Twice real time while the reader is late: at most 5 s ahead of it.
	now = now.Add(10 * time.Second)
	if n := read(1000); n < 240 || n > 260 {
		t.Errorf("of 20 s of audio in 10 s, %d frames were refused", n)
	}
	// The reader waits for the client. The recording of a network outage may arrive at once, and no more, however long
	// the pause.
	for _, pause := range []time.Duration{time.Minute, 11 * time.Second, 3 * time.Second} {
		now = now.Add(pause)
		since = now.Add(-10 * ms)
		if n := read(int(min(pause, maxBurst) / (20 * ms))); n > 0 {
			t.Errorf("of the recording of an outage of %v, %d frames were refused", pause, n)
		}
		if n := read(1000); n < 740 {
			t.Errorf("of 20 s of audio more, after %v, only %d frames were refused", pause, n)
		}
		now = now.Add(5 * time.Second)
		read(0)
	}
}
