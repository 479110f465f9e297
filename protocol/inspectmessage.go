package protocol

import "encoding/json"

// The messages for people who build or operate agents. They come only in a session whose
// Start asked for them and whose SessionStarted granted them: they show arguments, answers
// and records that not every user may see.

// InspectCall describes everything about a finished call. It comes once for each call, right
// after its ToolEnded.
type InspectCall struct {
	Header
	CallID string `json:"call_id"`
	Tool   string `json:"tool"`
	// QueuedMS is the time between the model's call and the start of the handler; zero if no
	// handler ran.
	QueuedMS int64 `json:"queued_ms"`
	// RunMS is the time that the handler itself took.
	RunMS int64 `json:"run_ms"`
	// Record is the call's audit record, without arguments.
	Record json.RawMessage `json:"record"`
	// Args are the arguments of the handler: with defaults, and reduced to what is allowed.
	// If no handler ran they are the requested ones, as a string if they were invalid JSON.
	Args json.RawMessage `json:"args"`
	// Envelope is the complete answer to the model.
	Envelope json.RawMessage `json:"envelope"`
}

// InspectIntent reports whether a tool's request to the session was applied.
type InspectIntent struct {
	Header
	// Intent is an object with a type and the fields of that type.
	Intent  json.RawMessage `json:"intent"`
	Applied bool            `json:"applied"`
	// Why is the reason if the intent was not applied.
	Why string `json:"why,omitempty"`
}

// InspectState is the session's current state. It comes when the state has changed, at most
// once for everything that happens at one moment.
type InspectState struct {
	Header
	// Phase is connecting, active, ending or ended.
	Phase string `json:"phase"`
	// Speaking: the user speaks. Responding: the model is producing an answer.
	Speaking   bool `json:"speaking"`
	Responding bool `json:"responding"`
	// Awaiting is the number of calls the model waits for, Questions the number of
	// unanswered confirmations, Notices the number of messages for the next turn.
	Awaiting  int `json:"awaiting"`
	Questions int `json:"questions"`
	// Muted: the user's audio is no longer used.
	Muted      bool              `json:"muted"`
	Suppressed InspectSuppressed `json:"suppressed"`
	// Budget is what the current turn has used of its budget, as in InspectCall.Record.
	Budget  json.RawMessage `json:"budget,omitempty"`
	Notices int             `json:"notices"`
	// Cost is what the session has cost so far, in all its turns and between them.
	Cost Cost `json:"cost"`
}

// InspectSuppressed is a capability that a tool has turned off.
type InspectSuppressed struct {
	Audio      bool `json:"audio"`
	Transcript bool `json:"transcript"`
}

func (*InspectCall) serverType() string   { return "inspect.call" }
func (*InspectIntent) serverType() string { return "inspect.intent" }
func (*InspectState) serverType() string  { return "inspect.state" }
