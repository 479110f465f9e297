package orchestrator

import (
	"encoding/json"
	"time"

	"voicegw/audit"
	"voicegw/orchestrator/policy"
	"voicegw/registry"
	"voicegw/transport"
)

// Action is one thing to do. The set is closed; actions are carried out in the
// order given.
type Action interface{ action() }

// Command is sent to the model.
type Command struct{ Command transport.Command }

// OpenItem lets the audio of an item through to the client. Audio of an item that
// was not opened, or was flushed, goes nowhere.
type OpenItem struct {
	Item string
	Turn int
}

// EndItem says that an item's audio is complete: AudioMS in all.
type EndItem struct {
	Item    string
	Turn    int
	AudioMS int64
}

// FlushItem drops what is queued of an item and all of it that may still come.
type FlushItem struct {
	Item   string
	Turn   int
	Reason FlushReason
	// HeardMS is the best guess of how much the user has heard of it, and SentMS how much of
	// it has left for the client.
	HeardMS, SentMS int64
}

// FlushReason says what stopped an answer.
type FlushReason string

// The reasons of a flush.
const (
	FlushUserSpeech FlushReason = "user_speech"
	FlushUserText   FlushReason = "user_text"
	FlushUserStop   FlushReason = "user_stop"
	FlushUserAction FlushReason = "user_action" // the user has approved or declined something
	FlushSessionEnd FlushReason = "session_end" // the session ends now
)

// TurnStarted and TurnEnded frame a turn for the client.
type TurnStarted struct{ Turn int }

// TurnEnded says how a turn ended.
type TurnEnded struct {
	Turn   int
	Status TurnStatus
	Usage  transport.Tokens
	// Latency is nil where no audio answered the turn.
	Latency *Latency
}

// TurnStatus is how a turn ended.
type TurnStatus string

// The ways a turn ends.
const (
	TurnCompleted   TurnStatus = "completed"
	TurnInterrupted TurnStatus = "interrupted"
	TurnFailed      TurnStatus = "failed"
)

// Latency is how long the user waited for the first audio of an answer.
type Latency struct {
	// Total is from the end of the user's speech to the first audio sent to the client:
	// Detection until it was known that the speech was over, Provider the model's part
	// of the rest, Gateway ours.
	Total, Detection, Provider, Gateway time.Duration
}

// SpeechStarted and SpeechStopped tell the client where its user was heard.
type SpeechStarted struct {
	Turn    int
	AudioMS int64
}

// SpeechStopped is the other end of SpeechStarted.
type SpeechStopped struct {
	Turn    int
	AudioMS int64
}

// Transcript is what was said so far.
type Transcript struct {
	Turn      int
	ID        string
	Role      transport.Role
	Text      string
	Final     bool
	StartedAt time.Time
}

// RunTool lets a tool run. Its ToolFinished comes back exactly once.
type RunTool struct {
	Turn int
	// Call is the gateway's own id of the call.
	Call string
	// Prepared is the call with its arguments, which nothing changes any more.
	Prepared *registry.Prepared
	Keys     policy.Keys
	// Confirmation is the reference of the question that a person has approved; empty
	// for a call that needed none.
	Confirmation string
}

// AskConfirmation has a question to the user recorded. ConfirmationAsked comes back
// exactly once.
type AskConfirmation struct {
	Turn     int
	Call     string
	Prepared *registry.Prepared
	Keys     policy.Keys
}

// ResolveConfirmation has the answer to a question recorded. ConfirmationResolved comes
// back exactly once.
type ResolveConfirmation struct {
	Token    string
	Approved bool
	By       ConfirmedBy
}

// Outcome is what became of a question to the user.
type Outcome string

// The outcomes.
const (
	OutcomeApproved Outcome = "approved"
	OutcomeDenied   Outcome = "denied"
	OutcomeExpired  Outcome = "expired"
	// OutcomeUsed: somebody else has answered it.
	OutcomeUsed Outcome = "used"
	// OutcomeFailed: the answer could not be recorded; the question still stands.
	OutcomeFailed Outcome = "failed"
)

// failure is what a client is told that answers a question again.
func (o Outcome) failure() Failure {
	if o == OutcomeExpired {
		return FailureConfirmationExpired
	}
	return FailureConfirmationUsed
}

// ConfirmedBy says who answered a question.
type ConfirmedBy string

// Who may answer.
const (
	ConfirmedByClient ConfirmedBy = "client"
	ConfirmedByAPI    ConfirmedBy = "api"
	ConfirmedBySpoken ConfirmedBy = "spoken"
	// ConfirmedByClock: nobody has, in time.
	ConfirmedByClock ConfirmedBy = "clock"
)

// ConfirmationRequest asks the client's user.
type ConfirmationRequest struct {
	Turn      int
	Token     string
	Tool      string
	Args      json.RawMessage
	Preview   string
	ExpiresAt time.Time
}

// ConfirmationEnded tells the client what became of a question.
type ConfirmationEnded struct {
	Turn    int
	Token   string
	Tool    string
	Outcome Outcome
}

// MuteUser says that the user is not listened to any more: the session ends.
type MuteUser struct{}

// ToolsSlow is for the log: the tools of a turn have taken longer than they should
// together. It comes once a turn; nothing is refused for it.
type ToolsSlow struct {
	Turn         int
	Taken, Limit time.Duration
}

// IntentDecided says what became of a tool's intent. It is for the log, and for whoever
// inspects the session.
type IntentDecided struct {
	Turn   int
	Intent registry.Intent
	Phase  Phase // when it was decided
	// Why is the reason of a refusal; empty for an intent that was applied.
	Why string
}

// Audit is a line of the audit. Who the session is of is still to be added.
//
// Told says that the next Command of this step carries the answer: the record is true once
// that is written to the model's connection. Where it never is, the answer was not delivered.
type Audit struct {
	Record audit.Record
	Told   bool
}

// CancelTool stops a running tool, if it can be stopped: its result is not wanted
// any more.
type CancelTool struct{ Call, Tool string }

// ToolStarted and ToolEnded show a tool call to the client.
type ToolStarted struct {
	Turn int
	// Call is the gateway's own id of the call, unique in the session.
	Call string
	Tool string
}

// ToolProgress says that a call has outlasted its latency budget and still runs.
type ToolProgress struct {
	Turn int
	Call string
	Tool string
	// Running is how long it has been at work, or has waited for its turn.
	Running time.Duration
}

// ToolEnded is the end of a ToolStarted.
type ToolEnded struct {
	Turn     int
	Call     string
	Tool     string
	Envelope registry.Envelope
	// Delivered says that the model was given the result.
	Delivered bool

	// The rest is for whoever inspects the session. Record is the one that Audit has.
	Record audit.Record
	// Asked are the arguments as the model wrote them: perhaps no JSON at all.
	Asked json.RawMessage
	// Queued is from the model's call until the handler began, Ran the handler's own
	// time; both zero where nothing ran.
	Queued, Ran time.Duration
}

// Failed tells the client that something went wrong which the session survives.
type Failed struct {
	Turn      int
	Failure   Failure
	Retryable bool
}

// Failure names what went wrong for the client; the session has the words.
type Failure string

// The failures that a session survives.
const (
	// FailureNoAnswer: the model did not answer a turn.
	FailureNoAnswer Failure = "no_answer"
	// FailureProvider: the model reported an error.
	FailureProvider Failure = "provider_error"
	// FailureTranscription: what the user said in a turn could not be written down. The
	// model has heard it all the same.
	FailureTranscription Failure = "transcription_failed"
	// The failures of a ConfirmationAnswer.
	FailureConfirmationUnknown Failure = "confirmation_unknown"
	FailureConfirmationUsed    Failure = "confirmation_used"
	FailureConfirmationExpired Failure = "confirmation_expired"
	// FailureStore: it could not be recorded.
	FailureStore Failure = "store_unavailable"
	// FailureEnding: the session takes nothing more.
	FailureEnding Failure = "session_ending"
)

// Ending says that the session will end by itself.
type Ending struct {
	Reason EndReason
	After  time.Duration
}

// End ends the session.
type End struct{ Reason EndReason }

// EndReason says why a session ends.
type EndReason string

// The reasons that the orchestrator ends a session for.
const (
	EndHungUp   EndReason = "client_ended"
	EndIdle     EndReason = "idle"
	EndLength   EndReason = "length_limit"
	EndProvider EndReason = "provider_leaving"
	EndTool     EndReason = "tool_ended"
)

func (Command) action()             {}
func (OpenItem) action()            {}
func (EndItem) action()             {}
func (FlushItem) action()           {}
func (TurnStarted) action()         {}
func (TurnEnded) action()           {}
func (SpeechStarted) action()       {}
func (SpeechStopped) action()       {}
func (Transcript) action()          {}
func (RunTool) action()             {}
func (CancelTool) action()          {}
func (AskConfirmation) action()     {}
func (ResolveConfirmation) action() {}
func (ConfirmationRequest) action() {}
func (ConfirmationEnded) action()   {}
func (MuteUser) action()            {}
func (ToolsSlow) action()           {}
func (IntentDecided) action()       {}
func (Audit) action()               {}
func (ToolProgress) action()        {}
func (ToolStarted) action()         {}
func (ToolEnded) action()           {}
func (Failed) action()              {}
func (Ending) action()              {}
func (End) action()                 {}
