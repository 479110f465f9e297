package transport

import (
	"encoding/json"
	"time"
)

// Event is one fact from the model. The set is closed: a type switch over the
// types of this file is complete.
type Event interface{ event() }

// Role says who spoke.
type Role string

// The two roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// AudioOut is a piece of the model's speech. It is passed by pointer and reused:
// it is valid until the next Recv.
type AudioOut struct {
	// Item names the spoken answer this belongs to; it is the same string for all
	// pieces of one item and unique within the connection.
	Item string
	// PCM is a whole number of samples at Info.OutputRate.
	PCM []byte
}

// AudioDone says that no more audio of Item will come.
type AudioDone struct{ Item string }

// ResponseStarted says that the model has begun to answer.
type ResponseStarted struct {
	// ID is unique within the connection.
	ID string
}

// ResponseStatus is how an answer ended.
type ResponseStatus string

// The ways an answer ends.
const (
	ResponseCompleted   ResponseStatus = "completed"
	ResponseInterrupted ResponseStatus = "interrupted"
	ResponseIncomplete  ResponseStatus = "incomplete" // a token limit or a content filter
	ResponseFailed      ResponseStatus = "failed"
)

// ResponseDone says that the answer is complete: nothing more of it will come. A
// model with RespondNeeded ends a response before it gets tool results; another
// one ends it after the whole exchange.
type ResponseDone struct {
	ID     string
	Status ResponseStatus
	// Err says why a response failed; nil otherwise.
	Err *Error
}

// Transcript is what was said so far in one item: the whole text, not a delta.
type Transcript struct {
	Item  string
	Role  Role
	Text  string
	Final bool
}

// SpeechStarted says that the user has begun to speak.
type SpeechStarted struct {
	// Item is the user's item, if the provider names it.
	Item string
	// AudioMS is where speech begins on the audio clock: ms of audio sent since the
	// connection was opened, padding included as the provider counts it.
	AudioMS int64
}

// SpeechStopped says that the user has stopped speaking.
type SpeechStopped struct {
	Item string
	// AudioMS is what the provider reports, on the audio clock.
	AudioMS int64
	// EndMS is where the speech itself ended: AudioMS less the silence the provider
	// waited for. It equals AudioMS where that is not known.
	EndMS int64
}

// InputCommitted says that the user's turn is in the conversation.
type InputCommitted struct{ Item string }

// Interrupted says that the model has stopped its answer because the user spoke:
// what is queued of it must not be played.
type Interrupted struct{}

// Truncated confirms a Truncate.
type Truncated struct {
	Item    string
	AudioMS int64
}

// ToolCall asks for a tool. Calls of one batch arrive one after another, in the
// order given.
type ToolCall struct {
	// Call is the adapter's own name for this request, unique within the
	// connection: what ToolResult and ToolCancelled refer to.
	Call string
	// ID is the provider's, empty where it gave none. A provider that repeats
	// itself sends the same ID under a new Call.
	ID   string
	Name string
	// Args is what the model wrote: meant to be a JSON object, but not checked.
	Args json.RawMessage
}

// ToolCancelled withdraws calls: no result for them is wanted any more.
type ToolCancelled struct{ Calls []string }

// Usage is what was spent since the last Usage event, in tokens.
type Usage struct{ Tokens Tokens }

// Tokens counts tokens by direction and modality. Cached tokens are a subset of
// the input tokens of their modality.
type Tokens struct {
	Input, Output             int64 // totals as the provider counts them
	InputText, InputAudio     int64
	CachedText, CachedAudio   int64
	OutputText, OutputAudio   int64
	InputOther, OutputThought int64
}

// Add returns the sum of t and u.
func (t Tokens) Add(u Tokens) Tokens {
	return Tokens{
		Input: t.Input + u.Input, Output: t.Output + u.Output,
		InputText: t.InputText + u.InputText, InputAudio: t.InputAudio + u.InputAudio,
		CachedText: t.CachedText + u.CachedText, CachedAudio: t.CachedAudio + u.CachedAudio,
		OutputText: t.OutputText + u.OutputText, OutputAudio: t.OutputAudio + u.OutputAudio,
		InputOther: t.InputOther + u.InputOther, OutputThought: t.OutputThought + u.OutputThought,
	}
}

// GoAway says that the provider will close the connection soon.
type GoAway struct{ TimeLeft time.Duration }

// ResumeHandle is a handle to continue from, newest wins.
type ResumeHandle struct {
	Handle string
	// Resumable is false while the model is in the middle of something: the handle
	// is then empty and an older one stands.
	Resumable bool
}

// TranscriptFailed says that what the user said in one item could not be written down.
// The model has heard it, and its answer is not affected; the item's Transcript, if any,
// has been given as final.
type TranscriptFailed struct {
	Item string
	Err  *Error
}

// Problem is an error that the connection survives.
type Problem struct{ Err *Error }

func (*AudioOut) event()        {}
func (AudioDone) event()        {}
func (ResponseStarted) event()  {}
func (ResponseDone) event()     {}
func (Transcript) event()       {}
func (SpeechStarted) event()    {}
func (SpeechStopped) event()    {}
func (InputCommitted) event()   {}
func (Interrupted) event()      {}
func (Truncated) event()        {}
func (ToolCall) event()         {}
func (ToolCancelled) event()    {}
func (Usage) event()            {}
func (GoAway) event()           {}
func (ResumeHandle) event()     {}
func (TranscriptFailed) event() {}
func (Problem) event()          {}
