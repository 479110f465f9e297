package talk

import (
	"cmp"
	"fmt"
	"time"

	"voicegw/protocol"
)

// hearAudio takes a binary frame.
func (c *conversation) hearAudio(now time.Time, pcm []byte) {
	if c.incoming == nil || len(pcm)%2 != 0 {
		c.staleBytes += int64(len(pcm))
		return
	}
	c.lastHeard = now
	i := c.incoming
	c.player.add(now, i, pcm)
	x := i.exchange
	if x == nil || i.early {
		return // a greeting, or the answer to a part
	}
	x.answerBytes += len(pcm)
	x.lastAudio = now
	if x.firstAudio.IsZero() {
		x.firstAudio = now
		c.emitTurn(now, EventFirstAudio, x, "")
	}
}

// hear takes a message of the gateway.
func (c *conversation) hear(now time.Time, m protocol.ServerMessage) {
	turn := 0
	if x := c.about(m); x != nil {
		turn = x.number
	}
	c.emit(now, Event{Event: protocol.HeaderOf(m).Type, Turn: turn, Message: m})
	switch m := m.(type) {
	case *protocol.SessionStarted:
		c.hearStarted(now, m)
	case *protocol.AudioStart:
		c.incoming = c.player.begin(now, m.ItemID, c.answerTo(m.Turn))
	case *protocol.AudioEnd:
		c.forget(m.ItemID)
		c.player.end(now, m.ItemID)
	case *protocol.AudioFlush:
		c.hearFlush(now, m)
	case *protocol.Transcript:
		c.hearTranscript(m)
	case *protocol.TurnStarted:
		c.gwOpen++
		if c.current != nil && !c.current.onset.IsZero() {
			c.gwTurns[m.Turn] = c.current
			c.current.settledEarly = false
		}
		if c.phase == phasePending {
			c.lastHeard = now
			c.enter(now, phaseListening)
			c.emitTurn(now, EventPending, c.current, "")
		}
	case *protocol.TurnEnded:
		c.hearTurnEnded(now, m)
	case *protocol.ConfirmationRequest:
		c.hearConfirmation(now, m)
	case *protocol.ConfirmationEnded:
		c.hearConfirmationEnded(now, m)
	case *protocol.SessionEnded:
		c.ended, c.handback = m.Reason, m.Handback
	case *protocol.Error:
		c.lastError = m.Message
		if m.Code == protocol.CodeStoreUnavailable {
			c.unrecorded(now)
		}
	}
}

// about returns the exchange that a message belongs to, or nil.
func (c *conversation) about(m protocol.ServerMessage) *exchange {
	return c.gwTurns[protocol.HeaderOf(m).Turn]
}

// answerTo returns the exchange that audio of a gateway's turn answers: the
// current one if the gateway did not say, nil if it is a greeting.
func (c *conversation) answerTo(turn int) *exchange {
	if x := c.gwTurns[turn]; x != nil || turn != 0 {
		return x
	}
	if c.current != nil && !c.current.onset.IsZero() {
		return c.current
	}
	return nil
}

// forget closes the item that binary frames belong to.
func (c *conversation) forget(id string) {
	if c.incoming != nil && c.incoming.id == id {
		c.incoming = nil
	}
}

func (c *conversation) hearStarted(now time.Time, m *protocol.SessionStarted) {
	if c.phase != phaseStarting {
		c.fail(now, fmt.Errorf("%w: session.started came twice", ErrProtocol))
		return
	}
	if m.InputRate != c.options.InputRate || m.OutputRate != c.options.OutputRate {
		c.fail(now, fmt.Errorf("%w: rates of %d and %d Hz were asked for, session.started says %d and %d",
			ErrProtocol, c.options.InputRate, c.options.OutputRate, m.InputRate, m.OutputRate))
		return
	}
	c.started = *m
	for _, x := range c.script {
		if x.turn.spoken() && c.mic == nil {
			c.mic = newMicrophone(c.options.InputRate, now)
		}
	}
	c.lastHeard = now
	c.enter(now, phaseResting)
	if c.options.Ticket != "" {
		c.expectPending(now)
	}
}

func (c *conversation) hearFlush(now time.Time, m *protocol.AudioFlush) {
	c.forget(m.ItemID)
	i := c.player.flush(now, m.ItemID)
	if i != nil && i.exchange != nil && i.exchange.flushedAt.IsZero() && i.exchange.interruptedBy != nil {
		i.exchange.flushedAt = now
	}
}

func (c *conversation) hearTranscript(m *protocol.Transcript) {
	x := cmp.Or(c.about(m), c.current)
	if x == nil {
		return
	}
	if m.Role == "user" {
		x.said.set(m.ID, m.Text)
		return
	}
	x.answer.set(m.ID, m.Text)
}

func (c *conversation) hearTurnEnded(now time.Time, m *protocol.TurnEnded) {
	c.gwOpen = max(c.gwOpen-1, 0)
	x := c.gwTurns[m.Turn]
	if x == nil {
		return // a greeting
	}
	x.usage = addUsage(x.usage, m.Usage)
	if m.Latency != nil {
		x.latency = m.Latency
	}
	if x.over {
		return
	}
	if x.spokenAt.IsZero() {
		// A pause in the recording has cut the turn off: another one follows, unless
		// the rest is no speech to the model.
		x.settledEarly = m.Status == "completed"
		return
	}
	c.lastHeard = now
	switch m.Status {
	case "completed":
		x.completed = true
	case "failed":
		c.settle(now, x, false, "the turn failed"+because(c.lastError))
	}
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// endedByTool is the reason of session.ended where the model has ended the session.
const endedByTool = "tool_ended"

// lost says that the connection is gone, with the error of reading it.
func (c *conversation) lost(now time.Time, err error) {
	if c.ended == endedByTool {
		// The model has said goodbye, and was heard to the end.
		if x := c.current; x != nil && x.completed && x.answerBytes > 0 {
			c.settle(now, x, true, "")
		}
	}
	if c.leftSelf || c.ended == endedByTool {
		c.enter(now, phaseOver)
		return
	}
	what := ErrLost
	if c.phase == phaseStarting {
		what = ErrConnect
	}
	reason := cmp.Or(c.lastError, c.ended)
	if code := protocol.CloseStatus(err); code >= 0 {
		c.fail(now, fmt.Errorf("%w: the gateway closed with %d%s", what, code, because(reason)))
		return
	}
	c.fail(now, fmt.Errorf("%w: %w%s", what, err, because(reason)))
}

// result makes the report and the error of the whole.
func (c *conversation) result() (Report, error) {
	r := Report{
		SessionID: c.started.SessionID, Provider: c.started.Provider, Model: c.started.Model,
		InputRate: c.options.InputRate, OutputRate: c.options.OutputRate,
		StaleBytes: c.staleBytes, Underruns: c.player.underruns, Audio: c.player.heard, Handback: c.handback,
	}
	missing := ""
	for i, x := range c.script {
		t := x.report(c.options.OutputRate)
		if !t.Answered {
			if i >= c.next {
				t.Reason = "it was never said"
			}
			t.Reason = cmp.Or(t.Reason, "the conversation was over before")
			missing = cmp.Or(missing, fmt.Sprintf("turn %d: %s", x.number, t.Reason))
		}
		r.Turns = append(r.Turns, t)
		r.Usage = addUsage(r.Usage, t.Usage)
	}
	switch {
	case c.err != nil:
		return r, c.err
	case missing != "":
		return r, fmt.Errorf("%w: %s", ErrUnanswered, missing)
	case c.staleBytes > 0:
		return r, fmt.Errorf("%w: %d bytes of audio belonged to no item", ErrProtocol, c.staleBytes)
	default:
		return r, nil
	}
}
