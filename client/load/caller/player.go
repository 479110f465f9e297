package caller

import (
	"slices"
	"time"

	"voicegw/audio"
	"voicegw/client/load/measure"
	"voicegw/protocol"
)

// reportEvery is how often a client says what it has played.
const reportEvery = 200 * time.Millisecond

// reporting is the buffer, of measure.Buffers, whose player tells the gateway.
const reporting = 1

// item is one spoken answer.
type item struct {
	id string
	// x is the exchange that it answers; nil for a greeting.
	x *exchange
	// early: it began before the user had stopped speaking, and so is no answer to all.
	early bool

	bytes  int           // received
	held   time.Duration // of it, not played yet
	played time.Duration
	ended  bool

	first, latest time.Time     // frames
	needed        time.Duration // buffer, by the frames so far
}

// player plays answers one after another on a clock, tells what was heard, and counts how
// often players of several sizes would have fallen silent.
type player struct {
	// Fixed after newPlayer.
	rate   int
	c      *measure.Collector
	report func(protocol.Playback)

	streams  [3]stream
	queue    []*item   // those that are not played to their end
	over     []*item   // the latest that were
	reported time.Time // when the last report went out, while something plays
}

// rememberedItems of an answer that has been played can still be flushed: the gateway may
// not have read yet that it was.
const rememberedItems = 4

func newPlayer(rate int, c *measure.Collector, report func(protocol.Playback)) *player {
	p := &player{rate: rate, c: c, report: report}
	for i, ms := range measure.Buffers() {
		p.streams[i].buffer = time.Duration(ms) * time.Millisecond
	}
	return p
}

// begin opens an item.
func (p *player) begin(now time.Time, i *item) {
	p.advance(now)
	for s := range p.streams {
		p.streams[s].begin(now)
	}
	p.queue = append(p.queue, i)
}

// add takes in a frame of an item.
func (p *player) add(now time.Time, i *item, bytes int) {
	p.advance(now)
	if i.first.IsZero() {
		i.first = now
	} else {
		p.c.Record(measure.AudioGap, now.Sub(i.latest))
	}
	i.latest = now
	i.needed = max(i.needed, now.Sub(i.first)-audio.Duration(p.rate, i.bytes))
	i.bytes += bytes
	d := audio.Duration(p.rate, bytes)
	i.held += d
	for s := range p.streams {
		p.underrun(s, p.streams[s].add(now, d))
	}
}

// underrun notes a gap that a player has had.
func (p *player) underrun(stream int, gap time.Duration) {
	if gap > 0 {
		p.c.Underrun(stream, gap)
	}
}

// end says that an item is complete.
func (p *player) end(now time.Time, i *item) {
	p.advance(now)
	i.ended = true
	p.c.Record(measure.BufferNeeded, i.needed)
	for s := range p.streams {
		p.underrun(s, p.streams[s].end(now))
	}
	p.finish()
}

// flush drops an item and tells how much of it was heard. It returns nil for one that
// there never was.
func (p *player) flush(now time.Time, id string) *item {
	p.advance(now)
	named := func(i *item) bool { return i.id == id }
	if at := slices.IndexFunc(p.over, named); at >= 0 {
		p.tell(p.over[at], true)
		return p.over[at]
	}
	at := slices.IndexFunc(p.queue, named)
	if at < 0 {
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
func (p *player) done(i *item) {
	p.c.Add(measure.PlayedMS, i.played.Milliseconds())
	p.tell(i, true)
	p.over = append(p.over, i)
	if len(p.over) > rememberedItems {
		p.over = slices.Delete(p.over, 0, 1)
	}
}

// advance plays until now.
func (p *player) advance(now time.Time) {
	var played time.Duration
	for s := range p.streams {
		if d := p.streams[s].advance(now); s == reporting {
			played = d
		}
	}
	for _, i := range p.queue {
		d := min(played, i.held)
		i.held -= d
		i.played += d
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
func (p *player) tell(i *item, done bool) {
	p.report(protocol.Playback{ItemID: i.id, PlayedMS: i.played.Milliseconds(), Done: done})
}

// sounding says whether something is played right now.
func (p *player) sounding() bool { return p.streams[reporting].playing }

// idle says whether everything that came has been played.
func (p *player) idle() bool { return len(p.queue) == 0 }

// plays says whether some of the answer to x is still to be heard.
func (p *player) plays(x *exchange) bool {
	return slices.ContainsFunc(p.queue, func(i *item) bool { return i.x == x && i.held > 0 })
}

// next is when it has something to tell; the zero time for never.
func (p *player) next() time.Time {
	if !p.sounding() || len(p.queue) == 0 {
		return time.Time{}
	}
	at := p.reported.Add(reportEvery)
	if head := p.queue[0]; head.ended {
		if end := p.streams[reporting].now.Add(head.held); end.Before(at) {
			return end
		}
	}
	return at
}
