package voice

import (
	"errors"
	"time"
)

// errCut is why a connection is gone that was taken away.
var errCut = errors.New("the connection was cut")

// noToken is why a connection is not taken away.
const noToken = "the gateway gives no resume_token, so that no client can come back (limits.resume_grace)"

// tickOutages takes the connection away where that is due.
func (c *Conversation) tickOutages(now time.Time) {
	for i, o := range c.o.Outages {
		due := c.outageAt(i)
		if due.IsZero() || now.Before(due) || !c.steady() {
			continue
		}
		for !c.outageAt(i).After(now) {
			c.outages[i]++
		}
		c.cut(now, o.Act, o.Away)
	}
}

// outageAt returns when an outage is due next; zero before the session has begun.
func (c *Conversation) outageAt(i int) time.Time {
	if c.way.began.IsZero() {
		return time.Time{}
	}
	o := c.o.Outages[i]
	return c.way.began.Add(o.First + time.Duration(c.outages[i])*o.Every)
}

// steady reports whether the connection may be taken away.
func (c *Conversation) steady() bool {
	return c.way.state == online && !c.way.roaming && c.way.token != "" && c.phase > phaseStarting && c.phase < phaseLeaving
}

// cut takes the connection away, for some time at least.
func (c *Conversation) cut(now time.Time, act Act, away time.Duration) {
	switch {
	case c.way.token == "":
		c.tellText(now, NotCut, c.cur, noToken)
		return
	case !c.steady():
		c.tellText(now, NotCut, c.cur, "there is no connection that could be taken away")
		return
	}
	c.way.act = act
	switch act {
	case Roam:
		c.way.roaming = true
		c.wish(wishDial)
		return
	case Reload:
		c.player.reload(now)
		c.spoken.doubt()
		c.wish(wishGoAway)
	default:
		c.wish(wishReset)
	}
	c.loseAt(now, errCut)
	c.way.dialAt = later(c.way.dialAt, now.Add(away))
}

// tickSteps takes the connection away where the next turn of the script wants that in the middle of the
// current one, which goes on.
func (c *Conversation) tickSteps(now time.Time) {
	if at := c.stepAt(); at.IsZero() || now.Before(at) || !c.steady() {
		return
	}
	t := &c.o.Turns[c.next]
	c.next++
	c.cut(now, t.Act, t.Wait)
}

// stepAt returns when the next turn takes the connection away in the middle of the current one; zero
// for never.
func (c *Conversation) stepAt() time.Time {
	x := c.cur
	if x == nil || c.next == len(c.o.Turns) || c.phase != phaseTalking {
		return time.Time{}
	}
	switch t := &c.o.Turns[c.next]; {
	case !t.Act.Disconnects():
	case t.From == FromAnswer && !x.First.IsZero():
		return x.First.Add(t.After)
	case t.From == FromSpeech && !x.Onset.IsZero():
		return x.Onset.Add(t.After)
	}
	return time.Time{}
}
