package transport

import "encoding/json"

// Command is a command to the model. The set is closed.
type Command interface{ command() }

// AudioIn is a piece of the user's speech: whole samples at Info.InputRate. The caller may reuse it.
type AudioIn struct{ PCM []byte }

// AudioPause announces a pause (the user has muted), so that the provider does not wait for the rest of a phrase.
type AudioPause struct{}

// UserText is typed text. The model stops speaking and answers it.
type UserText struct{ Text string }

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

// Reconfigure replaces the instructions and tools of an open conversation, even by empty ones. It asks for no answer.
// The model takes it in order with the other commands and confirms it with one Reconfigured. It needs
// ReconfigureLive. Send it while the model generates no answer, because that answer may keep the old configuration.
type Reconfigure struct {
	Instructions string
	Tools        []Tool
}

// AddItem adds an entry to the conversation and asks for no answer. Capabilities.AddItem says when it may be sent.
type AddItem struct{ Item Past }

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
