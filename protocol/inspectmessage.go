package protocol

import "encoding/json"

// Messages for people who build or operate agents. Sessions must request them in Start, and SessionStarted grants
// them, because they contain arguments, answers and records that users may not see.

// InspectCall describes a finished call. It follows the call's ToolEnded.
type InspectCall struct {
	Header
	CallID string `json:"call_id"`
	Tool   string `json:"tool"`
	// QueuedMS is the time from the model's call to the handler's start; zero if no handler ran.
	QueuedMS int64 `json:"queued_ms"`
	// RunMS is the handler's duration.
	RunMS int64 `json:"run_ms"`
	// Record is the call's audit record, without arguments.
	Record json.RawMessage `json:"record"`
	// Args are the arguments of the handler: with defaults, and reduced to what is allowed.
	// If no handler ran they are the requested ones, as a string if they were invalid JSON.
	Args json.RawMessage `json:"args"`
	// Envelope is the complete answer to the model.
	Envelope json.RawMessage `json:"envelope"`
}

// InspectIntent reports whether a tool's intent was applied.
type InspectIntent struct {
	Header
	// Intent is an object with a type and its fields.
	Intent  json.RawMessage `json:"intent"`
	Applied bool            `json:"applied"`
	// Why explains a refused intent.
	Why string `json:"why,omitempty"`
}

// InspectState is the session's state, sent after changes, at most once per moment.
type InspectState struct {
	Header
	// Phase is connecting, active, ending or ended.
	Phase string `json:"phase"`
	// Speaking: the user speaks. Responding: the model is producing an answer.
	Speaking   bool `json:"speaking"`
	Responding bool `json:"responding"`
	// Awaiting counts the calls that the model waits for, Questions the open approval requests, and Notices the
	// messages for the next turn.
	Awaiting  int `json:"awaiting"`
	Questions int `json:"questions"`
	// Muted: the user's audio is ignored.
	Muted      bool              `json:"muted"`
	Suppressed InspectSuppressed `json:"suppressed"`
	// Budget is the used part of the turn's budget, as in InspectCall.Record.
	Budget  json.RawMessage `json:"budget,omitempty"`
	Notices int             `json:"notices"`
	// Cost is the session's total cost so far.
	Cost Cost `json:"cost"`
}

// InspectSuppressed is output that a tool has disabled.
type InspectSuppressed struct {
	Audio      bool `json:"audio"`
	Transcript bool `json:"transcript"`
}

func (*InspectCall) serverType() string   { return "inspect.call" }
func (*InspectIntent) serverType() string { return "inspect.intent" }
func (*InspectState) serverType() string  { return "inspect.state" }
