package orchestrator

import (
	"slices"
	"strconv"
	"time"

	"voicegw/audit"
	"voicegw/cost"
	"voicegw/orchestrator/calls"
	"voicegw/transport"
)

// Memory is what another process must know of a session, beside what was said, to go on with it. Its
// JSON form is kept in checkpoints, so its fields are only ever added to.
type Memory struct {
	// Turn is the number of the last turn.
	Turn int `json:"turn,omitempty"`
	// Gaps is how many numbers up to Turn belong to no turn.
	Gaps int       `json:"gaps,omitempty"`
	Open *OpenTurn `json:"open,omitempty"` // nil between turns
	// Answered is the last turn if its answer is complete, although the client may not have all of it
	// yet; nil if it is open, failed or was interrupted. Spoken are the latest items, oldest first.
	// Heard needs both.
	Answered *OpenTurn `json:"answered,omitempty"`
	// Stopped is the last turn if its answer was interrupted and the client was not told that the turn is
	// over; nil otherwise.
	Stopped *OpenTurn    `json:"stopped,omitempty"`
	Spoken  []SpokenItem `json:"spoken,omitempty"`
	Phase   Phase        `json:"phase,omitempty"`
	// Unanswered means that the user had said something for which no turn had begun, Worded that the
	// words are known.
	Unanswered bool `json:"unanswered,omitempty"`
	Worded     bool `json:"worded,omitempty"`
	// Request is what the user has said or typed in the last turn, or after it if Worded is set.
	Request       string   `json:"request,omitempty"`
	AudioOff      bool     `json:"audio_off,omitempty"`
	TranscriptOff bool     `json:"transcript_off,omitempty"`
	Warned        bool     `json:"warned,omitempty"` // the client knows that the session will end soon
	Notices       []Notice `json:"notices,omitempty"`
	Contexts      []string `json:"contexts,omitempty"` // what the page has told and the model does not know yet
	// Unsent are the audit's records of answers that wait for a connection to the model. What was answered
	// is part of what was said.
	Unsent []*audit.Record `json:"unsent,omitempty"`
	Calls  calls.Memory    `json:"calls,omitzero"`
	// Cost is what the model has cost so far, WrapUp that it was told that a limit is near.
	Cost   cost.Amount `json:"cost,omitzero"`
	WrapUp bool        `json:"wrap_up,omitempty"`
}

// OpenTurn is a turn whose answer is not complete.
type OpenTurn struct {
	Number int `json:"number"`
	// Worded means that the user's words are known, or that none have caused the turn. Told is the
	// gateway's own words that opened the turn. Without either, nobody knows what was to be answered.
	Worded bool   `json:"worded,omitempty"`
	Told   string `json:"told,omitempty"`
	// Spoke means that the user has heard the beginning of the answer.
	Spoke    bool `json:"spoke,omitempty"`
	ToolsOff bool `json:"tools_off,omitempty"`
	// Given means that the model has got a tool's result, and has not spoken since.
	Given bool `json:"given,omitempty"`
	// AgainMS is from where on the client can say again what is being answered, on its audio clock;
	// nil if the words are known, or if nothing answers them yet.
	AgainMS *int64 `json:"again_ms,omitempty"`
	// Untold means that the answer is complete and the client was not told that the turn is over: the
	// user has not heard all of it, or the model has not reported its end.
	Untold bool `json:"untold,omitempty"`
	// Usage and Cost are what the model has reported for the turn so far. Latency is how long the user
	// waited for the answer's first audio; nil if it is not known.
	Usage   transport.Tokens `json:"usage,omitzero"`
	Cost    cost.Amount      `json:"cost,omitzero"`
	Latency *Latency         `json:"latency,omitempty"`
}

// Notice is text that the model is still to be told.
type Notice struct {
	Text  string `json:"text"`
	Shown bool   `json:"shown,omitempty"` // the client sees it
	// Record is the audit's record of the call that the text answers; nil without one.
	Record *audit.Record `json:"record,omitempty"`
	Job    string        `json:"job,omitempty"` // the id of the job whose end the text tells of
}

// Memory returns what another process must know of the session. It shares nothing that Step changes.
func (s State) Memory() Memory {
	m := Memory{
		Turn: s.turns.last, Gaps: s.turns.gaps, Phase: s.phase, Unanswered: s.user.unanswered || s.link.speech, Worded: s.user.final > s.turns.last,
		AudioOff: s.suppressed.audio, TranscriptOff: s.suppressed.transcript, Warned: s.warned, Calls: s.calls.Memory(),
		Cost: s.spending.amount, WrapUp: s.spending.told, Unsent: slices.Clone(s.link.unsent), Contexts: slices.Clone(s.contexts),
	}
	m.Spoken, m.Answered = slices.Clone(s.line.recent), s.turns.answered
	if t := s.turn; t != nil {
		switch is := s.remembered(t); {
		case t.cut != uncut:
			m.Stopped = is
		case t.stage == done:
			m.Answered, is.Untold = is, true
		default:
			m.Open = is
		}
	}
	if m.Request = s.user.wording.of(s.turns.last); m.Worded {
		m.Request = s.user.wording.of(s.user.final)
	}
	for _, n := range s.notices {
		m.Notices = append(m.Notices, Notice{Text: n.text, Shown: n.shown, Record: n.record, Job: n.job})
	}
	return m
}

// remembered returns what another process must know of a turn.
func (s State) remembered(t *turn) *OpenTurn {
	o := &OpenTurn{Number: t.number, Told: t.told, Spoke: t.spoke, ToolsOff: t.toolsOff, Given: t.given, Usage: t.usage, Cost: t.cost, Latency: t.latency()}
	o.Worded = s.user.final >= t.number || t.caused && !t.modelAt.IsZero()
	if a := s.user.settled.answered; !o.Worded && a.turn == t.number {
		o.AgainMS = &a.fromMS
	}
	return o
}

// Handle returns the provider's handle from which the conversation can be resumed, and whether
// anything has happened since that the handle does not know; empty without one.
func (s State) Handle() (handle string, fresh bool) { return s.link.handle, s.link.fresh }

// Questions returns how many questions wait for the user.
func (s State) Questions() int { return s.calls.Questions() }

// Asks reports whether the question with that token is open.
func (s State) Asks(token string) bool { return s.calls.Knows(token) }

// Restored is the first input of a session that another process has run until now. There is no
// connection to the model: the step asks for one, and goes on with LinkBack as after a loss.
type Restored struct {
	Memory Memory
	// StartedAt is when the session began.
	StartedAt time.Time
	// Epoch counts the processes that have run the session, from 1. Names that are given from now on
	// contain it, so that none repeats.
	Epoch uint64
	// Given means that the process before has given the session up, told everything that it knew, and
	// records what came of its calls. Otherwise it died, and the last turns may be missing in Memory: their numbers are left out.
	Given bool
	// Handle resumes the conversation at the provider; empty without one.
	Handle string
	// Unheard means that the client lacks a part of the last answer; see [Memory.Heard].
	Unheard bool
	// SettledMS is up to where the user's speech is settled; see [State.Settled]. SaidAgain means that
	// the client sends again what came after it: LinkBack does not wait for that.
	SettledMS int64
	SaidAgain bool
}

func (Restored) input() {}

// LinkTaken is the reason after a takeover: another process has had the connection.
const LinkTaken LinkReason = "taken_over"

// turnsLeftOut is how many turn numbers are left out after the death of a process.
const turnsLeftOut = 100

// restored goes on with the session of another process.
func (m *machine) restored(in Restored) {
	was := in.Memory
	m.startedAt, m.phase, m.warned, m.signAt = in.StartedAt, PhaseActive, was.Warned, m.at
	m.suppressed = suppressed{audio: was.AudioOff, transcript: was.TranscriptOff}
	m.turns.last, m.turns.gaps, m.turns.began = was.Turn, was.Gaps, m.at
	m.spending.amount, m.spending.told = was.Cost, was.WrapUp
	if !in.Given {
		m.turns.skip = turnsLeftOut
	}
	for _, n := range was.Notices[:min(len(was.Notices), maxNotices)] {
		switch {
		case n.Record == nil:
		case in.Given:
			n.Record = nil // the process before has recorded that the model was not told there
		default:
			again := *n.Record // it may have told the model, and recorded that, after its last checkpoint
			again.Again = true
			n.Record = &again
		}
		m.notices = append(m.notices, notice{text: n.Text, shown: n.Shown, record: n.Record, job: n.Job})
	}
	m.page = &page{contexts: slices.Clone(was.Contexts[:min(len(was.Contexts), maxContexts)])}
	m.neverSent(in)
	if o := was.Open; o != nil {
		m.turn = &turn{number: o.Number, startedAt: m.at, inputEnd: m.at, knownAt: m.at, told: o.Told, spoke: o.Spoke, toolsOff: o.ToolsOff, given: o.Given, late: true, usage: o.Usage, cost: o.Cost}
		if o.Spoke {
			m.turn.waited = o.Latency
		}
		if o.AgainMS != nil {
			m.user.settled.answered = answeredSpeech{turn: o.Number, fromMS: *o.AgainMS}
		}
		if o.Worded {
			m.user.worded, m.user.final = o.Number, o.Number
			m.user.wording = m.user.wording.with(o.Number, "", was.Request)
		}
	}
	m.user.unanswered, m.user.since, m.user.known, m.user.unsure = was.Unanswered, m.at, m.at, true
	if was.Worded {
		m.user.worded = m.nextTurn()
		m.user.final = m.user.worded
		m.user.wording = m.user.wording.with(m.user.final, "", was.Request)
	}
	m.user.settled.upTo = in.SettledMS
	m.turns.answered, m.line.recent = was.Answered, slices.Clone(was.Spoken[max(len(was.Spoken)-maxSpoken, 0):])
	m.endedBefore(in)
	lost := m.calls.Restore(was.Calls, "call_"+strconv.FormatUint(in.Epoch, 10)+"_")
	m.carryOut(lost)
	if in.Given { // they are in the audit
		m.actions = slices.DeleteFunc(m.actions, func(a Action) bool { _, ok := a.(Audit); return ok })
	}
	if was.Phase == PhaseEnding || was.Phase == PhaseEnded {
		if m.overspent() {
			m.farewell.why = EndBudget
		}
		m.end(m.endReason())
		return
	}
	if in.Unheard && m.caps.History != transport.HistoryNone {
		in.Handle = "" // the provider believes that the user has heard everything
	}
	m.link.handle, m.link.fresh = in.Handle, in.Handle != ""
	m.link.tries.closed() // this process has had none yet
	m.unlink(LinkTaken, Attempt{})
	if in.SaidAgain {
		m.saidAgain()
	}
	if !m.link.told {
		m.tellAway()
	}
}

// neverSent audits the answers that waited for a connection when the process before died: it may have sent them
// after its last checkpoint. One that has given the session up has recorded them.
func (m *machine) neverSent(in Restored) {
	for _, r := range in.Memory.Unsent[:min(len(in.Memory.Unsent), maxUnsent)] {
		if r == nil || in.Given {
			continue
		}
		lost := *r
		lost.Delivered, lost.NotDelivered, lost.Again = false, "not_sent", true
		m.do(Audit{Record: lost})
	}
}

// endedBefore tells the client the end of a turn that was over, or was stopped, before the process before could
// tell it. If that process died, it may have told the end after its last checkpoint: a client then gets it twice.
func (m *machine) endedBefore(in Restored) {
	if t := in.Memory.Stopped; t != nil {
		m.do(TurnEnded{Turn: t.Number, Status: TurnInterrupted, Usage: t.Usage, Cost: t.Cost, Latency: t.Latency})
	}
	last := m.turns.answered
	if last == nil || !last.Untold {
		return
	}
	m.do(TurnEnded{Turn: last.Number, Status: TurnCompleted, Usage: last.Usage, Cost: last.Cost, Latency: last.Latency})
	told := *last
	told.Untold = false
	m.turns.answered = &told
}

// saidAgain takes it that the client sends the user's speech again whose words are not known: that
// brings the answer, as speech does that is said while there is no connection.
func (m *machine) saidAgain() {
	m.user.settled.owed, m.user.settled.from = true, m.user.settled.upTo
	if m.user.worded <= m.turns.last {
		m.link.speech = false
	}
	if t := m.turn; t != nil && m.user.worded < t.number && !t.spoke && t.told == "" {
		t.queued = m.link.count
	}
}
