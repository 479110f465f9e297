package calls

import (
	"encoding/json"
	"time"

	"voicegw/audit"
	"voicegw/orchestrator/policy"
	"voicegw/protocol"
	"voicegw/registry"
)

// Action is one thing that is to be done about a call. The set is closed; actions are
// carried out in the order given.
type Action interface{ action() }

// Run lets a call run. Its Finished comes back exactly once.
type Run struct {
	Turn int
	// Call is the gateway's name of it, unique in the conversation.
	Call     string
	Prepared *registry.Prepared
	Keys     policy.Keys
	// Reference is that of the question which a person has approved: the call runs although
	// the conversation may be over by now. Empty for a call that needed no approval.
	Reference string
	// Message is Called.Message of the call.
	Message string
}

// Ask has a question to the user recorded. Recorded comes back exactly once.
type Ask Run

// Resolve has the answer to a question recorded. Resolved comes back exactly once.
type Resolve struct {
	Token    string
	Approved bool
	By       By
}

// Cancel stops a running call.
type Cancel struct{ Call, Tool string }

// Tell tells the client.
type Tell struct{ Message protocol.ServerMessage }

// Overtaken answers a call of the model's because the user went on. The call goes on.
type Overtaken struct {
	Model    string
	Envelope registry.Envelope
}

// Approved says that a person has approved a call: a turn is to be begun for it, and then
// Approve to be told.
type Approved struct {
	Tool, Reference, Provider string
	By                        By
	// Prepared is what runs. Nil: the caller runs what is stored of the question, with these
	// keys and arguments, and tells Finished.
	Prepared *registry.Prepared
	Keys     policy.Keys
	Args     json.RawMessage
}

// Declined says that a question has run nothing: the audit has Record, and the model is to
// be told.
type Declined struct {
	Tool, Reference string
	Outcome         Outcome
	Record          audit.Record
	// Told says that the model is told by the answer to its own call.
	Told bool
}

// Refused says that the user's answer to a question is not taken.
type Refused struct {
	Why Refusal
	// Known says that the question is known to the conversation.
	Known bool
}

// Slow says that the tools of a turn have taken longer than they should together. It comes
// once a turn; nothing is refused for it.
type Slow struct {
	Turn         int
	Taken, Limit time.Duration
}

// Outcome is what became of a question to the user.
type Outcome string

// The outcomes.
const (
	OutcomeApproved Outcome = "approved"
	OutcomeDenied   Outcome = "denied"
	OutcomeExpired  Outcome = "expired"
	// OutcomeUsed: it was answered somewhere else.
	OutcomeUsed Outcome = "used"
	// OutcomeFailed: the answer could not be recorded; the question still stands.
	OutcomeFailed Outcome = "failed"
)

// Refusal is the code with which a client is told that its answer is not taken.
type Refusal string

// The refusals.
const (
	RefusedUnknown Refusal = "confirmation_unknown"
	RefusedUsed    Refusal = "confirmation_used"
	RefusedExpired Refusal = "confirmation_expired"
	// RefusedStore: the answer could not be recorded.
	RefusedStore Refusal = "store_unavailable"
)

// By says who answered a question.
type By string

// Who may answer.
const (
	ByClient By = "client"
	ByAPI    By = "api"
	BySpoken By = "spoken"
	// ByClock: nobody has, in time.
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
