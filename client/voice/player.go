package voice

import (
	"slices"
	"time"

	"voicegw/audio"
	"voicegw/protocol"
)

// reportEvery is how often a client says what it has played.
const reportEvery = 200 * time.Millisecond

// Item is one spoken answer, or a part of one.
type Item struct {
	// ID is the gateway's name of it, X the exchange that it answers; nil for a greeting.
	ID string
	X  *Exchange
	// Early says that it began before the user had stopped speaking, and so is no answer to
	// all.
	Early bool
	// Left is how many bytes of it were left out, by the positions that the gateway names.
	Left int
	// Forgotten means that it was open when the page was loaded again: what had come of it is lost, and
	// its length proves nothing.
	Forgotten bool
	// Bytes of it came. Played is how much of it was heard so far, and Heard the same in
	// bytes once it is over.
	Bytes  int
	Played time.Duration
	Heard  int
	// First and Latest are the times of its frames, Needed the buffer that a player would
	// have needed by the frames so far.
	First, Latest time.Time
	Needed        time.Duration

	held  time.Duration // came and is not played yet
	ended bool
	// doubtful: a snapshot was announced, and nothing was said of the item since.
	doubtful bool
	known    int // bytes that come again next and were heard before
	wasted   int // bytes that were held when the page was loaded again
}

// player plays answers one after another on a clock, tells what was heard, and counts how
// often players of several sizes would have fallen silent.
type player struct {
	// Fixed after newPlayer.
	rate      int
	reporting int // index in streams of the one that tells the gateway
	observer  Observer
	report    func(p protocol.Playback, receivedMS int64)

	streams []stream
	queue   []*Item // those that are not played to their end
	newest  *Item   // that has come; nil if nothing is known of what has come
	// incomingItem is the item that frames belong to: the newest that was announced. It may be nil.
	incomingItem *Item
	over         []*Item   // the latest that were
	reported     time.Time // when the last report went out, while something plays
}

// rememberedItems of an answer that has been played can still be flushed: the gateway may
// not have read yet that it was.
const rememberedItems = 4

func newPlayer(rate int, buffers []time.Duration, reporting int, observer Observer, report func(p protocol.Playback, receivedMS int64)) *player {
	p := &player{rate: rate, reporting: reporting, observer: observer, report: report, streams: make([]stream, len(buffers))}
	for i, buffer := range buffers {
		p.streams[i].buffer = buffer
	}
	return p
}

// find returns the item with an id if it is not over, otherwise nil.
func (p *player) find(id string) *Item {
	if at := slices.IndexFunc(p.queue, func(i *Item) bool { return i.ID == id }); at >= 0 {
		return p.queue[at]
	}
	return nil
}

// incoming returns the item that binary frames belong to; nil if they belong to none.
func (p *player) incoming() *Item {
	if i := p.incomingItem; i != nil && (i.known > 0 || p.takes(i)) {
		return i
	}
	return nil
}

// position returns how much of the item's audio has come, or is known to have been left out, in bytes.
func (i *Item) position() int { return i.Bytes + i.Left }

// unseen returns the part of a frame that has not come before. The item may be nil.
func (i *Item) unseen(pcm []byte) []byte {
	if i == nil || i.known == 0 {
		return pcm
	}
	n := min(i.known, len(pcm))
	i.known -= n
	return pcm[n:]
}

// goOn says that the audio of an item that is known continues at a position. missing bytes were left
// out; again bytes come once more although the gateway knows that they have come: a position that it is
// told is rounded down, so less than a ms does not count.
func (p *player) goOn(now time.Time, i *Item, fromMS int64) (missing, again int) {
	if i.Forgotten && fromMS == 0 {
		p.beginAgain(now, i)
		return 0, 0
	}
	p.incomingItem, i.doubtful = i, false
	if i.Forgotten {
		i.known = 0
		return 0, 0
	}
	from := audio.Bytes(p.rate, time.Duration(fromMS)*time.Millisecond)
	told := audio.Bytes(p.rate, time.Duration(audio.MS(p.rate, i.position()))*time.Millisecond)
	i.known = max(i.position()-from, 0)
	missing, again = max(from-i.position(), 0), max(told-from, 0)
	i.Left += missing
	return missing, again
}

// beginAgain opens an item once more of which a page that was loaded again has forgotten everything.
func (p *player) beginAgain(now time.Time, i *Item) {
	is := func(other *Item) bool { return other == i }
	p.over = slices.DeleteFunc(p.over, is)
	if slices.ContainsFunc(p.queue, is) {
		p.queue = slices.DeleteFunc(p.queue, is)
		p.forget(i)
	}
	p.begin(now, &Item{ID: i.ID, X: i.X, Early: i.Early})
}

// reload drops all that was to be played, and forgets what has come. Nothing tells the gateway.
func (p *player) reload(now time.Time) {
	p.advance(now)
	var open []*Item
	for _, i := range p.queue {
		i.wasted += i.Bytes - i.wasted - p.heard(i)
		i.held, i.Forgotten = 0, true
		if i.ended {
			p.letGo(i)
		} else {
			open = append(open, i)
		}
	}
	for s := range p.streams {
		p.streams[s].flush(0, len(open) > 0)
	}
	p.queue, p.newest, p.incomingItem = open, nil, nil
}

// takes reports whether more audio of an item may come that has not come before.
func (p *player) takes(i *Item) bool { return i != nil && !i.ended && slices.Contains(p.queue, i) }

// remembers returns the item of an id, whether it is over or not; nil if it is unknown.
func (p *player) remembers(id string) *Item {
	if i := p.find(id); i != nil {
		return i
	}
	if at := slices.IndexFunc(p.over, func(i *Item) bool { return i.ID == id }); at >= 0 {
		return p.over[at]
	}
	return nil
}

// begin opens an item.
func (p *player) begin(now time.Time, i *Item) {
	p.advance(now)
	for s := range p.streams {
		p.streams[s].begin(now)
	}
	p.queue = append(p.queue, i)
	p.newest, p.incomingItem = i, i
}

// add takes in a frame of an item.
func (p *player) add(now time.Time, i *Item, bytes int) {
	p.advance(now)
	if i.First.IsZero() {
		i.First = now
	}
	i.Latest = now
	i.Needed = max(i.Needed, now.Sub(i.First)-audio.Duration(p.rate, i.Bytes))
	i.Bytes += bytes
	d := audio.Duration(p.rate, bytes)
	i.held += d
	for s := range p.streams {
		p.underrun(s, p.streams[s].add(now, d))
	}
}

// adopt makes what began before x had been said, and was not flushed since, part of its
// answer: the rest of the recording was no speech to the model.
func (p *player) adopt(x *Exchange) {
	for _, i := range p.queue {
		if i.X != x || !i.Early {
			continue
		}
		i.Early = false
		x.Bytes += i.Bytes
		if x.First.IsZero() {
			x.First = i.First
		}
	}
}

// underrun notes a gap that a player has had.
func (p *player) underrun(stream int, gap time.Duration) {
	if gap > 0 {
		p.observer.Underrun(stream, gap)
	}
}

// end says that an item is complete.
func (p *player) end(now time.Time, i *Item) {
	p.advance(now)
	i.ended = true
	for s := range p.streams {
		p.underrun(s, p.streams[s].end(now))
	}
	p.finish()
}

// doubt says that a snapshot follows: an item that goes on is announced again in it.
func (p *player) doubt() {
	for _, i := range p.queue {
		i.doubtful = !i.ended
	}
}

// caughtUp says that the snapshot has come: of an item that it has not announced again nothing more
// comes, and what has come of it is played to its end.
func (p *player) caughtUp(now time.Time) {
	for _, i := range slices.Clone(p.queue) {
		if !i.doubtful || i.ended {
			continue
		}
		if i.X != nil {
			i.X.lost = true
		}
		p.end(now, i)
	}
}

// flush drops an item and reports how much of it was heard. It returns nil if the item never
// existed.
func (p *player) flush(now time.Time, id string) *Item {
	p.advance(now)
	named := func(i *Item) bool { return i.ID == id }
	if at := slices.IndexFunc(p.over, named); at >= 0 {
		p.tell(p.over[at], true)
		return p.over[at]
	}
	at := slices.IndexFunc(p.queue, named)
	if at < 0 {
		p.report(protocol.Playback{ItemID: id, Done: true}, 0)
		return nil
	}
	i := p.queue[at]
	p.queue = slices.Delete(p.queue, at, at+1)
	held, open := time.Duration(0), false
	for _, other := range p.queue {
		held, open = held+other.held, open || !other.ended
	}
	for s := range p.streams {
		p.streams[s].flush(held, open)
	}
	p.done(i)
	return i
}

// done reports the end of an item.
func (p *player) done(i *Item) {
	p.tell(i, true)
	p.letGo(i)
}

// letGo moves an item to those that are over.
func (p *player) letGo(i *Item) {
	p.forget(i)
	p.over = append(p.over, i)
	if len(p.over) > rememberedItems {
		p.over = slices.Delete(p.over, 0, 1)
	}
}

// has returns how much of an item is still known to have come, in bytes: a page that is loaded again
// forgets what it had.
func (p *player) has(i *Item) int {
	if i.Forgotten {
		return p.heard(i)
	}
	return i.position()
}

// heard is how much of an item was played, in bytes.
func (p *player) heard(i *Item) int {
	if i.held == 0 {
		return i.Bytes - i.wasted // the length of each frame was rounded
	}
	return audio.Bytes(p.rate, i.Played)
}

// forget tells the observer of the end of an item.
func (p *player) forget(i *Item) {
	i.Heard = p.heard(i)
	if i.X != nil && !i.Early {
		i.X.Heard += i.Heard
	}
	p.observer.Played(i)
}

// close drops everything, without telling the gateway.
func (p *player) close(now time.Time) {
	p.advance(now)
	for _, i := range p.queue {
		p.forget(i)
	}
	p.queue = nil
}

// advance plays until now.
func (p *player) advance(now time.Time) {
	var played time.Duration
	for s := range p.streams {
		if d := p.streams[s].advance(now); s == p.reporting {
			played = d
		}
	}
	for _, i := range p.queue {
		d := min(played, i.held)
		i.held -= d
		i.Played += d
		played -= d
	}
	p.finish()
	p.tellAtTimes(now)
}

// finish lets go of items that have been played to their end.
func (p *player) finish() {
	for len(p.queue) > 0 && p.queue[0].ended && p.queue[0].held == 0 {
		i := p.queue[0]
		p.queue = slices.Delete(p.queue, 0, 1)
		p.done(i)
	}
}

// tellAtTimes reports what was played while it plays.
func (p *player) tellAtTimes(now time.Time) {
	if !p.sounding() || len(p.queue) == 0 {
		p.reported = time.Time{}
		return
	}
	if p.reported.IsZero() {
		p.reported = now
	}
	if now.Sub(p.reported) >= reportEvery {
		p.reported = now
		p.tell(p.queue[0], false)
	}
}

// tell reports how much of an item was heard.
func (p *player) tell(i *Item, done bool) {
	p.report(protocol.Playback{ItemID: i.ID, PlayedMS: audio.MS(p.rate, p.heard(i)), Done: done}, audio.MS(p.rate, p.has(i)))
}

// sounding says whether something is played right now.
func (p *player) sounding() bool { return p.streams[p.reporting].playing }

// idle says whether everything that came has been played.
func (p *player) idle() bool { return len(p.queue) == 0 }

// plays says whether some of the answer to x is still to be heard.
func (p *player) plays(x *Exchange) bool {
	return slices.ContainsFunc(p.queue, func(i *Item) bool { return i.X == x && i.held > 0 })
}

// next is when it has something to tell; the zero time for never.
func (p *player) next() time.Time {
	if !p.sounding() || len(p.queue) == 0 {
		return time.Time{}
	}
	at := p.reported.Add(reportEvery)
	if head := p.queue[0]; head.ended {
		if end := p.streams[p.reporting].now.Add(head.held); end.Before(at) {
			return end
		}
	}
	return at
}
