package main

import (
	"syscall"
	"testing"
	"time"
)

// TestNodesDrained: one of three gateways gets SIGTERM. All its sessions continue at the others, it exits, and no side
// effect happens twice.
func TestNodesDrained(t *testing.T) {
	t.Parallel()
	s := startSite(t, siteOptions{crowd: true})
	cr := startTalking(t, s, func(c *talker) { c.writes = toolLinger })
	leaving, ids := s.busiest()
	moved := cr.of(ids)
	drained := time.Now()
	s.gateways[leaving].signal(syscall.SIGTERM)
	if code := s.gateways[leaving].exits(); code != 0 {
		t.Errorf("the gateway ended with %d", code)
	}
	t.Logf("%d of %d sessions ran on the gateway that was drained; it took %v", len(moved), len(cr.talkers), time.Since(drained).Round(time.Millisecond))
	if went := cr.goOn(t, time.Now(), 2); went != len(cr.talkers) {
		t.Errorf("%d of %d continue", went, len(cr.talkers))
	}
	cr.hang()
	if n := cr.check(t); n != len(cr.talkers) {
		t.Errorf("%d of %d have no complaint", n, len(cr.talkers))
	}
	for _, c := range moved {
		if c.moves == 0 {
			t.Errorf("client %d did not get session.moving", c.n)
		}
	}
	if n := s.began(); n != len(cr.talkers) {
		t.Errorf("%d sessions have begun, for %d clients", n, len(cr.talkers))
	}
	s.close()
	if _, unaudited := s.world.once(t, s.audits()); unaudited > 0 {
		t.Errorf("%d side effects are in no audit", unaudited)
	}
	cr.figuresAfter(t, moved, drained)
}
