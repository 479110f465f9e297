package voice

// window is how far back a repeated message is recognised: as far as a gateway replays (docs/protocol.md).
const window = 1024

// perAttempt is how many sequence numbers a failed attempt may use up: its session.started, and announcements of
// repeated audio. They are not replayed.
const perAttempt = 3

// order tracks which messages of a session arrived. Each has a number, seq, rising by one. After a resume, missed
// messages arrive with their old numbers.
type order struct {
	seen    [window]int64 // newest number for each remainder
	highest int64
	// settled: gaps up to this number were reported.
	settled int64
	// replaying: missed messages may still arrive.
	replaying bool
	excused   int64 // numbers that may be missing
}

// take records a message. fresh is false for a repetition. missing counts earlier messages that did not arrive; it is 1
// for an impossible number.
func (o *order) take(seq int64) (fresh bool, missing int64) {
	if seq < 1 {
		return true, 1
	}
	if o.seen[seq%window] == seq || seq <= o.highest-window {
		if !o.replaying {
			missing = 1
		}
		return false, missing
	}
	o.seen[seq%window] = seq
	if !o.replaying {
		missing = max(seq-o.highest-1, 0)
		if seq < o.highest {
			missing = 1 // it comes too late
		}
		o.settled = max(o.settled, seq)
	}
	o.highest = max(o.highest, seq)
	return true, missing
}

// ask records that the next connection replays missed messages.
func (o *order) ask() {
	o.replaying = true
	o.excused += perAttempt
}

// skip marks every message up to seq as received or lost: the gateway sent a snapshot instead.
func (o *order) skip(seq int64) { o.settled = max(o.settled, seq) }

// settle ends the replay up to a number and returns how many messages are missing. Only attempts that did not get that
// far excuse any.
func (o *order) settle(seq int64) (missing int64) {
	for n := max(o.settled+1, seq-window+1); n <= seq; n++ {
		if o.seen[n%window] != n {
			missing++
		}
	}
	missing = max(missing-max(o.excused-perAttempt, 0), 0)
	o.settled, o.replaying, o.excused = max(o.settled, seq), false, 0
	return missing
}
