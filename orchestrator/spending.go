package orchestrator

import (
	"cmp"

	"voicegw/cost"
	"voicegw/prompts"
	"voicegw/registry"
)

// Spending reports how much is used of what the session's user and key may use together with their
// other sessions. It comes when that changes.
type Spending struct {
	// Near means that a limit will be reached soon, Over that one is.
	Near, Over bool
}

func (Spending) input() {}

// Guessed reports what a turn that has ended has probably cost, whose model reports nothing. It counts for
// the session, and for no turn.
type Guessed struct{ Cost cost.Amount }

func (Guessed) input() {}

// spending is what the State keeps about what the session costs.
type spending struct {
	amount cost.Amount // of the session so far
	others Spending    // of its user and key
	told   bool        // the model was told that a limit is near
	// over is set once a limit is reached, and turn is the last turn that had begun then: it is
	// answered, and no later one.
	over bool
	turn int
}

// Spent returns what the session's model has cost so far.
func (s State) Spent() cost.Amount { return s.spending.amount }

// ofMoney takes an input about what was used.
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

// near reports whether the session, its user or its key have used 80 % of what they may, overspent
// whether they have used all of it.
func (s State) near() bool {
	most := s.policy.MaxCost
	return s.spending.others.Near || most > 0 && s.spending.amount.Micros >= most-most/5
}

func (s State) overspent() bool {
	most := s.policy.MaxCost
	return s.spending.others.Over || most > 0 && s.spending.amount.Micros >= most
}

// mindSpending ends the conversation politely once a limit is reached, and tells the model when one is near.
// The turn that is open then is still answered. A client that is away hears no farewell.
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

// sayFarewell has the model say goodbye, and ends the session once the user has heard it.
func (m *machine) sayFarewell() {
	if m.turn != nil {
		m.interrupt(FlushSessionEnd)
	}
	m.openCausedTurn()
	m.farewell.why = EndBudget
	m.endAfter(registry.EndAfterFarewellSpoken)
	m.sendNotice(prompts.BudgetNotice)
}

// endReason is why a session ends whose farewell is heard.
func (s State) endReason() EndReason { return cmp.Or(s.farewell.why, EndTool) }
