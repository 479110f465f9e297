package transport

import "encoding/json"

// Command is one command to the model. The set is closed: a type switch over the
// types of this file is complete.
type Command interface{ command() }

// AudioIn is a piece of the user's speech: a whole number of samples at
// Info.InputRate. It is passed by pointer, so that one value can be reused for a whole
// conversation.
type AudioIn struct{ PCM []byte }

// AudioPause announces that no audio will come for a while (the user has muted), so
// that the provider does not wait for the rest of a phrase.
type AudioPause struct{}

// UserText is a turn that the user typed. The model stops what it is saying and answers
// the text.
type UserText struct{ Text string }

// ActivityStart and ActivityEnd mark the start and end of the user's speech if
// Setup.ManualActivity is set; the model answers after ActivityEnd, unless Empty says that the user has
// said nothing: then no answer is wanted, and the adapter drops the audio if it can.
type (
	ActivityStart struct{}
	ActivityEnd   struct{ Empty bool }
)

// Interrupt stops the model's answer, if Capabilities.Cancel is set.
type Interrupt struct{}

// Truncate tells the model that the user heard only the first AudioMS ms of Item.
type Truncate struct {
	Item    string
	AudioMS int64
}

// ToolResult answers one ToolCall. Several results may follow each other; a model
// with RespondNeeded continues when Respond is sent.
type ToolResult struct {
	Call string
	// Output is a JSON object: the tool's result envelope.
	Output json.RawMessage
	// Scheduling is when a model that continued meanwhile should speak about the result,
	// if Capabilities.Scheduling is set.
	Scheduling Scheduling
}

// Scheduling is when a model speaks about a tool result that arrives while it does
// something else. The zero value leaves the choice to the model.
type Scheduling string

// The values of Scheduling.
const (
	ScheduleInterrupt Scheduling = "interrupt"
	ScheduleWhenIdle  Scheduling = "when_idle"
	ScheduleSilent    Scheduling = "silent"
)

// Respond requests an answer. The adapter first waits until a running response has
// ended, and merges requests that arrive meanwhile.
type Respond struct {
	// ToolsOff requests an answer without tool calls, if Capabilities.ToolsOff is set.
	ToolsOff bool
	// Instructions apply to this answer alone; empty means no instructions. They are left
	// out if the model does not support them.
	Instructions string
}

// Reconfigure replaces the instructions and the tools of an open conversation, both as a whole:
// empty instructions and a nil list leave the model with none of its own. It asks for no answer.
// The model takes it in order with the other commands, and confirms it with one Reconfigured. It
// needs Capabilities.Reconfigure to be ReconfigureLive; send it while no answer is being generated,
// because a model may go on with the old ones until the answer is complete.
type Reconfigure struct {
	Instructions string
	Tools        []Tool
}

// AddItem adds an entry to the conversation, in order with the other commands, and asks for no
// answer: the model knows it when it answers the next time. It needs Capabilities.AddItem; that
// says whether it may be sent at any time.
type AddItem struct{ Item Past }

// Image is a still image that the user shows. It asks for no answer: the model sees it when it answers
// the next time. It needs Capabilities.Images.
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
func (Image) command()         {}
