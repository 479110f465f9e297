package calls

import (
	"cmp"
	"encoding/json"
	"time"

	"voicegw/config/setting"
	"voicegw/registry/spec"
)

// Budget limits the tool calls of one user turn. A zero field means the default of the mode; see [Budget.Or].
type Budget struct {
	Retrieval, Total int // Retrieval is the maximum number of calls of retrieval tools, Total of all calls
	TopK             int // the highest top_k of a retrieval tool
	// ToolTime is a soft limit on the common run time of a turn's tools: the model learns of the excess, but no call
	// is refused. Negative means no limit.
	ToolTime time.Duration
}

// DefaultBudget returns the default budget of a mode.
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

// Policy is the operator's configuration for a conversation.
type Policy struct {
	Mode      spec.Mode
	Budget    Budget
	Confirm   []string  // lists tools that need approval although their specs do not say so
	Questions Questions // limits the questions to a user
}

// Account is a turn's use of its budget.
type Account struct {
	Retrieval, Total int
	ToolTime         time.Duration
}

type used struct {
	Used  int64 `json:"used"`
	Limit int64 `json:"limit"`
}

// Encode returns the account and its budget as JSON: {"retrieval":{"used":1,"limit":2},…}. tool_time_ms may be left
// out.
func (a Account) Encode(b Budget) json.RawMessage {
	usage := struct {
		Retrieval used  `json:"retrieval"`
		Total     used  `json:"total"`
		ToolTime  *used `json:"tool_time_ms,omitempty"`
	}{Retrieval: used{int64(a.Retrieval), int64(b.Retrieval)}, Total: used{int64(a.Total), int64(b.Total)}}
	if b.ToolTime > 0 {
		usage.ToolTime = &used{a.ToolTime.Milliseconds(), b.ToolTime.Milliseconds()}
	}
	raw, _ := json.Marshal(usage) // only whole numbers: it cannot fail
	return raw
}

// spent reports whether no further call is allowed or the tools are slow.
func (a Account) spent(b Budget) bool {
	return a.Total >= b.Total || a.Retrieval >= b.Retrieval || a.slow(b)
}

func (a Account) slow(b Budget) bool { return b.ToolTime > 0 && a.ToolTime > b.ToolTime }
