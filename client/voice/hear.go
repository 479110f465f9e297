package voice

import (
	"fmt"
	"time"

	"voicegw/protocol"
)

// hearAudio handles a binary frame.
func (c *Conversation) hearAudio(now time.Time, pcm []byte) {
	c.way.heard = now
	i := c.player.incoming()
	if pcm = i.unseen(pcm); len(pcm) == 0 {
		return // a repetition
	}
	if !c.player.takes(i) {
		i = nil
	}
	c.observer.HeardAudio(now, pcm, i)
	if i == nil {
		return
	}
	c.sign = now
	c.player.add(now, i, len(pcm))
	x := i.X
	if x == nil {
		return // a greeting
	}
	x.Last = now
	if i.Early {
		return
	}
	x.Bytes += len(pcm)
	if x.First.IsZero() {
		x.First, c.news = now, true
		c.tell(now, FirstAudio, x)
	}
}

// hear handles a message of the gateway.
func (c *Conversation) hear(now time.Time, m protocol.ServerMessage) {
	c.way.heard = now
	if _, text := m.(*protocol.Transcript); !text {
		c.news = true // transcripts are many, and nothing waits for them
	}
	if !c.expected(m) || !c.inOrder(now, m) {
		return
	}
	c.observer.Heard(now, m)
	switch m := m.(type) {
	case *protocol.SessionStarted:
		c.hearStarted(now, m)
	case *protocol.SpeechStarted:
		c.hearSpeechStarted(now)
	case *protocol.SpeechStopped:
		c.spoken.stops(m)
		c.hearSpeechStopped(now, m)
	case *protocol.TurnStarted:
		c.hearTurnStarted(now, m)
	case *protocol.TurnEnded:
		c.hearTurnEnded(now, m)
	case *protocol.AudioStart:
		c.hearAudioStart(now, m)
	case *protocol.AudioEnd:
		c.hearAudioEnd(now, m)
	case *protocol.AudioFlush:
		c.hearFlush(now, m)
	case *protocol.Transcript:
		c.hearTranscript(m)
	case *protocol.ToolStarted, *protocol.ToolProgress, *protocol.ToolMessage, *protocol.JobProgress:
		c.sign = now
	case *protocol.ToolEnded:
		c.hearToolEnded(now, m)
	case *protocol.ConfirmationRequest:
		c.hearQuestion(now, m)
	case *protocol.ConfirmationEnded:
		c.hearAnswered(now, m)
	case *protocol.Pong, *protocol.SessionMoving:
		c.hearConnection(now, m)
	case *protocol.SessionEnded:
		c.ended = m.Reason
	case *protocol.Error:
		c.hearError(now, m)
	}
}

// expected reports whether a message may arrive now: the answer to a resume is session.started or an error.
func (c *Conversation) expected(m protocol.ServerMessage) bool {
	switch m.(type) {
	case *protocol.SessionStarted, *protocol.Error:
		return true
	default:
		return c.way.state == online
	}
}

// inOrder records the number of a message and reports whether the message is new.
func (c *Conversation) inOrder(now time.Time, m protocol.ServerMessage) bool {
	if _, refused := m.(*protocol.Error); refused && c.way.state == opening {
		return true // a connection that gets no session has numbers of its own
	}
	before, seq := c.order.highest, protocol.HeaderOf(m).Seq
	fresh, missing := c.order.take(seq)
	if missing > 0 {
		c.observer.Happened(now, Event{Kind: MissedMessages, X: c.cur, N: missing,
			Text: fmt.Sprintf("message %d was followed by message %d", before, seq)})
	}
	return fresh && !c.endsAgain(m)
}

// endsAgain reports whether a message repeats the end of a turn. A gateway repeats it after a takeover if it may not
// have arrived.
func (c *Conversation) endsAgain(m protocol.ServerMessage) bool {
	ended, ok := m.(*protocol.TurnEnded)
	if !ok {
		return false
	}
	again := ended.Turn <= c.lastEnded
	c.lastEnded = max(c.lastEnded, ended.Turn)
	return again
}

// hearText handles a text frame.
func (c *Conversation) hearText(now time.Time, data []byte) {
	m, err := protocol.ParseServer(data)
	if err != nil {
		c.observer.Happened(now, Event{Kind: Violation, X: c.cur, Text: fmt.Sprintf("an invalid message: %v", err), Err: err})
		return
	}
	c.hear(now, m)
}

func (c *Conversation) hearStarted(now time.Time, m *protocol.SessionStarted) {
	if c.way.state == opening {
		c.hearResumed(now, m)
		return
	}
	if c.phase != phaseStarting {
		c.tellText(now, Violation, nil, "session.started arrived twice")
		return
	}
	c.id, c.lastEnded = m.SessionID, 0
	s := &c.o.Start
	if m.InputRate != s.InputRate || m.OutputRate != s.OutputRate {
		c.tellText(now, Violation, nil, fmt.Sprintf("requested rates of %d and %d Hz, but session.started has %d and %d",
			s.InputRate, s.OutputRate, m.InputRate, m.OutputRate))
		c.Leave(now)
		return
	}
	c.sign = now
	c.way.began, c.way.heard, c.way.pinged = now, now, now
	if c.o.Return.Within > 0 {
		c.way.token = m.ResumeToken
	}
	if c.way.token == "" && len(c.o.Outages) > 0 {
		c.tellText(now, NotCut, nil, noToken)
	}
	if c.o.Microphone {
		if c.way.token != "" {
			c.spoken.begins(s.InputRate, m.InputMS)
		}
		c.mic = newMicrophone(s.InputRate, c.o.Frame, c.o.Silence, now)
	}
	if s.Ticket != "" {
		c.begin(now, &Exchange{Turn: c.o.Pending, Index: -1, Onset: now, Spoken: now})
		c.enter(now, phasePending)
		return
	}
	c.restFor(now, 0)
	c.rest = max(c.rest, leadIn)
}

func (c *Conversation) hearSpeechStarted(now time.Time) {
	x := c.cur
	if x == nil || x.Turn.Act != Say {
		return
	}
	if x.First.IsZero() && !c.o.PushToTalk {
		x.Known = time.Time{} // the speech has not ended
	}
	if x.Interrupts != nil && x.Seen.IsZero() && !now.Before(x.Onset) {
		x.Seen = now
		c.tell(now, Noticed, x)
	}
}

func (c *Conversation) hearSpeechStopped(now time.Time, m *protocol.SpeechStopped) {
	x := c.cur
	if x == nil || x.Turn.Act != Say {
		return
	}
	if !c.o.PushToTalk && x.First.IsZero() && !now.Before(x.Spoken) {
		x.Known = now
	}
	if c.opened[m.Turn] && !x.Settled && !now.Before(x.Onset) {
		// A turn that was open already, and has had no answer, answers this too.
		c.turns[m.Turn] = x
	}
}

func (c *Conversation) hearTurnStarted(now time.Time, m *protocol.TurnStarted) {
	if c.opened[m.Turn] {
		return // it is repeated after a resume
	}
	c.opened[m.Turn] = true
	c.sign, c.word = now, now
	if m.Turn <= c.lastTurn && c.turns[m.Turn] != c.cur {
		return // the snapshot of an older checkpoint names a turn that answers something earlier
	}
	c.lastTurn = max(c.lastTurn, m.Turn)
	x := c.cur
	if x != nil && !now.Before(x.Onset) && (!x.Settled || !c.waitsForSilence()) {
		c.turns[m.Turn] = x
		x.earlyOver, x.taken = false, true
		// The answer after the approval is the turn's answer.
		x.Completed = false
	}
	if c.phase == phasePending {
		c.enter(now, phaseTalking)
		c.tell(now, PendingBegan, x)
	}
}

func (c *Conversation) hearTurnEnded(now time.Time, m *protocol.TurnEnded) {
	delete(c.opened, m.Turn)
	c.spoken.ended(m.Turn)
	c.word = now
	x := c.turns[m.Turn]
	if x == nil {
		return // a greeting
	}
	c.sign = now
	x.Usage = x.Usage.Plus(m.Usage)
	if m.Latency != nil {
		x.Latency = m.Latency
	}
	if now.Before(x.Spoken) {
		// A pause in the recording has cut the turn off: another one follows, unless the rest
		// is no speech to the model.
		x.earlyOver = m.Status == statusCompleted
		return
	}
	switch m.Status {
	case statusCompleted:
		x.Completed = true
	case statusFailed:
		x.failed = true
	case statusInterrupted:
		x.Completed = x.Completed || x.lost
	}
}

// Values of TurnEnded.Status.
const (
	statusCompleted   = "completed"
	statusFailed      = "failed"
	statusInterrupted = "interrupted"
)

// flushedByLoss is the reason of an AudioFlush whose item cannot continue after a lost connection.
const flushedByLoss = "connection_lost"

func (c *Conversation) hearAudioStart(now time.Time, m *protocol.AudioStart) {
	if c.continueAudio(now, m) {
		return
	}
	x := c.About(m.Turn)
	if x != nil && now.Before(x.Onset) {
		x = nil // a greeting that the gateway does not give a turn
	}
	i := &Item{ID: m.ItemID, X: x, Early: x != nil && now.Before(x.Spoken)}
	if i.Early && !x.Early {
		x.Early = true
		c.tell(now, AnsweredEarly, x)
	}
	if len(c.player.queue) == maxItems {
		c.tellText(now, Violation, c.cur, fmt.Sprintf("%d answers are open at once", maxItems))
		c.Leave(now)
		return
	}
	c.sign = now
	c.player.begin(now, i)
}

// continueAudio handles audio.start of a known item, whose audio continues at a position after a resume. Even a finished
// item may continue, because positions are rounded down to 1 ms. It reports whether the item is known.
func (c *Conversation) continueAudio(now time.Time, m *protocol.AudioStart) bool {
	i := c.player.remembers(m.ItemID)
	if i == nil {
		return false
	}
	c.sign = now
	missing, again := c.player.goOn(now, i, m.FromMS)
	if missing > 0 {
		c.observer.Happened(now, Event{Kind: MissedAudio, X: i.X, N: int64(missing), Text: m.ItemID})
	}
	if again > 0 {
		c.observer.Happened(now, Event{Kind: AudioAgain, X: i.X, N: int64(again), Text: m.ItemID})
	}
	return true
}

func (c *Conversation) hearAudioEnd(now time.Time, m *protocol.AudioEnd) {
	c.sign = now
	i := c.player.find(m.ItemID)
	if i == nil {
		if m.ItemID == c.way.named {
			return // another gateway, which took the session over, cannot know that the item had ended
		}
		c.tellText(now, Violation, c.cur, "audio.end of an item that is not open: "+m.ItemID)
		return
	}
	c.player.end(now, i)
}

func (c *Conversation) hearFlush(now time.Time, m *protocol.AudioFlush) {
	c.sign = now
	i := c.player.flush(now, m.ItemID)
	if i != nil && i.X != nil && m.Reason == flushedByLoss {
		i.X.lost = true
	}
	x := c.cur
	if i == nil || i.X == nil || x == nil || x.Interrupts != i.X || !x.Flushed.IsZero() {
		return
	}
	x.Flushed = now
	c.tell(now, Flushed, x)
}

func (c *Conversation) hearTranscript(m *protocol.Transcript) {
	if x := c.cur; x != nil && (c.turns[m.Turn] == x || m.Role == "user" && m.Text == x.Words.Text) {
		x.taken = true
	}
	x := c.About(m.Turn)
	if x == nil || !x.Turn.KeepText {
		return
	}
	if m.Role == "user" {
		x.Said.set(m.ID, m.Text)
		return
	}
	x.Answer.set(m.ID, m.Text)
}

func (c *Conversation) hearToolEnded(now time.Time, m *protocol.ToolEnded) {
	c.sign = now
	if x := c.About(m.Turn); x != nil && x.Turn.WaitFor == ForTool && x.Turn.Tool == m.Tool && !m.Asks() {
		x.toolEnded = true
	}
}

func (c *Conversation) hearError(now time.Time, m *protocol.Error) {
	c.lastError = m
	if m.Code == protocol.CodeAudioTooFast || m.Code == protocol.CodeInvalidAudio {
		c.spoken.doubt() // the gateway has not counted a frame
	}
	if x := c.About(m.Turn); x != nil {
		x.Codes = note(x.Codes, m.Code)
	}
	if m.Code == protocol.CodeStoreUnavailable {
		c.unrecorded(now)
	}
}

// lost handles the end of the connection with a read error.
func (c *Conversation) lost(now time.Time, err error) {
	switch {
	case c.phase == phaseOver, c.startResume(now, err):
		return
	case c.phase == phaseStarting:
		c.observer.Happened(now, Event{Kind: Refused, Err: err})
	case c.phase == phaseLeaving && c.ended != "":
	case c.wanted():
		as := Answered
		if x := c.cur; !x.expectsError() && x.Turn.WaitFor != ForEnd && (!x.Completed || x.Bytes == 0) {
			as = Cut
		}
		c.settle(now, c.cur, as)
		c.leftBy = true
	default:
		c.observer.Happened(now, Event{Kind: Lost, X: c.cur, Err: err})
		c.cutOff(now)
	}
	c.enter(now, phaseOver)
}

// endedByTool is the reason of session.ended when the model hung up.
const endedByTool = "tool_ended"

// wanted reports whether the script accepts the end of the session: it waits for the end, expects the error, or the
// model ended the session after the last turn.
func (c *Conversation) wanted() bool {
	x := c.cur
	switch {
	case x == nil:
		return false
	case x.expectsError():
		return true
	case c.ended != endedByTool:
		return false
	default:
		return c.o.Goodbye || x.Turn.WaitFor == ForEnd || c.next == len(c.o.Turns) && (x.Settled || x.Completed && x.Bytes > 0)
	}
}
