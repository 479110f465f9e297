package nonblock

import (
	"cmp"
	"slices"
	"time"
)

// A loop is behind if one of its rounds takes too long: meanwhile data for its connections
// waits in the kernel. It still counts as behind for a while after its last such round, so
// that a loop which is late repeatedly does not change its state with each round. Waits are
// bounded, so that a loop whose thread gets no processor is noticed, too.
const (
	lateRound  = 2 * time.Second
	lateFor    = 5 * time.Second
	longestNap = 500 * time.Millisecond
	lateBeat   = lateRound + longestNap
	lookEvery  = time.Second
)

// now returns the current time.
func (l *Loops) now() time.Time {
	if l.Clock != nil {
		return l.Clock()
	}
	return time.Now()
}

// Lateness reports whether loops are behind by seconds. It may be called concurrently; nil
// Loops are never behind.
func (l *Loops) Lateness() Lateness {
	if l == nil {
		return Lateness{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lateness()
}

// lateness is Lateness; mu must be held.
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

// lateness returns the lateness of one loop: of its last rounds, and of the current one.
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
	until time.Time // when they stop counting
}

// woke records the end of a wait, which began at began and, if all is true, has returned every
// event that existed then. What the loop's thread did between the kernel's answer and this
// call is unknown: it may have been without a processor for seconds.
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

// watch checks from time to time, while a loop runs, whether the loops are behind, and reports
// changes to Changed: a loop that is stuck cannot report it itself.
func (l *Loops) watch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Changed != nil && l.look == nil {
		l.look = time.AfterFunc(cmp.Or(l.every, lookEvery), l.looks)
	}
}

// looks is one such check.
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

// past returns the report for a time in which loops were behind, once it is over; was is
// the result of the last check.
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

// Load returns how much the loops have to do. It may be called concurrently; nil Loops have nothing
// to do.
func (l *Loops) Load() Load {
	if l == nil {
		return Load{}
	}
	load := Load{RoundTime: time.Duration(l.rounds.time.Load())}
	for i := range l.rounds.count {
		load.Rounds = append(load.Rounds, l.rounds.count[i].Load())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, loop := range l.loops {
		load.Busy = append(load.Busy, float64(min(loop.busy.Load(), 1000))/1000)
	}
	return load
}
