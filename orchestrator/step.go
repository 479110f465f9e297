// Package orchestrator decides the course of a voice session: the start and end of turns, the effects of an
// interruption, the messages to the model, and the outcome of tool calls.
//
// [Step] is a pure function from a [State] and an [Input] to the next State and a list of [Action] values. It reads no
// clock, starts no goroutine and moves no audio; the session calls it and carries the actions out. So a test of a bug
// is a table row, and a test of a conversation a golden file.
package orchestrator

import (
	"slices"
	"time"

	"voicegw/transport"
)

// Step takes one input, which happened at the time at. It returns the next state and the actions for the session to
// carry out. Step is pure: equal arguments give equal results, and s is unchanged. Times must not run backwards between
// calls.
func Step(s State, at time.Time, in Input) (State, []Action) {
	var m machine
	m.State, m.at = s.clone(), at
	if s.phase == PhaseEnded {
		m.afterwards(in)
		return m.State, m.actions
	}
	m.settleCuts()
	m.take(in)
	m.settle()
	return m.State, m.actions
}

// step is one step in progress: the state so far and the actions for the session.
//
// A machine is made of layers. Each embeds the layer below it and calls nothing above it:
//
//	machine        dispatches the input and checks every deadline
//	speechControl  what the user and the model say
//	callControl    tool calls, their effects, and the end of the session
//	linkControl    the connection to the model and the current agent
//	turnControl    turns, from the first input to the end of the answer
//	sender         text and commands for the model
//	step           state, time and actions
type step struct {
	State
	at      time.Time
	actions []Action
	endNow  bool // the session ends with this step
}

func (m *step) do(actions ...Action) { m.actions = append(m.actions, actions...) }

// machine is the top layer of a step.
type machine struct{ speechControl }

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
		m.do(Failed{Turn: m.user.remember(ev.Item, m.userTurn(), m.utteranceStart(transport.RoleUser)).turn, Failure: FailureTranscription})
	case transport.Problem:
		m.problem(ev)
	}
	// Truncated changes nothing here. Audio, speech and usage have their own inputs.
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

// ofOthers handles inputs that neither the client nor the model caused.
func (m *machine) ofOthers(in Input) {
	switch in := in.(type) {
	case Lapse:
		m.lapses(in)
	case AgentFound:
		m.switching.found = in.Agent
	case JobEnded:
		m.jobEnded(in)
	case SwitchAgent:
		if m.phase == PhaseActive {
			m.switching.next, m.switching.reason, m.switching.words = in.Agent, in.Reason, ""
		}
	}
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
//	the user's speech           | the model's report of its end | after speechSilence without speech
//	                            |                               | in the gateway's ear, it is over
//	speech that has ended       | the report that the model has | NudgeAfter after the end, its turn
//	                            | taken it, or an answer        | begins, and the model is asked
//	push-to-talk                | the release of the button     | only MaxLength ends the session; a
//	                            |                               | client that is away holds it for
//	                            |                               | releaseWait
//	the answer to tool results  | the end of the response that  | NudgeAfter after the results, the
//	                            | made the calls                | model is asked for it
//	a truncation                | the client's report           | after reportWait it is sent anyway
//	the end of the session      | the end of the farewell       | after farewellWait it ends
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

// ofLink handles inputs about the connection to the model.
func (m *machine) ofLink(in Input) {
	switch in := in.(type) {
	case LinkExpiring:
		if m.replaceable() && !m.down() {
			m.link.expiring(in.From, in.By)
		}
	case Move:
		m.moveBy(in.By)
	case LinkLost:
		m.linkLost(LinkBroken, Loss{Kind: in.Kind, After: in.After})
	case LinkBack:
		m.linkBack(in)
	case LinkFailed:
		m.linkFailed(Loss{Kind: in.Kind, After: in.After})
	}
}
