package main

import (
	"fmt"
	"testing"
	"time"

	"voicegw/internal/testutil"
)

// TestNodesStoreAway: the leader of the store's cluster is killed, and then all its servers, while talkers talk and
// connections break. A client that resumes through another gateway waits until its session can be found; no client gets
// the error that it is gone.
func TestNodesStoreAway(t *testing.T) {
	t.Parallel()
	s := startSite(t, siteOptions{crowd: true})
	cr := startTalking(t, s, func(c *talker) { c.typed = true })
	allGoOn := func(while string, since time.Time) {
		t.Helper()
		if went := cr.goOn(t, since, 1); went != len(cr.talkers) {
			t.Fatalf("%d of %d continue %s:\n%s", went, len(cr.talkers), while, cr)
		}
	}
	cutAll := func() (cut time.Time) {
		cut = time.Now()
		for i := range s.gateways {
			s.balancer.cut(i)
		}
		return cut
	}

	leader := s.nats.leader(sessionsBucket)
	s.nats.kill(leader)
	cr.areBack(t, cutAll())
	allGoOn("without the store's leader", time.Now())
	s.nats.startAll()

	s.nats.killAll()
	away := time.Now()
	allGoOn("without the store", away)
	cut := cutAll()
	for _, c := range cr.talkers {
		testutil.WaitUntil(t, fmt.Sprintf("client %d has tried to come back\n%s", c.n, cr), func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.over || c.tries > 0 && c.tried.After(cut) || len(c.returns) > 0 && c.returns[len(c.returns)-1].lost.After(cut)
		})
	}
	s.nats.startAll()
	cr.areBack(t, cut)
	allGoOn("with the store again", time.Now())

	cr.hang()
	if n := cr.check(t); n != len(cr.talkers) {
		t.Errorf("%d of %d have no complaint", n, len(cr.talkers))
	}
	if n := s.began(); n != len(cr.talkers) {
		t.Errorf("%d sessions have begun, for %d clients", n, len(cr.talkers))
	}
	s.close()
	if done, unaudited := s.world.once(t, s.audits()); len(done) == 0 || unaudited > 0 {
		t.Errorf("%d side effects happened, %d of them are in no audit", len(done), unaudited)
	}
	cr.figures(t)
}
