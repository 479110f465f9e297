package main

import (
	"regexp"
	"syscall"
	"testing"
	"time"

	"voicegw/internal/testutil"
)

// TestNodesZombie: one of three gateways is stopped with SIGSTOP during tool calls, for longer than its lease. The others
// take over its sessions. After SIGCONT it ends them and starts nothing, so that no side effect happens twice.
func TestNodesZombie(t *testing.T) {
	t.Parallel()
	s := startSite(t, siteOptions{crowd: true})
	cr := startTalking(t, s, func(c *talker) { c.writes, c.typed = toolLinger, true })
	stopped, ids := s.busiest()
	zombie := s.gateways[stopped]
	hit := cr.of(ids)
	s.inTheMiddle(cr, hit)
	began := time.Now()
	zombie.signal(syscall.SIGSTOP)
	// A balancer ends the connections to a gateway that no longer answers.
	testutil.WaitUntil(t, "the balancer passes it over", func() bool { return !s.balancer.backends[stopped].is() })
	s.balancer.cut(stopped)
	went := cr.goOn(t, began, 2)
	before := s.doneBy(zombie)
	zombie.signal(syscall.SIGCONT)
	testutil.WaitUntil(t, "it gives its sessions up", func() bool {
		list, err := s.sessions(stopped)
		own := 0
		for _, l := range list {
			if l.Node == "" {
				own++
			}
		}
		return err == nil && own == 0
	})
	if n := cr.goOn(t, time.Now(), 2); n != went || n != len(cr.talkers) {
		t.Errorf("%d of %d continue while it is stopped, %d after it runs again", went, len(cr.talkers), n)
	}
	if after := s.doneBy(zombie); after != before {
		t.Errorf("it had %d side effects after SIGCONT", after-before)
	}
	for _, id := range ids {
		ended := regexp.MustCompile(`"msg":"session ended","session_id":"` + id + `","reason":"([a-z_]+)"`).FindStringSubmatch(zombie.said.String())
		if len(ended) != 2 || ended[1] != "taken_over" {
			t.Errorf("session %s has ended with %q, not because of a takeover", id, ended)
		}
	}
	cr.hang()
	if n := cr.check(t); n != len(cr.talkers) {
		t.Errorf("%d of %d have no complaint", n, len(cr.talkers))
	}
	s.close()
	s.world.once(t, s.audits())
	cr.figuresAfter(t, hit, began)
}

// doneBy counts the side effects of a gateway's tools.
func (s *site) doneBy(n *node) (times int) {
	for _, all := range s.world.effects(s.t) {
		for _, d := range all {
			if d.PID == n.cmd.Process.Pid {
				times++
			}
		}
	}
	return times
}
