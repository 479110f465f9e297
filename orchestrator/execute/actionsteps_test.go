package execute

import (
	"fmt"
	"time"

	"voicegw/internal/testutil"
	"voicegw/store/witness"
)

type canDeed = testutil.Can[deedState]

// protocol is the model as it is explored.
func (m *deedModel) protocol() testutil.Protocol[deedState] {
	return testutil.Protocol[deedState]{
		Steps:    m.steps,
		Promises: m.promises(),
		End:      m.end,
		Show: func(s deedState) string {
			return fmt.Sprintf("the deed has happened %d times; the ledger is %+v", s.effects, s.ledger)
		},
	}
}

// The promises.
const (
	onceOnly    = "a deed happens at most once while its record lives"
	neverLost   = "what was acknowledged is never lost"
	approved    = "what nobody has approved does not run"
	neverAbsent = "a lost record is never taken for one that never was"
)

func (m *deedModel) promises() []testutil.Promise[deedState] {
	broken := func(name, how string, is func(deedState) bool) testutil.Promise[deedState] {
		return testutil.Promise[deedState]{Name: name, Broken: func(s deedState) string {
			if is(s) && (m.only == "" || m.only == name) {
				return how
			}
			return ""
		}}
	}
	serves := func(s deedState) bool { return !s.sessions[0].down || !s.sessions[1].down }
	return []testutil.Promise[deedState]{
		broken(onceOnly, "it has happened twice", func(s deedState) bool { return s.effects > 1 }),
		broken(neverLost, "somebody was told that it was done, and it was not", func(s deedState) bool { return s.acked && !s.happened }),
		broken(approved, "it has happened, and nobody has approved it", func(s deedState) bool { return m.confirm && s.effects > 0 && !s.question.ever }),
		broken(neverAbsent, "a gateway serves without the record", func(s deedState) bool {
			return s.ledger.lost && s.ledger.entry == absent && serves(s)
		}),
	}
}

// end says whether nothing is under way any more: a gateway that does not start is an end
// too, until somebody chooses.
func (m *deedModel) end(s deedState) bool {
	for _, c := range s.sessions {
		if c.down && !c.refuses || c.answer == approving || c.answer == declining {
			return false
		}
		for _, k := range c.calls {
			if k.phase != idle {
				return false
			}
		}
	}
	return s.api.call.phase == idle && s.api.answer != approving
}

// steps are all that can happen next.
func (m *deedModel) steps(s deedState, can canDeed) {
	for i := range s.sessions {
		if m.serves(s, i) {
			m.conversation(s, i, can)
		}
		m.life(s, i, can)
	}
	m.apiSteps(s, can)
	m.disk(s, can)
}

// serves says whether there is a conversation of that number and its gateway runs. With one
// gateway both are on it; a second conversation asks for what needs no approval.
func (m *deedModel) serves(s deedState, i int) bool { return !s.sessions[i].down }

func person(i int) string { return fmt.Sprintf("conversation %d", i+1) }

// conversation is what a conversation and its calls can do.
func (m *deedModel) conversation(s deedState, i int, can canDeed) {
	c := s.sessions[i]
	if s.called < m.calls && (!m.confirm || i == 0 && s.crashes == 0) {
		for id := range int8(2) {
			n := s
			n.called++
			if m.tell(&n, i, deedOp{kind: opCalled, call: id}) {
				can("", fmt.Sprintf("the model of %s calls for the deed, under the id %d", person(i), id+1), n)
			}
		}
	}
	for k := range c.calls {
		who := fmt.Sprintf("%s, call %d", person(i), k+1)
		if c.calls[k].phase == asking {
			n := s
			n.question.created, n.sessions[i].calls[k].phase = true, idle
			if m.tell(&n, i, deedOp{kind: opAsked, call: int8(k)}) {
				can(who, "the question is recorded, and the user is asked", n)
			}
			continue
		}
		m.run(s, who, func(n *deedState) *deedCall { return &n.sessions[i].calls[k] }, func(n *deedState, o deedOutcome) bool {
			return m.tell(n, i, deedOp{kind: opFinished, call: int8(k), outcome: o})
		}, can)
	}
	if i == 0 {
		m.client(s, can)
	}
}

// client is the user's answer on the screen.
func (m *deedModel) client(s deedState, can canDeed) {
	c := s.sessions[0]
	switch {
	case c.answer == unanswered && m.asked(c):
		n := s
		n.sessions[0].answer = approving
		can("", "the user approves on the screen", n)
		n.sessions[0].answer = declining
		can("", "the user declines on the screen", n)
	case c.answer == approving || c.answer == declining:
		n := s
		counts := m.resolve(&n, c.answer)
		n.sessions[0].answer = answered
		if !counts || c.answer == declining {
			can("the user's answer", "it is recorded, or comes too late", n)
			return
		}
		if m.tell(&n, 0, deedOp{kind: opConfirmed}) {
			can("the user's answer", "the approval is recorded, and the conversation lets the call run", n)
		}
	}
}

// asked says whether a conversation's user was asked.
func (m *deedModel) asked(c deedSession) bool {
	for _, op := range c.told {
		if op.kind == opAsked {
			return true
		}
	}
	return false
}

// resolve answers the question in the store, and says whether this answer counts.
func (m *deedModel) resolve(s *deedState, answer deedAnswer) bool {
	if !s.question.created || s.question.outcome != unanswered {
		return false
	}
	s.question.outcome = answer
	s.question.ever = s.question.ever || answer == approving
	return true
}

// apiSteps are an approval by the API: on the gateway of the conversation, which lets the call
// run in it, or on another or later one, which runs what is stored.
func (m *deedModel) apiSteps(s deedState, can canDeed) {
	on := 0
	if m.cluster {
		on = 1
	}
	if !m.confirm || s.sessions[on].down {
		return
	}
	switch a := s.api; {
	case a.answer == unanswered && s.question.created:
		n := s
		n.api.answer = approving
		can("", "somebody approves by the API", n)
	case a.answer == approving:
		n := s
		n.api.answer = answered
		switch {
		case !m.resolve(&n, approving):
			can("the API's answer", "it comes too late", n)
		case !m.cluster && m.asked(s.sessions[0]):
			if m.tell(&n, 0, deedOp{kind: opConfirmed}) {
				can("the API's answer", "the approval is recorded, and the conversation lets the call run", n)
			}
		default:
			n.api.call.phase = toReserve
			can("the API's answer", "the approval is recorded, and what is stored is to run", n)
		}
	}
	m.run(s, "the API's call", func(n *deedState) *deedCall { return &n.api.call }, func(n *deedState, o deedOutcome) bool {
		n.acked = n.acked || o == did || o == saidDone
		return true
	}, can)
}

// run is Executor.once, a step for each write and for the tool.
func (m *deedModel) run(s deedState, who string, of func(*deedState) *deedCall, finish func(*deedState, deedOutcome) bool, can canDeed) {
	step := func(does string, change func(n *deedState, c *deedCall)) {
		n := s
		change(&n, of(&n))
		can(who, does, n)
	}
	c := *of(&s)
	switch c.phase {
	case toReserve:
		m.reserve(s, who, of, can)
	case reserving:
		step("the mark covers the reservation", func(n *deedState, c *deedCall) { n.ledger.cover(); c.phase = reserved })
	case reserved:
		step("the tool does it", func(n *deedState, c *deedCall) { n.does(); c.phase, c.outcome = ran, did })
		step("the tool does it and fails then", func(n *deedState, c *deedCall) { n.does(); c.phase, c.outcome = ran, didInPart })
		step("the tool fails, and nothing was changed", func(_ *deedState, c *deedCall) { c.phase, c.outcome = ran, didNot })
	case ran:
		if m.enters[c.outcome] == releases && !s.ledger.mark.going {
			step("the mark lets the reservation go", func(n *deedState, _ *deedCall) { n.ledger.mark.going = n.ledger.mark.seq == c.seq })
			break
		}
		does := map[deedEnters]string{finishes: "what came of it is entered", releases: "the reservation is given back", leaves: "nothing is entered"}
		step(does[m.enters[c.outcome]], func(n *deedState, c *deedCall) {
			n.ledger.enter(c.seq, m.enters[c.outcome])
			c.phase = recording
		})
		if s.failures < m.failures {
			step("what came of it cannot be entered", func(n *deedState, c *deedCall) { n.failures++; c.phase = recorded })
		}
	case recording:
		step("the mark covers what came of it", func(n *deedState, c *deedCall) { n.ledger.cover(); c.phase = recorded })
	case recorded:
		n := s
		*of(&n) = deedCall{}
		if finish(&n, c.outcome) {
			can(who, "its caller is answered", n)
		}
	}
}

// does is the deed itself.
func (s *deedState) does() {
	s.effects++
	s.happened = true
}

// reserve is the step in which the ledger is asked.
func (m *deedModel) reserve(s deedState, who string, of func(*deedState) *deedCall, can canDeed) {
	n := s
	c := of(&n)
	if e := n.ledger.entry; e == pending || e == finished {
		c.phase, c.outcome = recorded, m.finds[e]
		can(who, "finds the deed in the ledger", n)
		return
	}
	n.ledger.write(pending)
	c.phase, c.seq = reserving, n.ledger.seq
	can(who, "its reservation is in the stream", n)
	if s.failures == m.failures {
		return
	}
	n.failures++
	c.phase, c.outcome = recorded, notRecorded
	can(who, "its reservation is in the stream, and nobody tells it so", n)
	n = s
	n.failures++
	c = of(&n)
	c.phase, c.outcome = recorded, notRecorded
	can(who, "its reservation cannot be written", n)
}

// write puts a record of the deed into the stream, in the place of the one there is.
func (l *deedStream) write(e deedEntry) {
	l.before, l.beforeSeq = l.entry, l.seq
	l.last++
	l.entry, l.seq, l.lost = e, l.last, false
}

// enter is Finish or Release, for whoever holds the reservation of that number.
func (l *deedStream) enter(seq int8, what deedEnters) {
	if l.entry != pending || l.seq != seq {
		return
	}
	switch what {
	case finishes:
		l.write(finished)
	case releases:
		l.write(freed)
	}
}

// cover writes the mark.
func (l *deedStream) cover() {
	l.mark = deedMark{last: l.last, seq: l.seq, entry: l.entry, other: l.other}
	if l.entry == freed {
		l.mark.seq = 0
	}
}

// The deed and its neighbour in the witness.
var deedKey, otherKey = witness.Key{1}, witness.Key{2}

// compare is what is asked at start: what does the stream hold of what the mark covers?
func (m *deedModel) compare(l deedStream) witness.Verdict {
	now := time.Unix(0, 0)
	claim := func(key witness.Key, seq int8, entry deedEntry, going bool) witness.Claim {
		return witness.Claim{Bucket: witness.Ledger, Key: key, Revision: uint64(seq), Sum: witness.Sum{byte(entry)}, Until: now.Add(time.Hour), Going: going}
	}
	known := witness.Known{Streams: map[witness.Bucket]witness.Stream{witness.Ledger: {Last: uint64(l.mark.last)}}}
	if l.mark.seq > 0 {
		known.Claims = append(known.Claims, claim(deedKey, l.mark.seq, l.mark.entry, l.mark.going))
	}
	if l.mark.other > 0 {
		known.Claims = append(known.Claims, claim(otherKey, l.mark.other, finished, false))
	}
	held := witness.Held{Last: uint64(l.last), Records: map[witness.Key]witness.Record{}}
	if l.entry == pending || l.entry == finished {
		held.Records[deedKey] = witness.Record{Revision: uint64(l.seq), Sum: witness.Sum{byte(l.entry)}}
	}
	if l.other > 0 {
		held.Records[otherKey] = witness.Record{Revision: uint64(l.other), Sum: witness.Sum{byte(finished)}}
	}
	return m.judge(known, map[witness.Bucket]witness.Held{witness.Ledger: held}, now)
}

// life is the end of a gateway, and its start. A gateway of a conversation is killed with all
// that it knows; where there is one alone, the first conversation stands for it.
func (m *deedModel) life(s deedState, i int, can canDeed) {
	if !m.cluster && i > 0 {
		return
	}
	name := fmt.Sprintf("gateway %d", i+1)
	on := func(n *deedState, c deedSession) {
		n.sessions[i] = c
		if !m.cluster {
			n.sessions[1] = c
		}
	}
	if !s.sessions[i].down {
		if s.crashes < m.crashes {
			n := s
			n.crashes++
			on(&n, deedSession{down: true})
			if !m.cluster || i == 1 {
				n.api.call = deedCall{}
				if n.api.answer == approving {
					n.api.answer = unanswered
				}
			}
			can("", name+" is killed", n)
		}
		return
	}
	n := s
	switch {
	case s.sessions[i].refuses:
		on(&n, deedSession{})
		for _, c := range m.compare(s.ledger).Doubtful(witness.Ledger) {
			if c.Key == deedKey {
				n.ledger.write(pending) // and nobody ever finishes it
			}
		}
		n.ledger.cover()
		can("", "somebody accepts the damage: what was lost is an entry again, that nobody finishes", n)
	case !m.cluster && m.compare(s.ledger).Refused():
		on(&n, deedSession{down: true, refuses: true})
		can(name, "finds less than the mark covers, and does not start", n)
	default:
		on(&n, deedSession{})
		can(name, "starts", n)
	}
}

// disk is what happens to the stream from outside.
func (m *deedModel) disk(s deedState, can canDeed) {
	if s.ledger.other == 0 && !m.cluster && m.losses > 0 && !s.sessions[0].down {
		n := s
		n.ledger.last++
		n.ledger.other = n.ledger.last
		n.ledger.mark.other = n.ledger.other
		can("", "another deed is entered", n)
	}
	if s.expiries < m.expiries && s.ledger.entry != absent && !m.atWork(s) {
		n := s
		n.expiries++
		n.effects = 0
		n.ledger = deedStream{last: s.ledger.last, other: s.ledger.other, mark: s.ledger.mark}
		n.ledger.mark.seq = 0
		can("", "the life of the deed's record ends", n)
	}
	if s.losses == m.losses || !s.sessions[0].down || s.sessions[0].refuses {
		return
	}
	n := s
	n.losses++
	l := n.ledger
	if l.seq > 0 {
		for _, back := range []bool{false, true} {
			m.lose(n, "the disk loses the deed's record", back, l.last, l.other, can)
			m.lose(n, "the disk loses the stream's end, from the deed's record on", back, l.seq-1, notAfter(l.other, l.seq), can)
		}
	}
	if l.other > 0 {
		n.ledger.other = 0
		can("", "the disk loses the other deed's record", n)
	}
	if m.confirm && n.question.outcome != unanswered {
		n.ledger = l
		n.question.outcome = unanswered
		can("", "the disk loses the answer to the question", n)
	}
}

func notAfter(seq, end int8) int8 {
	if seq >= end {
		return 0
	}
	return seq
}

// lose takes the deed's record out of the stream; back brings back what it had replaced.
func (m *deedModel) lose(n deedState, does string, back bool, last, other int8, can canDeed) {
	l := &n.ledger
	l.lost = l.mark.seq >= l.seq && l.entry != freed && !l.mark.going
	l.entry, l.seq = absent, 0
	if back {
		if l.before == absent {
			return
		}
		l.entry, l.seq = l.before, l.beforeSeq
		does += ", and the one before is back"
	}
	l.before, l.beforeSeq, l.last, l.other = absent, 0, last, other
	can("", does, n)
}

// atWork says whether a tool may be doing the deed: its record outlives that.
func (m *deedModel) atWork(s deedState) bool {
	busy := func(c deedCall) bool { return c.phase >= reserving }
	for _, c := range s.sessions {
		for _, k := range c.calls {
			if busy(k) {
				return true
			}
		}
	}
	return busy(s.api.call)
}
