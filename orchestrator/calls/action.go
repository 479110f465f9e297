package calls

import (
	"encoding/json"
	"time"

	"voicegw/internal/audit"
	"voicegw/protocol"
	"voicegw/registry"
)

// Action is one thing that the caller must do about a call, in the given order. The set is closed.
type Action interface{ action() }

// Run starts a call's tool. The caller reports Finished exactly once.
type Run struct {
	Turn      int
	Call      string // the gateway's name for the call, unique in the conversation
	Prepared  *registry.Prepared
	Keys      Keys
	Reference string             // of the question that approved the call; it runs even after the conversation
	Message   string             // the call's Called.Message
	Repeats   *registry.Envelope // the stored answer of the same action, if that started a job: nothing runs
}

// Ask records a question to the user. The caller reports Recorded exactly once.
type Ask Run

// Resolve records the answer to a question. The caller reports Resolved exactly once.
type Resolve struct {
	Token    string
	Approved bool
	By       By
}

// Cancel stops a running call.
type Cancel struct{ Call, Tool string }

// ToClient sends a message to the client.
type ToClient struct{ Message protocol.ServerMessage }

// Overtaken answers a call to the model because the user has moved on. The call continues.
type Overtaken struct {
	Model    string
	Envelope registry.Envelope
}

// Approved reports an approval: the caller begins a turn for the call and then calls [Calls.Approve].
type Approved struct {
	Tool, Reference, Provider string
	By                        By
	// Agent asked the question, and Tools are its tools; nil for those of the current agent.
	Agent Agent
	Tools *registry.Snapshot
	// Prepared is the call to run. If it is nil, the caller runs the call stored with the question, with these keys
	// and arguments, and reports Finished. If it is nil and Asked is set, the call does not run, because the tool has
	// changed since its version Asked.
	Prepared *registry.Prepared
	Asked    string
	Keys     Keys
	Args     json.RawMessage
	Waited   time.Duration // how long the question was open; zero if unknown
	Model    string        // the model's name for the call that was asked about; empty if unknown
}

// Declined reports a question that ended without a run: the caller writes Record to the audit and informs the model.
type Declined struct {
	Tool, Reference string
	Model           string // the model's name for the call
	Outcome         Outcome
	Record          audit.Record
	ByCall          bool // the model learns of it from the answer to its own call
}

// Refused reports that the user's answer to a question was not accepted.
type Refused struct {
	Why   Refusal
	Known bool // the question belongs to this conversation
}

// Slow reports, at most once a turn, that its tools have exceeded their common time budget. No call is refused for it.
type Slow struct {
	Turn         int
	Taken, Limit time.Duration
}

// Outcome is the end of a question.
type Outcome string

// Values of Outcome.
const (
	OutcomeApproved Outcome = "approved"
	OutcomeDenied   Outcome = "denied"
	OutcomeExpired  Outcome = "expired"
	OutcomeUsed     Outcome = "used"   // the question was answered elsewhere
	OutcomeFailed   Outcome = "failed" // the answer could not be recorded; the question stays open
)

// Refusal is the client's error code for an answer that was not accepted.
type Refusal string

// Values of Refusal.
const (
	RefusedUnknown Refusal = "confirmation_unknown"
	RefusedUsed    Refusal = "confirmation_used"
	RefusedExpired Refusal = "confirmation_expired"
	RefusedStore   Refusal = "store_unavailable" // the answer could not be recorded
)

// By is the source of an answer.
type By string

// Values of By.
const (
	ByClient By = "client"
	ByAPI    By = "api"
	BySpoken By = "spoken"
	ByClock  By = "clock" // the question expired
)

func (Run) action()       {}
func (Ask) action()       {}
func (Resolve) action()   {}
func (Cancel) action()    {}
func (ToClient) action()  {}
func (Overtaken) action() {}
func (Approved) action()  {}
func (Declined) action()  {}
func (Refused) action()   {}
func (Slow) action()      {}
func (Answer) action()    {}
