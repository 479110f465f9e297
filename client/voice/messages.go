package voice

import (
	"fmt"
	"slices"
	"time"
	"voicegw/protocol"
)

func (c *Conversation) hearAudio(now time.Time, pcm []byte) {
	c.conn.heard = now
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
	c.lastActivity = now
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
		c.observer.Happened(now, Event{Kind: FirstAudio, X: x})
	}
}

func (c *Conversation) hearText(now time.Time, data []byte) {
	m, err := protocol.ParseServer(data)
	if err != nil {
		c.emit(now, Event{Kind: Violation, Text: fmt.Sprintf("an invalid message: %v", err), Err: err})
		return
	}
	c.conn.heard = now
	if _, text := m.(*protocol.Transcript); !text {
		c.news = true // transcripts are many, and nothing waits for them
	}
	if c.conn.accept(now, m) && !c.turns.endsAgain(m) {
		c.observer.Heard(now, m)
		c.hear(now, m)
	}
}

func (c *Conversation) hear(now time.Time, m protocol.ServerMessage) {
	switch m := m.(type) {
	case *protocol.SessionStarted:
		c.hearStarted(now, m)
	case *protocol.SpeechStarted:
		c.hearSpeechStarted(now)
	case *protocol.SpeechStopped:
		c.input.log.stoppedMS, c.input.log.stoppedTurn = m.AudioMS, m.Turn
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
		c.lastActivity = now
	case *protocol.ToolEnded:
		c.hearToolEnded(now, m)
	case *protocol.ConfirmationRequest:
		c.hearQuestion(now, m)
	case *protocol.ConfirmationEnded:
		c.lastActivity, c.lastTurnMessage = now, now
		c.questions.end(now, m.Token)
	case *protocol.Pong:
		if c.conn.endReplay(now, m) {
			c.endReplay(now)
		}
	case *protocol.SessionMoving:
		c.conn.move(now)
	case *protocol.SessionEnded:
		c.ended = m.Reason
	case *protocol.Error:
		c.hearError(now, m)
	}
}

func (c *Conversation) hearStarted(now time.Time, m *protocol.SessionStarted) {
	if c.conn.state == opening {
		c.hearResumed(now, m)
		return
	}
	if c.phase != phaseStarting {
		c.observer.Happened(now, Event{Kind: Violation, Text: "session.started arrived twice"})
		return
	}
	c.conn.sessionID, c.turns.lastEnded = m.SessionID, 0
	s := &c.o.Start
	if m.InputRate != s.InputRate || m.OutputRate != s.OutputRate {
		c.emit(now, Event{Kind: Violation, Text: fmt.Sprintf("requested rates of %d and %d Hz, but session.started has %d and %d",
			s.InputRate, s.OutputRate, m.InputRate, m.OutputRate)})
		c.Leave(now)
		return
	}
	c.lastActivity = now
	c.conn.started(now, m)
	c.input.start(now, m, c.conn.token != "")
	if s.Ticket != "" {
		c.begin(now, &Exchange{Turn: c.o.Pending, Index: -1, Onset: now, Spoken: now})
		c.enter(now, phasePending)
		return
	}
	c.rest(now)
	c.restTime = max(c.restTime, leadIn)
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
		c.emit(now, Event{Kind: Noticed})
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
	if c.turns.open[m.Turn] && !x.Settled && !now.Before(x.Onset) {
		// A turn that was open already, and has had no answer, answers this too.
		c.turns.exchanges[m.Turn] = x
	}
}

func (c *Conversation) hearTurnStarted(now time.Time, m *protocol.TurnStarted) {
	if c.turns.open[m.Turn] {
		return // it is repeated after a resume
	}
	c.turns.open[m.Turn] = true
	c.lastActivity, c.lastTurnMessage = now, now
	if m.Turn <= c.turns.newest && c.turns.exchanges[m.Turn] != c.cur {
		return // the snapshot of an older checkpoint names a turn that answers something earlier
	}
	c.turns.newest = max(c.turns.newest, m.Turn)
	x := c.cur
	if x != nil && !now.Before(x.Onset) && (!x.Settled || !x.endsInSilence()) {
		c.turns.exchanges[m.Turn] = x
		x.earlyOver, x.taken = false, true
		// The answer after the approval is the turn's answer.
		x.Completed = false
	}
	if c.phase == phasePending {
		c.enter(now, phaseTalking)
		c.emit(now, Event{Kind: PendingBegan})
	}
}

func (c *Conversation) hearTurnEnded(now time.Time, m *protocol.TurnEnded) {
	delete(c.turns.open, m.Turn)
	c.input.log.turnEnded(m.Turn)
	c.lastTurnMessage = now
	if x := c.turns.exchanges[m.Turn]; x != nil { // nil for a greeting
		c.lastActivity = now
		x.turnEnded(now, m)
	}
}

func (c *Conversation) hearAudioStart(now time.Time, m *protocol.AudioStart) {
	if c.player.resume(now, m) {
		c.lastActivity = now
		return
	}
	x := c.About(m.Turn)
	if x != nil && now.Before(x.Onset) {
		x = nil // a greeting that the gateway does not give a turn
	}
	i := &Item{ID: m.ItemID, X: x, Early: x != nil && now.Before(x.Spoken)}
	if i.Early && !x.Early {
		x.Early = true
		c.observer.Happened(now, Event{Kind: AnsweredEarly, X: x})
	}
	if len(c.player.queue) == maxItems {
		c.emit(now, Event{Kind: Violation, Text: fmt.Sprintf("%d answers are open at once", maxItems)})
		c.Leave(now)
		return
	}
	c.lastActivity = now
	c.player.begin(now, i)
}

func (c *Conversation) hearAudioEnd(now time.Time, m *protocol.AudioEnd) {
	c.lastActivity = now
	if i := find(c.player.queue, m.ItemID); i != nil {
		c.player.end(now, i)
		return
	}
	// Another gateway, which took the session over, cannot know that the item of the resume had ended.
	if i := c.player.resumedItem; i == nil || i.ID != m.ItemID {
		c.emit(now, Event{Kind: Violation, Text: "audio.end of an item that is not open: " + m.ItemID})
	}
}

// FlushedByLoss is the reason of an AudioFlush whose item cannot continue after a lost connection.
const FlushedByLoss = "connection_lost"

func (c *Conversation) hearFlush(now time.Time, m *protocol.AudioFlush) {
	c.lastActivity = now
	i := c.player.flush(now, m.ItemID)
	if i == nil || i.X == nil {
		return
	}
	if m.Reason == FlushedByLoss {
		i.X.lost = true
	}
	if x := c.cur; x != nil && x.Interrupts == i.X && x.Flushed.IsZero() {
		x.Flushed = now
		c.emit(now, Event{Kind: Flushed})
	}
}

func (c *Conversation) hearTranscript(m *protocol.Transcript) {
	if x := c.cur; x != nil && (c.turns.exchanges[m.Turn] == x || m.Role == "user" && m.Text == x.Words.Text) {
		x.taken = true
	}
	x := c.About(m.Turn)
	switch {
	case x == nil || !x.Turn.KeepText:
	case m.Role == "user":
		x.Said.set(m.ID, m.Text)
	default:
		x.Answer.set(m.ID, m.Text)
	}
}

func (c *Conversation) hearToolEnded(now time.Time, m *protocol.ToolEnded) {
	c.lastActivity = now
	if x := c.About(m.Turn); x != nil && x.Turn.WaitFor == ForTool && x.Turn.Tool == m.Tool && !m.Asks() {
		x.toolEnded = true
	}
}

func (c *Conversation) hearQuestion(now time.Time, m *protocol.ConfirmationRequest) {
	c.lastActivity, c.lastTurnMessage = now, now
	approval := ApprovalNobody
	if x := c.About(m.Turn); x != nil {
		approval = x.Turn.Approval
	}
	c.questions.add(now, m, approval)
}

func (c *Conversation) hearError(now time.Time, m *protocol.Error) {
	c.lastError = m
	if m.Code == protocol.CodeAudioTooFast || m.Code == protocol.CodeInvalidAudio {
		c.input.log.forget() // the gateway has not counted a frame
	}
	if x := c.About(m.Turn); x != nil && !slices.Contains(x.Codes, m.Code) {
		x.Codes = append(x.Codes, m.Code)
	}
	if m.Code == protocol.CodeStoreUnavailable {
		c.questions.unrecorded(now)
	}
}

type gatewayTurns struct {
	exchanges map[int]*Exchange // unless forgotten
	open      map[int]bool
	newest    int
	lastEnded int
}

// endsAgain reports whether a message repeats the end of a turn. A gateway repeats it after a takeover if it may not
// have arrived; its snapshot then opens the turn again.
func (t *gatewayTurns) endsAgain(m protocol.ServerMessage) bool {
	ended, ok := m.(*protocol.TurnEnded)
	if !ok {
		return false
	}
	if ended.Turn <= t.lastEnded {
		delete(t.open, ended.Turn)
		return true
	}
	t.lastEnded = ended.Turn
	return false
}
