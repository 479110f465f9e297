package voice

import (
	"errors"
	"time"
)

// errCut is the error of a connection closed on purpose.
var errCut = errors.New("the connection was cut")

// noToken is the reason for skipping an outage.
const noToken = "the gateway sent no resume_token; set limits.resume_grace to allow resuming"

// tickOutages starts the outages that are due.
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

// outageAt returns when the next outage is due; zero before the session begins.
func (c *Conversation) outageAt(i int) time.Time {
	if c.way.began.IsZero() {
		return time.Time{}
	}
	o := c.o.Outages[i]
	return c.way.began.Add(o.First + time.Duration(c.outages[i])*o.Every)
}

// steady reports whether the connection may be closed on purpose.
func (c *Conversation) steady() bool {
	return c.way.state == online && !c.way.roaming && c.way.token != "" && c.phase > phaseStarting && c.phase < phaseLeaving
}

// cut closes the connection for at least the given time.
func (c *Conversation) cut(now time.Time, act Act, away time.Duration) {
	switch {
	case c.way.token == "":
		c.tellText(now, NotCut, c.cur, noToken)
		return
	case !c.steady():
		c.tellText(now, NotCut, c.cur, "not connected")
		return
	}
	c.way.act = act
	switch act {
	case Roam:
		c.way.roaming = true
		c.connRequest(requestDial)
		return
	case Reload:
		c.player.reload(now)
		c.spoken.doubt()
		c.connRequest(requestGoAway)
	default:
		c.connRequest(requestReset)
	}
	c.loseAt(now, errCut)
	c.way.dialAt = later(c.way.dialAt, now.Add(away))
}

// tickSteps disconnects during the current turn if the next turn of the script asks for it. The current turn continues.
func (c *Conversation) tickSteps(now time.Time) {
	if at := c.stepAt(); at.IsZero() || now.Before(at) || !c.steady() {
		return
	}
	t := &c.o.Turns[c.next]
	c.next++
	c.cut(now, t.Act, t.Wait)
}

// stepAt returns when the next turn disconnects during the current one; zero for never.
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
