package main

import (
	"slices"
	"testing"
	"time"

	"voicegw/internal/testutil"
)

// TestNodesKilled: one of three gateways is killed with SIGKILL during tool calls. Its sessions continue at the others:
// each turn is answered or fails with an error, the models remember the conversation, and no side effect happens twice.
func TestNodesKilled(t *testing.T) {
	t.Parallel()
	s := startSite(t, siteOptions{crowd: true})
	cr := startTalking(t, s, func(c *talker) { c.writes = toolLinger })
	victim, ids := s.busiest()
	hit := cr.of(ids)
	s.inTheMiddle(cr, hit)
	killed := time.Now()
	s.gateways[victim].kill()
	s.t.Logf("%d of %d sessions ran on the gateway that was killed", len(hit), len(cr.talkers))
	went := cr.goOn(t, killed, 2)
	cr.hang()
	content := cr.check(t)
	if most := (len(cr.talkers) + 99) / 100; *nodesSessions >= 100 && content < len(cr.talkers)-most || *nodesSessions < 100 && content != len(cr.talkers) {
		t.Errorf("%d of %d continue, %d have no complaint", went, len(cr.talkers), content)
	}
	if n := cr.unanswered(hit, killed); n != 0 {
		t.Errorf("%d users who were speaking when their gateway was killed got no answer", n)
	}
	s.close()
	done, unaudited := s.world.once(t, s.audits())
	t.Logf("%d side effects happened, %d of them are in no audit (their gateway was killed before it was written)", len(done), unaudited)
	cr.figuresAfter(t, hit, killed)
}

// inTheMiddle returns while a tool call of one of those sessions has had its side effect but has not returned.
func (s *site) inTheMiddle(cr *crowd, of []*talker) {
	s.t.Helper()
	before := s.world.effects(s.t)
	testutil.WaitUntil(s.t, "a tool of the gateway is at work\n"+cr.String(), func() bool {
		for key, d := range s.world.effects(s.t) {
			if _, old := before[key]; !old && d[0].Tool == toolLinger && slices.ContainsFunc(of, func(c *talker) bool { return c.session() == d[0].Session }) {
				return true
			}
		}
		return false
	})
}
