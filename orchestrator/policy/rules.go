package policy

import (
	"encoding/json"
	"time"

	"voicegw/config/defaults"
	"voicegw/registry"
)

// Budget is what the tool calls of one user's turn may use, over all messages of the
// model in that turn. A zero field means that of the mode: see [Budget.Or].
type Budget struct {
	// Retrieval is how many calls may be of retrieval tools, Total how many of any.
	Retrieval, Total int
	// TopK is the highest top_k of a retrieval tool.
	TopK int
	// ToolTime is how long the tools of a turn may take together. It is soft: more is
	// told to the model and refused to nobody. Negative means no limit.
	ToolTime time.Duration
}

// DefaultBudget is the budget of a mode where nothing is configured.
func DefaultBudget(mode registry.Mode) Budget {
	if mode == registry.ModeText {
		return Budget{Retrieval: defaults.TextRetrievals, Total: defaults.TextCalls, TopK: defaults.TextTopK, ToolTime: -1}
	}
	return Budget{Retrieval: defaults.VoiceRetrievals, Total: defaults.VoiceCalls, TopK: defaults.VoiceTopK, ToolTime: defaults.VoiceToolTime}
}

// Or fills the zero fields of b from c.
func (b Budget) Or(c Budget) Budget {
	if b.Retrieval == 0 {
		b.Retrieval = c.Retrieval
	}
	if b.Total == 0 {
		b.Total = c.Total
	}
	if b.TopK == 0 {
		b.TopK = c.TopK
	}
	if b.ToolTime == 0 {
		b.ToolTime = c.ToolTime
	}
	return b
}

// Rules are the operator's decisions for one conversation.
type Rules struct {
	Mode   registry.Mode
	Budget Budget
	// Confirm are tools that need a confirmation although their spec does not say so.
	Confirm []string
	// Questions bounds how often a user is asked for approvals.
	Questions Questions
}

// Account is what a turn has used of its budget.
type Account struct {
	Retrieval, Total int
	ToolTime         time.Duration
}

// used is one line of an account's JSON.
type used struct {
	Used  int64 `json:"used"`
	Limit int64 `json:"limit"`
}

// Encode writes an account beside its budget: {"retrieval":{"used":1,"limit":2},…};
// tool_time is in ms, and left out where it has no limit.
func (a Account) Encode(b Budget) json.RawMessage {
	told := struct {
		Retrieval used  `json:"retrieval"`
		Total     used  `json:"total"`
		ToolTime  *used `json:"tool_time_ms,omitempty"`
	}{Retrieval: used{int64(a.Retrieval), int64(b.Retrieval)}, Total: used{int64(a.Total), int64(b.Total)}}
	if b.ToolTime > 0 {
		told.ToolTime = &used{a.ToolTime.Milliseconds(), b.ToolTime.Milliseconds()}
	}
	raw, _ := json.Marshal(told) // whole numbers alone: it cannot fail
	return raw
}

// spent says that no further call of any tool would be allowed, or that the tools have
// taken longer than they should: the model is told.
func (a Account) spent(b Budget) bool {
	return a.Total >= b.Total || a.Retrieval >= b.Retrieval || a.slow(b)
}

// slow says that the tools have taken longer than they should.
func (a Account) slow(b Budget) bool { return b.ToolTime > 0 && a.ToolTime > b.ToolTime }
