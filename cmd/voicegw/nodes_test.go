package main

import (
	"bytes"
	"flag"
	"fmt"
	"testing"
	"time"

	"voicegw/client/voice"
	"voicegw/internal/testutil"
)

// The stories of several gateways are this size by default; make cluster has them larger.
var nodesSessions = flag.Int("nodes.sessions", 12, "how many sessions talk in the tests of several gateways")

// everybody starts a crowd and waits until each has had an answer and can be found by all gateways.
func everybody(t *testing.T, s *site, change func(c *talker)) *crowd {
	t.Helper()
	began := time.Now()
	cr := newCrowd(t, s, *nodesSessions, change)
	if n := cr.goOn(t, began, 1); n != len(cr.talkers) {
		t.Fatalf("%d of %d sessions talk:\n%s", n, len(cr.talkers), cr)
	}
	s.known(len(cr.talkers))
	return cr
}

// began is how many sessions the gateways have begun.
func (s *site) began() (n int) {
	for _, g := range s.gateways {
		n += len(g.lines("session started"))
	}
	return n
}

// someSpeech is how many bytes of an answer a connection loses before it breaks: a tenth of a second.
const someSpeech = answerRate / 10 * 2

// TestNodesCutClients: all clients' connections break again and again, some in the
// middle of an answer, of which the last part never arrives. Everybody comes back through one of three
// gateways, which for most does not run their session. Nobody misses a message or a byte of an answer, and
// the models notice nothing.
func TestNodesCutClients(t *testing.T) {
	t.Parallel()
	s := startSite(t, siteOptions{crowd: true, simFlags: []string{"--speed", "1"}})
	cr := everybody(t, s, func(c *talker) { c.keep = true })
	for through := range s.gateways {
		s.balancer.only(through)
		lost := s.balancer.lose()
		testutil.WaitUntil(t, "speech is lost", func() bool { return lost(someSpeech) >= len(cr.talkers)/4 })
		cut := time.Now()
		for i := range s.gateways {
			s.balancer.cut(i)
		}
		cr.areBack(t, cut)
		if went := cr.goOn(t, time.Now(), 1); went != len(cr.talkers) {
			t.Fatalf("%d of %d go on through gateway %d:\n%s", went, len(cr.talkers), through+1, cr)
		}
	}
	s.balancer.only(-1)
	cr.hang()
	if n := cr.check(t); n != len(cr.talkers) {
		t.Errorf("%d of %d have nothing to complain of", n, len(cr.talkers))
	}
	cr.heardTheSame(t)
	s.close()
	if done, untold := s.world.once(t, s.audits()); len(done) == 0 || untold > 0 {
		t.Errorf("%d things were done, of which %d are in no audit", len(done), untold)
	}
	carried := 0
	for i, g := range s.gateways {
		carried += len(g.lines("client relayed to its session"))
		if n := len(g.lines("the model's connection is replaced")); n > 0 {
			t.Errorf("gateway %d has replaced %d connections of models", i+1, n)
		}
	}
	// Each is at home at one gateway, and came through all three.
	if want := 2 * len(cr.talkers); carried < want {
		t.Errorf("%d clients were carried to another gateway, want at least %d", carried, want)
	}
	if n := s.began(); n != len(cr.talkers) {
		t.Errorf("%d sessions have begun, for %d clients", n, len(cr.talkers))
	}
	cr.figures(t)
}

// areBack waits until everybody whose connection was lost after a moment is back, or cannot come back.
func (cr *crowd) areBack(t *testing.T, since time.Time) {
	t.Helper()
	for _, c := range cr.talkers {
		testutil.WaitUntil(t, fmt.Sprintf("client %d is back\n%s", c.n, cr), func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.over || len(c.returns) > 0 && c.returns[len(c.returns)-1].lost.After(since)
		})
	}
}

// heardTheSame checks that what the model has said again and again, in the same words and with the same
// voice, was the same for everybody, to the byte.
func (cr *crowd) heardTheSame(t *testing.T) {
	t.Helper()
	heard := map[string][]byte{} // what was first heard, by wire
	n := 0
	for _, c := range cr.talkers {
		for i, pcm := range c.items {
			if i.X == nil || i.X.Turn.Act != voice.Say || !i.X.Settled || !i.X.Completed {
				continue
			}
			n++
			wire := talkerWires[c.n%len(talkerWires)]
			if first, ok := heard[wire]; !ok {
				heard[wire] = pcm
			} else if !bytes.Equal(first, pcm) {
				t.Errorf("client %d has heard other audio in %s of turn %d than somebody else: %d bytes instead of %d", c.n, i.ID, i.X.Number, len(pcm), len(first))
			}
		}
	}
	if want := 2 * len(cr.talkers); n < want {
		t.Errorf("%d answers were compared, want at least %d", n, want)
	}
}
