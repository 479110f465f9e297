package calls

import (
	"encoding/json"
	"time"

	"voicegw/internal/audit"
	"voicegw/protocol"
	"voicegw/registry"
)

// Action is one thing that the caller must do about a call. The set is closed; the caller
// carries actions out in the order given.
type Action interface{ action() }

// Run starts a call's tool. The caller reports Finished exactly once.
type Run struct {
	Turn int
	// Call is the gateway's name for the call, unique in the conversation.
	Call     string
	Prepared *registry.Prepared
	Keys     Keys
	// Reference is the short name of the question with which a person approved the call: such a
	// call runs even if the conversation is over by now. It is empty for a call that needed no
	// approval.
	Reference string
	// Message is the call's Called.Message.
	Message string
	// Repeats is the stored answer of an earlier call for the same action, if that answer began long work: nothing
	// runs, and the result is that of the work or how far it is. It is nil for any other call.
	Repeats *registry.Envelope
}

// Ask records a question to the user about a call. The caller reports Recorded exactly once.
type Ask Run

// Resolve records the answer to a question. The caller reports Resolved exactly once.
type Resolve struct {
	Token    string
	Approved bool
	By       By
}

// Cancel stops a running call.
type Cancel struct{ Call, Tool string }

// Tell sends a message to the client.
type Tell struct{ Message protocol.ServerMessage }

// Overtaken answers a call to the model because the user has moved on. The call itself goes on.
type Overtaken struct {
	Model    string
	Envelope registry.Envelope
}

// Approved reports that a person has approved a call: the caller begins a turn for it and then
// calls [Calls.Approve].
type Approved struct {
	Tool, Reference, Provider string
	By                        By
	// Agent is the agent that has asked, and Tools are its tools; nil for those of the present one.
	Agent Agent
	Tools *registry.Snapshot
	// Prepared is the call to run. If it is nil, the caller runs the call that is stored with the
	// question, with these keys and arguments, and reports Finished. If it is nil and Asked is set,
	// nothing is run, because the tool is not the one of which the user was asked, of version Asked.
	Prepared *registry.Prepared
	Asked    string
	Keys     Keys
	Args     json.RawMessage
	// Waited is how long the question was open; zero if that is not known.
	Waited time.Duration
}

// Declined reports that a question ended without running a tool: the caller writes Record to
// the audit and tells the model.
type Declined struct {
	Tool, Reference string
	Outcome         Outcome
	Record          audit.Record
	// Told is true if the model learns of it from the answer to its own call.
	Told bool
}

// Refused reports that the user's answer to a question was not accepted.
type Refused struct {
	Why Refusal
	// Known is true if the question belongs to this conversation.
	Known bool
}

// Slow reports that the tools of a turn have together taken longer than they should. It comes
// at most once a turn; no call is refused because of it.
type Slow struct {
	Turn         int
	Taken, Limit time.Duration
}

// Outcome is how a question to the user ended.
type Outcome string

// The outcomes.
const (
	OutcomeApproved Outcome = "approved"
	OutcomeDenied   Outcome = "denied"
	OutcomeExpired  Outcome = "expired"
	// OutcomeUsed: the question was already answered somewhere else.
	OutcomeUsed Outcome = "used"
	// OutcomeFailed: the answer could not be recorded; the question remains open.
	OutcomeFailed Outcome = "failed"
)

// Refusal is the error code that tells a client why its answer was not accepted.
type Refusal string

// The refusals.
const (
	RefusedUnknown Refusal = "confirmation_unknown"
	RefusedUsed    Refusal = "confirmation_used"
	RefusedExpired Refusal = "confirmation_expired"
	// RefusedStore: the answer could not be recorded.
	RefusedStore Refusal = "store_unavailable"
)

// By is the source of the answer to a question.
type By string

// The sources of an answer.
const (
	ByClient By = "client"
	ByAPI    By = "api"
	BySpoken By = "spoken"
	// ByClock: nobody answered in time, and the question expired.
	ByClock By = "clock"
)

func (Run) action()       {}
func (Ask) action()       {}
func (Resolve) action()   {}
func (Cancel) action()    {}
func (Tell) action()      {}
func (Overtaken) action() {}
func (Approved) action()  {}
func (Declined) action()  {}
func (Refused) action()   {}
func (Slow) action()      {}
func (Answer) action()    {}
