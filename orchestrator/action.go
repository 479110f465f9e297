package orchestrator

import (
	"time"

	"voicegw/audit"
	"voicegw/cost"
	"voicegw/orchestrator/calls"
	"voicegw/registry"
	"voicegw/transport"
)

// Action is one thing that the session must do. The set is closed; the session carries actions
// out in the order given.
type Action interface{ action() }

// AboutCall is an action about a tool call: a calls.Run, Ask, Resolve, Cancel, Tell or Slow.
type AboutCall struct{ Do calls.Action }

// Command sends a command to the model.
type Command struct{ Command transport.Command }

// OpenItem lets an item's audio through to the client. The audio of an item that was not
// opened, or was flushed, is dropped.
type OpenItem struct {
	Item string
	Turn int
}

// EndItem marks an item's audio as complete; it lasts AudioMS in all.
type EndItem struct {
	Item    string
	Turn    int
	AudioMS int64
}

// FlushItem drops an item's queued audio and all of its audio that may still come.
type FlushItem struct {
	Item   string
	Turn   int
	Reason FlushReason
	// HeardMS is the best guess of how much of the item the user has heard, SentMS how much has
	// been sent to the client.
	HeardMS, SentMS int64
}

// FlushReason is the reason why an answer was stopped.
type FlushReason string

// The reasons of a flush.
const (
	FlushUserSpeech FlushReason = "user_speech"
	FlushUserText   FlushReason = "user_text"
	FlushUserStop   FlushReason = "user_stop"
	FlushUserAction FlushReason = "user_action" // the user has approved or declined something
	FlushSessionEnd FlushReason = "session_end" // the session ends now

	// FlushConnectionLost: the client has come back and does not have the item any more.
	FlushConnectionLost FlushReason = "connection_lost"
)

// TurnStarted tells the client that a turn begins.
type TurnStarted struct{ Turn int }

// TurnEnded tells the client how a turn ended.
type TurnEnded struct {
	Turn   int
	Status TurnStatus
	Usage  transport.Tokens
	// Cost is what Usage has cost.
	Cost cost.Amount
	// Latency is nil if no audio answered the turn, or if the end of the user's input is not known.
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

// Latency is how long the user waited for the first audio of an answer. Its JSON form is kept in checkpoints.
type Latency struct {
	// Total is the time from the user's last sound (or typed text, or release of the push-to-talk
	// button) to the first audio sent to the client, with every model.
	// Detection is the part until the end of speech was known, Provider the model's part of the
	// rest, and Gateway the gateway's part.
	Total     time.Duration `json:"total"`
	Detection time.Duration `json:"detection"`
	Provider  time.Duration `json:"provider"`
	Gateway   time.Duration `json:"gateway"`
}

// SpeechStarted tells the client where its user began to speak.
type SpeechStarted struct {
	Turn    int
	AudioMS int64
}

// SpeechStopped tells the client where its user stopped speaking.
type SpeechStopped struct {
	Turn    int
	AudioMS int64
	// EndMS is the position of the last sound; -1 if it is not known.
	EndMS int64
}

// Transcript is the text of an utterance so far.
type Transcript struct {
	Turn      int
	ID        string
	Role      transport.Role
	Text      string
	Final     bool
	StartedAt time.Time
}

// MuteUser stops listening to the user, because the session is ending.
type MuteUser struct{}

// IntentDecided reports whether a tool's intent was applied. It is for the log and for
// inspecting the session.
type IntentDecided struct {
	Turn   int
	Intent registry.Intent
	Phase  Phase // the time of the decision
	// Why is the reason for a refusal; empty for an intent that was applied.
	Why string
}

// ToolEnded reports the end of a call, for the client and for inspecting the session.
type ToolEnded struct {
	calls.Answer
	// Delivered is true if the model got the answer, or will be told of it in the next turn.
	Delivered bool
	// Record is the same record as in Audit.
	Record audit.Record
}

// Audit writes a line to the audit. The session adds its owner to the line.
//
// Told means that the next Command of this step carries the answer: the record becomes true once
// that command is written to the model's connection. If it is never written, the answer was not
// delivered.
type Audit struct {
	Record audit.Record
	Told   bool
}

// Failed tells the client about an error that does not end the session.
type Failed struct {
	Turn      int
	Failure   Failure
	Retryable bool
	// Kind is the cause if the model has failed, and After how long its provider asks to wait; zero for any other.
	Kind  transport.Kind
	After time.Duration
	// Ref is the type of the client's message that was refused, where several get the same Failure; empty otherwise.
	Ref string
}

// Failure is the code of what went wrong, for the client; a calls.Refusal is also one. The
// session has the words for it.
type Failure string

// The failures that do not end a session.
const (
	// FailureNoAnswer: the model did not answer a turn.
	FailureNoAnswer Failure = "no_answer"
	// FailureProvider: the model reported an error.
	FailureProvider Failure = "provider_error"
	// FailureTranscription: the user's words in a turn could not be transcribed. The model
	// heard them anyway.
	FailureTranscription Failure = "transcription_failed"
	// FailureNotAvailable: the model takes no images or, if Ref is OfContext, no context.
	FailureNotAvailable Failure = "not_available"
	// FailureUnsent: there is no connection to the model, and what the user has sent is not kept. If Ref is OfContext,
	// as much context waits for the model as may.
	FailureUnsent Failure = "unsent"
	// FailureNoSpeech: the push-to-talk button was only tapped. No turn has begun.
	FailureNoSpeech Failure = "no_speech"
	// FailureEnding: the session is ending and accepts nothing more.
	FailureEnding Failure = "session_ending"
)

// OfContext is the Ref of a Failed about a UserContext.
const OfContext = "input.context"

// ContextGiven reports that Text, which a UserContext has brought, belongs to the conversation from now on: the next
// Command of this step gives it to the model or, at the end of a session, nobody is left to give it to.
type ContextGiven struct{ Text string }

// SwitchLink gives up the connection to the model and opens another one; LinkBack or LinkFailed
// reports the result. Commands are kept until then. Handle is the provider's handle from which to
// resume the conversation; if it is empty or refused, the provider is told the conversation again.
// Calls is how many tool calls are under way and lose their connection; Deferred reports that a
// planned replacement has waited for a call.
type SwitchLink struct {
	Reason   LinkReason
	Handle   string
	Calls    int
	Deferred bool
	// After is the pause before the attempt, and Other asks the other provider; see [Attempt].
	After time.Duration
	Other bool
}

// Redial makes another attempt to open the connection that a SwitchLink has asked for.
type Redial struct {
	// After and Other are those of [Attempt].
	After time.Duration
	Other bool
}

// AgentSwitched goes on as another agent, whom an AgentFound or a SwitchAgent has brought: whatever comes
// after it is that agent's, such as a new connection that a SwitchLink asks for.
type AgentSwitched struct {
	Turn     int
	From, To string
	Reason   string
	// Source is that of the agent.
	Source any
}

// JobTold reports that the model was told of the end of the job with that id.
type JobTold struct{ Job string }

// SayAgain sends what the user has said, and the model has not answered, to the new connection: after
// the commands of the same step, and before what the user has said since. Over reports that the user
// had finished: a client that says when its user speaks has said so, to the connection before.
type SayAgain struct{ Over bool }

// Reconnecting tells the client that the connection to the model is being replaced.
type Reconnecting struct{ Reason LinkReason }

// Reconnected tells the client, if it knows of a replacement, that the model can be spoken with
// again; Lost is how long it could not.
type Reconnected struct {
	Reason LinkReason
	Lost   time.Duration
	How    LinkHow
}

// Ending announces that the session will end.
type Ending struct {
	Reason EndReason
	After  time.Duration
}

// End ends the session. Kind is the last failure of the model's connection if Reason is EndLost, else zero.
type End struct {
	Reason EndReason
	Kind   transport.Kind
}

// EndReason is the reason why a session ends.
type EndReason string

// The reasons for which the orchestrator ends a session.
const (
	EndHungUp   EndReason = "client_ended"
	EndIdle     EndReason = "idle"
	EndLength   EndReason = "length_limit"
	EndProvider EndReason = "provider_leaving"
	EndTool     EndReason = "tool_ended"
	EndLost     EndReason = "provider_lost"
	EndGone     EndReason = "client_gone"
	EndBudget   EndReason = "budget" // of the session, its user or its key
	// EndLapsed: the credentials have ended with which the client was let in.
	EndLapsed EndReason = "credentials_expired"
)

func (AboutCall) action()     {}
func (ToolEnded) action()     {}
func (Command) action()       {}
func (OpenItem) action()      {}
func (EndItem) action()       {}
func (FlushItem) action()     {}
func (TurnStarted) action()   {}
func (TurnEnded) action()     {}
func (SpeechStarted) action() {}
func (SpeechStopped) action() {}
func (Transcript) action()    {}
func (MuteUser) action()      {}
func (IntentDecided) action() {}
func (Audit) action()         {}
func (Failed) action()        {}
func (SwitchLink) action()    {}
func (Redial) action()        {}
func (AgentSwitched) action() {}
func (JobTold) action()       {}
func (ContextGiven) action()  {}
func (SayAgain) action()      {}
func (Reconnecting) action()  {}
func (Reconnected) action()   {}
func (Ending) action()        {}
func (End) action()           {}
