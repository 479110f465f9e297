package orchestrator

// settled is how far the user's speech is settled, in ms on the client's audio clock: its words are
// known or were answered, or the user was asked to say them again. What is not settled must be heard
// again by another process that goes on with the session.
type settled struct {
	upTo   int64 // everything before it is settled
	owed   bool  // speech that began at from is not
	from   int64
	start  int64 // where the latest speech began
	end    int64 // where the latest speech ended; of speech that goes on, where the one before it ended
	before int64 // where the speech before the latest one ended

	answered answeredSpeech
}

// answeredSpeech is what the model has begun to answer in a turn although its words were not known:
// speech from fromMS on. If the answer does not reach the client, it is said again.
type answeredSpeech struct {
	turn   int
	fromMS int64
}

// leadTime is how long before speech is reported it may have begun, in ms.
const leadTime = 1000

// begins takes the beginning of speech.
func (s *settled) begins(ms int64) {
	s.start, s.before = ms, s.end
	if !s.owed {
		s.owed, s.from = true, ms
	}
}

// stops takes the end of speech.
func (s *settled) stops(ms int64) { s.end = max(ms, s.start) }

// settle records that the user's speech is settled: all of it or, if more was said since, what was
// said before the latest speech.
func (s *settled) settle(all bool) {
	if all {
		s.upTo, s.owed = max(s.upTo, s.end), false
		return
	}
	s.upTo = max(s.upTo, s.before)
	if s.owed {
		s.from = max(s.from, s.start)
	}
}

// answers records that the user's speech is answered, but for what they are saying and what is still to
// get a turn.
func (m *machine) answers() {
	if s := &m.user.settled; m.turn != nil && s.owed && s.answered.turn != m.turn.number {
		s.answered = answeredSpeech{turn: m.turn.number, fromMS: s.wanted(s.from)}
	}
	m.user.settled.settle(!m.user.speaks() && !m.user.unanswered)
}

// words records that the words of an utterance are complete.
func (m *machine) words(item string, turn int) {
	m.user.final = max(m.user.final, turn)
	m.user.settled.settle(!m.user.speaks() && (item == m.user.item || m.user.item == ""))
}

// Settled returns up to where the user's speech is settled, in ms on the client's audio clock, which
// has come to now. In the last second speech may be beginning that nobody has reported yet.
func (s State) Settled(now int64) int64 {
	u := s.user.settled
	if u.owed {
		now = u.from
	}
	return u.wanted(now)
}

// wanted returns from where speech must be heard that begins at ms.
func (s settled) wanted(ms int64) int64 { return max(s.upTo, ms-leadTime) }
