package orchestrator

// settled is the position up to which the user's speech needs no replay, in ms on the client's audio clock: its words
// are known, it was answered, or the user was asked to repeat it.
type settled struct {
	upTo   int64 // everything before it is settled
	owed   bool  // speech that began at from is not settled
	from   int64
	start  int64 // start of the latest speech
	end    int64 // end of the latest finished speech
	before int64 // end of the speech before the latest

	answered answeredSpeech
}

// answeredSpeech is speech from fromMS on that the model began to answer before its words were known. If the answer
// does not reach the client, the speech is replayed.
type answeredSpeech struct {
	turn   int
	fromMS int64
}

// leadTime is how long before its report speech may have begun, in ms.
const leadTime = 1000

// begins records the beginning of speech.
func (s *settled) begins(ms int64) {
	s.start, s.before = ms, s.end
	if !s.owed {
		s.owed, s.from = true, ms
	}
}

// stops records the end of speech.
func (s *settled) stops(ms int64) { s.end = max(ms, s.start) }

// settle records that all speech is settled or, if more was said since, all before the latest.
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

// answers records that the user's speech is answered, except speech that continues or has no turn yet.
func (m *machine) answers() {
	if s := &m.user.settled; m.turn != nil && s.owed && s.answered.turn != m.turn.number {
		s.answered = answeredSpeech{turn: m.turn.number, fromMS: s.wanted(s.from)}
	}
	m.user.settled.settle(!m.user.speaks() && !m.user.unanswered)
}

// words records that the transcript of an utterance is complete.
func (m *machine) words(item string, turn int) {
	m.user.final = max(m.user.final, turn)
	m.user.settled.settle(!m.user.speaks() && (item == m.user.item || m.user.item == ""))
}

// Settled returns the position up to which the user's speech is settled, in ms on the client's audio clock, which is at
// now. Speech may be beginning unreported in the last second.
func (s State) Settled(now int64) int64 {
	u := s.user.settled
	if u.owed {
		now = u.from
	}
	return u.wanted(now)
}

// wanted returns the position from which speech that begins at ms must be heard.
func (s settled) wanted(ms int64) int64 { return max(s.upTo, ms-leadTime) }
