package voice

import (
	"cmp"
	"slices"
	"time"

	"voicegw/audio"
	"voicegw/protocol"
)

const reportEvery = 200 * time.Millisecond

// Item is a spoken answer, or part of one.
type Item struct {
	// ID is the gateway's id. X is the exchange that it answers; nil for a greeting.
	ID string
	X  *Exchange
	// Early: the item began before the user stopped speaking, so it does not answer the whole turn.
	Early bool
	// Skipped is the number of skipped bytes, by the gateway's positions.
	Skipped int
	// Reloaded: the page was reloaded while the item was open, so its length proves nothing.
	Reloaded bool
	// Bytes arrived. Played is the time heard so far, Heard the bytes heard once the item is over.
	Bytes  int
	Played time.Duration
	Heard  int
	// First and Latest are the times of its frames. Needed is the buffer that would have avoided underruns so far.
	First, Latest time.Time
	Needed        time.Duration

	held  time.Duration // arrived but not played
	ended bool
	// unconfirmed: the coming snapshot has not named the item yet.
	unconfirmed bool
	known       int // next bytes that were heard before
	wasted      int // bytes lost by a reload
}

// player plays items one after another on a clock, reports its position, and counts underruns.
type player struct {
	// Fixed after newPlayer.
	rate      int
	reporting int // index in streams of the one that reports to the gateway
	observer  Observer
	report    func(p protocol.Playback, receivedMS int64)

	streams []stream
	queue   []*Item // not played to the end
	newest  *Item   // newest item with known audio, or nil
	// resumedItem is the newest one at the last resume.
	resumedItem *Item
	// incomingItem owns the next frames: the newest announced item. It may be nil.
	incomingItem *Item
	over         []*Item   // the most recent finished items
	reported     time.Time // time of the last report during playback
}

// rememberedItems is how many finished items can still be flushed. The gateway may not have read the final report.
const rememberedItems = 4

func newPlayer(rate int, buffers []time.Duration, reporting int, observer Observer,
	report func(p protocol.Playback, receivedMS int64)) *player {
	p := &player{rate: rate, reporting: reporting, observer: observer, report: report, streams: make([]stream, len(buffers))}
	for i, buffer := range buffers {
		p.streams[i].buffer = buffer
	}
	return p
}

func find(items []*Item, id string) *Item {
	if at := slices.IndexFunc(items, func(i *Item) bool { return i.ID == id }); at >= 0 {
		return items[at]
	}
	return nil
}

func (p *player) incoming() *Item {
	if i := p.incomingItem; i != nil && (i.known > 0 || p.takes(i)) {
		return i
	}
	return nil
}

func (i *Item) position() int { return i.Bytes + i.Skipped }

// unseen returns the part of a frame that is new. The item may be nil.
func (i *Item) unseen(pcm []byte) []byte {
	if i == nil || i.known == 0 {
		return pcm
	}
	n := min(i.known, len(pcm))
	i.known -= n
	return pcm[n:]
}

// resume handles audio.start of a known item, whose audio continues at a position after a resume. It reports whether
// the item is known. Even a finished item may continue: the gateway rounds positions down, so less than 1 ms is
// ignored.
func (p *player) resume(now time.Time, m *protocol.AudioStart) bool {
	i := cmp.Or(find(p.queue, m.ItemID), find(p.over, m.ItemID))
	switch {
	case i == nil:
		return false
	case i.Reloaded && m.FromMS == 0:
		p.beginAgain(now, i)
		return true
	}
	p.incomingItem, i.unconfirmed = i, false
	if i.Reloaded {
		i.known = 0
		return true
	}
	from := audio.Bytes(p.rate, time.Duration(m.FromMS)*time.Millisecond)
	acknowledged := audio.Bytes(p.rate, time.Duration(audio.MS(p.rate, i.position()))*time.Millisecond)
	i.known = max(i.position()-from, 0)
	if missing := from - i.position(); missing > 0 {
		i.Skipped += missing
		p.observer.Happened(now, Event{Kind: MissedAudio, X: i.X, N: int64(missing), Text: i.ID})
	}
	if again := acknowledged - from; again > 0 {
		p.observer.Happened(now, Event{Kind: AudioRepeated, X: i.X, N: int64(again), Text: i.ID})
	}
	return true
}

func (p *player) beginAgain(now time.Time, i *Item) {
	is := func(other *Item) bool { return other == i }
	p.over = slices.DeleteFunc(p.over, is)
	if slices.ContainsFunc(p.queue, is) {
		p.queue = slices.DeleteFunc(p.queue, is)
		p.reportPlayed(i)
	}
	p.begin(now, &Item{ID: i.ID, X: i.X, Early: i.Early})
}

// reload drops all queued audio and forgets what arrived, without a report.
func (p *player) reload(now time.Time) {
	p.advance(now)
	var open []*Item
	for _, i := range p.queue {
		i.wasted += i.Bytes - i.wasted - p.heard(i)
		i.held, i.Reloaded = 0, true
		if i.ended {
			p.retire(i)
		} else {
			open = append(open, i)
		}
	}
	for s := range p.streams {
		p.streams[s].flush(0, len(open) > 0)
	}
	p.queue, p.newest, p.incomingItem = open, nil, nil
}

func (p *player) takes(i *Item) bool { return i != nil && !i.ended && slices.Contains(p.queue, i) }

func (p *player) begin(now time.Time, i *Item) {
	p.advance(now)
	for s := range p.streams {
		p.streams[s].open = true
	}
	p.queue = append(p.queue, i)
	p.newest, p.incomingItem = i, i
}

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

// adopt assigns unflushed items that began before x was fully spoken to x's answer: the rest of the recording was not
// speech to the model.
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

func (p *player) underrun(stream int, gap time.Duration) {
	if gap > 0 {
		p.observer.Underrun(stream, gap)
	}
}

func (p *player) end(now time.Time, i *Item) {
	p.advance(now)
	i.ended = true
	for s := range p.streams {
		p.underrun(s, p.streams[s].end(now))
	}
	p.finish()
}

func (p *player) expectSnapshot() {
	for _, i := range p.queue {
		i.unconfirmed = !i.ended
	}
}

// endSnapshot handles the end of a snapshot. An item that it did not announce is complete; its received audio is played
// to the end.
func (p *player) endSnapshot(now time.Time) {
	for _, i := range slices.Clone(p.queue) {
		if !i.unconfirmed || i.ended {
			continue
		}
		if i.X != nil {
			i.X.lost = true
		}
		p.end(now, i)
	}
}

// flush drops an item and reports how much was heard. It returns nil for an unknown item.
func (p *player) flush(now time.Time, id string) *Item {
	p.advance(now)
	if i := find(p.over, id); i != nil {
		p.reportItem(i, true)
		return i
	}
	i := find(p.queue, id)
	if i == nil {
		p.report(protocol.Playback{ItemID: id, Done: true}, 0)
		return nil
	}
	p.queue = slices.DeleteFunc(p.queue, func(other *Item) bool { return other == i })
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

func (p *player) done(i *Item) {
	p.reportItem(i, true)
	p.retire(i)
}

func (p *player) retire(i *Item) {
	p.reportPlayed(i)
	p.over = append(p.over, i)
	if len(p.over) > rememberedItems {
		p.over = slices.Delete(p.over, 0, 1)
	}
}

// has returns the number of bytes known to have arrived; a reload forgets earlier ones.
func (p *player) has(i *Item) int {
	if i.Reloaded {
		return p.heard(i)
	}
	return i.position()
}

func (p *player) heard(i *Item) int {
	if i.held == 0 {
		return i.Bytes - i.wasted // the length of each frame was rounded
	}
	return audio.Bytes(p.rate, i.Played)
}

func (p *player) reportPlayed(i *Item) {
	i.Heard = p.heard(i)
	if i.X != nil && !i.Early {
		i.X.Heard += i.Heard
	}
	p.observer.Played(i)
}

// close drops everything without a report to the gateway.
func (p *player) close(now time.Time) {
	p.advance(now)
	for _, i := range p.queue {
		p.reportPlayed(i)
	}
	p.queue = nil
}

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
	p.reportProgress(now)
}

func (p *player) finish() {
	for len(p.queue) > 0 && p.queue[0].ended && p.queue[0].held == 0 {
		i := p.queue[0]
		p.queue = slices.Delete(p.queue, 0, 1)
		p.done(i)
	}
}

func (p *player) reportProgress(now time.Time) {
	if !p.sounding() || len(p.queue) == 0 {
		p.reported = time.Time{}
		return
	}
	if p.reported.IsZero() {
		p.reported = now
	}
	if now.Sub(p.reported) >= reportEvery {
		p.reported = now
		p.reportItem(p.queue[0], false)
	}
}

func (p *player) reportItem(i *Item, done bool) {
	p.report(protocol.Playback{ItemID: i.ID, PlayedMS: audio.MS(p.rate, p.heard(i)), Done: done}, audio.MS(p.rate, p.has(i)))
}

func (p *player) sounding() bool { return p.streams[p.reporting].playing }

func (p *player) idle() bool { return len(p.queue) == 0 }

func (p *player) plays(x *Exchange) bool {
	return slices.ContainsFunc(p.queue, func(i *Item) bool { return i.X == x && i.held > 0 })
}

// next is when the next report is due; zero for never.
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

// stream models a player with a fixed buffer. It starts when the buffer is full; when it runs dry, it waits for a full
// buffer again.
type stream struct {
	buffer time.Duration // fixed

	now     time.Time     // played up to this time
	level   time.Duration // buffered audio
	playing bool
	open    bool      // more of the answer may arrive
	dry     time.Time // when it ran dry within an open answer, or zero
}

func (s *stream) advance(now time.Time) time.Duration {
	passed := max(now.Sub(s.now), 0)
	if !s.playing {
		s.now = later(s.now, now)
		return 0
	}
	if passed < s.level {
		s.now = later(s.now, now)
		s.level -= passed
		return passed
	}
	played := s.level
	if s.open {
		s.dry = s.now.Add(played)
	}
	s.now, s.level, s.playing = later(s.now, now), 0, false
	return played
}

// add buffers audio. gap is the length of an underrun that ended with it.
func (s *stream) add(now time.Time, d time.Duration) (gap time.Duration) {
	s.level += d
	if s.level < s.buffer {
		return 0
	}
	return s.play(now)
}

// end marks the answer as complete: the rest is played without waiting for a full buffer.
func (s *stream) end(now time.Time) (gap time.Duration) {
	s.open = false
	if s.level > 0 {
		gap = s.play(now)
	}
	s.dry = time.Time{}
	return gap
}

// flush drops everything except keep, which belongs to other answers.
func (s *stream) flush(held time.Duration, open bool) {
	s.level, s.playing, s.open, s.dry = held, held > 0, open, time.Time{}
}

func (s *stream) play(now time.Time) (gap time.Duration) {
	if s.playing {
		return 0
	}
	s.playing = true
	if !s.dry.IsZero() {
		gap = now.Sub(s.dry)
		s.dry = time.Time{}
	}
	return gap
}

func earlier(a, b time.Time) time.Time { return slices.MinFunc([]time.Time{a, b}, time.Time.Compare) }

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }
