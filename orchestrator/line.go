package orchestrator

import (
	"slices"
	"time"
)

// PlayClock is the clock of a client that plays what it is sent at once, one piece after
// another. The zero value has been sent nothing. It is not safe for concurrent use.
type PlayClock struct{ until time.Time }

// Add notes that a piece of so long has left for the client, and returns when the client
// has played it to its end. Where the client had run dry before, the piece begins at at.
func (c *PlayClock) Add(at time.Time, d time.Duration) time.Time {
	if at.After(c.until) {
		c.until = at
	}
	c.until = c.until.Add(d)
	return c.until
}

// Cut notes that the client drops all that it has not played by at.
func (c *PlayClock) Cut(at time.Time) {
	if at.Before(c.until) {
		c.until = at
	}
}

// How much longer than by the clock an item may sound.
const (
	// cushion is the allowance for a client that never reports: players of browsers hold up
	// to 400 ms, and network and loudspeaker may be behind by more than a second. Until then
	// an item can be flushed, and no session is closed over it.
	cushion = 2 * time.Second
	// playGrace is when the turn of such a client ends: nothing is lost if it errs.
	playGrace = 300 * time.Millisecond
	// reportPatience is how long a client that has reported is waited for.
	reportPatience = 12 * time.Second
)

// line is what the user hears: one line of time, on which spoken items play one after
// another. It holds the items that are not known to be over, in the order of their first
// byte. What a client reports outranks the clock. Nobody else keeps which items were spoken.
type line struct {
	items   []item
	begun   []string  // the newest items that the model has begun, oldest first, heard or not
	reports bool      // the client has reported at some time
	passed  time.Time // when the client last reported the end of an item
}

// item is one spoken item on its way to the client's ear.
type item struct {
	id   string
	turn int

	sent    time.Duration // so much of it has left for the client
	until   time.Time     // when that has been played, by the clock
	audioMS int64         // all of it, once ended
	ended   bool

	playedMS   int64     // by the client's reports
	reportedAt time.Time // of the report that said so, or zero
	done       bool      // the client says that no more of it will sound
}

// complete says whether all of an item has left for the client.
func (it item) complete() bool { return it.ended && it.sent.Milliseconds() >= it.audioMS }

// unsent is how much of an item is known to wait in the gateway still.
func (it item) unsent() time.Duration {
	return max(time.Duration(it.audioMS)*time.Millisecond-it.sent, 0)
}

func (l line) clone() line {
	l.items, l.begun = slices.Clone(l.items), slices.Clone(l.begun)
	return l
}

func (l line) index(id string) int {
	return slices.IndexFunc(l.items, func(it item) bool { return it.id == id })
}

// spoken says whether the model has begun an item before: an item is spoken once.
func (l line) spoken(id string) bool { return l.index(id) >= 0 || slices.Contains(l.begun, id) }

// meet notes that the model has begun an item. It reports false for one that was spoken before.
func (l *line) meet(id string) bool {
	if l.spoken(id) {
		return false
	}
	l.begun = append(l.begun, id)
	if len(l.begun) > maxBegun {
		l.begun = slices.Delete(l.begun, 0, 1)
	}
	return true
}

// begin puts an item behind all others. It reports false where there is no room.
func (l *line) begin(id string, turn int) bool {
	if len(l.items) >= maxItems {
		return false
	}
	l.items = append(l.items, item{id: id, turn: turn})
	return true
}

// send notes how much of an item has left for the client; it reports false for an unknown one.
func (l *line) send(in AudioSent) (it item, ok bool) {
	i := l.index(in.Item)
	if i < 0 {
		return item{}, false
	}
	if in.Sent > l.items[i].sent {
		l.items[i].sent, l.items[i].until = in.Sent, in.Until
	}
	return l.items[i], true
}

// end notes that all of an item has come from the model; it reports false for an unknown
// item, and for one that has ended before.
func (l *line) end(id string, audioMS int64) (it item, ok bool) {
	i := l.index(id)
	if i < 0 || l.items[i].ended {
		return item{}, false
	}
	l.items[i].ended, l.items[i].audioMS = true, audioMS
	return l.items[i], true
}

// report takes the client's word on an item. It cannot have heard more than was sent, and
// never less than it has said before. Who hears an item has heard all those before it.
func (l *line) report(in Played, at time.Time) (known bool) {
	i := l.index(in.Item)
	if i < 0 {
		return false
	}
	it := &l.items[i]
	if it.sent == 0 || it.done {
		return true // it cannot have been heard, or all has been said of it
	}
	l.reports = true
	ms := min(max(in.MS, it.playedMS), it.sent.Milliseconds())
	if ms > 0 {
		for j := range l.items[:i] {
			l.items[j].finish(l.items[j].sent.Milliseconds(), at)
		}
	}
	if it.reportedAt.IsZero() || ms > it.playedMS {
		it.playedMS, it.reportedAt = ms, at
	}
	if in.Done {
		it.finish(ms, at)
		l.passed = at
	}
	return true
}

// finish notes that no more of an item will sound.
func (it *item) finish(playedMS int64, at time.Time) {
	if !it.done {
		it.done, it.playedMS, it.reportedAt = true, playedMS, at
	}
}

// heard is how much of the item at a place has been heard, in ms: the client's last word,
// or the clock's where the client has none.
func (l line) heard(i int, now time.Time) int64 {
	it := l.items[i]
	if !it.reportedAt.IsZero() {
		return it.playedMS
	}
	left := it.until.Sub(now)
	if l.reports {
		if slices.ContainsFunc(l.items[:i], func(before item) bool { return !before.done }) {
			return 0 // it waits behind another one
		}
		left = max(left, it.sent-now.Sub(l.passed))
	}
	return min(max(it.sent-max(left, 0), 0), it.sent).Milliseconds()
}

// playedBy is when the client has played all that was sent up to the item at a place, by
// the clock and, where it has reported, by how far it was then.
func (l line) playedBy(i int) time.Time {
	var until, by time.Time // by the clock, and by its reports
	if l.reports {
		by = l.passed
	}
	for _, it := range l.items[:i+1] {
		if it.until.After(until) {
			until = it.until
		}
		switch {
		case !it.reportedAt.IsZero():
			by = it.reportedAt
			if !it.done {
				by = by.Add(it.sent - time.Duration(it.playedMS)*time.Millisecond)
			}
		case !by.IsZero():
			by = by.Add(it.sent)
		}
	}
	if until.After(by) {
		return until
	}
	return by
}

// patience is how long after that a client's word is waited for.
func (l line) patience() time.Duration {
	if l.reports {
		return reportPatience
	}
	return cushion
}

// overAt is when the item at a place is over unless the client says so sooner; zero for one
// of which more is to be sent.
func (l line) overAt(i int) time.Time {
	if !l.items[i].complete() {
		return time.Time{}
	}
	return l.playedBy(i).Add(l.patience())
}

// over says whether no more of the item at a place will sound.
func (l line) over(i int, now time.Time) bool {
	it := l.items[i]
	switch {
	case !it.complete():
		return false
	case it.done, it.audioMS == 0, !it.reportedAt.IsZero() && it.playedMS >= it.audioMS:
		return true
	}
	return !now.Before(l.overAt(i))
}

// heardAt is when the item at a place counts as heard unless the client says so sooner; zero
// for one of which more is to be sent. A client that never reports may still be playing it.
func (l line) heardAt(i int) time.Time {
	if l.reports || !l.items[i].complete() {
		return l.overAt(i)
	}
	return l.playedBy(i).Add(playGrace)
}

// lastAt is when all items count as heard or, where over is set, are over; zero where more is
// to be sent, or nothing is on the line.
func (l line) lastAt(over bool) (last time.Time) {
	for i := range l.items {
		at := l.heardAt(i)
		if over {
			at = l.overAt(i)
		}
		if at.IsZero() {
			return at
		}
		if at.After(last) {
			last = at
		}
	}
	return last
}

// audible says whether something is still to be heard.
func (l line) audible(now time.Time) bool {
	for i := range l.items {
		if at := l.heardAt(i); at.IsZero() || now.Before(at) && !l.over(i, now) {
			return true
		}
	}
	return false
}

// openUntil is when the client has played what was sent of the items that have not ended, by
// the clock or its reports; ok is false where all have ended.
func (l line) openUntil() (until time.Time, ok bool) {
	for i, it := range l.items {
		if !it.ended {
			until, ok = l.playedBy(i), true
		}
	}
	return until, ok
}

// emptyBy is when all that was sent or waits in the gateway has been played, without
// patience; zero where nothing is on the line.
func (l line) emptyBy() time.Time {
	if len(l.items) == 0 {
		return time.Time{}
	}
	by := l.playedBy(len(l.items) - 1)
	for _, it := range l.items {
		if it.ended {
			by = by.Add(it.unsent())
		}
	}
	return by
}

// settle forgets what is over.
func (l *line) settle(now time.Time) {
	kept := l.items[:0:0]
	for i, it := range l.items {
		if !l.over(i, now) {
			kept = append(kept, it)
		}
	}
	l.items = kept
}

// Heard returns the best guess of how much of a spoken item the client has heard by now, in ms of
// its audio. ok is false if the item is not playing: it was heard to its end, was flushed, or
// never began.
func (s State) Heard(id string, now time.Time) (ms int64, ok bool) {
	i := s.line.index(id)
	if i < 0 || s.line.over(i, now) {
		return 0, false
	}
	return s.line.heard(i, now), true
}
