package protocol

import "encoding/json"

// The messages for whoever builds or runs agents. They come only in a session whose
// Start has asked for them and whose SessionStarted says that they are granted: they
// show arguments, answers and records that are not for everybody's user.

// InspectCall tells all about a call that is over. It comes once for each, right after
// its ToolEnded.
type InspectCall struct {
	Header
	CallID string `json:"call_id"`
	Tool   string `json:"tool"`
	// QueuedMS is from the model's call until its handler began; zero where nothing ran.
	QueuedMS int64 `json:"queued_ms"`
	// RunMS is the handler's own time.
	RunMS int64 `json:"run_ms"`
	// Record is the call's line in the audit, without arguments.
	Record json.RawMessage `json:"record"`
	// Args are the arguments as they ran: with defaults, and lowered to what is allowed.
	// Where nothing ran they are those that were asked for; a string if that was no JSON.
	Args json.RawMessage `json:"args"`
	// Envelope is the whole answer that the model was given.
	Envelope json.RawMessage `json:"envelope"`
}

// InspectIntent says what became of a tool's wish to the session.
type InspectIntent struct {
	Header
	// Intent is an object with a type and what belongs to that type.
	Intent  json.RawMessage `json:"intent"`
	Applied bool            `json:"applied"`
	// Why it was not applied.
	Why string `json:"why,omitempty"`
}

// InspectState is where the session stands. It comes when that has changed, at most once
// for what happens at one moment.
type InspectState struct {
	Header
	// Phase is connecting, active, ending or ended.
	Phase string `json:"phase"`
	// Speaking: the user speaks. Responding: an answer of the model is under way.
	Speaking   bool `json:"speaking"`
	Responding bool `json:"responding"`
	// Awaiting is how many calls the model waits for, Questions how many confirmations
	// the user has not answered, Notices how many messages wait for the next turn.
	Awaiting  int `json:"awaiting"`
	Questions int `json:"questions"`
	// Muted: the user is not listened to any more.
	Muted      bool              `json:"muted"`
	Suppressed InspectSuppressed `json:"suppressed"`
	// Budget is what the open turn has used of what it may, as in InspectCall.Record.
	Budget  json.RawMessage `json:"budget,omitempty"`
	Notices int             `json:"notices"`
}

// InspectSuppressed is what a tool has turned off.
type InspectSuppressed struct {
	Audio      bool `json:"audio"`
	Transcript bool `json:"transcript"`
}

func (*InspectCall) serverType() string   { return "inspect.call" }
func (*InspectIntent) serverType() string { return "inspect.intent" }
func (*InspectState) serverType() string  { return "inspect.state" }
