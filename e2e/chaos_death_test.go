package e2e

import (
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestDeathWaitsForActions: a gateway's death during an action that starts another one waits for both; nothing happens
// afterwards.
func TestDeathWaitsForActions(t *testing.T) {
	n := &chaosNode{}
	n.idle = sync.NewCond(&n.life)
	var dying sync.WaitGroup
	n.alive(func() {
		dying.Go(n.die)
		for !n.troubled() {
			runtime.Gosched() // until the death has begun
		}
		if n.alive(func() {}) {
			t.Error("an action began after the death")
		}
		if !n.death().IsZero() {
			t.Error("the gateway died during an action")
		}
	})
	dying.Wait()
	if n.death().IsZero() || n.alive(func() {}) {
		t.Error("the gateway is alive")
	}
}

// TestKilledGatewayIsSilent: peers of a killed gateway are cut off before it dies and loses its own connections, so it
// reports that loss to none of them.
func TestKilledGatewayIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &chaosNode{heard: &cutter{}, cut: &cutter{}}
		n.idle = sync.NewCond(&n.life)
		client, toClient := net.Pipe()
		model, toModel := net.Pipe()
		n.heard.add(toClient)
		n.cut.add(toModel)
		does := make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() { n.alive(func() { <-does }) })
		synctest.Wait()
		all.Go(n.cutOff)
		synctest.Wait()
		if said, err := io.ReadAll(client); len(said) > 0 || err != nil {
			t.Errorf("the client heard %q, %v", said, err)
		}
		if !n.troubled() || n.serves() || !n.death().IsZero() || n.cut.over {
			t.Error("the gateway died, or lost its model, before its client was cut off")
		}
		close(does)
		if _, err := io.ReadAll(model); err != nil || n.death().IsZero() {
			t.Errorf("the gateway is alive: %v", err)
		}
		all.Wait()
	})
}

// TestMessagesFromDeadGateway: messages read between a gateway's death and the takeover come from the dead gateway.
func TestMessagesFromDeadGateway(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	for _, tc := range []struct {
		seen, taken int // zero if it was not taken
		want        bool
	}{
		{7000, 12000, false}, {8001, 12000, true}, {9999, 12000, true}, {10000, 12000, true}, {10090, 12000, true}, {11999, 0, true}, {12000, 12000, false}, {13000, 12000, false},
	} {
		d := ownerDeath{at: at(10000)}
		if tc.taken > 0 {
			d.taken = at(tc.taken)
		}
		if got := d.justAfter(at(tc.seen), &pulse{}); got != tc.want {
			t.Errorf("seen at %d, with a death at 10000 and a takeover at %d: %t", tc.seen, tc.taken, got)
		}
	}
}
