package voice

import (
	"time"

	"voicegw/protocol"
)

// frame returns the next frame if it is due, and its due time.
func (c *Conversation) frame(now time.Time) (pcm []byte, due time.Time, ok bool) {
	if c.mic == nil || c.phase >= phaseLeaving || c.Away() {
		return nil, due, false
	}
	if one, ok := c.spoken.next(); ok {
		if one.activity != nil {
			c.press(one.activity)
			return nil, due, false
		}
		c.spoken.sent(one.pcm)
		return one.pcm, now, true
	}
	if due = c.mic.due(); now.Before(due) {
		c.way.catching = false
		return nil, due, false
	}
	late := behind
	if c.way.catching {
		late += c.way.keeps
	}
	if now.Sub(due) > late {
		c.observer.Happened(now, Event{Kind: Dropped, N: c.mic.skip(now.Add(-c.mic.length))})
		due = c.mic.due()
	}
	pcm = c.mic.take()
	c.spoken.sent(pcm)
	if x := c.cur; c.o.PushToTalk && x != nil && x.Turn.Act == Say && x.Known.IsZero() && !x.Spoken.After(c.mic.due().Add(-c.mic.length)) {
		c.press(&protocol.InputActivity{})
		x.Known = now
	}
	return pcm, due, true
}

// wake returns when tick or frame is due next, after now; zero for never. Call both first.
func (c *Conversation) wake(now time.Time) time.Time {
	var at time.Time
	consider := func(t time.Time) {
		if t.After(now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	consider(c.player.next())
	consider(c.o.end())
	consider(c.nextConnectionTick())
	for i := range c.o.Outages {
		consider(c.outageAt(i))
	}
	if c.mic != nil && c.phase < phaseLeaving && !c.Away() {
		consider(c.mic.due())
	}
	for _, q := range c.questions {
		consider(q.at)
		consider(q.until)
	}
	switch c.phase {
	case phaseStarting:
		consider(c.phaseSince.Add(c.o.ConnectTime))
	case phasePending:
		consider(c.phaseSince.Add(c.o.PendingTime))
	case phaseResting:
		consider(c.phaseSince.Add(c.rest))
	case phaseTalking:
		x := c.cur
		consider(x.Onset)
		consider(x.Spoken)
		consider(c.interruptionAt())
		consider(c.stepAt())
		consider(c.word.Add(quiet))
		consider(x.Onset.Add(flushTime))
		consider(later(c.sign, x.Spoken).Add(earlyTime))
		consider(later(c.sign, x.Spoken).Add(x.Turn.Patience))
	case phaseLeaving:
		consider(c.phaseSince.Add(c.o.GoodbyeTime))
	case phaseOver:
	}
	return at
}
