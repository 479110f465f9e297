package voice

// window is how far back a message may come again and be known: as far as a gateway sends messages
// again (docs/protocol.md).
const window = 1024

// perAttempt is how many numbers a connection may have used up that broke before everything missed had
// come again: its session.started, and what announced audio again. They are not sent again.
const perAttempt = 3

// order knows which messages of a session have come. Each carries a number, seq, rising by one; after
// a resume those that were missed come with their old numbers.
type order struct {
	seen    [window]int64 // the newest number of each remainder
	highest int64
	// settled: what is missing up to here has been told.
	settled int64
	// replaying: what was missed may still come.
	replaying bool
	excused   int64 // so many numbers may be missing
}

// take notes a message. fresh is false if it came before. missing counts the messages that should have
// come before it, or is 1 if its number is impossible.
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

// ask says that a connection is about to be made on which missed messages come again.
func (o *order) ask() {
	o.replaying = true
	o.excused += perAttempt
}

// skip says that nothing up to a number comes any more that has not come: the gateway has sent a
// snapshot instead.
func (o *order) skip(seq int64) { o.settled = max(o.settled, seq) }

// settle says that what was missed up to a number has come again, and returns how many messages have
// not. Only attempts that did not get so far excuse any.
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
