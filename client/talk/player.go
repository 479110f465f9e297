package talk

import (
	"time"

	"voicegw/audio"
	"voicegw/protocol"
)

const (
	// reportEvery is how often a client says what it has played.
	reportEvery = 200 * time.Millisecond
	// maxHeardBytes bounds what is kept of the answers: 23 minutes at 24 kHz.
	maxHeardBytes = 64 << 20
	// rememberedItems is how many items that are over are remembered, to answer a
	// late flush.
	rememberedItems = 16
)

// player plays items one after another in real time, on the clock it is told. It
// makes the playback reports.
type player struct {
	// Fixed after newPlayer.
	rate   int
	keep   bool
	report func(protocol.Playback)

	queue     []*item // with something left to play or to come, oldest first
	over      []*item // the newest rememberedItems that are not
	now       time.Time
	carry     time.Duration // played time that made no whole sample yet
	heard     []byte
	underruns int
}

// item is one spoken answer, or a part of one.
type item struct {
	id       string
	exchange *exchange // whose answer it is
	early    bool      // it began before the exchange's turn had been said
	firstAt  time.Time // when its first audio came
	pcm      []byte    // not yet played
	played   int       // bytes
	ended    bool      // no more will come
	dry      bool      // it has run dry, and no audio has come since
	reported time.Time
}

func newPlayer(rate int, keep bool, report func(protocol.Playback)) *player {
	return &player{rate: rate, keep: keep, report: report}
}

// begin opens an item; its audio is played after what is queued.
func (p *player) begin(now time.Time, id string, x *exchange) *item {
	p.advance(now)
	i := &item{id: id, exchange: x, early: x != nil && x.spokenAt.IsZero()}
	p.queue = append(p.queue, i)
	return i
}

// add gives an item more audio.
func (p *player) add(now time.Time, i *item, pcm []byte) {
	p.advance(now)
	i.pcm = append(i.pcm, pcm...)
	if i.firstAt.IsZero() {
		i.firstAt = now
	}
	if i.dry {
		i.dry = false
		p.underruns++
	}
}

// adopt makes what began before x had been said, and was not flushed since, part
// of its answer: the rest of the recording was no speech to the model.
func (p *player) adopt(now time.Time, x *exchange) {
	p.advance(now)
	for _, i := range p.queue {
		if i.exchange != x || !i.early {
			continue
		}
		i.early = false
		x.answerBytes += i.played + len(i.pcm)
		x.heardBytes += i.played
		if x.firstAudio.IsZero() && !i.firstAt.IsZero() {
			x.firstAudio, x.lastAudio = i.firstAt, now
		}
	}
}

// end says that all audio of an item has come.
func (p *player) end(now time.Time, id string) {
	p.advance(now)
	for _, i := range p.queue {
		if i.id == id {
			i.ended = true
		}
	}
	p.advance(now)
}

// flush drops what has not been played of an item and reports what has.
func (p *player) flush(now time.Time, id string) *item {
	p.advance(now)
	for n, i := range p.queue {
		if i.id == id {
			p.queue = append(p.queue[:n], p.queue[n+1:]...)
			i.pcm = nil
			p.done(i)
			return i
		}
	}
	for _, i := range p.over {
		if i.id == id {
			p.tell(i, true)
			return i
		}
	}
	p.report(protocol.Playback{ItemID: id, Done: true})
	return nil
}

// idle says that nothing is left to play or to come.
func (p *player) idle() bool { return len(p.queue) == 0 }

// sounding says whether something is being heard right now.
func (p *player) sounding() bool { return len(p.queue) > 0 && len(p.queue[0].pcm) > 0 }

// playing says whether an item of x has begun and is not over.
func (p *player) playing(x *exchange) bool {
	for _, i := range p.queue {
		if i.exchange == x && (len(i.pcm) > 0 || i.played > 0) {
			return true
		}
	}
	return false
}

// advance plays on until now.
func (p *player) advance(now time.Time) {
	if now.Before(p.now) {
		now = p.now // what arrived was timed before the last tick was
	}
	left := p.carry + now.Sub(p.now)
	p.now = now
	p.carry = 0
	for len(p.queue) > 0 {
		i := p.queue[0]
		n := min(audio.Bytes(p.rate, left), len(i.pcm))
		p.play(i, n)
		left -= audio.Duration(p.rate, n)
		switch {
		case len(i.pcm) > 0:
			p.carry = left // less than a sample
			p.tellAtTimes(i, now)
			return
		case !i.ended:
			// Running dry is a gap only if more comes.
			i.dry = i.dry || i.played > 0 && left > 0
			return
		}
		p.queue = p.queue[1:]
		p.done(i)
	}
}

func (p *player) play(i *item, n int) {
	if room := maxHeardBytes - len(p.heard); p.keep && n > 0 && room > 0 {
		p.heard = append(p.heard, i.pcm[:min(n, room)]...)
	}
	i.pcm = i.pcm[n:]
	i.played += n
	if i.exchange != nil && !i.early {
		i.exchange.heardBytes += n
	}
}

func (p *player) tellAtTimes(i *item, now time.Time) {
	if i.reported.IsZero() {
		i.reported = now
	}
	if now.Sub(i.reported) >= reportEvery {
		i.reported = now
		p.tell(i, false)
	}
}

func (p *player) done(i *item) {
	p.tell(i, true)
	p.over = append(p.over, i)
	if len(p.over) > rememberedItems {
		p.over = p.over[1:]
	}
}

func (p *player) tell(i *item, done bool) {
	p.report(protocol.Playback{ItemID: i.id, PlayedMS: audio.MS(p.rate, i.played), Done: done})
}
