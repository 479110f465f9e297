package caller

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"voicegw/audio"
	"voicegw/client/load/measure"
	"voicegw/client/load/script"
	"voicegw/protocol"
)

// hearAudio takes a binary frame of so many bytes.
func (c *conversation) hearAudio(now time.Time, bytes int) {
	c.c.Add(measure.FramesDown, 1)
	c.c.Add(measure.BytesDown, int64(bytes))
	i := c.incoming
	if i == nil {
		c.hearStale(now, bytes)
		return
	}
	c.sign = now
	c.player.add(now, i, bytes)
	x := i.x
	if x == nil {
		return // a greeting
	}
	if x.cutShort {
		x.last = now
	}
	if i.early {
		return
	}
	x.bytes += bytes
	if x.first.IsZero() {
		x.first, c.news = now, true
		c.answered(now, x)
	}
}

// hearStale notes audio that nothing of what was announced is about.
func (c *conversation) hearStale(now time.Time, bytes int) {
	c.c.Add(measure.StaleFrames, 1)
	if !c.stale {
		c.stale = true
		c.problem(now, measure.KindStale, c.cur, "a frame of %d bytes came that belongs to no answer: after its flush, or before its audio.start", bytes)
	}
}

// answered measures how long the first audio of an answer took.
func (c *conversation) answered(now time.Time, x *exchange) {
	if x.number == 0 {
		c.c.Record(measure.Handoff, now.Sub(c.ticket.at))
		return
	}
	total := now.Sub(x.spoken)
	c.c.Record(measure.FirstAudio, total)
	if x.turn.Act == script.Type {
		c.c.Record(measure.FirstAudioTyped, total)
	} else {
		c.c.Record(measure.FirstAudioSpoken, total)
	}
	if x.known.IsZero() {
		return
	}
	if x.turn.Act == script.Say {
		c.c.Record(measure.Detection, x.known.Sub(x.spoken))
	}
	answer := now.Sub(x.known)
	c.c.Record(measure.Answer, answer)
	if c.set.ProviderDelay > 0 {
		c.c.Record(measure.Added, answer-c.set.ProviderDelay)
	}
}

// hear takes a message of the gateway.
func (c *conversation) hear(now time.Time, m protocol.ServerMessage) {
	c.inOrder(now, protocol.HeaderOf(m).Seq)
	if _, text := m.(*protocol.Transcript); !text {
		c.news = true // transcripts are many, and nothing waits for them
	}
	switch m := m.(type) {
	case *protocol.SessionStarted:
		c.hearStarted(now, m)
	case *protocol.SpeechStarted:
		c.hearSpeechStarted(now)
	case *protocol.SpeechStopped:
		c.hearSpeechStopped(now)
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
	case *protocol.ToolStarted:
		c.hearToolStarted(now, m)
	case *protocol.ToolProgress:
		c.sign = now
	case *protocol.ToolEnded:
		c.hearToolEnded(now, m)
	case *protocol.ConfirmationRequest:
		c.hearQuestion(now, m)
	case *protocol.ConfirmationEnded:
		c.hearAnswered(now, m)
	case *protocol.SessionEnded:
		c.hearEnded(now, m)
	case *protocol.Error:
		c.hearError(now, m)
	}
}

// inOrder notes messages that are missing.
func (c *conversation) inOrder(now time.Time, seq int64) {
	if missing := seq - c.seq - 1; missing != 0 {
		c.c.Add(measure.LostMessages, max(missing, 1))
		c.problem(now, measure.KindLostMessage, c.cur, "after message %d came message %d", c.seq, seq)
	}
	c.seq = seq
}

func (c *conversation) hearStarted(now time.Time, m *protocol.SessionStarted) {
	if c.phase != phaseStarting {
		c.problem(now, measure.KindProtocol, nil, "session.started came twice")
		return
	}
	c.id = m.SessionID
	if m.InputRate != c.set.InputRate || m.OutputRate != c.set.OutputRate {
		c.problem(now, measure.KindProtocol, nil, "rates of %d and %d Hz were asked for, session.started says %d and %d",
			c.set.InputRate, c.set.OutputRate, m.InputRate, m.OutputRate)
		c.leave(now)
		return
	}
	c.c.Add(measure.Sessions, 1)
	c.c.Record(measure.Ready, now.Sub(c.began))
	c.sign = now
	if !c.set.Script.NoMicrophone {
		c.mic = newMicrophone(c.set.InputRate, c.set.Frame, c.frame0, now)
	}
	if c.ticket.secret != "" {
		c.expectPending(now)
		return
	}
	c.restFor(now, 0)
	c.rest = max(c.rest, leadIn)
}

// expectPending makes what was asked before the current exchange.
func (c *conversation) expectPending(now time.Time) {
	b := c.set.Script.Begin
	x := &exchange{turn: &script.Turn{Line: b.Line, Act: script.Type, WaitFor: script.ForAnswer, Patience: script.DefaultPatience, Expect: b.Expect}}
	x.onset, x.spoken = now, now
	c.begin(now, x)
	c.enter(now, phasePending)
}

func (c *conversation) hearSpeechStarted(now time.Time) {
	x := c.cur
	if x == nil {
		return
	}
	if x.first.IsZero() && x.turn.Act == script.Say && !c.set.Script.PushToTalk {
		x.known = time.Time{} // the end was none
	}
	if x.interrupts != nil && x.seen.IsZero() && x.turn.Act == script.Say && !now.Before(x.onset) {
		x.seen = now
		c.c.Record(measure.InterruptSeen, now.Sub(x.onset))
	}
}

func (c *conversation) hearSpeechStopped(now time.Time) {
	x := c.cur
	if x != nil && x.turn.Act == script.Say && !c.set.Script.PushToTalk && x.first.IsZero() && !now.Before(x.spoken) {
		x.known = now
	}
}

func (c *conversation) hearTurnStarted(now time.Time, m *protocol.TurnStarted) {
	c.open++
	c.sign, c.word = now, now
	c.lastTurn = max(c.lastTurn, m.Turn)
	x := c.cur
	if x != nil && !now.Before(x.onset) && (!x.settled || !c.waitsForSilence()) {
		c.turns[m.Turn] = x
		x.earlyOver = false
		// The answer to what was approved is the answer to the turn.
		x.completed = false
	}
	if c.phase == phasePending {
		c.enter(now, phaseTalking)
	}
}

func (c *conversation) hearTurnEnded(now time.Time, m *protocol.TurnEnded) {
	c.open = max(c.open-1, 0)
	c.word = now
	x := c.turns[m.Turn]
	if l := m.Latency; l != nil {
		c.c.Record(measure.GatewayTotal, ms(l.SpeechEndToFirstAudioMS))
		c.c.Record(measure.GatewayDetection, ms(l.DetectionMS))
		c.c.Record(measure.GatewayProvider, ms(l.ProviderMS))
		c.c.Record(measure.GatewayOwn, ms(l.GatewayMS))
	}
	if x == nil {
		return // a greeting
	}
	c.sign = now
	if now.Before(x.spoken) {
		// A pause in the recording has cut the turn off: another one follows, unless the rest
		// is no speech to the model.
		x.earlyOver = m.Status == statusCompleted
		return
	}
	switch m.Status {
	case statusCompleted:
		x.completed = true
	case statusFailed:
		x.failed = true
	}
}

// The values of TurnEnded.Status that matter here.
const (
	statusCompleted = "completed"
	statusFailed    = "failed"
)

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// about is the exchange that something in a turn of the gateway belongs to: the current
// one if the gateway has not begun that turn yet, or does not say; nil for a greeting, and
// for what comes long after its turn.
func (c *conversation) about(turn int) *exchange {
	if x := c.turns[turn]; x != nil {
		return x
	}
	if turn != 0 && turn <= c.lastTurn {
		return nil
	}
	return c.cur
}

func (c *conversation) hearAudioStart(now time.Time, m *protocol.AudioStart) {
	x := c.about(m.Turn)
	if x != nil && now.Before(x.onset) {
		x = nil // a greeting that the gateway does not give a turn
	}
	i := &item{id: m.ItemID, x: x, early: x != nil && now.Before(x.spoken)}
	if i.early && !x.early {
		x.early = true
		c.c.Add(measure.Early, 1)
	}
	if len(c.player.queue) == maxItems {
		c.problem(now, measure.KindProtocol, c.cur, "%d answers are open at once", maxItems)
		c.leave(now)
		return
	}
	c.sign = now
	c.incoming = i
	c.player.begin(now, i)
}

// lostTolerance is how far the length of an answer may be from what the gateway says:
// lengths are rounded to ms.
const lostTolerance = 2

func (c *conversation) hearAudioEnd(now time.Time, m *protocol.AudioEnd) {
	c.sign = now
	at := slices.IndexFunc(c.player.queue, func(i *item) bool { return i.id == m.ItemID })
	if at < 0 {
		c.problem(now, measure.KindProtocol, c.cur, "audio.end of an answer that is not open: %s", m.ItemID)
		return
	}
	i := c.player.queue[at]
	if c.incoming == i {
		c.incoming = nil
	}
	c.c.Add(measure.Items, 1)
	got := audio.MS(c.set.OutputRate, i.bytes)
	if off := max(got-m.AudioMS, m.AudioMS-got); off > lostTolerance {
		c.c.Add(measure.LostAudio, 1)
		c.c.Add(measure.LostAudioMS, off)
		c.problem(now, measure.KindLostAudio, i.x, "audio.end says %d ms of %s, %d ms came", m.AudioMS, m.ItemID, got)
	}
	c.player.end(now, i)
}

func (c *conversation) hearFlush(now time.Time, m *protocol.AudioFlush) {
	if c.incoming != nil && c.incoming.id == m.ItemID {
		c.incoming = nil
	}
	c.sign = now
	i := c.player.flush(now, m.ItemID)
	x := c.cur
	if i == nil || i.x == nil || x == nil || x.interrupts != i.x || !x.flushed.IsZero() {
		return
	}
	x.flushed = now
	c.c.Record(measure.Flush, now.Sub(x.onset))
}

func (c *conversation) hearTranscript(m *protocol.Transcript) {
	x := c.about(m.Turn)
	if x == nil || !x.turn.Expect.NeedsText() {
		return
	}
	if m.Role == "user" {
		x.said.set(m.ID, m.Text)
		return
	}
	x.answer.set(m.ID, m.Text)
}

// maxOpenCalls bounds the calls whose end is waited for.
const maxOpenCalls = 1000

func (c *conversation) hearToolStarted(now time.Time, m *protocol.ToolStarted) {
	c.sign = now
	if len(c.calls) < maxOpenCalls {
		c.calls[m.CallID] = openCall{tool: m.Tool, began: now}
	}
	if x := c.about(m.Turn); x != nil {
		x.tools = noteOnce(x.tools, m.Tool)
	}
}

func (c *conversation) hearToolEnded(now time.Time, m *protocol.ToolEnded) {
	c.sign = now
	x := c.about(m.Turn)
	began, known := c.calls[m.CallID]
	delete(c.calls, m.CallID)
	if !known {
		c.problem(now, measure.KindTool, x, "tool.ended of %s without a tool.started", m.Tool)
		return
	}
	if c.set.SawCall != nil {
		c.set.SawCall(c.id, m.CallID)
	}
	asks := false
	if !m.OK {
		var failure struct{ Type string }
		asks = json.Unmarshal(m.Error, &failure) == nil && failure.Type == "CONFIRMATION_REQUIRED"
	}
	c.c.Add(measure.ToolCalls, 1)
	run := ms(m.DurationMS)
	c.c.Tool(m.Tool, m.OK || asks, m.Deduplicated, run)
	switch {
	case m.Deduplicated:
		c.c.Add(measure.ToolRepeats, 1)
	case asks:
	default:
		total := now.Sub(began.began)
		c.c.Record(measure.ToolTotal, total)
		c.c.Record(measure.ToolRun, run)
		c.c.Record(measure.ToolWait, total-run)
	}
	failed := !m.OK && !asks
	if failed {
		c.c.Add(measure.ToolFailures, 1)
	}
	if x == nil {
		return
	}
	if failed {
		x.broken = noteOnce(x.broken, m.Tool)
	}
	x.toolEnded = x.toolEnded || x.turn.WaitFor == script.ForTool && x.turn.Tool == m.Tool && !asks
}

func (c *conversation) hearQuestion(now time.Time, m *protocol.ConfirmationRequest) {
	c.sign, c.word = now, now
	c.c.Add(measure.Questions, 1)
	x := c.about(m.Turn)
	if x == nil {
		return
	}
	x.asks = noteOnce(x.asks, m.Tool)
	if approve := x.turn.Approve; approve != nil && !x.settled {
		c.questions = append(c.questions, question{token: m.Token, approved: *approve, at: now.Add(thinkTime)})
	}
}

// answerQuestions sends the answers that are due.
func (c *conversation) answerQuestions(now time.Time) {
	for i := range c.questions {
		if q := &c.questions[i]; !q.at.IsZero() && !now.Before(q.at) {
			q.at = time.Time{}
			c.send(&protocol.ConfirmationResolve{Token: q.token, Approved: q.approved})
		}
	}
}

func (c *conversation) hearAnswered(now time.Time, m *protocol.ConfirmationEnded) {
	c.sign, c.word = now, now
	c.questions = slices.DeleteFunc(c.questions, func(q question) bool { return q.token == m.Token })
	switch m.Outcome {
	case "approved":
		c.c.Add(measure.Approvals, 1)
	case "denied":
		c.c.Add(measure.Refusals, 1)
	}
}

func (c *conversation) hearEnded(now time.Time, m *protocol.SessionEnded) {
	c.ended = m.Reason
	if c.phase == phaseLeaving && !c.asked.IsZero() {
		c.c.Record(measure.Goodbye, now.Sub(c.asked))
		c.asked = time.Time{}
	}
}

func (c *conversation) hearError(now time.Time, m *protocol.Error) {
	c.lastError = m.Code + ": " + m.Message
	x := c.about(m.Turn)
	if x != nil {
		x.codes = noteOnce(x.codes, m.Code)
		if x.turn.Expect.Error == m.Code {
			return
		}
	}
	c.c.Error(m.Code)
	if c.phase != phaseStarting { // refuse tells of it otherwise
		c.problem(now, measure.KindError, x, "%s", c.lastError)
	}
}

// lost says that the connection has ended, with the error of reading or writing it.
func (c *conversation) lost(now time.Time, err error) {
	reason := c.ended
	if reason == "" {
		reason = ending(err)
	}
	switch {
	case c.phase == phaseOver:
	case c.phase == phaseStarting:
		c.c.Error("refused")
		if c.lastError != "" {
			reason = c.lastError
		}
		c.refuse(now, "the gateway refused the session: %s", reason)
	case c.phase == phaseLeaving && c.ended != "":
		c.enter(now, phaseOver)
	case c.wanted():
		c.settle(now, c.cur, measure.Answered)
		c.leftBy = true
		c.enter(now, phaseOver)
	default:
		c.c.Add(measure.Lost, 1)
		if c.lastError == "" {
			c.c.Error("lost") // otherwise the gateway's own error has been counted
		}
		c.problem(now, measure.KindLost, c.cur, "the session is over: %s", reason)
		c.cutOff()
		c.enter(now, phaseOver)
	}
}

// ending says how a connection has ended.
func ending(err error) string {
	if code := protocol.CloseStatus(err); code >= 0 {
		return fmt.Sprintf("the gateway closed with %d", code)
	}
	return err.Error()
}

// wanted says whether the script has nothing against the end of the session: it waits for
// it, or for the error that came, or the model has said goodbye at the end of the script.
func (c *conversation) wanted() bool {
	x := c.cur
	switch {
	case x == nil:
		return false
	case x.expectsError():
		return true
	case c.ended != endedByTool:
		return false
	default:
		return x.turn.WaitFor == script.ForEnd || c.next == len(c.set.Script.Turns) && (x.settled || x.completed && x.bytes > 0)
	}
}

// endedByTool is the reason of session.ended where the model has hung up.
const endedByTool = "tool_ended"

// finish is called once, after everything else.
func (c *conversation) finish(now time.Time) {
	c.judgeRest(now)
	if (c.done || c.leftBy) && !c.cut {
		c.c.Add(measure.ToolsOpen, int64(len(c.calls)))
		for _, call := range c.calls {
			c.problem(now, measure.KindTool, nil, "the call of %s has no tool.ended", call.tool)
		}
	}
}
