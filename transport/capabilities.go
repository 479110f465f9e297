package transport

import "time"

// Capabilities describes what one model can do and what it needs from its caller.
// Every adapter has a table with one row per model and the source of each row. Code
// outside the adapters decides by this record, never by a model's name.
type Capabilities struct {
	// SpeechEvents: the model reports where the user's speech starts and stops.
	// Without it the caller must detect speech itself.
	SpeechEvents bool

	// InterruptNotice: the model reports that the user has interrupted it
	// (Interrupted). Without it, the start of speech is the interruption.
	InterruptNotice bool

	// Truncate: the model must be told how much of an interrupted answer was heard.
	Truncate bool

	// Cancel: the model can be made to stop speaking (Interrupt).
	Cancel bool

	// RespondNeeded: after tool results and typed turns the model answers only when it is
	// asked to (Respond). Without it, Respond does nothing.
	RespondNeeded bool

	// ToolsOff: one answer can be requested with tools switched off.
	ToolsOff bool

	// ToolCancelNotice: the model withdraws calls that an interruption made pointless.
	ToolCancelNotice bool

	// Reconfigure is how the model takes other instructions and tools.
	Reconfigure ReconfigureForm

	// Tools is how the model waits for tools.
	Tools ToolWaiting

	// ToolSchemas is the form in which the model takes a tool's parameters.
	ToolSchemas SchemaForm

	// Scheduling: a late tool result may carry when the model should speak about it.
	Scheduling bool

	// Resume: the model hands out handles with which a conversation can continue over a
	// new connection.
	Resume bool

	// AddItem is how the model takes an entry of a conversation without a turn.
	AddItem AddItemForm

	// AddItemBeside: a model with AddItemIdle takes an entry also while calls wait, if all of them are calls
	// beside which it continues.
	AddItemBeside bool

	// Images: the model takes still images (Image).
	Images bool

	// UsageCumulative: the provider reports totals, from which the adapter computes deltas.
	// For information only: Usage events are always deltas.
	UsageCumulative bool

	// History is how the model takes what was said before the connection was opened.
	History HistoryForm

	// ConnectionLife is the longest time that one connection lasts; zero if unknown.
	ConnectionLife time.Duration

	// Source is where the row's facts come from.
	Source string
}

// ToolWaiting is how a model behaves while a tool runs.
type ToolWaiting string

// The ways a model waits for tools.
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

// The dialects. The zero value is SchemaJSON.
const (
	// SchemaJSON is unchanged JSON Schema.
	SchemaJSON SchemaForm = ""
	// SchemaOpenAPI is the subset of OpenAPI 3.0 schemas that Gemini accepts.
	SchemaOpenAPI SchemaForm = "openapi"
)

// ReconfigureForm is how a model takes other instructions and tools than those of its setup.
type ReconfigureForm uint8

// The forms of a reconfiguration.
const (
	// ReconfigureReconnect: only over a new connection. The command Reconfigure is dropped.
	ReconfigureReconnect ReconfigureForm = iota
	// ReconfigureLive: by the command Reconfigure.
	ReconfigureLive
)

// AddItemForm is how a model takes the command AddItem.
type AddItemForm uint8

// The forms in which an entry can be added.
const (
	// AddItemNone: the model takes none. The command is dropped.
	AddItemNone AddItemForm = iota
	// AddItemLive: at any time; an answer that is being generated goes on without it.
	AddItemLive
	// AddItemIdle: it ends an answer that is being generated, so send it only while the model is silent
	// and no call waits for its result; but see Capabilities.AddItemBeside.
	AddItemIdle
)
