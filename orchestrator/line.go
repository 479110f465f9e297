package orchestrator

import (
	"slices"
	"time"
)

// PlayClock estimates the playback of a client that plays audio as soon as it arrives. It is not safe for concurrent
// use.
type PlayClock struct{ until time.Time }

// Add records audio of length d sent at the time at, and returns when the client has played it.
func (c *PlayClock) Add(at time.Time, d time.Duration) time.Time {
	if at.After(c.until) {
		c.until = at
	}
	c.until = c.until.Add(d)
	return c.until
}

// Cut records that the client dropped everything not played by at.
func (c *PlayClock) Cut(at time.Time) {
	if at.Before(c.until) {
		c.until = at
	}
}

// Hold records that playback stood still for that long, and that audio of length less was lost and is sent again.
func (c *PlayClock) Hold(still, less time.Duration) { c.until = c.until.Add(still - less) }

// line is the sequence of spoken items that the user hears, in the order of their first byte. It keeps those that may
// still play. A client's reports outrank the clock.
type line struct {
	items   []item
	begun   []string  // ids of the latest items that the model began, oldest first; never changed in place
	reports bool      // the client has sent a report
	passed  time.Time // when the client last reported the end of an item
	stopped time.Time // when the line was paused; zero while it runs

	recent []SpokenItem // the latest items let through to the client, oldest first; never changed in place
}

// item is one spoken item on its way to the user.
type item struct {
	id    string
	exact bool // it says an exact sentence
	turn  int
	began time.Time // when its first audio came

	sent    time.Duration // amount sent to the client
	until   time.Time     // when that has been played, by the clock
	audioMS int64         // its length, once ended
	ended   bool

	playedMS   int64     // by the client's reports
	reportedAt time.Time // when the client reported playedMS; zero without a report
	done       bool      // the client reported its end
}

func (it item) complete() bool { return it.ended && it.sent.Milliseconds() >= it.audioMS }

func (it item) unsent() time.Duration {
	return max(time.Duration(it.audioMS)*time.Millisecond-it.sent, 0)
}

func (l line) index(id string) int {
	return slices.IndexFunc(l.items, func(it item) bool { return it.id == id })
}

func (l line) spoken(id string) bool { return l.index(id) >= 0 || slices.Contains(l.begun, id) }

// meet records that the model has begun an item. It returns false if the item was spoken before.
func (l *line) meet(id string) bool {
	if l.spoken(id) {
		return false
	}
	l.begun = newest(l.begun, id, maxBegun)
	return true
}

// newest returns at most most of the latest elements, with one added. It does not change all.
func newest[T any](all []T, one T, most int) []T {
	return append(slices.Clone(all[max(len(all)+1-most, 0):]), one)
}

// report applies the client's report on an item. A user who has heard part of an item has heard all earlier items.
func (l *line) report(in Played, at time.Time) (known bool) {
	i := l.index(in.Item)
	if i < 0 {
		return false
	}
	it := &l.items[i]
	if it.sent == 0 || it.done {
		return true // nothing of it was sent, or the client has already reported its end
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

// finish records that no more of the item will play.
func (it *item) finish(playedMS int64, at time.Time) {
	if !it.done {
		it.done, it.playedMS, it.reportedAt = true, playedMS, at
	}
}

// heard returns how much of the item at index i was heard, in ms: by the client's last report or else by the clock.
func (l line) heard(i int, now time.Time) int64 {
	it, now := l.items[i], l.now(now)
	if !it.reportedAt.IsZero() {
		return it.playedMS
	}
	left := it.until.Sub(now)
	if l.reports {
		if slices.ContainsFunc(l.items[:i], func(before item) bool { return !before.done }) {
			return 0 // it waits behind another item
		}
		left = max(left, it.sent-now.Sub(l.passed))
	}
	return min(max(it.sent-max(left, 0), 0), it.sent).Milliseconds()
}

// playedBy returns when the client has played everything up to the item at index i, by the clock and its last report.
func (l line) playedBy(i int) time.Time {
	var until, by time.Time // by the clock, and by the client's reports
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

func (l line) patience() time.Duration {
	if l.reports {
		return reportPatience
	}
	return cushion
}

func (l line) overAt(i int) time.Time {
	if !l.items[i].complete() {
		return time.Time{}
	}
	return l.playedBy(i).Add(l.patience())
}

func (l line) over(i int, now time.Time) bool {
	it, now := l.items[i], l.now(now)
	switch {
	case !it.complete():
		return false
	case it.done, it.audioMS == 0, !it.reportedAt.IsZero() && it.playedMS >= it.audioMS:
		return true
	}
	return !now.Before(l.overAt(i))
}

// heardAt returns when the item at index i counts as heard without a report; zero if more of it is to be sent.
func (l line) heardAt(i int) time.Time {
	if l.reports || !l.items[i].complete() {
		return l.overAt(i)
	}
	return l.playedBy(i).Add(playGrace)
}

// lastAt returns when all items count as heard or, with over, are over; zero if more is to be sent or nothing plays.
func (l line) lastAt(over bool) (last time.Time) {
	if !l.stopped.IsZero() {
		return last
	}
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

func (l line) audible(now time.Time) bool {
	for i := range l.items {
		if l.unheard(i, now) {
			return true
		}
	}
	return false
}

func (l line) unheard(i int, now time.Time) bool {
	now = l.now(now)
	at := l.heardAt(i)
	return at.IsZero() || now.Before(at) && !l.over(i, now)
}

// openUntil returns when the sent audio of unfinished items has been played; ok is false without such items.
func (l line) openUntil() (until time.Time, ok bool) {
	if !l.stopped.IsZero() {
		return until, false
	}
	for i, it := range l.items {
		if !it.ended {
			until, ok = l.playedBy(i), true
		}
	}
	return until, ok
}

// emptyBy returns when everything sent or queued has been played, without allowances; zero if the line is empty.
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

// now returns the time on the line. It stands still while the client is lost, because the user's playback is unknown.
func (l line) now(at time.Time) time.Time {
	if !l.stopped.IsZero() && at.After(l.stopped) {
		return l.stopped
	}
	return at
}

func (l *line) goOn(still time.Duration) {
	l.stopped = time.Time{}
	later := func(t *time.Time) {
		if !t.IsZero() {
			*t = t.Add(still)
		}
	}
	later(&l.passed)
	for i := range l.items {
		later(&l.items[i].until)
		later(&l.items[i].reportedAt)
	}
}

// again records that the client has only a part of an item's sent audio.
func (l *line) again(a Again) {
	i := l.index(a.Item)
	if i < 0 || l.items[i].done || a.Has >= l.items[i].sent {
		return
	}
	it := &l.items[i]
	it.until = it.until.Add(a.Has - it.sent)
	it.sent = a.Has
	it.playedMS = min(it.playedMS, a.Has.Milliseconds())
}

// SpokenItem is an item spoken lately. Checkpoints contain its JSON form.
type SpokenItem struct {
	Item string `json:"item"`
	Turn int    `json:"turn"`
	// MS is its length so far; the whole length with Ended.
	MS    int64 `json:"ms,omitempty"`
	Ended bool  `json:"ended,omitempty"`
	Cut   bool  `json:"cut,omitempty"` // it was flushed, or the transcript has only the received part
	Seq   int64 `json:"seq,omitempty"` // the seq of its announcement to the client; zero if not sent
}

// Received describes the state of a returning client.
type Received struct {
	// Item is its newest item with audio, and MS the received part; may be empty.
	Item string
	MS   int64
	Seq  int64 // the highest seq received
}

// Unheard is an item. The client has only the first HasMS of its MS.
type Unheard struct {
	Item      string
	HasMS, MS int64
}

// Allowances for playback beyond the clock.
const (
	// cushion is for a client that sends no playback reports: browsers buffer up to 400 ms, and network and loudspeaker
	// may add more than a second. Until then an item can be flushed and keeps the session open.
	cushion        = 2 * time.Second
	playGrace      = 300 * time.Millisecond // when the turn of such a client ends
	reportPatience = 12 * time.Second       // the wait for a client that has sent reports before
)

const (
	maxSpoken = 8 // how many items are remembered for a client that returns to another process
	// leastUnheard is how much of an answer must be missing to be repeated, in ms. Answers end in silence, and a model
	// asked for half a syllable says a sentence.
	leastUnheard = 250
)

func (l *line) note(id string, turn int) {
	l.recent = newest(l.recent, SpokenItem{Item: id, Turn: turn}, maxSpoken)
}

func (l *line) renote(id string, change func(*SpokenItem)) {
	if i := slices.IndexFunc(l.recent, func(it SpokenItem) bool { return it.Item == id }); i >= 0 {
		l.recent = slices.Clone(l.recent)
		change(&l.recent[i])
	}
}

// received returns how much of the item at index i the client has, if its newest item is at index newest (or negative).
func (has Received) received(all []SpokenItem, i, newest int) int64 {
	it := all[i]
	switch {
	case it.Cut:
		return it.MS
	case i == newest:
		return min(max(has.MS, 0), it.MS)
	case newest >= 0:
		if i < newest {
			return it.MS
		}
		return 0
	case it.Seq != 0 && it.Seq <= has.Seq:
		// It has begun the item. If it names no audio, that was lost with a page, as on any
		// connection; otherwise it has reached a newer item.
		return it.MS
	case has.Item != "" && it.Seq == 0:
		return it.MS // the client names an item that is newer than all known ones
	}
	return 0
}

// Heard returns the estimate of how much of an item the client has heard, in ms. ok is false if the item is not
// playing.
func (s State) Heard(id string, now time.Time) (ms int64, ok bool) {
	i := s.line.index(id)
	if i < 0 || s.line.over(i, now) {
		return 0, false
	}
	return s.line.heard(i, now), true
}

// Heard returns the memory adjusted to the audio that the client has received. If a part of the last answer is missing
// (unheard), its turn counts as open; otherwise it counts as answered.
func (m Memory) Heard(has Received) (is Memory, unheard []Unheard) {
	t := m.Open
	if t == nil {
		t = m.Answered
	}
	if t == nil || t.Number != m.Turn {
		return m, nil
	}
	all := slices.Clone(m.Spoken)
	newest := slices.IndexFunc(all, func(it SpokenItem) bool { return it.Item == has.Item })
	some, last := false, -1
	for i := range all {
		it := &all[i]
		if it.Turn != t.Number {
			continue
		}
		last = i
		got := has.received(all, i, newest)
		some = some || got > 0
		if it.Cut || it.MS-got < leastUnheard && (got > 0 || it.MS == 0 && it.Ended) {
			continue
		}
		unheard = append(unheard, Unheard{Item: it.Item, HasMS: got, MS: it.MS})
		it.Cut, it.MS, it.Ended = true, got, true
	}
	switch {
	case len(unheard) > 0:
		open := *t
		open.Spoke, open.Untold = some, false
		m.Open, m.Answered, m.Spoken = &open, nil, all
	case last >= 0 && t.Spoke && all[last].Ended && !all[last].Cut && !m.Calls.UnderWay(t.Number):
		// Some models report the end of an answer only when they think that it was played.
		answered := *t
		answered.Untold = answered.Untold || m.Open != nil
		m.Open, m.Answered = nil, &answered
	}
	return m, unheard
}

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

func (l *line) begin(id string, turn int, at time.Time) bool {
	if len(l.items) >= maxItems {
		return false
	}
	l.items = append(l.items, item{id: id, turn: turn, began: at})
	l.note(id, turn)
	return true
}

// say adds an exact sentence of known length. It returns false if too many items wait.
func (l *line) say(id string, turn int, at time.Time, audioMS int64) bool {
	if len(l.items) >= maxItems {
		return false
	}
	l.items = append(l.items, item{id: id, turn: turn, began: at, exact: true, ended: true, audioMS: audioMS})
	return true
}

// exactMS returns how much of an exact sentence was heard. A client that reports must have reported it.
func (l line) exactMS(i int, now time.Time) int64 {
	if l.reports {
		return l.items[i].playedMS
	}
	return l.heard(i, now)
}

func (l *line) end(id string, audioMS int64) (it item, ok bool) {
	i := l.index(id)
	if i < 0 || l.items[i].ended {
		return item{}, false
	}
	l.items[i].ended, l.items[i].audioMS = true, audioMS
	l.renote(id, func(it *SpokenItem) { it.Ended, it.MS = true, audioMS })
	return l.items[i], true
}

func (l *line) settle(now time.Time) {
	first := 0
	for first < len(l.items) && !l.over(first, now) {
		first++
	}
	if first == len(l.items) {
		return
	}
	kept := slices.Clone(l.items[:first])
	for i := first + 1; i < len(l.items); i++ {
		if !l.over(i, now) {
			kept = append(kept, l.items[i])
		}
	}
	l.items = kept
}

func (l line) clone() line {
	l.items = slices.Clone(l.items)
	return l
}
