package orchestrator

import (
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/cost"
	"voicegw/orchestrator/calls"
	"voicegw/registry"
	"voicegw/transport"
)

// Action is one thing that the session must do. The set is closed. The session carries actions out in order.
type Action interface{ action() }

// AboutCall is an action about a tool call: calls.Run, Ask, Resolve, Cancel, Tell or Slow.
type AboutCall struct{ Do calls.Action }

// Command sends a command to the model.
type Command struct{ Command transport.Command }

// OpenItem lets an item's audio through to the client. Without it, or after a flush, audio is dropped.
type OpenItem struct {
	Item string
	Turn int
}

// EndItem marks an item's audio as complete, AudioMS in total.
type EndItem struct {
	Item    string
	Turn    int
	AudioMS int64
}

// FlushItem drops an item's queued and future audio.
type FlushItem struct {
	Item   string
	Turn   int
	Reason FlushReason
	// HeardMS is the estimate of how much of the item the user has heard, SentMS the amount sent to the client.
	HeardMS, SentMS int64
}

// FlushReason says why an answer was stopped.
type FlushReason string

// Reasons of a flush.
const (
	FlushUserSpeech FlushReason = "user_speech"
	FlushUserText   FlushReason = "user_text"
	FlushUserStop   FlushReason = "user_stop"
	FlushUserAction FlushReason = "user_action" // the user has approved or declined something
	FlushCheck      FlushReason = "check"       // a check has stopped the answer
	FlushSessionEnd FlushReason = "session_end" // the session ends now

	FlushConnectionLost FlushReason = "connection_lost" // the client has resumed without the item
)

// TurnStarted announces a turn to the client.
type TurnStarted struct{ Turn int }

// TurnEnded reports the end of a turn to the client.
type TurnEnded struct {
	Turn    int
	Status  TurnStatus
	Usage   transport.Tokens
	Cost    cost.Amount // the cost of Usage
	Latency *Latency    // nil if the turn had no audio answer, or if the end of the user's input is unknown
}

// TurnStatus is how a turn ended.
type TurnStatus string

// Values of TurnStatus.
const (
	TurnCompleted   TurnStatus = "completed"
	TurnInterrupted TurnStatus = "interrupted"
	TurnFailed      TurnStatus = "failed"
)

// Latency is the user's wait for the first audio of an answer. Checkpoints contain its JSON form.
type Latency struct {
	// Total runs from the user's last sound, typed text or release of the button to the first audio sent to the client.
	Total     time.Duration `json:"total"`
	Detection time.Duration `json:"detection"` // until the end of speech was known
	Provider  time.Duration `json:"provider"`  // the model's part of the rest
	Gateway   time.Duration `json:"gateway"`
}

// SpeechStarted reports where the user began to speak.
type SpeechStarted struct {
	Turn    int
	AudioMS int64
}

// SpeechStopped reports where the user stopped speaking.
type SpeechStopped struct {
	Turn    int
	AudioMS int64
	EndMS   int64 // the position of the last sound, or -1 if it is unknown
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

// MuteUser ignores the user from now on, because the session is ending.
type MuteUser struct{}

// IntentDecided reports whether a tool's intent was applied, for the log and the inspector.
type IntentDecided struct {
	Turn   int
	Intent registry.Intent
	Phase  Phase  // the time of the decision
	Why    string // the reason for a refusal; empty if the intent was applied
}

// ToolEnded reports the end of a call to the client and the inspector.
type ToolEnded struct {
	calls.Answer
	Delivered bool         // true if the model got the answer, or will get it with the next turn
	Record    audit.Record // the same record as in Audit
}

// Audit writes an audit record; the session adds the owner. With Told, the next Command of this step carries the
// answer: the session writes the record once the command is sent, or as not delivered if it never is.
type Audit struct {
	Record audit.Record
	Told   bool
}

// Failed reports an error to the client that does not end the session.
type Failed struct {
	Turn      int
	Failure   Failure
	Retryable bool
	// Kind is the cause if the model failed, and After the wait its provider asks for; otherwise zero.
	Kind  transport.Kind
	After time.Duration
	Ref   string // the type of the refused client message, if several types share a Failure; otherwise empty
}

// Failure is the error code for the client; a calls.Refusal is also one. The session adds the text.
type Failure string

// Failures that do not end a session.
const (
	FailureNoAnswer Failure = "no_answer"      // the model did not answer a turn
	FailureProvider Failure = "provider_error" // the model reported an error
	// FailureTranscription: the provider could not transcribe the user's words. The model heard them.
	FailureTranscription Failure = "transcription_failed"
	FailureNotAvailable  Failure = "not_available"  // the model takes no images or, with Ref OfContext, no context
	FailureUnsent        Failure = "unsent"         // no connection, or with Ref OfContext too much context waits
	FailureChecked       Failure = "content_filter" // checks have stopped every answer to a turn
	FailureNoSpeech      Failure = "no_speech"      // the user only tapped the push-to-talk button
	FailureEnding        Failure = "session_ending" // the session is ending
)

// OfContext is the Ref of a Failed about a UserContext.
const OfContext = "input.context"

// ContextGiven reports that the text of a UserContext belongs to the conversation now, sent by the next Command or not.
type ContextGiven struct {
	Role transport.Role // empty for text from the user's page
	Text string
}

// SwitchLink closes the connection to the model and opens another; LinkBack or LinkFailed reports the result. Until
// then, commands are queued. Without a valid Handle of the provider, the history is replayed. Calls is how many calls
// lose their connection; Deferred means that a planned replacement waited for one.
type SwitchLink struct {
	Reason   LinkReason
	Handle   string
	Calls    int
	Deferred bool
	// After is the pause before the attempt; Other selects the other provider. See [Attempt].
	After time.Duration
	Other bool
}

// Redial makes another attempt to open the connection of the last SwitchLink.
type Redial Attempt

// AgentSwitched hands the conversation to another agent. All later actions belong to that agent.
type AgentSwitched struct {
	Turn     int
	From, To string
	Reason   string
	Source   any // the agent's Source
}

// JobTold reports that the model knows of the end of a job.
type JobTold struct{ Job string }

// SayAgain replays the user's unanswered speech to the new connection, after the commands of this step. Over means that
// the speech is complete, for a client that marks speech itself.
type SayAgain struct{ Over bool }

// Reconnecting informs the client that the connection to the model is being replaced.
type Reconnecting struct{ Reason LinkReason }

// Reconnected informs a client that knows of the replacement; Lost is its duration.
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

// End ends the session. Kind is the last failure of the model's connection if Reason is EndLost, otherwise zero.
type End struct {
	Reason EndReason
	Kind   transport.Kind
}

// EndReason says why a session ends.
type EndReason string

// Reasons of an End.
const (
	EndHungUp   EndReason = "client_ended"
	EndIdle     EndReason = "idle"
	EndLength   EndReason = "length_limit"
	EndProvider EndReason = "provider_leaving"
	EndTool     EndReason = "tool_ended"
	EndLost     EndReason = "provider_lost"
	EndGone     EndReason = "client_gone"
	EndBudget   EndReason = "budget"              // of the session, its user or its key
	EndChecked  EndReason = "checked"             // by a check of the assistant's words
	EndLapsed   EndReason = "credentials_expired" // the client's credentials have expired
	EndNotice   EndReason = "notice_unheard"      // the notice could not be said, or was not heard
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
