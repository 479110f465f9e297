// Package orchestrator decides the course of a voice session: the start and end of turns, the effects of an
// interruption, the messages to the model, and the outcome of tool calls.
//
// [Step] is a pure function from a [State] and an [Input] to the next State and a list of [Action] values. It reads no
// clock, starts no goroutine and moves no audio; the session calls it and carries the actions out. So a test of a bug
// is a table row, and a test of a conversation a golden file.
package orchestrator

import (
	"slices"
	"sync"
	"time"

	"voicegw/transport"
)

// Step takes one input, which happened at the time at. It returns the next state and the actions for the session to
// carry out. Step is pure: equal arguments give equal results, and s is unchanged. Times must not run backwards between
// calls.
func Step(s State, at time.Time, in Input) (State, []Action) {
	m := machines.Get().(*machine)
	m.State, m.at = s.clone(), at
	if s.phase == PhaseEnded {
		m.afterwards(in)
	} else {
		m.settleCuts()
		m.take(in)
		m.settle()
	}
	next, actions := m.State, m.actions
	*m = machine{}
	machines.Put(m)
	return next, actions
}

// machines spares an allocation of several KB for each step: an interface's methods get the machine, so that it would
// be on the heap.
var machines = sync.Pool{New: func() any { return new(machine) }}

// A machine is one step in progress. Each of its layers embeds the layer below it and calls nothing above it.

// machine dispatches the input, checks every deadline, and handles speech of the user and the model.
type machine struct{ callControl }

// callControl handles tool calls, their effects, the end of the session, the connection to the model and the agent.
type callControl struct{ turnControl }

// turnControl has the state and the actions so far. It opens and ends turns, and sends text and commands to the model.
type turnControl struct {
	State
	at      time.Time
	actions []Action
	endNow  bool     // the session ends with this step
	unsaid  []string // why the sentences of the call that ends were not heard
	// approving: the call that the user has approved in this step has not been queued yet.
	approving bool
}

func (m *turnControl) do(actions ...Action) { m.actions = append(m.actions, actions...) }

// take handles an input that counts. Inputs from a closed connection do not, except the end of an item, which still
// plays.
func (m *machine) take(in Input) {
	switch in.(type) {
	case FromModel, AudioBegan:
		if m.down() {
			return
		}
		m.signAt = m.at
	case AudioEnded:
		m.signAt = m.at
	case Used:
		if !m.down() {
			m.signAt = m.at
		}
	}
	in.take(m)
}

func (in FromModel) take(m *machine) {
	switch ev := in.Event.(type) {
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
		if ev.Err.Kind != transport.KindIgnore {
			m.do(failedBy(m.Turn(), Loss{Kind: ev.Err.Kind, After: ev.Err.RetryAfter}))
		}
	}
	// Truncated changes nothing here. Audio, speech and usage have their own inputs.
}

// wait is what happens at a deadline. A session that waits for the model, the client or a tool always has one.
type wait struct {
	at  func(State) time.Time // zero if nothing waits; nil for what happens at every Tick
	due func(*machine)
}

// waits are the deadlines that a Tick checks, in this order, and what is awaited. Not among them: cuts and the quiet
// moments of WakeAt, which every step checks; tools, which have their own deadlines; and new connections, which the
// session and [Attempts] bound. A response of an earlier turn delays nothing. Every wait for the model begins once it
// is no longer at work ([transport.Interaction]).
var waits = []wait{
	{State.endsAt, func(m *machine) { m.breakOff(m.endReason()) }},                // the farewell
	{nil, func(m *machine) { m.carryOut(m.calls.Tick(m.at)) }},                    // answers to questions
	{releasedAt, func(m *machine) { m.released(m.user.earMS, false) }},            // a lost client's push-to-talk button
	{goneAt, func(m *machine) { m.end(EndGone) }},                                 // a lost client
	{exactDueAt, (*machine).exactDue},                                             // an exact sentence: its audio, its turn, its end
	{State.abandonedAt, func(m *machine) { m.endTurn() }},                         // the end of an interrupted response
	{State.unendedAt, (*machine).endItems},                                        // the end of an item
	{unfinishedAt, func(m *machine) { m.turn.stage = done }},                      // the end of a response that was heard
	{State.speechLostAt, (*machine).giveUpSpeech},                                 // the end of the user's speech
	{func(s State) time.Time { return s.switching.confirmBy }, (*machine).goOnAs}, // another agent's confirmation
	{State.retryDue, (*machine).retry},                                            // the pause after a failed answer
	{speechOwedAt, (*machine).speechOwed},                                         // the model's speech
	{nil, func(m *machine) { m.settleLine() }},
	{State.unendedAt, (*machine).endItems},          // an item may have just become free to end
	{tellAwayAt, func(m *machine) { m.tellAway() }}, // a new connection, without a word to the client
	{unprovenAt, func(m *machine) { m.linkLost(LinkUnanswered, Loss{Kind: transport.KindRetry}) }},
	{lengthAt, (*machine).watchLength},
	{State.lapseAt, (*machine).watchLapse}, // newer credentials
	{idleAt, (*machine).idled},
}

func (Tick) take(m *machine) {
	for _, w := range waits {
		if w.at == nil || m.overdue(w.at(m.State)) {
			w.due(m)
		}
		if m.phase == PhaseEnded {
			return
		}
	}
}

func (m *turnControl) overdue(at time.Time) bool { return !at.IsZero() && !m.at.Before(at) }

func (m *machine) settle() {
	if m.phase == PhaseEnded {
		return
	}
	if m.endNow {
		m.breakOff(EndTool)
		return
	}
	m.settleTurn()
	if m.sayings.first() != nil {
		m.settleExacts()
	}
	if m.phase == PhaseEnded {
		return
	}
	if m.listens() && !m.at.Before(m.contextAt()) {
		m.give()
	}
	if m.overdue(m.newsAt()) {
		m.takeNews()
	}
	m.watchOverlooked()
	m.switchLater()
	m.rotate()
	m.mindSpending()
	if m.down() && m.sayings.first() != nil { // what the lost connection was about to say no longer delays a sentence
		m.settleExacts()
	}
	if m.turn == nil && m.phase != PhaseEnded {
		m.betweenTurns()
	}
}

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
	for len(m.notices) > 0 && m.turn == nil && !m.away() && !m.leaving() && !m.user.speaks() && !m.sayings.noticeOpen() &&
		!m.at.Before(latest(m.user.quietAt, m.workedUntil())) {
		n := m.notices[0]
		m.notices = slices.Delete(m.notices, 0, 1)
		if n.claims == nil || m.calls.Still(n.claims) {
			m.tell(n)
		}
	}
}

func (in AgentFound) take(m *machine) { m.switching.found = in.Agent }

func (in SwitchAgent) take(m *machine) {
	if m.phase == PhaseActive {
		m.switching.next, m.switching.reason, m.switching.words = in.Agent, in.Reason, ""
	}
}

func (HungUp) take(m *machine) { m.end(EndHungUp) }

func (Over) take(m *machine) {
	m.phase = PhaseEnded
	m.exactsOver()
	m.nothingMore()
}
