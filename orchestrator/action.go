package orchestrator

import (
	"time"

	"voicegw/audit"
	"voicegw/orchestrator/calls"
	"voicegw/registry"
	"voicegw/transport"
)

// Action is one thing to do. The set is closed; actions are carried out in the
// order given.
type Action interface{ action() }

// AboutCall is something to do about a tool call: a calls.Run, Ask, Resolve, Cancel, Tell
// or Slow.
type AboutCall struct{ Do calls.Action }

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

// MuteUser says that the user is not listened to any more: the session ends.
type MuteUser struct{}

// IntentDecided says what became of a tool's intent. It is for the log, and for whoever
// inspects the session.
type IntentDecided struct {
	Turn   int
	Intent registry.Intent
	Phase  Phase // when it was decided
	// Why is the reason of a refusal; empty for an intent that was applied.
	Why string
}

// ToolEnded is the end of a call, for the client and for whoever inspects the session.
type ToolEnded struct {
	calls.Answer
	// Delivered says that the model was given the answer, or is told of it in the next turn.
	Delivered bool
	// Record is the one that Audit has.
	Record audit.Record
}

// Audit is a line of the audit. Who the session is of is still to be added.
//
// Told says that the next Command of this step carries the answer: the record is true once
// that is written to the model's connection. Where it never is, the answer was not delivered.
type Audit struct {
	Record audit.Record
	Told   bool
}

// Failed tells the client that something went wrong which the session survives.
type Failed struct {
	Turn      int
	Failure   Failure
	Retryable bool
}

// Failure names what went wrong for the client, a calls.Refusal too; the session has the
// words.
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
func (Ending) action()        {}
func (End) action()           {}
