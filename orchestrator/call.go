package orchestrator

import (
	"slices"
	"time"

	"voicegw/internal/audit"
	"voicegw/orchestrator/calls"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/transport"
)

func (m *callControl) toolCall(ev transport.ToolCall) {
	m.link.changed()
	late := m.lastWordSaid() // no turn follows in which the answer could be used
	if !late && (m.turn == nil || m.turn.stage == done) {
		m.openTurnMidway()
	}
	in := calls.Called{Turn: m.turns.last, Model: ev.Call, Provider: ev.ID, Tool: ev.Name, Args: ev.Args, SpokenAt: m.user.spokenAt}
	if late {
		m.carryOut(m.calls.Refuse(m.at, in, registry.NewError(registry.ErrorPermanent, prompts.SessionEnding)))
		return
	}
	m.turn.calls++
	if m.sayings.noticeOpen() {
		m.carryOut(m.calls.Refuse(m.at, in, registry.NewError(registry.ErrorTransient, prompts.NoticeFirst)))
		return
	}
	m.carryOut(m.calls.Called(m.at, in))
}

// carryOut handles actions about calls that concern turns and the model, and passes the others on.
func (m *callControl) carryOut(do []calls.Action) {
	for _, a := range do {
		switch a := a.(type) {
		case calls.Answer:
			m.conclude(a)
		case calls.Overtaken:
			m.send(transport.ToolResult{Call: a.Model, Output: a.Envelope.Encode()})
		case calls.Approved:
			m.approved(a)
		case calls.Declined:
			m.do(Audit{Record: a.Record})
			if !a.ByCall {
				m.notify(notice{text: calls.OutcomeNotice(a.Tool, a.Reference, a.Outcome), asked: a.Model,
					now: a.Outcome == calls.OutcomeDenied})
			}
		case calls.Refused:
			refused := Failed{Failure: Failure(a.Why), Retryable: a.Why == calls.RefusedStore}
			if a.Known {
				refused.Turn = m.Turn()
			}
			m.do(refused)
		default:
			m.do(AboutCall{a})
		}
	}
}

func (of OfCall) take(m *machine) {
	done, ok := of.In.(calls.Finished)
	switch {
	case !ok:
		m.carryOut(m.calls.Take(m.at, of.In))
	case !m.sayAfter(done):
		m.finished(done, nil)
	}
}

func (in ConfirmationAnswer) take(m *machine) {
	if m.calls.Waits(in.Token) {
		if m.ending() {
			m.do(Failed{Turn: m.Turn(), Failure: FailureEnding})
			return
		}
		m.lastActive = m.at
	}
	m.carryOut(m.calls.Answered(in.Token, in.Approved))
}

func (m *callControl) approved(a calls.Approved) {
	m.approving = true
	if m.phase != PhaseEnded {
		m.interrupt(FlushUserAction)
		if m.response.underWay {
			m.cancel()
		}
		m.openCausedTurn()
	}
	m.carryOut(m.calls.Approve(m.at, m.turns.last, a))
	m.approving = false
}

func (m *callControl) conclude(a calls.Answer) {
	if a.OverBudget {
		m.turn.toolsOff = true
	}
	effect := m.applyAll(a.Turn, a.Intents(), a.Wanted())
	delivered := a.Wanted() && m.phase != PhaseEnded
	if !delivered {
		effect.NotDelivered = sessionOver
	}
	record, delivered, byNotice := m.deliver(a, effect, delivered)
	m.do(ToolEnded{Answer: a, Delivered: delivered, Record: record})
	t := m.turn
	switch {
	case !delivered || byNotice || t == nil || t.number != a.Turn:
	case m.continues(a.Prepared):
		m.settleCalls(t, a.Owed) // the model continues anyway: its speech need not come after the result
	default:
		m.answered(t, a)
	}
}

// deliver sends the answer of a call to the model, now, later (byNotice) or not at all, and audits it.
func (m *callControl) deliver(a calls.Answer, effect calls.Effect, wanted bool) (record audit.Record, delivered, byNotice bool) {
	record, byNotice = a.Record(m.at, effect), a.ByNotice()
	switch {
	case !wanted:
		m.do(Audit{Record: record})
		return record, false, byNotice
	case m.switchDue() && m.switchRelinks() && (!byNotice || m.down()):
		m.answerElsewhere(a, record)
		return record, true, true
	case byNotice:
		text, asked := prompts.LateResult(a.Tool, m.mark.JSON(a.Envelope.Encode())), ""
		if a.Approval != nil {
			text = prompts.ApprovedNotice(a.Approval.Tool, a.Approval.Reference, m.mark.JSON(a.Envelope.Encode()))
			asked = a.Approval.Model
		}
		told := record
		if !m.notify(notice{turn: a.Turn, text: text, asked: asked, record: &told}) {
			effect.NotDelivered = sessionOver
			record = a.Record(m.at, effect)
			m.do(Audit{Record: record})
			return record, false, true
		}
		return record, true, true
	}
	result := transport.ToolResult{Call: a.Model, Output: a.Envelope.Encode()}
	if a.Prepared != nil {
		result.Scheduling = transport.Scheduling(a.Prepared.Tool().Scheduling)
	}
	if m.switchDue() && !m.caps.RespondNeeded {
		m.reconfigure() // the result makes this model continue
	}
	m.do(Audit{Record: record, Told: true})
	m.send(result)
	if m.switchDue() {
		m.reconfigure()
	}
	return record, true, false
}

const sessionOver = "session_over"

// answered continues a turn after another result. A refused call gives no new time, or the model could continue forever.
func (m *callControl) answered(t *turn, a calls.Answer) {
	if a.Ran || t.spoke {
		t.owedFrom = m.at
	}
	t.spoke, t.given, t.owedBy = false, true, time.Time{}
	if m.response.underWay {
		t.calls++ // this response began without the result: another one is needed
	}
	m.settleCalls(t, a.Owed)
}

func (m *callControl) settleCalls(t *turn, owed bool) {
	if t.stage != owing || owed || m.caps.RespondNeeded && !m.switching.confirmBy.IsZero() { // that is awaited first
		return
	}
	t.stage = answering
	if m.caps.RespondNeeded {
		t.calls = 0
		if !m.user.speaks() { // the user is speaking, and their speech will bring the answer
			m.respond(t)
		}
		return
	}
	// This model went on while the tools ran, and has ended its answer. If it has said nothing
	// yet, it still owes one.
	if !t.modelAt.IsZero() {
		t.stage = done
	}
}

func (m *callControl) toolCancelled(ev transport.ToolCancelled) {
	m.carryOut(m.calls.Withdrawn(ev.Calls))
	if t := m.turn; t != nil {
		m.settleCalls(t, m.calls.Owed(t.number))
	}
}

// supersede answers the calls of earlier turns, for a model that does not withdraw them itself.
func (m *callControl) supersede() {
	if !m.caps.ToolCancelNotice {
		m.carryOut(m.calls.Superseded())
	}
}

// continues reports whether the model continues while a call runs. p is nil if nothing runs.
func (s State) continues(p *registry.Prepared) bool {
	switch s.caps.Tools {
	case transport.ToolsAsync:
		return true
	case transport.ToolsDeclared:
		return p != nil && p.Tool().Behavior == spec.BehaviorNonBlocking
	default:
		return false
	}
}

func (m *callControl) openSpokenTurn() {
	m.openUserTurn(m.user.since)
	m.turn.knownAt, m.turn.unheard = m.user.known, m.user.unsure
}

// openUserTurn begins a turn that the user asked for, with a new budget for calls.
func (m *callControl) openUserTurn(inputEnd time.Time) {
	m.openTurn(inputEnd)
	m.supersede()
	m.calls.Book().BeginTurn()
}

// openCausedTurn begins a turn that the user did not ask for. It keeps the budget, or a model could ask without limit.
func (m *callControl) openCausedTurn() {
	m.openOwnTurn()
	m.supersede()
}

// openOwnTurn is openCausedTurn without an end of earlier turns' calls, for turns without the model.
func (m *callControl) openOwnTurn() {
	acted := m.user.acted
	m.user.acted = false
	m.openTurn(m.at)
	m.turn.caused = true
	m.user.acted = acted
}

func (m *callControl) interrupt(reason FlushReason) {
	if m.user.voice == muted {
		return // the user hears the farewell to its end
	}
	if m.policy.HoldsBack {
		m.do(DropHeld{})
	}
	m.settleTurn()
	m.carryOut(m.calls.Interrupted(m.continues))
	if m.flush(reason) {
		m.turn.interrupt(m.at)
	}
	if !m.response.underWay {
		return
	}
	m.response.held = true
	if t := m.turn; t != nil && t.response == m.response.id && (reason != FlushUserSpeech || m.stopped(t)) {
		// Otherwise the notice is about a response of an earlier turn, or the model alone has heard something.
		t.interrupt(m.at)
	}
	if reason == FlushUserStop {
		m.cancel()
		if m.underWay() {
			m.turn.stopSent = m.caps.Cancel
		}
	}
}

// notice is text that the model gets as a user's turn although the user has not typed it, such as an approved call's
// result.
type notice struct {
	turn   int           // number of its turn, used while that is open
	text   string        // for the model
	shown  bool          // a tool wrote the text: the client shows it as the user's
	now    bool          // does not wait for the end of a turn
	record *audit.Record // the audit record of the call that this notice answers; may be nil. It is immutable.
	asked  string        // the model's call whose question this answers; may be empty
	job    string        // id of the job whose end this reports; may be empty
	// claims are the statements that this asks the model to correct; nil for other notices. Immutable.
	claims []calls.Claimed
}

// notify sends a notice now or with the next turn. It returns false if the session ends and the model never gets it.
func (m *callControl) notify(n notice) bool {
	t := m.turn
	switch {
	case m.phase == PhaseEnded, m.phase == PhaseEnding && m.down():
		return false
	case t != nil && t.number == n.turn && t.stage != done && !n.now && !m.user.speaks():
		t.owedFrom, t.spoke, t.owedBy = m.at, false, time.Time{}
		m.sendAnswer(n)
	case m.phase == PhaseEnding:
		return false
	case n.now && !m.user.speaks() && !m.away():
		m.interrupt(FlushUserAction)
		m.tell(n)
	case len(m.notices) < maxNotices:
		m.notices = append(m.notices, n)
	default:
		return false
	}
	return true
}

func (m *callControl) tell(n notice) {
	m.openCausedTurn()
	if n.shown {
		m.say("pending_message", n.text)
		return
	}
	if n.claims != nil {
		m.correcting()
	}
	m.sendAnswer(n)
}

// nothingMore audits the answers and calls that the end of the session leaves out.
func (m *callControl) nothingMore() {
	for _, n := range m.notices {
		if n.record != nil {
			r := *n.record
			r.Delivered, r.NotDelivered = false, sessionOver
			m.do(Audit{Record: r})
		}
	}
	m.notices = nil
	m.carryOut(m.calls.Over())
}

// take reports the end of a job to the model at the next quiet moment. An ending session leaves it to the next
// session of the conversation.
func (in JobEnded) take(m *machine) {
	if m.phase != PhaseActive || m.TellsOf(in.Job) || len(m.notices) >= maxNotices {
		return
	}
	m.notices = append(m.notices, notice{job: in.Job, text: prompts.JobNotice(in.Name, in.Tool, in.Job, m.mark.JSON(in.Result))})
}

// TellsOf reports whether the model will learn of the end of a job.
func (s State) TellsOf(job string) bool {
	return slices.ContainsFunc(s.notices, func(n notice) bool { return n.job == job })
}

// afterwards handles inputs after the session's end: running calls are recorded, and approved calls still run.
func (m *machine) afterwards(in Input) {
	if in, ok := in.(OfCall); ok {
		in.take(m)
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

// Limits on the calls of a session.
const (
	maxCalls         = 64
	maxConfirmations = 8 // limits the open confirmations
)
