package session

import (
	"testing"
	"time"
)

// TestAudioClockKnowsWhenASampleCame: within a frame's length, as far back as 6 s,
// also across a pause of the client.
func TestAudioClockKnowsWhenASampleCame(t *testing.T) {
	c := audioClock{rate: 16000}
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	now := began
	for i := range 500 { // 10 s in frames of 20 ms, with a hole of 3 s at 5 s
		if i == 250 {
			now = now.Add(3 * time.Second)
		}
		if _, ok := c.add(640, now, time.Second); !ok {
			t.Fatalf("frame %d was refused", i)
		}
		now = now.Add(20 * time.Millisecond)
	}
	for _, tc := range []struct{ ms, want int64 }{
		{10000, 12980}, {9000, 12000}, {6000, 9000}, {5100, 8100}, {4900, 4900}, {12000, 13000}, {0, 4000},
	} {
		got := c.when(tc.ms, now).Sub(began).Milliseconds()
		if diff := got - tc.want; tc.ms > 4500 && (diff < -25 || diff > 25) {
			t.Errorf("the sample at %d ms came at %d ms, want about %d", tc.ms, got, tc.want)
		}
		if tc.ms == 0 && (got < 3000 || got > 5000) {
			t.Errorf("a sample long ago came at %d ms, want the oldest that is known", got)
		}
	}
	if c.ms() != 10000 {
		t.Errorf("%d ms have come", c.ms())
	}
}
