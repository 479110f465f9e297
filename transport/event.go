package transport

import (
	"encoding/json"
	"time"
)

// Event is an event from the model. The set is closed.
type Event interface{ event() }

// Role is the speaker: user or assistant.
type Role string

// Values of Role.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// AudioOut is a piece of the model's speech. It is reused: it is valid until the next Recv.
type AudioOut struct {
	// Item names the spoken answer, unique within the connection.
	Item string
	// PCM is a whole number of samples at Rate.
	PCM []byte
	// Rate is in Hz, from audio.MinRate to audio.MaxRate; zero means Info.OutputRate. It may change at any time.
	Rate int
}

// AudioDone reports the end of an item's audio.
type AudioDone struct{ Item string }

// ResponseStarted reports the start of an answer.
type ResponseStarted struct {
	// ID is unique within the connection.
	ID string
	// Exact: it is the audio of a PlayExact.
	Exact bool
}

// ResponseStatus is the outcome of an answer.
type ResponseStatus string

// Values of ResponseStatus.
const (
	ResponseCompleted   ResponseStatus = "completed"
	ResponseInterrupted ResponseStatus = "interrupted"
	ResponseIncomplete  ResponseStatus = "incomplete" // a token limit or a content filter
	ResponseFailed      ResponseStatus = "failed"
)

// ResponseDone reports the end of an answer. A model with RespondNeeded ends a response before it gets tool results;
// any other model ends it after the whole exchange.
type ResponseDone struct {
	ID     string
	Status ResponseStatus
	// Err explains a failed or incomplete response; otherwise nil.
	Err *Error
}

// NothingSaid reports that the model has ended a turn without an answer.
type NothingSaid struct{}

// Transcript is the whole text of an item so far.
type Transcript struct {
	Item  string
	Role  Role
	Text  string
	Final bool
}

// SpeechStarted reports that the user has begun to speak.
type SpeechStarted struct {
	// Item is the user's item; may be empty.
	Item string
	// AudioMS is on the audio clock: ms of audio sent on the connection, with padding as the provider counts it.
	AudioMS int64
	// Late: the provider gives no position, AudioMS is the end of the audio sent, and the speech began earlier.
	Late bool
}

// SpeechStopped reports that the user has stopped speaking.
type SpeechStopped struct {
	Item string
	// AudioMS is the reported position on the audio clock.
	AudioMS int64
	// EndMS is the end of the speech: AudioMS minus the silence that the provider waited for, if known.
	EndMS int64
}

// InputCommitted reports that the provider has added the user's turn to the conversation.
type InputCommitted struct{ Item string }

// Interrupted reports that the user's speech stopped the answer. Its queued audio must not be played.
type Interrupted struct{}

// Truncated confirms a Truncate.
type Truncated struct {
	Item    string
	AudioMS int64
}

// ToolCall requests a tool. The calls of a batch arrive in the provider's order.
type ToolCall struct {
	// Call is the adapter's name for this request, unique within the connection, for ToolResult and ToolCancelled.
	Call string
	// ID is the provider's ID; may be empty. A provider that repeats a call sends the same ID with a new Call. It
	// expects one answer to all of them, so the caller need not answer the repetitions.
	ID   string
	Name string
	// Args should be a JSON object, but is unchecked.
	Args json.RawMessage
}

// ToolCancelled withdraws calls: the model no longer wants their results.
type ToolCancelled struct{ Calls []string }

// Usage counts the tokens since the last Usage event.
type Usage struct {
	Tokens Tokens
	// Model is another model than Info.Model whose tokens these are; empty without one.
	Model string
}

// Tokens counts tokens by direction and modality. Cached tokens are a subset of the input tokens of their modality.
// Checkpoints contain the JSON form.
type Tokens struct {
	// Input and Output are the provider's totals.
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
	// Seconds is the length of the connection, for a model that charges by time.
	Seconds int64 `json:"seconds,omitempty"`
}

// counts returns the fields.
func (t *Tokens) counts() [11]*int64 {
	return [...]*int64{&t.Input, &t.Output, &t.InputText, &t.InputAudio, &t.CachedText, &t.CachedAudio, &t.OutputText,
		&t.OutputAudio, &t.InputOther, &t.OutputThought, &t.Seconds}
}

// Add returns the sum of t and u.
func (t Tokens) Add(u Tokens) Tokens {
	for i, n := range u.counts() {
		*t.counts()[i] += *n
	}
	return t
}

// Raise sets each count of t to at least that of u, and returns the increases.
func (t *Tokens) Raise(u Tokens) (more Tokens) {
	for i, seen := range t.counts() {
		d := max(*u.counts()[i]-*seen, 0)
		*seen += d
		*more.counts()[i] = d
	}
	return more
}

// GoAway announces that the provider will close the connection soon.
type GoAway struct{ TimeLeft time.Duration }

// ResumeHandle is a handle to resume the conversation; the newest one counts.
type ResumeHandle struct {
	Handle string
	// Resumable is false while the model is busy: Handle is then empty and the previous handle stays valid.
	Resumable bool
}

// Interaction reports whether the model works without sending an answer: it thinks, or an answer follows in another
// response. Some models never send it. Providers repeat or withdraw it, so a caller must limit its wait.
type Interaction struct{ InProgress bool }

// Reconfigured answers the oldest Reconfigure, which applies from now on; Err means that the provider keeps the old
// configuration. The event may get lost, so a caller must limit its wait.
type Reconfigured struct{ Err *Error }

// TranscriptFailed means that an item's speech could not be transcribed. The answer is not affected. A begun Transcript
// is final.
type TranscriptFailed struct {
	Item string
	Err  *Error
}

// Problem is an error that leaves the connection usable.
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

// Command is a command to the model. The set is closed.
type Command interface{ command() }

// AudioIn is a piece of the user's speech: whole samples at Info.InputRate. The caller may reuse it.
type AudioIn struct{ PCM []byte }

// AudioPause announces a pause (the user has muted), so that the provider does not wait for the rest of a phrase.
type AudioPause struct{}

// UserText is typed text. The model stops speaking and answers it.
type UserText struct {
	Text string
	// Overtakes is the ToolCall whose question to a person Text answers, if any: other words about that question are out of date.
	Overtakes string
}

// ActivityStart and ActivityEnd mark the user's speech if Setup.ManualActivity is set. The model answers after
// ActivityEnd, unless Empty says that there was no speech: then the adapter drops the audio if it can.
type (
	ActivityStart struct{}
	ActivityEnd   struct{ Empty bool }
)

// Interrupt stops the model's answer, if Capabilities.Cancel is set.
type Interrupt struct{}

// Truncate reports to the model that the user heard only the first AudioMS ms of Item.
type Truncate struct {
	Item    string
	AudioMS int64
}

// ToolResult answers a ToolCall. A model with RespondNeeded continues after Respond.
type ToolResult struct {
	Call string
	// Output is the tool's result envelope, a JSON object.
	Output json.RawMessage
	// Scheduling needs Capabilities.Scheduling.
	Scheduling Scheduling
}

// Scheduling is when a model speaks about a result that arrives while it is busy; empty leaves it to the model.
type Scheduling string

// Values of Scheduling.
const (
	ScheduleInterrupt Scheduling = "interrupt"
	ScheduleWhenIdle  Scheduling = "when_idle"
	ScheduleSilent    Scheduling = "silent"
)

// Respond requests an answer. The adapter first waits for the end of a running response, and merges requests.
type Respond struct {
	// ToolsOff requests an answer without tool calls, if Capabilities.ToolsOff is set.
	ToolsOff bool
	// Instructions apply to this answer only. They are dropped if the model does not support them.
	Instructions string
}

// Reconfigure replaces the instructions and tools, in order with other commands, and is confirmed by one Reconfigured.
// It needs ReconfigureLive. An answer that is being generated may keep the old ones.
type Reconfigure struct {
	Instructions string
	Tools        []Tool
}

// AddItem adds an entry to the conversation and asks for no answer. Capabilities.AddItem says when it may be sent.
type AddItem struct{ Item Past }

// PlayExact has the provider play PCM, at Info.OutputRate, as the model's own speech, in which Text is said word for word. A
// response with ResponseStarted.Exact follows: one item of audio, without a transcript. It needs Capabilities.PlaysExact.
type PlayExact struct {
	Text string
	PCM  []byte
}

// Image is a still image from the user. It asks for no answer. It needs Capabilities.Images.
type Image struct {
	// MIME is image/jpeg or image/png.
	MIME string
	// Data is the file. The caller must not change it.
	Data []byte
}

func (*AudioIn) command()      {}
func (AudioPause) command()    {}
func (UserText) command()      {}
func (ActivityStart) command() {}
func (ActivityEnd) command()   {}
func (Interrupt) command()     {}
func (Truncate) command()      {}
func (ToolResult) command()    {}
func (Respond) command()       {}
func (Reconfigure) command()   {}
func (AddItem) command()       {}
func (PlayExact) command()     {}
func (Image) command()         {}

// Past is one entry of Setup.History. The set is closed: PastUser, PastAssistant, PastTool and PastNote.
type Past interface{ past() }

// PastUser is the user's text, spoken or typed.
type PastUser struct{ Text string }

// PastAssistant is the heard part of an answer. Interrupted means that the user cut it off there.
type PastAssistant struct {
	Text        string
	Interrupted bool
}

// PastTool is an answered tool call. OK means that the tool succeeded.
type PastTool struct {
	Name string
	// Args is a JSON object, Output any JSON.
	Args, Output json.RawMessage
	OK           bool
}

// PastNote is the caller's own text for the model, such as a summary.
type PastNote struct{ Text string }

func (PastUser) past()      {}
func (PastAssistant) past() {}
func (PastTool) past()      {}
func (PastNote) past()      {}

// HistoryForm is how a model takes Setup.History.
type HistoryForm string

// The forms of a history.
const (
	// HistoryNone: Setup.History and Setup.Reanchor are ignored.
	HistoryNone HistoryForm = ""
	// HistoryItems: entries become items of the conversation, and so does a tool call.
	HistoryItems HistoryForm = "items"
	// HistoryContent: entries become turns of text, and a tool call a line of text.
	HistoryContent HistoryForm = "content"
)

// OpHistory is the Op of an Error when the provider has accepted the setup but not the history.
const OpHistory = "history"

// Queue holds the events of a frame until Recv returns them.
type Queue struct {
	events []Event
	given  int // number of events that were returned
}

// Add adds an event.
func (q *Queue) Add(ev Event) { q.events = append(q.events, ev) }

// Pending returns the events that Next has not returned. They are valid until the next call.
func (q *Queue) Pending() []Event { return q.events[q.given:] }

// Keep drops the pending events beyond the first most, and returns false if there were any.
func (q *Queue) Keep(most int) bool {
	if len(q.Pending()) <= most {
		return true
	}
	clear(q.Pending()[most:])
	q.events = q.events[:q.given+most]
	return false
}

// Next returns the next event, or nil.
func (q *Queue) Next() Event {
	if q.given == len(q.events) {
		clear(q.events)
		q.events, q.given = q.events[:0], 0
		return nil
	}
	q.given++
	return q.events[q.given-1]
}
