package orchestrator

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"time"

	"voicegw/transport"
)

const (
	// firstPause is the pause after the first failed attempt. It doubles up to longestPause and varies by a quarter, so
	// that sessions do not reconnect all at once.
	firstPause   = 250 * time.Millisecond
	longestPause = 4 * time.Second
	provenAfter  = 10 * time.Second // the age at which a connection counts as working even without an answer
	patientTries = 2                // the number of attempts with one provider before the other is tried
	longestWish  = time.Second      // the longest wait that a provider may ask for if there is another provider
)

// Loss describes a failed connection or answer.
type Loss struct {
	Kind  transport.Kind
	After time.Duration // the wait that the provider asks for; zero if none
	Other bool          // another provider is available
}

// Attempt is the reaction to a failure.
type Attempt struct {
	After time.Duration // the pause before the attempt
	Other bool          // selects the other provider from now on
	Over  bool          // no further attempt is made
}

// Attempts is the budget of a session's connections to its model. New connections and failed answers draw on it; a
// connection that completes a turn, or is old enough, refills it. It is a small value without pointers.
type Attempts struct {
	seed    uint16  // makes the pauses of sessions different
	seconds uint8   // limit of a row of failures
	made    uint8   // attempts in this row
	failed  uint8   // failures of the current provider in this row
	moved   bool    // the other provider was tried in this row
	refuses [2]bool // the current and the other provider have refused permanently in this row

	// In nanoseconds since the Unix epoch, zero for none.
	since  int64 // start of this row; zero without one
	opened int64 // when the connection was opened; zero without one
}

func (a Attempts) within() time.Duration { return time.Duration(a.seconds) * time.Second }

// NewAttempts returns a full budget. A row of failures ends within the given whole seconds, up to 255. Seeds should
// differ.
func NewAttempts(within time.Duration, seed uint16) Attempts {
	return Attempts{seconds: uint8(min((within+time.Second-1)/time.Second, 255)), seed: seed}
}

func (a *Attempts) open(at time.Time) { a.opened, a.made = at.UnixNano(), max(a.made, 1) }

func (a *Attempts) closed() { a.opened = 0 }

func (a Attempts) lasted(at time.Time) time.Duration { return time.Duration(at.UnixNano() - a.since) }

func (a *Attempts) proved() {
	a.since, a.made, a.failed, a.moved, a.refuses = 0, 0, 0, false, [2]bool{}
}

// row reports whether the current connection replaced another one and has not proved itself.
func (a Attempts) row(at time.Time) bool {
	a.settle(at)
	return a.since != 0
}

// settle refills the budget if the connection is old enough.
func (a *Attempts) settle(at time.Time) {
	if a.opened != 0 && at.UnixNano()-a.opened >= int64(provenAfter) {
		a.proved()
	}
}

// due returns the earliest time of a planned replacement: after a pause or, after too many attempts, the connection's
// proof.
func (a Attempts) due(at time.Time) time.Time {
	a.settle(at)
	opened := at.Add(-time.Duration(at.UnixNano() - a.opened))
	switch {
	case a.made == 0 || a.opened == 0:
		return at
	case a.since != 0 && a.lasted(at) >= a.within():
		return opened.Add(provenAfter)
	default:
		return opened.Add(a.pause())
	}
}

// Planned takes an attempt without a failure.
func (a *Attempts) Planned(at time.Time) {
	a.settle(at)
	a.begin(at)
	a.closed()
}

func (a *Attempts) turn() {
	a.failed, a.moved, a.refuses = 0, true, [2]bool{a.refuses[1], a.refuses[0]}
}

// replace takes an attempt for an expiring connection. If connections expire unproved, the other provider is tried.
func (a *Attempts) replace(at time.Time, other bool) Attempt {
	a.settle(at)
	if a.since != 0 {
		a.failed = min(a.failed+1, 200)
	}
	move := other && a.failed >= patientTries && !a.refuses[1]
	if move {
		a.turn()
	}
	a.begin(at)
	a.closed()
	return Attempt{Other: move}
}

func (a *Attempts) begin(at time.Time) {
	if a.since == 0 {
		a.since = at.UnixNano()
	}
	a.made = min(a.made+1, 200)
}

// Lost takes an attempt after the end of a connection or a failed attempt to open one.
func (a *Attempts) Lost(at time.Time, f Loss) Attempt {
	a.settle(at)
	// The cause need not apply to the next connection, which is set up anew.
	anew := a.opened != 0 && a.made == 0 && f.Kind == transport.KindInvalid
	a.closed()
	return a.next(at, f, anew)
}

// Unanswered takes an attempt after a failed answer. The connection must prove itself again.
func (a *Attempts) Unanswered(at time.Time, f Loss) Attempt {
	a.settle(at)
	if a.opened != 0 {
		a.opened = at.UnixNano()
	}
	a.made = max(a.made, 1) // the same question is not asked again without a pause
	try := a.next(at, f, false)
	if try.Over {
		a.refuses[0] = false // the provider has refused one answer: the connection may be replaced
	}
	return try
}

func (a *Attempts) next(at time.Time, f Loss, anew bool) Attempt {
	f.Kind = cmp.Or(f.Kind, transport.KindRetry)
	if a.since == 0 {
		a.since = at.UnixNano()
	}
	a.failed = min(a.failed+1, 200)
	row := f.Kind.Failure()
	if !row.Retry && !anew {
		a.refuses[0] = true
	}
	left := a.within() - a.lasted(at)
	wait := max(a.pause(), f.After)
	impatient := a.failed >= patientTries || f.Kind == transport.KindTimeout || wait > longestWish || wait > left
	if f.Other && row.Elsewhere && !a.refuses[1] && (a.refuses[0] || impatient) {
		if wait = 0; a.moved {
			wait = a.pause()
		}
		if wait >= left && a.moved {
			return Attempt{Over: true}
		}
		if left <= 0 {
			a.since = at.UnixNano() // the other provider was not asked yet
		}
		a.turn()
		a.begin(at)
		return Attempt{After: wait, Other: true}
	}
	if a.refuses[0] || wait >= left {
		return Attempt{Over: true}
	}
	a.begin(at)
	return Attempt{After: wait}
}

// pause returns the pause before the next attempt: none before the first.
func (a Attempts) pause() time.Duration {
	if a.made == 0 {
		return 0
	}
	pause := min(firstPause<<min(a.made-1, 10), longestPause)
	sum := fnv.New64a()
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], uint64(a.seed))
	binary.LittleEndian.PutUint64(b[8:], uint64(a.made))
	_, _ = sum.Write(b[:]) // a hash takes everything
	return (pause*3/4 + time.Duration(sum.Sum64()%uint64(pause/2))).Truncate(time.Millisecond)
}
