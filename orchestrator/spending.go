package orchestrator

import (
	"cmp"

	"voicegw/internal/cost"
	"voicegw/prompts"
	"voicegw/registry"
)

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
func (m *machine) mindSpending() {
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
func (m *machine) sayFarewell() {
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
