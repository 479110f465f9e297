package voice

import (
	"slices"
	"time"

	"voicegw/audio"
	"voicegw/protocol"
)

// ResumeTime is how long a client tries to resume: a gateway's default session timeout.
const ResumeTime = 30 * time.Second

// ResumeOptions configure resuming after a lost connection.
type ResumeOptions struct {
	// Within is the time limit after the loss. With zero, a lost connection ends the conversation.
	Within time.Duration
	// Random returns a number in [0, 1) that varies the pauses between attempts. It is required if Within is set.
	Random func() float64
}

// Resumption describes a resume.
type Resumption struct {
	// Act is the act that disconnected; empty if the connection was lost.
	Act Act
	// Away is the time without a connection, from the loss to session.started. Took is the part since session.start.
	Away, Took time.Duration
	Tries      int
	// Snapshot: the gateway did not keep all missed messages.
	Snapshot bool
}

func (c *Conversation) disconnect(now time.Time, act Act, wait time.Duration) {
	if act == Reload && c.conn.steady() {
		c.player.reload(now)
		c.input.log.forget()
	}
	c.conn.disconnect(now, act, wait)
}

// dialled switches to a new connection; later data of the old one is ignored. It reports whether the connection is
// wanted, and whether it replaces an open one.
func (c *Conversation) dialled(now time.Time) (wanted, replaces bool) {
	if c.phase == phaseOver {
		return false, false
	}
	if wanted, replaces = c.conn.dialled(now); !wanted {
		return false, false
	}
	r := c.conn.start.Resume
	if i := c.player.newest; i != nil {
		r.Audio = &protocol.ResumeAudio{ItemID: i.ID, ReceivedMS: audio.MS(c.o.Start.OutputRate, i.position())}
	}
	r.Input = c.input.position(now)
	c.player.resumedItem, c.player.incomingItem = c.player.newest, nil
	c.lastError = nil
	return true, replaces
}

func (c *Conversation) hearResumed(now time.Time, m *protocol.SessionStarted) {
	if m.Snapshot {
		clear(c.turns.open)
		c.player.expectSnapshot()
		c.questions.expectSnapshot()
		if c.cur != nil {
			c.cur.taken = false // the snapshot shows it
		}
	}
	c.lastActivity, c.lastTurnMessage, c.news = now, now, true
	if c.input.resumed(now, m) {
		c.conn.out = slices.DeleteFunc(c.conn.out, func(m protocol.ClientMessage) bool {
			_, press := m.(*protocol.InputActivity)
			return press
		})
	}
	c.conn.resumed(now, m)
}

func (c *Conversation) endReplay(now time.Time) {
	snapshot := c.conn.snapshot
	if snapshot {
		c.player.endSnapshot(now)
		if c.questions.endSnapshot(now) {
			c.lastTurnMessage = now
		}
	}
	c.questions.repeatAnswers(now, c.conn.lost)
	switch x := c.cur; {
	case x == nil || x.resumes == c.conn.resumes: // it began on this connection, so nothing was lost
	case x.Turn.Act == Stop && !x.Settled && x.Flushed.IsZero() && !c.player.idle():
		// The stop was lost: the answer is still playing.
		c.conn.send(&protocol.Interrupt{})
		x.Onset, x.Spoken, c.lastTurnMessage, c.lastActivity = now, now, now, now
	case x.Turn.Act == Type && x.Index >= 0 && !x.taken && x.Bytes == 0:
		// The text was lost: no later message refers to it.
		c.conn.send(&protocol.InputText{Text: x.Words.Text})
		x.Spoken, c.lastTurnMessage, c.lastActivity = now, now, now
	case x.Turn.Act == Say && c.input.replayed && x.Bytes == 0: // it is replayed, and answered again
	case snapshot && len(c.turns.open) == 0 && !now.Before(x.Spoken):
		x.Completed = true // its end was among the lost messages
	}
	c.conn.snapshot = false
}

func (c *Conversation) giveUp(now time.Time, err error) {
	c.emit(now, Event{Kind: ResumeFailed, Err: err, GatewayError: c.lastError})
	c.emit(now, Event{Kind: Lost, Err: err})
	c.cur.settle(now, c.observer, Event{Kind: CutOff})
	c.enter(now, phaseOver)
}

func (c *Conversation) lost(now time.Time, err error) {
	switch {
	case c.phase == phaseOver:
		return
	case c.ended == "" && c.conn.resumable() && mayHelp(err):
		c.conn.fail(now, err)
		return
	case c.ended == "" && c.conn.state == opening:
		c.giveUp(now, err)
		return
	case c.phase == phaseStarting:
		c.observer.Happened(now, Event{Kind: Refused, Err: err})
	case c.phase == phaseLeaving && c.ended != "":
	case c.endAccepted():
		outcome := Answered
		if x := c.cur; !x.expectsError() && x.Turn.WaitFor != ForEnd && (!x.Completed || x.Bytes == 0) {
			outcome = CutOff
		}
		c.cur.settle(now, c.observer, Event{Kind: outcome})
		c.done = true
	default:
		c.emit(now, Event{Kind: Lost, Err: err})
		c.cur.settle(now, c.observer, Event{Kind: CutOff})
	}
	c.enter(now, phaseOver)
}

// endedByTool is the reason of session.ended when the model hung up.
const endedByTool = "tool_ended"

// endAccepted reports whether the script accepts the end of the session: it waits for the end, expects the error, or
// the model ended the session after the last turn.
func (c *Conversation) endAccepted() bool {
	x := c.cur
	switch {
	case x == nil:
		return false
	case x.expectsError():
		return true
	case c.ended != endedByTool:
		return false
	default:
		return c.o.Goodbye || x.Turn.WaitFor == ForEnd || c.script.peek() == nil && (x.Settled || x.Completed && x.Bytes > 0)
	}
}
