package session

import (
	"fmt"
	"testing"

	"voicegw/internal/testutil"
)

// The model of calls: sessions are admitted, connect to a provider that refuses, hangs or answers, run, and end or are
// drained. It models goroutines and net/http, without code of the gateway. docs/models.md relates its lines to
// functions.

// callState is the whole state.
type callState struct {
	calls [modelCalls]callSession
	conns [modelConns]callConn
	made  int8 // number of conns used
	drain drainPhase
	tools int8 // number of stuck tools
}

const (
	modelCalls = 2
	modelConns = 6 // the most that both sessions dial
)

// callSession is one client. carries, dialled and reads are numbers of connections from 1; 0 means no connection.
type callSession struct {
	phase    callPhase
	tries    int8
	carries  int8 // the request
	dialled  int8 // the latest connection of this handshake
	answered int8 // answered with the upgrade
	reads    int8
	stuck    bool // a tool of the session never ends
}

type callPhase int8

// The phases of a session.
const (
	callWaits  callPhase = iota // waits for session.start, without a place
	callAsks                    // has a place and begins its handshake
	callDials                   // waits for a connection
	callShakes                  // its request is on a connection
	callRuns
	callEnds
	callOver // its place is free
)

type callConn struct {
	state connState
	owner int8 // the session whose handshake dialled it, from 0
}

type connState int8

// The states of a connection to the provider.
const (
	unmade connState = iota
	dialling
	carrying // a request, or a session
	idling   // in a pool
	closed
)

type drainPhase int8

// The phases of a drain.
const (
	serving drainPhase = iota
	draining
	endingAll // every session's context is done
	drained
	gaveUp // and reported the remaining sessions
)

// callModel is the model to explore.
type callModel struct {
	// lastDialled enables a former fault: handshakes share a pool, and the latest dialled connection is mistaken for
	// the one that answered.
	lastDialled bool
	tries       int8
	places      int8
	stuck       int8 // number of tools that may never end
	// boundless enables another fault: a drain waits for everything that does not end.
	boundless bool
}

// The promises.
const (
	readsAnswer = "a session reads the connection that answered"
	placesKept  = "no more sessions run than there are places"
	noneLeft    = "when a session is over, no connection of it is left"
)

func (m callModel) protocol() testutil.Protocol[callState] {
	broken := func(name string, how func(s callState, i int) string) testutil.Promise[callState] {
		return testutil.Promise[callState]{Name: name, Broken: func(s callState) string {
			for i := range s.calls {
				if text := how(s, i); text != "" {
					return fmt.Sprintf("session %d %s", i+1, text)
				}
			}
			return ""
		}}
	}
	return testutil.Protocol[callState]{
		Steps: m.steps,
		Promises: []testutil.Promise[callState]{
			broken(readsAnswer, func(s callState, i int) string {
				if c := s.calls[i]; c.phase == callRuns && c.reads != c.answered {
					return fmt.Sprintf("reads connection %d, and connection %d has answered", c.reads, c.answered)
				}
				return ""
			}),
			broken(placesKept, func(s callState, _ int) string {
				if m.placesUsed(s) > m.places {
					return "has a place too many"
				}
				return ""
			}),
			broken(noneLeft, func(s callState, i int) string {
				for _, c := range s.conns {
					if s.calls[i].phase == callOver && c.owner == int8(i) && c.state == carrying {
						return "is over, and a connection that it has dialled is open"
					}
				}
				return ""
			}),
		},
		End: func(s callState) bool {
			if s.drain == drained || s.drain == gaveUp {
				return true
			}
			if s.drain != serving {
				return false
			}
			for _, c := range s.calls {
				if c.phase != callOver && c.phase != callRuns && c.phase != callWaits && (c.phase != callEnds || !c.stuck) {
					return false
				}
			}
			return true
		},
		Show: func(s callState) string { return fmt.Sprintf("%+v", s) },
	}
}

// placesUsed counts the places in use.
func (m callModel) placesUsed(s callState) (n int8) {
	for _, c := range s.calls {
		if c.phase > callWaits && c.phase < callOver {
			n++
		}
	}
	return n
}

func (m callModel) steps(s callState, can testutil.Can[callState]) {
	for i := range s.calls {
		m.session(s, i, can)
	}
	for k := range s.conns {
		m.conn(s, k, can)
	}
	m.draining(s, can)
}

// session models a session's own actions.
func (m callModel) session(s callState, i int, can testutil.Can[callState]) {
	who, c := fmt.Sprintf("session %d", i+1), s.calls[i]
	step := func(by, does string, change func(n *callState, c *callSession)) {
		n := s
		change(&n, &n.calls[i])
		can(by, does, n)
	}
	cancelled := s.drain >= endingAll
	switch c.phase {
	case callWaits:
		switch {
		case cancelled:
			step(who, "is turned away: the gateway ends", func(_ *callState, c *callSession) { c.phase = callOver })
		case s.drain != serving || m.placesUsed(s) >= m.places:
			step("", fmt.Sprintf("client %d sends session.start, and there is no place", i+1), func(_ *callState, c *callSession) { c.phase = callOver })
		default:
			step("", fmt.Sprintf("client %d sends session.start, and gets a place", i+1), func(_ *callState, c *callSession) { c.phase = callAsks })
		}
		step("", fmt.Sprintf("client %d leaves", i+1), func(_ *callState, c *callSession) { c.phase = callOver })
	case callAsks:
		m.ask(s, i, can)
	case callDials, callShakes:
		does := "its time to connect is over"
		if cancelled {
			does = "gives its handshake up: the gateway ends"
		}
		step(who, does, func(n *callState, c *callSession) { m.giveUp(n, i); c.phase = callEnds })
	case callRuns:
		if cancelled {
			step(who, "ends: the gateway ends", func(_ *callState, c *callSession) { c.phase = callEnds })
			return
		}
		step("", fmt.Sprintf("client %d hangs up", i+1), func(_ *callState, c *callSession) { c.phase = callEnds })
		if s.tools < m.stuck {
			step("", fmt.Sprintf("a tool of session %d hangs", i+1), func(n *callState, c *callSession) { n.tools++; c.stuck = true })
		}
	case callEnds:
		if !c.stuck {
			step(who, "is over, and its place is free", func(n *callState, c *callSession) {
				n.close(c.answered)
				*c = callSession{phase: callOver}
			})
		}
	}
}

// ask begins a handshake: with an idle connection if the pool is shared, or with a new one.
func (m callModel) ask(s callState, i int, can testutil.Can[callState]) {
	who := fmt.Sprintf("session %d", i+1)
	if m.lastDialled {
		for k, c := range s.conns {
			if c.state == idling {
				n := s
				n.conns[k].state = carrying
				n.calls[i].phase, n.calls[i].carries = callShakes, int8(k+1)
				can(who, fmt.Sprintf("asks over connection %d, which idled", k+1), n)
				return
			}
		}
	}
	if s.made == modelConns {
		return
	}
	n := s
	n.conns[n.made] = callConn{state: dialling, owner: int8(i)}
	n.made++
	n.calls[i].phase, n.calls[i].dialled = callDials, n.made
	can(who, fmt.Sprintf("dials connection %d", n.made), n)
}

// conn models a connection: it is dialled, and the provider refuses or accepts.
func (m callModel) conn(s callState, k int, can testutil.Can[callState]) {
	name := int8(k + 1)
	switch c := s.conns[k]; c.state {
	case dialling:
		n := s
		if o := s.calls[c.owner]; !m.lastDialled && (o.phase != callDials || o.dialled != name) {
			n.conns[k].state = closed
			can("the dialler", fmt.Sprintf("connection %d comes too late, and is closed", name), n)
			return
		}
		m.free(&n, k)
		can("", fmt.Sprintf("connection %d is dialled", name), n)
	case carrying:
		i := s.carriedBy(name)
		if i < 0 {
			return
		}
		n := s
		h := &n.calls[i]
		h.phase, h.answered, h.reads = callRuns, name, name
		if m.lastDialled && h.dialled != 0 {
			h.reads = h.dialled
		}
		h.carries = 0
		can("", fmt.Sprintf("the provider accepts session %d over connection %d", i+1, name), n)
		n = s
		h = &n.calls[i]
		h.carries, h.tries = 0, h.tries+1
		h.phase = callAsks
		if h.tries == m.tries {
			h.phase = callEnds
		}
		if m.lastDialled {
			m.free(&n, k)
		} else {
			n.conns[k].state = closed
		}
		can("", fmt.Sprintf("the provider refuses session %d over connection %d", i+1, name), n)
	}
}

// carriedBy returns the session whose request is on a connection, or -1.
func (s callState) carriedBy(name int8) int {
	for i, c := range s.calls {
		if c.phase == callShakes && c.carries == name {
			return i
		}
	}
	return -1
}

// free gives a connection to a waiting handshake: its own, or any if the pool is shared. Otherwise it becomes idle.
func (m callModel) free(s *callState, k int) {
	s.conns[k].state = idling
	for i := range s.calls {
		c := &s.calls[i]
		if c.phase == callDials && (m.lastDialled || s.conns[k].owner == int8(i)) {
			c.phase, c.carries = callShakes, int8(k+1)
			s.conns[k].state = carrying
			return
		}
	}
}

// giveUp ends a handshake and its own connections.
func (m callModel) giveUp(s *callState, i int) {
	s.close(s.calls[i].carries)
	s.calls[i].carries = 0
}

func (s *callState) close(name int8) {
	if name > 0 {
		s.conns[name-1].state = closed
	}
}

// draining models Manager.Drain, and the signals.
func (m callModel) draining(s callState, can testutil.Can[callState]) {
	step := func(by, does string, to drainPhase) {
		n := s
		n.drain = to
		can(by, does, n)
	}
	over := true
	for _, c := range s.calls {
		over = over && c.phase == callOver
	}
	switch s.drain {
	case serving:
		step("", "the first signal comes", draining)
	case draining:
		if m.placesUsed(s) == 0 {
			step("the drain", "no session runs any more", endingAll)
		}
		step("the drain", "the time to drain is over", endingAll)
		step("", "the second signal comes", endingAll)
	case endingAll:
		if over {
			step("the drain", "nothing is left", drained)
		} else if !m.boundless {
			step("the drain", "its remainder is over, and it says what is left", gaveUp)
		}
	}
}

func newCallModel() callModel {
	m := callModel{tries: 2, places: 1, stuck: 1}
	if testutil.Deep() {
		m.tries, m.places, m.stuck = 3, 2, 2
	}
	return m
}

// TestModelOfCalls explores calls with their handshakes, and a drain at any moment.
func TestModelOfCalls(t *testing.T) {
	testutil.Keeps(t, newCallModel().protocol())
	two := newCallModel()
	two.places = 2
	testutil.Keeps(t, two.protocol())
}

// TestModelFindsSharedPool: before each handshake had its own connections, a session read the connection that it had
// dialled last, while another had answered.
func TestModelFindsSharedPool(t *testing.T) {
	m := callModel{lastDialled: true, tries: 2, places: 2}
	testutil.Breaks(t, m.protocol(), readsAnswer)
}

// TestModelFindsEndlessDrain: without a time limit, a drain waited for a tool that never ends.
func TestModelFindsEndlessDrain(t *testing.T) {
	m := callModel{boundless: true, tries: 1, places: 1, stuck: 1}
	testutil.Breaks(t, m.protocol(), testutil.Reachable)
}
