package orchestrator

import (
	"encoding/json"

	"voicegw/internal/cost"
	"voicegw/orchestrator/calls"
)

// View is a summary of a session's state for the inspector. Views are comparable.
type View struct {
	// Turn is the number of the open turn; 0 between turns.
	Turn  int
	Phase Phase
	// Speaking: the user is speaking. Responding: a response of the model is under way.
	Speaking, Responding bool
	// Muted: the gateway ignores the user.
	Muted bool
	// Awaiting counts the calls the model waits for, Questions the open confirmations, Notices the texts for the next
	// turn.
	Awaiting, Questions, Notices int
	// AudioOff and TranscriptOff: a tool has switched these off.
	AudioOff, TranscriptOff bool
	// Spent is the cost of the session so far.
	Spent cost.Amount

	// used and limit are the open turn's use and budget; zero between turns.
	used   calls.Account
	budget calls.Budget
}

// View returns the summary of s.
func (s State) View() View {
	v := View{
		Turn: s.Turn(), Phase: s.phase, Speaking: s.user.speaks(), Responding: s.response.underWay(), Muted: s.user.voice == muted,
		Questions: s.calls.Questions(), Awaiting: s.calls.Awaited(), Notices: len(s.notices),
		AudioOff: s.suppressed.audio, TranscriptOff: s.suppressed.transcript,
		Spent: s.Spent(),
	}
	if s.turn != nil {
		v.used, v.budget = s.calls.Book().Account(), s.calls.Book().Budget()
	}
	return v
}

// Budget returns the account of the open turn, in the audit's form; nil between turns.
func (v View) Budget() json.RawMessage {
	if v.Turn == 0 {
		return nil
	}
	return v.used.Encode(v.budget)
}
