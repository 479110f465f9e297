package nonblock

import "time"

// A loop that takes so long for a round is behind: what comes for its connections waits with
// the kernel meanwhile. It counts as behind for a while after its last such round, so that a
// loop which is late again and again does not change its mind with each round. A wait has an
// end, so that a loop whose thread gets no processor shows that too.
const (
	lateRound  = 2 * time.Second
	lateFor    = 5 * time.Second
	longestNap = 500 * time.Millisecond
)

// now is the time; a test's, where it has one.
func (l *Loops) now() time.Time {
	if l.clock != nil {
		return l.clock()
	}
	return time.Now()
}

// Behind says whether loops are behind by seconds, or were a moment ago: what they read is
// late, and more connections would make it later. It may be called by any number of
// goroutines; nil is never behind.
func (l *Loops) Behind() bool {
	if l == nil {
		return false
	}
	now := l.now().UnixNano()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, loop := range l.loops {
		if beat := loop.beat.Load(); beat != 0 && now-beat >= int64(lateRound+longestNap) || now < loop.lateUntil.Load() {
			return true
		}
	}
	return false
}

// woke notes the end of a wait at now, which has told of everything there is if all.
func (l *Loop) woke(now time.Time, all bool) {
	if before := l.beat.Swap(now.UnixNano()); before != 0 && now.UnixNano()-before >= int64(lateRound+longestNap) {
		l.lateUntil.Store(now.Add(lateFor).UnixNano())
	}
	l.seen = l.told
	l.woken = now
	if all {
		l.told = now
	}
}

// CaughtUp returns a time by which everything that had come was read: what is read in this
// turn came after it. It is as late as the loop knows; zero where no loop watches the
// connection. Only within the function of Notify.
func (c *Conn) CaughtUp() time.Time {
	if c.watched == nil {
		return time.Time{}
	}
	return c.watched.caughtUp
}
