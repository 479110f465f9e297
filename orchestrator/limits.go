package orchestrator

import (
	"cmp"
	"time"

	"voicegw/internal/cost"
	"voicegw/prompts"
	"voicegw/registry"
)

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

// Lapse sets when the session must end because the client's credentials expire. It replaces an earlier Lapse.
type Lapse struct {
	// At is the expiry; zero means never.
	At time.Time
}

func (Lapse) input() {}

// lapse is the expiry of the client's credentials. It is immutable.
type lapse struct {
	at     time.Time
	warned bool // the client knows
}

// lapseWarning is how long before the expiry the client is warned.
const lapseWarning = time.Minute

func (m *machine) lapses(in Lapse) {
	switch {
	case in.At.IsZero():
		m.lapse = nil
	case m.lapse == nil || !in.At.Equal(m.lapse.at):
		m.lapse = &lapse{at: in.At}
	}
	m.watchLapse()
}

// watchLapse warns the client before its credentials expire, and then ends the session.
func (m *machine) watchLapse() {
	if m.lapse == nil || m.phase == PhaseEnded {
		return
	}
	left := m.lapse.at.Sub(m.at)
	if left <= 0 {
		m.breakOff(EndLapsed)
		return
	}
	if left <= lapseWarning && !m.lapse.warned {
		m.lapse = &lapse{at: m.lapse.at, warned: true}
		m.do(Ending{Reason: EndLapsed, After: left})
	}
}

// lapseDue calls sooner with the times at which watchLapse must run.
func (s State) lapseDue(sooner func(time.Time)) {
	if s.lapse == nil {
		return
	}
	if !s.lapse.warned {
		sooner(s.lapse.at.Add(-lapseWarning))
	}
	sooner(s.lapse.at)
}

// Spending reports the use of the limits that the session's user and key share with their other sessions. It comes when
// that changes.
type Spending struct {
	// Near means that a limit will be reached soon, Over that one is reached.
	Near, Over bool
}

func (Spending) input() {}

// Guessed reports the estimated cost of a finished turn, for a model that reports nothing. It counts for the session,
// not for a turn.
type Guessed struct{ Cost cost.Amount }

func (Guessed) input() {}

// spending is the state of the session's cost.
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

// ofMoney handles inputs about usage and cost.
func (m *machine) ofMoney(in Input) {
	switch in := in.(type) {
	case Used:
		m.used(in)
	case Spending:
		m.spending.others = in
	case Guessed:
		m.spending.amount = m.spending.amount.Plus(in.Cost)
	}
}

// near reports whether the session, its user or its key have used 80 % of a limit; overspent, all of it.
func (s State) near() bool {
	most := s.policy.MaxCost
	return s.spending.others.Near || most > 0 && s.spending.amount.Micros >= most-most/5
}

func (s State) overspent() bool {
	most := s.policy.MaxCost
	return s.spending.others.Over || most > 0 && s.spending.amount.Micros >= most
}

// mindSpending warns the model when a limit is near and ends the conversation with a farewell once it is reached. The
// open turn is still answered. Without a client there is no farewell.
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
		if m.near() && !m.spending.told && len(m.notices) < maxNotices {
			m.spending.told = true
			m.notices = append(m.notices, notice{text: prompts.WrapUpNotice})
		}
	case m.turn != nil && m.turn.number <= m.spending.turn, m.leaving():
	case m.away():
		m.end(EndBudget)
	case !m.down():
		m.sayFarewell()
	}
}

// sayFarewell makes the model say goodbye; the session ends once the user has heard it.
func (m *callControl) sayFarewell() {
	if m.turn != nil {
		m.interrupt(FlushSessionEnd)
	}
	m.openCausedTurn()
	m.farewell.why = EndBudget
	m.endAfter(registry.EndAfterFarewellSpoken)
	m.sendNotice(prompts.BudgetNotice)
}

// endReason returns why the session ends after the farewell.
func (s State) endReason() EndReason { return cmp.Or(s.farewell.why, EndTool) }
