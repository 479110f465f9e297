package execute

import (
	"fmt"
	"time"

	"voicegw/internal/testutil"
	"voicegw/store/witness"
)

type canEffect = testutil.Can[effectState]

// protocol is the model for the explorer.
func (m *effectModel) protocol() testutil.Protocol[effectState] {
	return testutil.Protocol[effectState]{
		Steps:    m.steps,
		Promises: m.promises(),
		End:      m.end,
		Show: func(s effectState) string {
			return fmt.Sprintf("the side effect has happened %d times; the ledger is %+v", s.effects, s.ledger)
		},
	}
}

// The promises.
const (
	onceOnly    = "a side effect happens at most once while its record lives"
	neverLost   = "an acknowledged side effect is never lost"
	approved    = "an unapproved call does not run"
	neverAbsent = "a lost record is never mistaken for one that never existed"
)

func (m *effectModel) promises() []testutil.Promise[effectState] {
	broken := func(name, how string, is func(effectState) bool) testutil.Promise[effectState] {
		return testutil.Promise[effectState]{Name: name, Broken: func(s effectState) string {
			if is(s) && (m.only == "" || m.only == name) {
				return how
			}
			return ""
		}}
	}
	serves := func(s effectState) bool { return !s.sessions[0].down || !s.sessions[1].down }
	return []testutil.Promise[effectState]{
		broken(onceOnly, "it has happened twice", func(s effectState) bool { return s.effects > 1 }),
		broken(neverLost, "a caller was informed that it was done, but it was not", func(s effectState) bool { return s.acked && !s.happened }),
		broken(approved, "it has happened without an approval",
			func(s effectState) bool { return m.confirm && s.effects > 0 && !s.question.ever }),
		broken(neverAbsent, "a gateway serves without the record", func(s effectState) bool {
			return s.ledger.lost && s.ledger.entry == absent && serves(s)
		}),
	}
}

// end reports whether nothing is in progress. A gateway that does not start is an end too, until an operator decides.
func (m *effectModel) end(s effectState) bool {
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

// steps are all possible next steps.
func (m *effectModel) steps(s effectState, can canEffect) {
	for i := range s.sessions {
		if m.serves(s, i) {
			m.conversation(s, i, can)
		}
		m.life(s, i, can)
	}
	m.apiSteps(s, can)
	m.disk(s, can)
}

// serves reports whether conversation i exists and its gateway runs. One gateway has both conversations; a second one
// asks for a side effect without approval.
func (m *effectModel) serves(s effectState, i int) bool { return !s.sessions[i].down }

func person(i int) string { return fmt.Sprintf("conversation %d", i+1) }

// conversation is the steps of a conversation and its calls.
func (m *effectModel) conversation(s effectState, i int, can canEffect) {
	c := s.sessions[i]
	if s.called < m.calls && (!m.confirm || i == 0 && s.crashes == 0) {
		for id := range int8(2) {
			n := s
			n.called++
			if m.apply(&n, i, effectOp{kind: opCalled, call: id}) {
				can("", fmt.Sprintf("the model of %s calls the tool, with the id %d", person(i), id+1), n)
			}
		}
	}
	for k := range c.calls {
		who := fmt.Sprintf("%s, call %d", person(i), k+1)
		if c.calls[k].phase == asking {
			n := s
			n.question.created, n.sessions[i].calls[k].phase = true, idle
			if m.apply(&n, i, effectOp{kind: opAsked, call: int8(k)}) {
				can(who, "the question is recorded, and the user is asked", n)
			}
			continue
		}
		m.run(s, who, func(n *effectState) *effectCall { return &n.sessions[i].calls[k] }, func(n *effectState, o effectOutcome) bool {
			return m.apply(n, i, effectOp{kind: opFinished, call: int8(k), outcome: o})
		}, can)
	}
	if i == 0 {
		m.client(s, can)
	}
}

// client is the user's answer on the screen.
func (m *effectModel) client(s effectState, can canEffect) {
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
			can("the user's answer", "it is recorded, or is too late", n)
			return
		}
		if m.apply(&n, 0, effectOp{kind: opConfirmed}) {
			can("the user's answer", "the approval is recorded, and the conversation lets the call run", n)
		}
	}
}

// asked reports whether a conversation's user was asked.
func (m *effectModel) asked(c effectSession) bool {
	for _, op := range c.history {
		if op.kind == opAsked {
			return true
		}
	}
	return false
}

// resolve answers the question in the store, and reports whether this answer counts.
func (m *effectModel) resolve(s *effectState, answer effectAnswer) bool {
	if !s.question.created || s.question.outcome != unanswered {
		return false
	}
	s.question.outcome = answer
	s.question.ever = s.question.ever || answer == approving
	return true
}

// apiSteps are an approval by the API: on the gateway of the conversation, which lets the call run in it, or on
// another or later one, which runs the stored call.
func (m *effectModel) apiSteps(s effectState, can canEffect) {
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
		can("", "a caller approves by the API", n)
	case a.answer == approving:
		n := s
		n.api.answer = answered
		switch {
		case !m.resolve(&n, approving):
			can("the API's answer", "it is too late", n)
		case !m.cluster && m.asked(s.sessions[0]):
			if m.apply(&n, 0, effectOp{kind: opConfirmed}) {
				can("the API's answer", "the approval is recorded, and the conversation lets the call run", n)
			}
		default:
			n.api.call.phase = toReserve
			can("the API's answer", "the approval is recorded, and the stored call is to run", n)
		}
	}
	m.run(s, "the API's call", func(n *effectState) *effectCall { return &n.api.call }, func(n *effectState, o effectOutcome) bool {
		n.acked = n.acked || o == did || o == saidDone
		return true
	}, can)
}

// run is Executor.once, with a step for each write and for the tool.
func (m *effectModel) run(s effectState, who string, of func(*effectState) *effectCall,
	finish func(*effectState, effectOutcome) bool, can canEffect) {
	step := func(does string, change func(n *effectState, c *effectCall)) {
		n := s
		change(&n, of(&n))
		can(who, does, n)
	}
	c := *of(&s)
	switch c.phase {
	case toReserve:
		m.reserve(s, who, of, can)
	case reserving:
		step("the mark covers the reservation", func(n *effectState, c *effectCall) { n.ledger.cover(); c.phase = reserved })
	case reserved:
		step("the tool does it", func(n *effectState, c *effectCall) { n.does(); c.phase, c.outcome = ran, did })
		step("the tool does it and fails then", func(n *effectState, c *effectCall) { n.does(); c.phase, c.outcome = ran, didInPart })
		step("the tool fails, and nothing was changed", func(_ *effectState, c *effectCall) { c.phase, c.outcome = ran, didNot })
	case ran:
		if m.enters[c.outcome] == releases && !s.ledger.mark.going {
			step("the mark releases the reservation", func(n *effectState, _ *effectCall) { n.ledger.mark.going = n.ledger.mark.seq == c.seq })
			break
		}
		does := map[effectEnters]string{finishes: "its outcome is recorded",
			releases: "the reservation is released", leaves: "nothing is recorded"}
		step(does[m.enters[c.outcome]], func(n *effectState, c *effectCall) {
			n.ledger.enter(c.seq, m.enters[c.outcome])
			c.phase = recording
		})
		if s.failures < m.failures {
			step("its outcome cannot be recorded", func(n *effectState, c *effectCall) { n.failures++; c.phase = recorded })
		}
	case recording:
		step("the mark covers its outcome", func(n *effectState, c *effectCall) { n.ledger.cover(); c.phase = recorded })
	case recorded:
		n := s
		*of(&n) = effectCall{}
		if finish(&n, c.outcome) {
			can(who, "its caller gets an answer", n)
		}
	}
}

// does is the side effect itself.
func (s *effectState) does() {
	s.effects++
	s.happened = true
}

// reserve is the step that reserves the action in the ledger.
func (m *effectModel) reserve(s effectState, who string, of func(*effectState) *effectCall, can canEffect) {
	n := s
	c := of(&n)
	if e := n.ledger.entry; e == pending || e == finished {
		c.phase, c.outcome = recorded, m.finds[e]
		can(who, "finds the action in the ledger", n)
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
	can(who, "its reservation is in the stream, but the reply is lost", n)
	n = s
	n.failures++
	c = of(&n)
	c.phase, c.outcome = recorded, notRecorded
	can(who, "its reservation cannot be written", n)
}

// write replaces the record of the side effect in the stream.
func (l *effectStream) write(e effectEntry) {
	l.before, l.beforeSeq = l.entry, l.seq
	l.last++
	l.entry, l.seq, l.lost = e, l.last, false
}

// enter is Finish or Release by the holder of reservation seq.
func (l *effectStream) enter(seq int8, what effectEnters) {
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
func (l *effectStream) cover() {
	l.mark = effectMark{last: l.last, seq: l.seq, entry: l.entry, other: l.other}
	if l.entry == freed {
		l.mark.seq = 0
	}
}

// The side effect and the other one in the witness.
var effectKey, otherKey = witness.Key{1}, witness.Key{2}

// compare is the check at start: does the stream hold everything within the mark?
func (m *effectModel) compare(l effectStream) witness.Verdict {
	now := time.Unix(0, 0)
	claim := func(key witness.Key, seq int8, entry effectEntry, going bool) witness.Claim {
		return witness.Claim{Bucket: witness.Ledger, Key: key, Revision: uint64(seq), Sum: witness.Sum{byte(entry)}, Until: now.Add(time.Hour), Going: going}
	}
	known := witness.Known{Streams: map[witness.Bucket]witness.Stream{witness.Ledger: {Last: uint64(l.mark.last)}}}
	if l.mark.seq > 0 {
		known.Claims = append(known.Claims, claim(effectKey, l.mark.seq, l.mark.entry, l.mark.going))
	}
	if l.mark.other > 0 {
		known.Claims = append(known.Claims, claim(otherKey, l.mark.other, finished, false))
	}
	held := witness.Held{Last: uint64(l.last), Records: map[witness.Key]witness.Record{}}
	if l.entry == pending || l.entry == finished {
		held.Records[effectKey] = witness.Record{Revision: uint64(l.seq), Sum: witness.Sum{byte(l.entry)}}
	}
	if l.other > 0 {
		held.Records[otherKey] = witness.Record{Revision: uint64(l.other), Sum: witness.Sum{byte(finished)}}
	}
	return m.judge(known, map[witness.Bucket]witness.Held{witness.Ledger: held}, now)
}

// life is the end and the start of a gateway. A killed gateway loses its conversation; a single gateway is
// represented by the first conversation.
func (m *effectModel) life(s effectState, i int, can canEffect) {
	if !m.cluster && i > 0 {
		return
	}
	name := fmt.Sprintf("gateway %d", i+1)
	on := func(n *effectState, c effectSession) {
		n.sessions[i] = c
		if !m.cluster {
			n.sessions[1] = c
		}
	}
	if !s.sessions[i].down {
		if s.crashes < m.crashes {
			n := s
			n.crashes++
			on(&n, effectSession{down: true})
			if !m.cluster || i == 1 {
				n.api.call = effectCall{}
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
		on(&n, effectSession{})
		for _, c := range m.compare(s.ledger).Doubtful(witness.Ledger) {
			if c.Key == effectKey {
				n.ledger.write(pending) // and it is never finished
			}
		}
		n.ledger.cover()
		can("", "an operator accepts the damage: the lost record is an entry again, which is never finished", n)
	case !m.cluster && m.compare(s.ledger).Refused():
		on(&n, effectSession{down: true, refuses: true})
		can(name, "finds less than the mark covers, and does not start", n)
	default:
		on(&n, effectSession{})
		can(name, "starts", n)
	}
}

// disk is damage to the stream.
func (m *effectModel) disk(s effectState, can canEffect) {
	if s.ledger.other == 0 && !m.cluster && m.losses > 0 && !s.sessions[0].down {
		n := s
		n.ledger.last++
		n.ledger.other = n.ledger.last
		n.ledger.mark.other = n.ledger.other
		can("", "another side effect is recorded", n)
	}
	if s.expiries < m.expiries && s.ledger.entry != absent && !m.atWork(s) {
		n := s
		n.expiries++
		n.effects = 0
		n.ledger = effectStream{last: s.ledger.last, other: s.ledger.other, mark: s.ledger.mark}
		n.ledger.mark.seq = 0
		can("", "the record expires", n)
	}
	if s.losses == m.losses || !s.sessions[0].down || s.sessions[0].refuses {
		return
	}
	n := s
	n.losses++
	l := n.ledger
	if l.seq > 0 {
		for _, back := range []bool{false, true} {
			m.lose(n, "the disk loses the record", back, l.last, l.other, can)
			m.lose(n, "the disk loses the stream's end, from the record on", back, l.seq-1, notAfter(l.other, l.seq), can)
		}
	}
	if l.other > 0 {
		n.ledger.other = 0
		can("", "the disk loses the other record", n)
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

// lose removes the side effect's record from the stream; back restores the record that it replaced.
func (m *effectModel) lose(n effectState, does string, back bool, last, other int8, can canEffect) {
	l := &n.ledger
	l.lost = l.mark.seq >= l.seq && l.entry != freed && !l.mark.going
	l.entry, l.seq = absent, 0
	if back {
		if l.before == absent {
			return
		}
		l.entry, l.seq = l.before, l.beforeSeq
		does += ", and the previous one is restored"
	}
	l.before, l.beforeSeq, l.last, l.other = absent, 0, last, other
	can("", does, n)
}

// atWork reports whether a tool may be running: the record outlives it.
func (m *effectModel) atWork(s effectState) bool {
	busy := func(c effectCall) bool { return c.phase >= reserving }
	for _, c := range s.sessions {
		for _, k := range c.calls {
			if busy(k) {
				return true
			}
		}
	}
	return busy(s.api.call)
}
