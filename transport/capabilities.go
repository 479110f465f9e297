package transport

import "time"

// Capabilities describes a model. Every adapter has a table with one row per model and the row's source. Code outside
// the adapters depends on this record, never on a model's name.
type Capabilities struct {
	// SpeechEvents: the model reports the start and end of the user's speech. Otherwise the caller must detect
	// speech.
	SpeechEvents bool

	// InterruptNotice: the model reports interruptions (Interrupted). Otherwise the start of speech is the
	// interruption.
	InterruptNotice bool

	// Truncate: the model needs to know how much of an interrupted answer was heard.
	Truncate bool

	// Cancel: the model supports Interrupt.
	Cancel bool

	// RespondNeeded: after tool results and typed turns the model answers only on Respond. Otherwise Respond does
	// nothing.
	RespondNeeded bool

	// ToolsOff: one answer can be requested with tools switched off.
	ToolsOff bool

	// ToolCancelNotice: the model withdraws calls that an interruption made pointless.
	ToolCancelNotice bool

	Reconfigure ReconfigureForm

	Tools ToolWaiting

	// ToolSchemas is the form of a tool's parameters.
	ToolSchemas SchemaForm

	// Scheduling: a late tool result may say when the model should speak about it.
	Scheduling bool

	// Resume: the model provides handles to continue a conversation on a new connection.
	Resume bool

	AddItem AddItemForm

	// AddItemBeside: a model with AddItemIdle takes entries during calls that it does not pause for.
	AddItemBeside bool

	// Images: the model takes still images (Image).
	Images bool

	// UsageCumulative: the provider reports totals, which the adapter turns into deltas. For information only.
	UsageCumulative bool

	// History is how the model takes the earlier conversation.
	History HistoryForm

	// ConnectionLife is the maximum duration of a connection; zero if unknown.
	ConnectionLife time.Duration

	// Source documents the row.
	Source string
}

// ToolWaiting is a model's behaviour while a tool runs.
type ToolWaiting string

// Values of ToolWaiting.
const (
	// ToolsBlock: the model is silent until it has the result.
	ToolsBlock ToolWaiting = "block"
	// ToolsDeclared: blocking or not is declared with each tool.
	ToolsDeclared ToolWaiting = "declared"
	// ToolsAsync: the model always continues while tools run.
	ToolsAsync ToolWaiting = "async"
)

// SchemaForm is a dialect in which tool parameters are declared.
type SchemaForm string

// Values of SchemaForm.
const (
	// SchemaJSON is unchanged JSON Schema.
	SchemaJSON SchemaForm = ""
	// SchemaOpenAPI is the subset of OpenAPI 3.0 schemas that Gemini accepts.
	SchemaOpenAPI SchemaForm = "openapi"
)

// ReconfigureForm is how a model takes other instructions and tools.
type ReconfigureForm uint8

// Values of ReconfigureForm.
const (
	// ReconfigureReconnect: only on a new connection. The command Reconfigure is dropped.
	ReconfigureReconnect ReconfigureForm = iota
	// ReconfigureLive: by the command Reconfigure.
	ReconfigureLive
)

// AddItemForm is how a model takes the command AddItem.
type AddItemForm uint8

// Values of AddItemForm.
const (
	// AddItemNone: the command is dropped.
	AddItemNone AddItemForm = iota
	// AddItemLive: at any time; the current answer continues without it.
	AddItemLive
	// AddItemIdle: it ends the current answer, so send it only while the model is silent and no call waits for a
	// result; but see Capabilities.AddItemBeside.
	AddItemIdle
)
