package transport

import (
	"encoding/json"
	"time"
)

// Event is one event from the model. The set is closed: a type switch over the
// types of this file is complete.
type Event interface{ event() }

// Role is the speaker: user or assistant.
type Role string

// The two roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// AudioOut is a piece of the model's speech. It is passed by pointer and reused:
// it is valid until the next Recv.
type AudioOut struct {
	// Item names the spoken answer that the audio belongs to. It is the same for all
	// pieces of one answer and unique within the connection.
	Item string
	// PCM is a whole number of samples at Rate.
	PCM []byte
	// Rate is the sample rate of PCM in Hz, from audio.MinRate to audio.MaxRate; zero means
	// Info.OutputRate. A provider may change it at any time.
	Rate int
}

// AudioDone reports that no more audio of Item will come.
type AudioDone struct{ Item string }

// ResponseStarted reports that the model has begun to answer.
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

// ResponseDone reports that the answer is complete: nothing more of it will come. A
// model with RespondNeeded ends a response before it gets tool results; any other
// model ends it after the whole exchange.
type ResponseDone struct {
	ID     string
	Status ResponseStatus
	// Err is why a response failed or is incomplete; nil otherwise.
	Err *Error
}

// NothingSaid reports that the model has ended a turn in which it began no answer.
type NothingSaid struct{}

// Transcript is what was said so far in one item: the whole text, not only the new part.
type Transcript struct {
	Item  string
	Role  Role
	Text  string
	Final bool
}

// SpeechStarted reports that the user has begun to speak.
type SpeechStarted struct {
	// Item is the user's item, if the provider names it.
	Item string
	// AudioMS is where speech begins on the audio clock: milliseconds of audio sent since
	// the connection was opened, including padding as the provider counts it.
	AudioMS int64
	// Late means that the provider states no position: AudioMS is where the audio sent before the
	// report ends, and the speech began earlier.
	Late bool
}

// SpeechStopped reports that the user has stopped speaking.
type SpeechStopped struct {
	Item string
	// AudioMS is the position that the provider reports, on the audio clock.
	AudioMS int64
	// EndMS is where the speech itself ended: AudioMS minus the silence for which the
	// provider waited. It equals AudioMS if that silence is unknown.
	EndMS int64
}

// InputCommitted reports that the provider has added the user's turn to the conversation.
type InputCommitted struct{ Item string }

// Interrupted reports that the model has stopped its answer because the user spoke.
// Queued audio of that answer must not be played.
type Interrupted struct{}

// Truncated confirms a Truncate.
type Truncated struct {
	Item    string
	AudioMS int64
}

// ToolCall requests a tool. The calls of one batch arrive one after another, in the
// provider's order.
type ToolCall struct {
	// Call is the adapter's own name for this request, unique within the
	// connection. ToolResult and ToolCancelled refer to it.
	Call string
	// ID is the provider's id, empty if it gave none. A provider that repeats a call
	// sends the same ID with a new Call. It waits for one answer to all calls with the same
	// ID, so the adapter counts them as one; a caller need not answer the repetitions.
	ID   string
	Name string
	// Args is the model's text: it should be a JSON object, but has not been checked.
	Args json.RawMessage
}

// ToolCancelled withdraws calls: their results are no longer wanted.
type ToolCancelled struct{ Calls []string }

// Usage is the number of tokens used since the last Usage event.
type Usage struct{ Tokens Tokens }

// Tokens counts tokens by direction and modality. Cached tokens are a subset of
// the input tokens of their modality. The JSON form is kept in checkpoints.
type Tokens struct {
	// Input and Output are the totals as the provider counts them.
	Input         int64 `json:"input,omitempty"`
	Output        int64 `json:"output,omitempty"`
	InputText     int64 `json:"input_text,omitempty"`
	InputAudio    int64 `json:"input_audio,omitempty"`
	CachedText    int64 `json:"cached_text,omitempty"`
	CachedAudio   int64 `json:"cached_audio,omitempty"`
	OutputText    int64 `json:"output_text,omitempty"`
	OutputAudio   int64 `json:"output_audio,omitempty"`
	InputOther    int64 `json:"input_other,omitempty"`
	OutputThought int64 `json:"output_thought,omitempty"`
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

// GoAway announces that the provider will close the connection soon.
type GoAway struct{ TimeLeft time.Duration }

// ResumeHandle is a handle from which to resume the conversation; the newest one counts.
type ResumeHandle struct {
	Handle string
	// Resumable is false while the model is in the middle of something: Handle is
	// then empty and the previous handle stays valid.
	Resumable bool
}

// Interaction reports whether the model is at work although it sends no answer: it thinks, or an
// answer follows in another response. A model that never sends it is judged by its answers alone.
// Providers repeat it or withdraw it; a caller must bound the wait for that.
type Interaction struct{ InProgress bool }

// Reconfigured reports that the oldest Reconfigure without an answer applies to everything that the
// model begins from now on. With Err the provider has refused it, and what it had stays. Like every
// confirmation it may get lost, so a caller must not wait for it without a bound.
type Reconfigured struct{ Err *Error }

// TranscriptFailed reports that the user's speech in one item could not be transcribed.
// The model has heard it, and its answer is not affected. If the item has a Transcript, a
// final one has already been sent.
type TranscriptFailed struct {
	Item string
	Err  *Error
}

// Problem is an error after which the connection stays usable.
type Problem struct{ Err *Error }

func (*AudioOut) event()        {}
func (AudioDone) event()        {}
func (ResponseStarted) event()  {}
func (ResponseDone) event()     {}
func (NothingSaid) event()      {}
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
func (Interaction) event()      {}
func (Reconfigured) event()     {}
func (TranscriptFailed) event() {}
func (Problem) event()          {}
