package orchestrator

import (
	"slices"
	"strconv"
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/cost"
	"voicegw/orchestrator/calls"
	"voicegw/transport"
)

// Memory is what another process needs, beyond the transcript, to continue a session. Fields are only added.
type Memory struct {
	Turn int       `json:"turn,omitempty"` // the number of the last turn
	Gaps int       `json:"gaps,omitempty"` // how many numbers up to Turn were skipped
	Open *OpenTurn `json:"open,omitempty"` // nil between turns
	// Answered is the last turn if its answer is complete, even if the client lacks a part; nil if it is open, failed
	// or was interrupted. Spoken are the latest items, oldest first. Heard needs both.
	Answered *OpenTurn    `json:"answered,omitempty"`
	Stopped  *OpenTurn    `json:"stopped,omitempty"` // the last turn if it was interrupted and the client lacks its end
	Spoken   []SpokenItem `json:"spoken,omitempty"`
	Phase    Phase        `json:"phase,omitempty"`
	// Unanswered means that the user has spoken and no turn has begun; Worded that the words are known.
	Unanswered    bool     `json:"unanswered,omitempty"`
	Worded        bool     `json:"worded,omitempty"`
	Request       string   `json:"request,omitempty"` // has the user's words in the last turn or, with Worded, after it
	AudioOff      bool     `json:"audio_off,omitempty"`
	TranscriptOff bool     `json:"transcript_off,omitempty"`
	Warned        bool     `json:"warned,omitempty"` // the client knows that the session ends soon
	Notices       []Notice `json:"notices,omitempty"`
	Contexts      []string `json:"contexts,omitempty"` // texts of the page that the model lacks
	// Exacts are the sentences that the user must still hear, Held what waits for the notice among them.
	Exacts []Exact `json:"exacts,omitempty"`
	Held   []Held  `json:"held,omitempty"`
	// Unsent are audit records that may not be written yet, at most [MaxUnsent]: their answers wait for the connection to
	// the model, or the records wait in the audit's queue. State knows neither; the caller of [State.Memory] adds them.
	Unsent []*audit.Record `json:"unsent,omitempty"`
	Calls  calls.Memory    `json:"calls,omitzero"`
	// Cost is the cost of the model so far; WrapUp means that the model knows that a limit is near.
	Cost   cost.Amount `json:"cost,omitzero"`
	WrapUp bool        `json:"wrap_up,omitempty"`
	// ClaimNotices is how often the model was asked to correct a claim.
	ClaimNotices int `json:"claim_notices,omitempty"`
}

// OpenTurn is a turn without a complete answer.
type OpenTurn struct {
	Number int `json:"number"`
	// Worded means that the user's words are known, or that the turn has none. Told is the gateway's text that
	// opened the turn. Without either, the question is unknown.
	Worded   bool   `json:"worded,omitempty"`
	Told     string `json:"told,omitempty"`
	Spoke    bool   `json:"spoke,omitempty"` // the user has heard the beginning of the answer
	ToolsOff bool   `json:"tools_off,omitempty"`
	Given    bool   `json:"given,omitempty"`    // the model has a tool's result and has not spoken since
	AgainMS  *int64 `json:"again_ms,omitempty"` // where the client can resend the unanswered speech, on its audio clock
	Untold   bool   `json:"untold,omitempty"`   // the answer is complete and the client has not received the turn's end
	// Usage and Cost are the model's reports for the turn so far. Latency is the wait for the first audio; nil if
	// unknown.
	Usage   transport.Tokens `json:"usage,omitzero"`
	Cost    cost.Amount      `json:"cost,omitzero"`
	Latency *Latency         `json:"latency,omitempty"`
}

// Notice is text that waits for the model.
type Notice struct {
	Text   string        `json:"text"`
	Shown  bool          `json:"shown,omitempty"`  // the client shows it
	Record *audit.Record `json:"record,omitempty"` // the audit record of the call that the text answers; may be nil
	Job    string        `json:"job,omitempty"`    // id of the job whose end the text reports
}

// Memory returns what another process needs to continue the session. It shares nothing that Step changes.
func (s State) Memory() Memory {
	m := Memory{
		Turn: s.turns.last, Gaps: s.turns.gaps, Phase: s.phase, Unanswered: s.user.unanswered || s.link.speech,
		Worded:   s.user.final > s.turns.last,
		AudioOff: s.suppressed.audio, TranscriptOff: s.suppressed.transcript, Warned: s.warned, Calls: s.calls.Memory(),
		Cost: s.spending.amount, WrapUp: s.spending.told, Contexts: s.contextTexts(),
	}
	if s.spokenWords != nil {
		m.ClaimNotices = s.spokenWords.notices
	}
	m.Spoken, m.Answered = slices.Clone(s.line.recent), s.turns.answered
	if t := s.turn; t != nil {
		switch is := s.remembered(t); {
		case t.cut != uncut || t.exact:
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
	m.Exacts, m.Held = s.sayings.memory()
	for _, n := range s.notices {
		m.Notices = append(m.Notices, Notice{Text: n.text, Shown: n.shown, Record: n.record, Job: n.job})
	}
	return m
}

func (s State) remembered(t *turn) *OpenTurn {
	o := &OpenTurn{Number: t.number, Told: t.told, Spoke: t.spoke, ToolsOff: t.toolsOff, Given: t.given, Usage: t.usage,
		Cost: t.cost, Latency: t.latency()}
	o.Worded = s.user.final >= t.number || t.caused && !t.modelAt.IsZero()
	if a := s.user.settled.answered; !o.Worded && a.turn == t.number {
		o.AgainMS = &a.fromMS
	}
	return o
}

// Handle returns the provider's resume handle, or "", and whether it is out of date.
func (s State) Handle() (handle string, fresh bool) { return s.link.handle, s.link.fresh }

// Questions returns the number of open confirmations.
func (s State) Questions() int { return s.calls.Questions() }

// Asks reports whether the confirmation with that token is open.
func (s State) Asks(token string) bool { return s.calls.Knows(token) }

// Restored is the first input of a session that another process has run. The step asks for a connection to the model.
type Restored struct {
	Memory    Memory
	StartedAt time.Time // when the session began
	// Epoch counts the processes that have run the session, from 1. It is part of new names, so that none repeats.
	Epoch   uint64
	Given   bool   // the previous process handed the session off; otherwise it died, and Memory may lack turns
	Handle  string // resumes the conversation at the provider; may be empty
	Unheard bool   // the client lacks a part of the last answer; see [Memory.Heard]
	// SettledMS is the position up to which the user's speech is settled; see [State.Settled]. SaidAgain means that the
	// client resends the speech after it; LinkBack does not wait for that.
	SettledMS int64
	SaidAgain bool
}

// turnsLeftOut is how many turn numbers are skipped after the death of a process.
const turnsLeftOut = 100

// take continues the session of another process.
func (in Restored) take(m *machine) {
	was := in.Memory
	m.startedAt, m.phase, m.warned, m.signAt = in.StartedAt, PhaseActive, was.Warned, m.at
	m.suppressed = suppressed{audio: was.AudioOff, transcript: was.TranscriptOff}
	m.turns.last, m.turns.gaps, m.turns.began = was.Turn, was.Gaps, m.at
	m.spending.amount, m.spending.told = was.Cost, was.WrapUp
	if was.ClaimNotices > 0 {
		m.spokenWords = &spokenWords{notices: was.ClaimNotices}
	}
	if !in.Given {
		m.turns.skip = turnsLeftOut
	}
	m.restoreNotices(in)
	m.page = &page{}
	for _, text := range was.Contexts[:min(len(was.Contexts), maxContexts)] {
		m.page.contexts = append(m.page.contexts, UserContext{Text: text})
	}
	m.restoreExacts(in)
	m.restoreTurn(was)
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
	m.neverSent(in)
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

// restoreNotices adds the texts that waited for the model.
func (m *machine) restoreNotices(in Restored) {
	for _, n := range in.Memory.Notices[:min(len(in.Memory.Notices), maxNotices)] {
		switch {
		case n.Record == nil:
		case in.Given:
			n.Record = nil // the previous process has recorded that the model did not get it
		default:
			again := *n.Record // it may have sent and recorded it after its last checkpoint
			again.Again = true
			n.Record = &again
		}
		m.notices = append(m.notices, notice{text: n.Text, shown: n.Shown, record: n.Record, job: n.Job})
	}
}

// restoreTurn opens the turn that was open.
func (m *machine) restoreTurn(was Memory) {
	o := was.Open
	if o == nil {
		return
	}
	m.turn = &turn{number: o.Number, startedAt: m.at, inputEnd: m.at, knownAt: m.at, told: o.Told, spoke: o.Spoke,
		toolsOff: o.ToolsOff, given: o.Given, late: true, usage: o.Usage, cost: o.Cost}
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

// MaxUnsent limits [Memory.Unsent], which is part of each checkpoint.
const MaxUnsent = 32

// neverSent audits the records that the previous process may not have written, marked as repeated.
func (m *machine) neverSent(in Restored) {
	for _, r := range in.Memory.Unsent[:min(len(in.Memory.Unsent), MaxUnsent)] {
		if r == nil {
			continue
		}
		lost := *r
		if lost.Again = true; lost.Delivered {
			lost.Delivered, lost.NotDelivered = false, "not_sent"
		}
		m.do(Audit{Record: lost})
	}
}

// endedBefore sends the end of a turn that the previous process may not have sent. The client may get it twice.
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

func (m *machine) saidAgain() {
	m.user.settled.owed, m.user.settled.from = true, m.user.settled.upTo
	if m.user.worded <= m.turns.last {
		m.link.speech = false
	}
	if t := m.turn; t != nil && m.user.worded < t.number && !t.spoke && t.told == "" {
		t.queued = m.link.count
	}
}
