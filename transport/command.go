package transport

import "encoding/json"

// Command is one order to the model. The set is closed: a type switch over the
// types of this file is complete.
type Command interface{ command() }

// AudioIn is a piece of the user's speech: a whole number of samples at
// Info.InputRate. It is passed by pointer, so that one value serves a whole
// conversation.
type AudioIn struct{ PCM []byte }

// AudioPause says that no audio will come for a while (the user has muted), so
// that the provider does not wait for the rest of a phrase.
type AudioPause struct{}

// UserText is a turn that the user typed. The model answers it; what it is saying
// at the moment stops.
type UserText struct{ Text string }

// ActivityStart and ActivityEnd frame the user's speech when Setup.ManualActivity
// is set; the model answers after ActivityEnd.
type (
	ActivityStart struct{}
	ActivityEnd   struct{}
)

// Interrupt stops the model's answer, where Capabilities.Cancel is set.
type Interrupt struct{}

// Truncate tells the model that the user heard only the first AudioMS ms of Item.
type Truncate struct {
	Item    string
	AudioMS int64
}

// ToolResult answers one ToolCall. Several results may follow each other; a model
// with RespondNeeded goes on when Respond is sent.
type ToolResult struct {
	Call string
	// Output is a JSON object: the envelope.
	Output json.RawMessage
	// Scheduling says when a model that went on meanwhile is to speak of it, where
	// Capabilities.Scheduling.
	Scheduling Scheduling
}

// Scheduling is when a model speaks of a tool result that comes while it does
// something else. The zero value leaves it to the model.
type Scheduling string

// The choices of Scheduling.
const (
	ScheduleInterrupt Scheduling = "interrupt"
	ScheduleWhenIdle  Scheduling = "when_idle"
	ScheduleSilent    Scheduling = "silent"
)

// Respond asks for an answer. The adapter waits for a running response to end
// first and joins requests that pile up meanwhile.
type Respond struct {
	// ToolsOff asks for an answer without tool calls, where Capabilities.ToolsOff.
	ToolsOff bool
	// Instructions apply to this answer alone; empty for none. Where a model has no
	// such thing they are left out.
	Instructions string
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
