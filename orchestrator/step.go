package orchestrator

import (
	"slices"
	"strings"
	"time"

	"voicegw/orchestrator/calls"
	"voicegw/transport"
)

// Step takes one input, which happened at the time at. It returns the next state and the actions for the session to
// carry out. Step is pure: equal arguments give equal results, and s is unchanged. Times must not run backwards between
// calls.
func Step(s State, at time.Time, in Input) (State, []Action) {
	m := machine{State: s.clone(), at: at}
	if s.phase == PhaseEnded {
		m.afterwards(in)
		return m.State, m.actions
	}
	m.settleCuts()
	m.take(in)
	m.settle()
	return m.State, m.actions
}

// afterwards handles inputs after the session's end: running calls are recorded, and approved calls still run.
func (m *machine) afterwards(in Input) {
	if in, ok := in.(OfCall); ok {
		m.ofCall(in.In)
	}
	m.actions = slices.DeleteFunc(m.actions, func(a Action) bool {
		if c, ok := a.(AboutCall); ok {
			_, runs := c.Do.(calls.Run)
			return !runs
		}
		_, audits := a.(Audit)
		return !audits
	})
}

// machine is one step in progress.
type machine struct {
	State
	at      time.Time
	actions []Action
	endNow  bool // the session ends with this step
}

func (m *machine) do(actions ...Action) { m.actions = append(m.actions, actions...) }

// send sends a command to the model. Its text comes from outside (the user, a tool, a web page), so the gateway's mark
// is removed from it. Without a connection, only what opens a turn is kept for the next one.
func (m *machine) send(cmd transport.Command) {
	switch c := cmd.(type) {
	case transport.UserText:
		c.Text = m.mark.Foreign(c.Text)
		m.sendText(c.Text)
		return
	case transport.ToolResult:
		c.Output = m.mark.JSON(c.Output)
		cmd = c
		m.resulted(m.at)
		m.changed()
	case transport.ActivityStart, transport.ActivityEnd:
		m.giveBefore()
		m.changed()
		m.do(Command{cmd})
		return
	}
	if !m.down() {
		m.do(Command{cmd})
	}
}

// sendText sends text that the model answers.
func (m *machine) sendText(text string) {
	m.giveBefore()
	m.changed()
	m.asked()
	if m.down() && m.turn != nil {
		m.turn.queued = m.link.count
	}
	m.do(Command{transport.UserText{Text: text}})
}

// sendNotice sends the gateway's own words to the model, each with the mark. If they open a turn, or are its latest
// news, they are repeated on a new connection.
func (m *machine) sendNotice(words ...string) {
	text := m.marked(words)
	if t := m.turn; t != nil && (t.modelAt.IsZero() || !t.spoke) {
		t.told = text
	}
	m.sendText(text)
}

// marked returns the gateway's own words, each with the mark.
func (m *machine) marked(words []string) string {
	var all []string
	for _, w := range words {
		all = append(all, m.mark.Notice(w))
	}
	return strings.Join(all, "\n")
}

// counts reports whether an input counts. Inputs from a closed connection do not, except the end of an item, which
// still plays.
func (m *machine) counts(in Input) bool {
	switch in.(type) {
	case FromModel, AudioBegan:
		if m.down() {
			return false
		}
		m.signAt = m.at
	case AudioEnded:
		m.signAt = m.at
	case Used:
		if !m.down() {
			m.signAt = m.at
		}
	}
	return true
}

func (m *machine) take(in Input) {
	if !m.counts(in) {
		return
	}
	switch in := in.(type) {
	case Began:
		m.began(in)
	case Restored:
		m.restored(in)
	case FromModel:
		m.fromModel(in.Event)
	case UserSpeechStarted, UserSpeechStopped, UserHeard, UserQuiet:
		m.speech(in)
	case AudioBegan, AudioEnded, AudioSent:
		m.ofAudio(in)
	case UserText, UserImage, UserContext, UserInterrupt, UserActivity:
		m.ofUser(in)
	case Played:
		m.played(in)
	case LinkExpiring, LinkLost, LinkBack, LinkFailed, Move:
		m.ofLink(in)
	case OfCall:
		m.ofCall(in.In)
	case ConfirmationAnswer:
		m.confirmationAnswer(in)
	case ClientLost, ClientBack:
		m.ofClient(in)
	case Used, Spending, Guessed:
		m.ofMoney(in)
	case Lapse, AgentFound, SwitchAgent, JobEnded:
		m.ofOthers(in)
	case Over:
		m.phase = PhaseEnded
		m.nothingMore()
	case HungUp:
		m.end(EndHungUp)
	case Tick:
		m.tick()
	}
}

// ofUser handles client inputs other than speech.
func (m *machine) ofUser(in Input) {
	switch in := in.(type) {
	case UserText:
		m.userText(in)
	case UserImage:
		m.userImage(in)
	case UserContext:
		m.userContext(in)
	case UserInterrupt:
		m.userInterrupt()
	case UserActivity:
		m.userActivity(in)
	}
}

// ofAudio handles inputs about the model's audio.
func (m *machine) ofAudio(in Input) {
	switch in := in.(type) {
	case AudioBegan:
		m.resulted(time.Time{})
		m.audioBegan(in)
	case AudioEnded:
		m.audioEnded(in)
	case AudioSent:
		m.audioSent(in)
	}
}

func (m *machine) fromModel(ev transport.Event) {
	switch ev := ev.(type) {
	case transport.ResponseStarted:
		m.resulted(time.Time{})
		m.responseStarted(ev)
	case transport.ResponseDone:
		m.responseDone(ev)
		if m.user.voice == speaking {
			m.talkedOver()
		}
	case transport.NothingSaid:
		m.nothingSaid()
	case transport.Transcript:
		m.transcript(ev)
	case transport.InputCommitted:
		m.inputCommitted(ev)
	case transport.Interrupted:
		m.interrupt(FlushUserSpeech)
	case transport.ToolCall:
		m.toolCall(ev)
	case transport.ToolCancelled:
		m.toolCancelled(ev)
	case transport.GoAway:
		m.goAway(ev.TimeLeft)
	case transport.ResumeHandle:
		if ev.Resumable {
			m.link.handle, m.link.fresh = ev.Handle, true
		}
	case transport.Interaction:
		m.interaction(ev)
	case transport.Reconfigured:
		m.reconfigured(ev)
	case transport.TranscriptFailed:
		m.do(Failed{Turn: m.remember(ev.Item, m.userTurn(), m.utteranceStart(transport.RoleUser)).turn, Failure: FailureTranscription})
	case transport.Problem:
		m.problem(ev)
	}
	// Truncated changes nothing here. Audio, speech and usage have their own inputs.
}

func (m *machine) problem(ev transport.Problem) {
	switch ev.Err.Kind {
	case transport.KindIgnore:
	default:
		m.do(failedBy(m.Turn(), Loss{Kind: ev.Err.Kind, After: ev.Err.RetryAfter}))
	}
}

// breakOff ends the session during playback: an answer that was not heard in full counts as interrupted.
func (m *machine) breakOff(reason EndReason) {
	if t := m.turn; m.flush(FlushSessionEnd) && t.cut == uncut {
		t.cut = cutOff
	}
	m.end(reason)
}

func (m *machine) end(reason EndReason) {
	if m.turn != nil {
		m.endTurn()
	}
	m.phase = PhaseEnded
	m.keepContexts()
	end := End{Reason: reason}
	if reason == EndLost {
		end.Kind = m.link.kind
	}
	m.do(end)
	m.nothingMore()
}

// tick does everything that has become due. Each wait for the model, the client or a tool has a
// deadline, which WakeAt also knows:
//
//	what waits                  | for                           | and at the deadline
//	speech that is owed         | audio or words of the answer  | after NudgeAfter the model is asked
//	                            |                               | again, after NoAnswerAfter the turn
//	                            |                               | fails
//	an answer without either    | another response              | after nudgeGrace the model is asked
//	                            |                               | again
//	a turn that was interrupted | the end of its response       | after NoAnswerAfter the turn ends
//	a turn that has been heard  | the end of its response       | NoAnswerAfter after the model last
//	                            |                               | sent anything, the turn ends
//	the end of an item          | its end, or another item      | NoAnswerAfter after the sent part was
//	                            |                               | played, the item counts as complete
//	the user's speech           | the model's report of its end | after SpeechSilence without speech
//	                            |                               | in the gateway's ear, it is over
//	speech that has ended       | the report that the model has | NudgeAfter after the end, its turn
//	                            | taken it, or an answer        | begins, and the model is asked
//	push-to-talk                | the release of the button     | only MaxLength ends the session; a
//	                            |                               | client that is away holds it for
//	                            |                               | releaseWait
//	the answer to tool results  | the end of the response that  | NudgeAfter after the results, the
//	                            | made the calls                | model is asked for it
//	a truncation                | the client's report           | after ReportWait it is sent anyway
//	the end of the session      | the end of the farewell       | after FarewellWait it ends
//	the client's credentials    | newer ones                    | at Lapse.At the session ends
//	a client that is away       | its return                    | after ResumeGrace the session ends;
//	                            |                               | meanwhile nobody waits for speech
//	a question to the user      | the answer                    | the question expires
//	a tool                      | its result                    | the tool's deadline returns one
//	a planned replacement       | a quiet moment, and then the  | lateTime before LinkExpiring.By the
//	                            | provider's handle             | connection is replaced once the model
//	                            |                               | is idle, at By in any case
//	a session that is to move   | the same, or no client and no | at Move.By it is given up
//	                            | running call                  |
//	a resumed conversation      | an answer to the user's first | after proofPatience the model is told
//	                            | words                         | the conversation on another connection
//	another agent's answer      | Reconfigured                  | confirmPatience after Reconfigure the
//	                            |                               | model is asked for it
//	a switch that no call waits | a moment at which the model   | rotations wait for the same moment;
//	for                         | owes nothing                  | with another connection it comes too
//	what a page tells a model   | the end of the answer and its | the model is told NudgeAfter after
//	that it would interrupt     | calls, or the next question   | speech or a result without an answer
//	how far a call is           | the same, and a few seconds   | the model is told
//	a new connection            | LinkBack or LinkFailed        | the session bounds each attempt, and
//	                            |                               | Attempts the number of them
//	a failed answer             | the pause of its Attempt      | the model is asked for it again
//	a turn that a lost          | its answer                    | linkPatience after the loss it fails
//	connection has cut off      |                               |
//
// A response that belongs to an earlier turn delays nothing. Every wait for the model begins once it is
// no longer at work ([transport.Interaction]); it counts as at work for workPatience at most.
func (m *machine) tick() {
	if m.ending() && !m.at.Before(m.endsAt()) {
		m.breakOff(m.endReason())
		return
	}
	m.carryOut(m.calls.Tick(m.at))
	m.watchAway()
	if m.phase == PhaseEnded {
		return
	}
	m.watchInterrupted()
	m.watchUnended()
	m.watchUnfinished()
	m.watchSpeech()
	m.watchSwitch()
	m.watchFailed()
	m.watchSpeechOwed()
	m.line.settle(m.at)
	m.watchUnended() // an item may have just become free to end
	m.watchLink()
	m.watchLimits()
}

// settleCuts stops waiting for overdue client reports.
func (m *machine) settleCuts() {
	m.cuts = slices.DeleteFunc(m.cuts, func(c cut) bool {
		due := !m.at.Before(c.deadline)
		if due {
			m.settleCut(c)
		}
		return due
	})
}

// watchSpeechOwed guarantees that every turn ends in speech or in an error.
func (m *machine) watchSpeechOwed() {
	since := m.owedSince()
	if since.IsZero() {
		return
	}
	mayNudge := m.mayNudge()
	if m.turn.nudge == nudgeSoon && !m.at.Before(m.afterWork(m.turn.nudgeAt)) && mayNudge {
		m.nudge(m.turn)
	}
	waited := m.at.Sub(since)
	if by := m.turnFailsAt(); waited >= m.policy.NoAnswerAfter || !by.IsZero() && !m.at.Before(by) {
		m.failTurn(FailureNoAnswer, true)
		return
	}
	if waited >= m.policy.NudgeAfter && mayNudge && m.turn.nudge != nudged {
		m.nudge(m.turn)
	}
}

func (m *machine) watchLimits() {
	if p := m.policy; p.MaxLength > 0 {
		left := m.startedAt.Add(p.MaxLength).Sub(m.at)
		if left <= 0 {
			m.breakOff(EndLength)
			return
		}
		if left <= p.warning() && !m.warned {
			m.warned = true
			m.do(Ending{Reason: EndLength, After: left})
		}
	}
	m.watchLapse()
	if m.phase == PhaseEnded {
		return
	}
	if m.policy.MaxIdle > 0 && m.at.Sub(m.lastActive) >= m.policy.MaxIdle {
		if m.turn != nil || m.user.speaks() || m.Audible(m.at) || m.atWork() {
			m.lastActive = m.at
			return
		}
		m.end(EndIdle)
	}
}

// settle ends a turn whose answer is complete and heard, and removes items that are over.
func (m *machine) settle() {
	if m.phase == PhaseEnded {
		return
	}
	if m.endNow {
		m.breakOff(EndTool)
		return
	}
	m.settleTurn()
	m.giveContext()
	m.giveNews()
	m.watchOverlooked()
	m.switchLater()
	m.rotate()
	m.mindSpending()
	if m.turn == nil && m.phase != PhaseEnded {
		m.betweenTurns()
	}
}

func (m *machine) settleTurn() {
	m.line.settle(m.at)
	heard := !m.Audible(m.at)
	if m.ending() {
		heard = len(m.line.items) == 0 // the session closes with the turn: no item may still be playing
	}
	if t := m.turn; t != nil && t.stage == done && (t.cut != uncut || heard) {
		m.endTurn()
	}
}

// betweenTurns does everything that waited for the end of a turn.
func (m *machine) betweenTurns() {
	if m.ending() {
		// A failed turn ends before it is heard, and no other turn follows.
		if len(m.line.items) == 0 {
			m.end(m.endReason())
			return
		}
		m.mute()
		return
	}
	if len(m.notices) > 0 && !m.away() && !m.leaving() && !m.user.speaks() && !m.at.Before(latest(m.user.quietAt, m.workedUntil())) {
		n := m.notices[0]
		m.notices = slices.Delete(m.notices, 0, 1)
		m.tell(n)
	}
}
