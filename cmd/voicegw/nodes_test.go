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

// By default the tests of several gateways have this size; make cluster uses a larger one.
var nodesSessions = flag.Int("nodes.sessions", 12, "how many sessions talk in the tests of several gateways")

// startTalking starts a crowd and waits until each caller has had an answer and all gateways list its session.
func startTalking(t *testing.T, s *site, change func(c *talker)) *crowd {
	t.Helper()
	began := time.Now()
	cr := newCrowd(t, s, *nodesSessions, change)
	if n := cr.goOn(t, began, 1); n != len(cr.talkers) {
		t.Fatalf("%d of %d sessions talk:\n%s", n, len(cr.talkers), cr)
	}
	s.known(len(cr.talkers))
	return cr
}

// began is the number of sessions that the gateways have started.
func (s *site) began() (n int) {
	for _, g := range s.gateways {
		n += len(g.lines("session started"))
	}
	return n
}

// someSpeech is the number of bytes of an answer that a connection loses before it breaks: a tenth of a second.
const someSpeech = answerRate / 10 * 2

// TestNodesCutClients: all clients' connections break repeatedly, some in the middle of an answer, so that its last part
// is lost. Each client resumes through one of three gateways, usually not the one that runs its session. No client misses
// a message or a byte of an answer, and the models do not notice.
func TestNodesCutClients(t *testing.T) {
	t.Parallel()
	s := startSite(t, siteOptions{crowd: true, simFlags: []string{"--speed", "1"}})
	cr := startTalking(t, s, func(c *talker) { c.keep = true })
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
			t.Fatalf("%d of %d continue through gateway %d:\n%s", went, len(cr.talkers), through+1, cr)
		}
	}
	s.balancer.only(-1)
	cr.hang()
	if n := cr.check(t); n != len(cr.talkers) {
		t.Errorf("%d of %d have no complaint", n, len(cr.talkers))
	}
	cr.heardTheSame(t)
	s.close()
	if done, unaudited := s.world.once(t, s.audits()); len(done) == 0 || unaudited > 0 {
		t.Errorf("%d side effects happened, %d of them are in no audit", len(done), unaudited)
	}
	carried := 0
	for i, g := range s.gateways {
		carried += len(g.lines("client relayed to its session"))
		if n := len(g.lines("the model's connection is replaced")); n > 0 {
			t.Errorf("gateway %d has replaced %d connections of models", i+1, n)
		}
	}
	// Each session runs at one gateway, and its client used all three.
	if want := 2 * len(cr.talkers); carried < want {
		t.Errorf("%d clients were carried to another gateway, want at least %d", carried, want)
	}
	if n := s.began(); n != len(cr.talkers) {
		t.Errorf("%d sessions have begun, for %d clients", n, len(cr.talkers))
	}
	cr.figures(t)
}

// areBack waits until each client that lost its connection after a moment has resumed, or cannot resume.
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

// heardTheSame checks that a repeated answer, with the same text and voice, is identical to the byte for all callers.
func (cr *crowd) heardTheSame(t *testing.T) {
	t.Helper()
	heard := map[string][]byte{} // the first audio of each wire
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
				t.Errorf("the audio of client %d in %s of turn %d differs from another client's: %d bytes instead of %d", c.n, i.ID, i.X.Number, len(pcm), len(first))
			}
		}
	}
	if want := 2 * len(cr.talkers); n < want {
		t.Errorf("%d answers were compared, want at least %d", n, want)
	}
}
