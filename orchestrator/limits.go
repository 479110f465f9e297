package orchestrator

import (
	"cmp"
	"time"

	"voicegw/internal/cost"
	"voicegw/prompts"
	"voicegw/registry"
)

// lengthAt returns when MaxLength ends the session or, before that, the client is warned; zero without a limit.
func lengthAt(s State) (at time.Time) {
	switch p := s.policy; {
	case p.MaxLength == 0:
		return at
	case s.warned:
		return s.startedAt.Add(p.MaxLength)
	default:
		return s.startedAt.Add(p.MaxLength - p.warning())
	}
}

func (m *machine) watchLength() {
	left := m.startedAt.Add(m.policy.MaxLength).Sub(m.at)
	if left <= 0 {
		m.breakOff(EndLength)
		return
	}
	m.warned = true
	m.do(Ending{Reason: EndLength, After: left})
}

func idleAt(s State) (at time.Time) {
	if s.policy.MaxIdle == 0 {
		return at
	}
	return s.lastActive.Add(s.policy.MaxIdle)
}

func (m *machine) idled() {
	if m.turn != nil || m.user.speaks() || m.Audible(m.at) || m.atWork() || m.sayings.first() != nil {
		m.lastActive = m.at
		return
	}
	m.end(EndIdle)
}

// Lapse sets when the session must end because the client's credentials expire. It replaces an earlier Lapse.
type Lapse struct {
	At time.Time // the expiry; zero means never
}

type lapse struct {
	at     time.Time
	warned bool // the client knows
}

// lapseWarning is how long before the expiry the client is warned.
const lapseWarning = time.Minute

func (in Lapse) take(m *machine) {
	switch {
	case in.At.IsZero():
		m.lapse = nil
	case m.lapse == nil || !in.At.Equal(m.lapse.at):
		m.lapse = &lapse{at: in.At}
	}
	if m.overdue(m.lapseAt()) {
		m.watchLapse()
	}
}

// lapseAt returns when the client's credentials expire or, before that, it is warned; zero if they do not.
func (s State) lapseAt() (at time.Time) {
	switch l := s.lapse; {
	case l == nil:
		return at
	case l.warned:
		return l.at
	default:
		return l.at.Add(-lapseWarning)
	}
}

func (m *machine) watchLapse() {
	left := m.lapse.at.Sub(m.at)
	if left <= 0 {
		m.breakOff(EndLapsed)
		return
	}
	m.lapse = &lapse{at: m.lapse.at, warned: true}
	m.do(Ending{Reason: EndLapsed, After: left})
}

// Spending reports the use of limits that the session's user and key share with other sessions. It comes with each
// change.
type Spending struct {
	Near, Over bool // Near means that a limit will be reached soon, Over that one is reached
}

func (in Spending) take(m *machine) { m.spending.others = in }

// Guessed is the estimated cost of a finished turn of a model that reports nothing. It counts for the session, not a
// turn.
type Guessed struct{ Cost cost.Amount }

func (in Guessed) take(m *machine) { m.spending.amount = m.spending.amount.Plus(in.Cost) }

type spending struct {
	amount cost.Amount // of the session so far
	others Spending    // of its user and key
	told   bool        // the model knows that a limit is near
	// over is set once a limit is reached. turn is the last turn begun by then; later ones are not answered.
	over bool
	turn int
}

// Spent returns the cost of the session so far.
func (s State) Spent() cost.Amount { return s.spending.amount }

// overspent reports whether the session, its user or its key have used all of a limit.
func (s State) overspent() bool {
	most := s.policy.MaxCost
	return s.spending.others.Over || most > 0 && s.spending.amount.Micros >= most
}

// mindSpending warns the model at 80 % of a limit, and says goodbye at it. The open turn is still answered.
func (m *callControl) mindSpending() {
	if m.phase != PhaseActive {
		return
	}
	over := m.overspent()
	if over && !m.spending.over {
		m.spending.turn = m.turns.last
	}
	m.spending.over = over
	switch {
	case !over:
		most := m.policy.MaxCost
		near := m.spending.others.Near || most > 0 && m.spending.amount.Micros >= most-most/5
		if near && !m.spending.told && len(m.notices) < maxNotices {
			m.spending.told = true
			m.notices = append(m.notices, notice{text: prompts.WrapUpNotice})
		}
	case m.turn != nil && m.turn.number <= m.spending.turn, m.leaving():
	case m.away():
		m.end(EndBudget)
	case !m.down():
		if m.turn != nil {
			m.interrupt(FlushSessionEnd)
		}
		m.sayFarewell(EndBudget, prompts.BudgetNotice)
	}
}

// sayFarewell ends the session after last words, in a turn of their own.
func (m *callControl) sayFarewell(why EndReason, words string) {
	m.openCausedTurn()
	m.farewell.why = why
	m.endAfter(registry.EndAfterFarewellSpoken)
	m.sendNotice(words)
}

func (s State) endReason() EndReason { return cmp.Or(s.farewell.why, EndTool) }
