package calls

import (
	"cmp"
	"encoding/json"
	"time"

	"voicegw/config/setting"
	"voicegw/registry/spec"
)

// Budget is what the tool calls of one user turn may use, over all answers of the model in that
// turn. A zero field means the default of the mode; see [Budget.Or].
type Budget struct {
	// Retrieval is the maximum number of calls of retrieval tools, Total that of all calls.
	Retrieval, Total int
	// TopK is the highest top_k of a retrieval tool.
	TopK int
	// ToolTime is how long the tools of a turn may take together. The limit is soft: the model is
	// told when it is exceeded, and no call is refused. Negative means no limit.
	ToolTime time.Duration
}

// DefaultBudget returns the budget of a mode for which nothing is configured.
func DefaultBudget(mode spec.Mode) Budget {
	if mode == spec.ModeText {
		return Budget{Retrieval: setting.TextRetrievals, Total: setting.TextCalls, TopK: setting.TextTopK, ToolTime: -1}
	}
	return Budget{Retrieval: setting.VoiceRetrievals, Total: setting.VoiceCalls, TopK: setting.VoiceTopK, ToolTime: setting.VoiceToolTime}
}

// Or returns b with its zero fields taken from c.
func (b Budget) Or(c Budget) Budget {
	return Budget{
		Retrieval: cmp.Or(b.Retrieval, c.Retrieval),
		Total:     cmp.Or(b.Total, c.Total),
		TopK:      cmp.Or(b.TopK, c.TopK),
		ToolTime:  cmp.Or(b.ToolTime, c.ToolTime),
	}
}

// Policy are the operator's decisions for one conversation.
type Policy struct {
	Mode   spec.Mode
	Budget Budget
	// Confirm lists tools that need a confirmation although their spec does not say so.
	Confirm []string
	// Questions limits how often a user is asked for approval.
	Questions Questions
}

// Account is what a turn has used of its budget.
type Account struct {
	Retrieval, Total int
	ToolTime         time.Duration
}

// used is one entry of an account's JSON.
type used struct {
	Used  int64 `json:"used"`
	Limit int64 `json:"limit"`
}

// Encode returns an account and its budget as JSON: {"retrieval":{"used":1,"limit":2},…}.
// tool_time is in ms, and is left out if it has no limit.
func (a Account) Encode(b Budget) json.RawMessage {
	told := struct {
		Retrieval used  `json:"retrieval"`
		Total     used  `json:"total"`
		ToolTime  *used `json:"tool_time_ms,omitempty"`
	}{Retrieval: used{int64(a.Retrieval), int64(b.Retrieval)}, Total: used{int64(a.Total), int64(b.Total)}}
	if b.ToolTime > 0 {
		told.ToolTime = &used{a.ToolTime.Milliseconds(), b.ToolTime.Milliseconds()}
	}
	raw, _ := json.Marshal(told) // only whole numbers: it cannot fail
	return raw
}

// spent reports whether no further call would be allowed, or the tools have taken longer than
// they should. The model is told of it.
func (a Account) spent(b Budget) bool {
	return a.Total >= b.Total || a.Retrieval >= b.Retrieval || a.slow(b)
}

// slow reports whether the tools have taken longer than they should.
func (a Account) slow(b Budget) bool { return b.ToolTime > 0 && a.ToolTime > b.ToolTime }
