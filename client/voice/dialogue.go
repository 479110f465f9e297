package voice

import (
	"time"

	"voicegw/protocol"
)

func (c *Conversation) awaitSilence(now time.Time) {
	sounds := len(c.turns.open) > 0 || !c.player.idle()
	switch {
	case c.conn.state != online:
		c.phaseSince = now // without a connection no turn begins
	case c.cur.endsInSilence() && sounds && now.Sub(c.lastActivity) < c.o.Patience && now.Sub(c.restSince) < c.restTime+overtime:
		c.phaseSince = now // a greeting, or the rest of an answer
	case now.Sub(c.phaseSince) >= c.restTime:
		c.advance(now)
	}
}

func (c *Conversation) advance(now time.Time) {
	if !c.o.Until.IsZero() && !now.Before(c.o.Until) || c.o.Until.IsZero() && c.script.peek() == nil {
		c.done = true
		c.Leave(now)
		return
	}
	if c.script.peek() == nil {
		c.script.next = 0
		c.script.pass++
	}
	switch t := c.script.peek(); t.Act {
	case Wait:
		c.script.next++
		c.rest(now)
		c.restTime += t.Wait
	case Drop, Reload, Roam:
		c.script.next++
		c.disconnect(now, t.Act, t.Wait)
		c.rest(now)
	case Stop: // the answer that it would have stopped is over
		c.script.next++
		c.observer.Happened(now, Event{Kind: Missed})
		c.rest(now)
	default:
		c.beginTurn(now, nil)
	}
}

func (c *Conversation) rest(now time.Time) {
	c.restTime, c.restSince = c.script.pause(), now
	c.enter(now, phaseResting)
}

// beginTurn begins the next turn. interrupts is the exchange that it interrupts, or nil.
func (c *Conversation) beginTurn(now time.Time, interrupts *Exchange) {
	x := c.script.take(c.o.Words)
	if x.Interrupts = interrupts; x.Turn.Interrupts && interrupts == nil {
		c.observer.Happened(now, Event{Kind: Missed})
	}
	c.begin(now, x)
	switch x.Turn.Act {
	case Say:
		c.input.speak(now, x)
	case Type:
		c.conn.send(&protocol.InputText{Text: x.Words.Text})
		x.Onset, x.Spoken, x.Known = now, now, now
		c.emit(now, Event{Kind: Speaking})
	case Stop:
		c.conn.send(&protocol.Interrupt{})
		x.Onset, x.Spoken, x.Known = now, now, now
	}
	c.enter(now, phaseTalking)
}

func (c *Conversation) begin(now time.Time, x *Exchange) {
	c.cur, c.lastActivity, c.lastTurnMessage = x, now, now
	x.resumes = c.conn.resumes
	c.emit(now, Event{Kind: Began})
}

// listen continues with the turns once the current exchange is over and its recording was sent to the end. The rest of
// the recording is silence.
func (c *Conversation) listen(now time.Time) {
	x := c.cur
	c.reportSpeech(now, x)
	if c.conn.state != online {
		return // messages that end the turn arrive later
	}
	if at := c.script.disconnectAt(x); !at.IsZero() && !now.Before(at) && c.conn.steady() {
		t := c.script.peek()
		c.script.next++
		c.disconnect(now, t.Act, t.Wait)
	}
	c.await(now, x)
	if c.cur == x && c.phase == phaseTalking && x.Settled && c.input.idle() {
		c.rest(now)
	}
}

func (c *Conversation) reportSpeech(now time.Time, x *Exchange) {
	if x.Turn.Act != Say {
		return
	}
	if x.reported == 0 && !now.Before(x.Onset) {
		x.reported = 1
		c.emit(now, Event{Kind: Speaking})
	}
	if x.reported == 1 && !now.Before(x.Spoken) {
		x.reported = 2
		c.lastActivity = now
		c.player.adopt(x)
		c.emit(now, Event{Kind: Spoken})
	}
}

func (c *Conversation) await(now time.Time, x *Exchange) {
	interruption := c.script.interruptionAt(x)
	switch {
	case !interruption.IsZero() && !now.Before(interruption) && c.player.plays(x) && c.input.idle():
		x.settle(now, c.observer, Event{Kind: Interrupted})
		c.beginTurn(now, x)
	case x.Settled:
	case now.Before(x.Spoken):
	case x.Turn.Act == Stop:
		c.awaitFlush(now, x)
	case c.fulfilled(now, x):
		x.settle(now, c.observer, Event{Kind: Answered})
	case x.failed && c.settled(now):
		x.fail(now, c.observer, Event{Kind: Failed, Text: "the turn failed", GatewayError: c.lastError})
	case x.Completed && x.Bytes == 0 && c.settled(now):
		x.fail(now, c.observer, Event{Kind: Failed, Text: "the turn ended without audio"})
	case c.questions.asked() >= 0: // a person's answer is awaited
	case now.Sub(later(c.lastActivity, x.Spoken)) >= x.Turn.Patience || now.Sub(x.Spoken) >= longestAnswer:
		x.settle(now, c.observer, Event{Kind: Stuck})
		c.Leave(now)
	}
}

func (c *Conversation) fulfilled(now time.Time, x *Exchange) bool {
	switch x.Turn.WaitFor {
	case ForNothing:
		return true
	case ForFirstAudio:
		return !x.First.IsZero()
	case ForTool:
		return x.toolEnded
	case ForEnd:
		return false // the end of the connection settles it
	}
	if x.earlyOver && len(c.turns.open) == 0 && now.Sub(later(c.lastActivity, x.Spoken)) >= earlyTime {
		return true // the early answer covered all the model heard
	}
	return x.Completed && x.Bytes > 0 && c.settled(now)
}

func (c *Conversation) settled(now time.Time) bool {
	return len(c.turns.open) == 0 && c.player.idle() && len(c.questions.open) == 0 && now.Sub(c.lastTurnMessage) >= quiet
}

func (c *Conversation) awaitFlush(now time.Time, x *Exchange) {
	switch {
	case !x.Flushed.IsZero() || c.player.idle() && len(c.turns.open) == 0:
		x.settle(now, c.observer, Event{Kind: Answered})
	case now.Sub(x.Onset) >= flushTime:
		x.fail(now, c.observer, Event{Kind: Failed, Text: "no audio.flush within " + flushTime.String() + " of the stop button"})
	}
}
