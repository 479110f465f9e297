package phone

import (
	"errors"
	"slices"
	"time"

	"voicegw/protocol"
)

// The pace of audio to a carrier. Only a clear takes sent audio back, so little is sent ahead.
const (
	frame     = FrameMS * time.Millisecond
	lead      = 200 * time.Millisecond // how far the carrier may be ahead of the audio clock
	batch     = 2 * frame              // sent at once, so that a call needs 25 timers a second
	markEvery = 200 * time.Millisecond
	// trust is the most audio that is sent without a returned mark: the lead and the round trip.
	trust = 2 * time.Second
	// maxQueued limits the audio that waits for its time.
	maxQueued = 5 * time.Minute
	// maxFalse limits marks that were never sent, which end the call.
	maxFalse = 20
)

var (
	errQueue = errors.New("more than 5 minutes of audio wait for the caller")
	errMarks = errors.New("the carrier returned marks that were never sent")
)

// player paces the gateway's audio and knows how much the caller has heard. It has no clock and no connection: the Conn
// passes the time and sends the frames. Audio is in the carrier's encoding; positions are in samples.
type player struct {
	width   int  // bytes of a sample
	silence byte // pads the last frame of an item

	queue []byte // audio that waits, from head
	head  int
	items []spoken // with audio that waits or plays, oldest first
	until time.Time
	sent  int64 // samples since the start, with padding

	gen     uint32 // grows with each clear
	newMark uint32 // number of the newest mark
	open    []mark // sent and not returned, in order
	wrong   int    // marks that were never sent
	markAt  int64  // of sent, at the last mark
	heardAt time.Time
	heard   int64 // of sent, at the last mark that returned
	stalled bool  // nothing is sent until a mark returns
}

// spoken is an item of the model's speech.
type spoken struct {
	id     string
	waits  int   // bytes in the queue
	played int64 // samples sent
	heard  int64 // samples that marks have confirmed
	ended  bool  // no more audio comes
}

// mark is a point in the audio.
type mark struct {
	number uint32
	item   string
	at     int64 // samples of the item
	total  int64 // samples since the start
	last   bool  // the item ends here
}

// begin adds an item; audio that is pushed belongs to it.
func (p *player) begin(item string) {
	for i := range p.items {
		p.items[i].ended = true
	}
	p.items = append(p.items, spoken{id: item})
}

// push queues encoded audio of the newest item. Audio without an item is dropped.
func (p *player) push(encoded []byte) error {
	n := len(p.items)
	if n == 0 || p.items[n-1].ended {
		return nil
	}
	if len(p.queue)-p.head+len(encoded) > int(samples(maxQueued))*p.width {
		return errQueue
	}
	if p.head > 0 && len(p.queue)+len(encoded) > cap(p.queue) {
		p.queue = p.queue[:copy(p.queue, p.queue[p.head:])]
		p.head = 0
	}
	p.queue = append(p.queue, encoded...)
	p.items[n-1].waits += len(encoded)
	return nil
}

func samples(d time.Duration) int64 { return int64(d / time.Millisecond * Rate / 1000) }

func ms(samples int64) int64 { return samples * 1000 / Rate }

// end ends the audio of an item. It returns the mark to send if all of it has been sent.
func (p *player) end(item string) *mark {
	s := p.item(item)
	switch {
	case s == nil || s.ended:
		return nil
	case s.waits == 0 && s.played == 0:
		p.forget(item)
		return nil
	}
	s.ended = true
	if s.waits > 0 {
		return nil
	}
	return p.mark(s, true)
}

func (p *player) forget(item string) {
	p.items = slices.DeleteFunc(p.items, func(s spoken) bool { return s.id == item })
}

func (p *player) item(id string) *spoken {
	if i := slices.IndexFunc(p.items, func(s spoken) bool { return s.id == id }); i >= 0 {
		return &p.items[i]
	}
	return nil
}

// take appends the next frame to dst if it is due, and returns the mark to send after it, if any. Without a frame, more is
// false and wait is the time until the next call, or negative if nothing is due before other calls.
func (p *player) take(dst []byte, now time.Time) (out []byte, m *mark, more bool, wait time.Duration) {
	s := p.playing()
	if s == nil {
		return dst, nil, false, -1
	}
	if p.until.Before(now) { // the carrier is silent
		p.until = now
		if len(p.open) == 0 {
			p.heard, p.heardAt = p.sent, now
			for i := range p.items {
				p.items[i].heard = p.items[i].played
			}
		}
	}
	if ahead := p.until.Sub(now); ahead+frame > lead {
		return dst, nil, false, max(ahead+batch-lead, time.Millisecond)
	}
	if p.sent-p.heard > samples(trust) {
		p.stalled = true
		return dst, nil, false, batch
	}
	n := min(s.waits, FrameSamples*p.width)
	dst = append(dst, p.queue[p.head:p.head+n]...)
	for range FrameSamples*p.width - n {
		dst = append(dst, p.silence)
	}
	if p.head += n; p.head == len(p.queue) {
		p.queue, p.head = p.queue[:0], 0
	}
	s.waits -= n
	s.played += int64(n / p.width)
	p.sent += FrameSamples
	p.until = p.until.Add(frame)
	if last := s.ended && s.waits == 0; last || p.sent-p.markAt >= samples(markEvery) {
		m = p.mark(s, last)
	}
	return dst, m, true, 0
}

// playing returns the item whose audio is next; nil while neither a whole frame nor an item's last one waits.
func (p *player) playing() *spoken {
	for i := range p.items {
		s := &p.items[i]
		switch {
		case s.waits >= FrameSamples*p.width, s.waits > 0 && s.ended:
			return s
		case s.waits > 0 || !s.ended:
			return nil
		}
	}
	return nil
}

func (p *player) mark(s *spoken, last bool) *mark {
	p.newMark++
	p.markAt = p.sent
	p.open = append(p.open, mark{number: p.newMark, item: s.id, at: s.played, total: p.sent, last: last})
	return &p.open[len(p.open)-1]
}

// returned takes a mark from the carrier: everything before it was heard, unless it was cleared. It returns the reports
// to the session.
func (p *player) returned(gen, number uint32, now time.Time) (reports []protocol.Playback, err error) {
	at := slices.IndexFunc(p.open, func(m mark) bool { return m.number == number })
	switch {
	case gen == p.gen && at >= 0:
	case gen <= p.gen && number > 0 && number <= p.newMark: // it was cleared, or returned before
		return nil, nil
	default:
		if p.wrong++; p.wrong > maxFalse {
			err = errMarks
		}
		return nil, err
	}
	p.heard, p.heardAt, p.stalled = p.open[at].total, now, false
	for _, m := range p.open[:at+1] {
		if s := p.item(m.item); s != nil {
			s.heard = m.at
			reports = append(reports, report(s, m.at, m.last))
		}
		if m.last {
			p.forget(m.item)
		}
	}
	p.open = slices.Delete(p.open, 0, at+1)
	return reports, nil
}

func report(s *spoken, at int64, done bool) protocol.Playback {
	return protocol.Playback{ItemID: s.id, PlayedMS: ms(at), ReceivedMS: ms(at), Done: done}
}

// flush drops an item and returns reports of its heard part: up to the last mark, and since then by the clock, at most to
// the next mark. clear reports that the carrier must drop its audio, which ends earlier items, too.
func (p *player) flush(item string, now time.Time) (reports []protocol.Playback, clear bool) {
	s := p.item(item)
	if s == nil {
		return nil, false
	}
	before := p.head
	for i := range p.items {
		if p.items[i].id == item {
			break
		}
		before += p.items[i].waits
	}
	p.queue = slices.Delete(p.queue, before, before+s.waits)
	if s.played <= s.heard {
		reports = append(reports, report(s, s.played, true))
		p.forget(item)
		return reports, false
	}
	since := max(samples(now.Sub(p.heardAt)), 0)
	if len(p.open) > 0 {
		since = min(since, p.open[0].total-p.heard)
	}
	kept := p.items[:0]
	for _, s := range p.items {
		d := min(since, s.played-s.heard)
		since -= d
		if s.played > s.heard || s.id == item {
			reports = append(reports, report(&s, s.heard+d, s.id == item || s.ended && s.waits == 0))
		}
		if s.id != item && s.waits > 0 {
			s.heard = s.played
			kept = append(kept, s)
		}
	}
	p.items = kept
	p.gen++ // of marks: the carrier drops its audio
	p.open = p.open[:0]
	p.until, p.stalled = now, false
	p.heard, p.markAt, p.heardAt = p.sent, p.sent, now
	return reports, true
}

// newest returns the newest item, and how much of it was queued, in ms.
func (p *player) newest() (item string, queued int64) {
	if len(p.items) == 0 {
		return "", 0
	}
	s := p.items[len(p.items)-1]
	return s.id, ms(s.played + int64(s.waits/p.width))
}
