package nonblock

import (
	"cmp"
	"slices"
	"time"
)

// A loop that takes so long for a round is behind: what comes for its connections waits with
// the kernel meanwhile. It counts as behind for a while after its last such round, so that a
// loop which is late again and again does not change its mind with each round. A wait has an
// end, so that a loop whose thread gets no processor shows that too.
const (
	lateRound  = 2 * time.Second
	lateFor    = 5 * time.Second
	longestNap = 500 * time.Millisecond
	lateBeat   = lateRound + longestNap
	lookEvery  = time.Second
)

// now is the time.
func (l *Loops) now() time.Time {
	if l.Clock != nil {
		return l.Clock()
	}
	return time.Now()
}

// Lateness says whether loops are behind by seconds. It may be called by any number of
// goroutines; nil is never behind.
func (l *Loops) Lateness() Lateness {
	if l == nil {
		return Lateness{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lateness()
}

// lateness is Lateness with mu held.
func (l *Loops) lateness() (all Lateness) {
	now := l.now()
	for _, loop := range l.loops {
		if late := loop.lateness(now); late.Behind {
			if !all.Behind || late.Since.Before(all.Since) {
				all.Since = late.Since
			}
			all.Behind, all.Longest = true, max(all.Longest, late.Longest)
		}
	}
	return all
}

// lateness is that of one loop: of its last rounds, and of the one that it is in.
func (l *loop) lateness(now time.Time) (late Lateness) {
	if last := l.late.Load(); last != nil && now.Before(last.until) {
		late = last.Lateness
	}
	if beat := l.beat.Load(); beat != 0 {
		began := time.Unix(0, beat)
		if takes := now.Sub(began); takes >= lateBeat {
			if !late.Behind {
				late.Since = began
			}
			late.Behind, late.Longest = true, max(late.Longest, takes)
		}
	}
	return late
}

// lateRounds are rounds of a loop that took seconds, with less than lateFor between them.
type lateRounds struct {
	Lateness
	until time.Time // they count until then
}

// woke notes the end of a wait, which began at began and has told of everything that there
// was then, if all. What the loop's thread did between the kernel's answer and this call
// nobody knows: it may have been put aside for seconds.
func (l *loop) woke(began time.Time, all bool) {
	now := l.all.now()
	if beat := l.beat.Load(); beat != 0 && now.UnixNano()-beat >= int64(lateBeat) {
		l.late.Store(&lateRounds{l.lateness(now), now.Add(lateFor)})
	}
	l.beat.Store(now.UnixNano())
	l.seen = l.told
	l.woken = now
	if all {
		l.told = began
	}
}

// watch looks from time to time whether the loops are behind, while one runs, for whoever is
// to be told of it: a loop that is stuck cannot say so.
func (l *Loops) watch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Changed != nil && l.look == nil {
		l.look = time.AfterFunc(cmp.Or(l.every, lookEvery), l.looks)
	}
}

// looks is one such look.
func (l *Loops) looks() {
	l.mu.Lock()
	late, was := l.lateness(), l.last
	l.last = late
	l.mu.Unlock()
	if late.Behind != was.Behind {
		told := late
		if !late.Behind {
			told = l.past(was)
		}
		l.Changed(told)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	runs := func(loop *loop) bool { return loop.beat.Load() != 0 }
	if late.Behind || slices.ContainsFunc(l.loops, runs) {
		l.look.Reset(cmp.Or(l.every, lookEvery))
	} else {
		l.look = nil
	}
}

// past is what there was to say of a time in which loops were behind, once it is over; was is
// what the last look has seen of it.
func (l *Loops) past(was Lateness) Lateness {
	l.mu.Lock()
	defer l.mu.Unlock()
	was.Behind = false
	for _, loop := range l.loops {
		if last := loop.late.Load(); last != nil && last.until.After(was.Since) {
			was.Longest = max(was.Longest, last.Longest)
		}
	}
	return was
}
