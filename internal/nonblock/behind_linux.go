package nonblock

import (
	"cmp"
	"slices"
	"time"
)

// A loop is behind if one of its rounds takes lateRound or longer, because data for its connections waits in the
// kernel. It stays behind for lateFor, so that its state does not change with each round. longestNap bounds each wait,
// so that even a loop whose thread gets no processor is noticed.
const (
	lateRound  = 2 * time.Second
	lateFor    = 5 * time.Second
	longestNap = 500 * time.Millisecond
	lateBeat   = lateRound + longestNap
	lookEvery  = time.Second
)

func (l *Loops) now() time.Time {
	if l.Clock != nil {
		return l.Clock()
	}
	return time.Now()
}

// Lateness reports whether loops are behind. It may be called concurrently; nil Loops are never behind.
func (l *Loops) Lateness() Lateness {
	if l == nil {
		return Lateness{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lateness()
}

// lateness implements Lateness. The caller must hold mu.
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

// woke records the end of a wait that began at began; all means that it returned every event that existed then. Before
// this call the thread may have been without a processor for seconds.
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

// watch starts looks, because a stuck loop cannot call Changed.
func (l *Loops) watch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Changed != nil && l.look == nil {
		l.look = time.AfterFunc(cmp.Or(l.every, lookEvery), l.looks)
	}
}

// looks calls Changed if the loops have fallen behind or caught up, and runs again while a loop runs.
func (l *Loops) looks() {
	l.mu.Lock()
	late, was := l.lateness(), l.last
	l.last = late
	l.mu.Unlock()
	if late.Behind != was.Behind {
		report := late
		if !late.Behind {
			report = l.past(was)
		}
		l.Changed(report)
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

// past returns the report for loops that have caught up; was is the result of the last check.
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

// Load returns the load of the loops. It may be called concurrently; nil Loops have no load.
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
