package nonblock

import (
	"testing"
	"time"
)

// TestLoad: rounds are counted by duration, and each loop is listed.
func TestLoad(t *testing.T) {
	if got := (*Loops)(nil).Load(); got.Busy != nil || got.Rounds != nil {
		t.Errorf("loops that do not exist have the load %+v", got)
	}
	loops := &Loops{Most: 1}
	loops.rounds.add(time.Millisecond)
	loops.rounds.add(time.Millisecond + 1)
	loops.rounds.add(time.Hour)
	got := loops.Load()
	if n := len(RoundBounds()); len(got.Rounds) != n+1 || got.Rounds[0] != 1 || got.Rounds[1] != 1 || got.Rounds[n] != 1 {
		t.Errorf("the rounds are counted as %v", got.Rounds)
	}
	if got.RoundTime != time.Hour+2*time.Millisecond+1 {
		t.Errorf("the rounds took %v", got.RoundTime)
	}
	if n := testing.AllocsPerRun(100, func() { loops.rounds.add(time.Second) }); n != 0 {
		t.Errorf("counting a round allocates %v times", n)
	}

	connect := listen(t, kind{loops: loops})
	conn, peer := connect()
	read := make(chan struct{}, 16)
	hear(t, conn, func() {
		select {
		case read <- struct{}{}:
		default:
		}
	})
	if _, err := peer.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	<-read
	if busy := loops.Load().Busy; len(busy) != 1 {
		t.Errorf("the loads are %v for one loop", busy)
	}
}
