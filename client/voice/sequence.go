package voice

// window is the number of messages that a gateway can replay (docs/protocol.md).
const window = 1024

// perAttempt is how many sequence numbers a failed attempt may use up: its session.started, and announcements of
// repeated audio. They are not replayed.
const perAttempt = 3

// sequence tracks which messages of a session arrived. Each has a number, seq, rising by one. After a resume, missed
// messages arrive with their old numbers.
type sequence struct {
	seen    [window]int64 // newest number for each remainder
	highest int64
	// settled: gaps up to this number were reported.
	settled int64
	// replaying: missed messages may still arrive.
	replaying bool
	excused   int64 // numbers that may be missing
}

// receive records a message. fresh is false for a repetition. missing counts earlier messages that did not arrive; it
// is 1 for an impossible number.
func (s *sequence) receive(seq int64) (fresh bool, missing int64) {
	if seq < 1 {
		return true, 1
	}
	if s.seen[seq%window] == seq || seq <= s.highest-window {
		if !s.replaying {
			missing = 1
		}
		return false, missing
	}
	s.seen[seq%window] = seq
	if !s.replaying {
		missing = max(seq-s.highest-1, 0)
		if seq < s.highest {
			missing = 1 // it is late
		}
		s.settled = max(s.settled, seq)
	}
	s.highest = max(s.highest, seq)
	return true, missing
}

// expectReplay records that the next connection replays missed messages.
func (s *sequence) expectReplay() {
	s.replaying = true
	s.excused += perAttempt
}

// skipTo marks every message up to seq as received or lost: the gateway sent a snapshot instead.
func (s *sequence) skipTo(seq int64) { s.settled = max(s.settled, seq) }

// settle ends the replay up to a number and returns how many messages are missing. Only attempts that did not get that
// far excuse any.
func (s *sequence) settle(seq int64) (missing int64) {
	for n := max(s.settled+1, seq-window+1); n <= seq; n++ {
		if s.seen[n%window] != n {
			missing++
		}
	}
	missing = max(missing-max(s.excused-perAttempt, 0), 0)
	s.settled, s.replaying, s.excused = max(s.settled, seq), false, 0
	return missing
}
