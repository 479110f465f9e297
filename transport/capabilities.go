package transport

import "time"

// Capabilities says what one model can do and what it needs from its caller.
// Every adapter holds a table of them, a row for each model with its source; code
// outside adapters asks this record, never a name.
type Capabilities struct {
	// SpeechEvents: the model reports where the user's speech starts and stops.
	// Without it the caller listens itself.
	SpeechEvents bool

	// InterruptNotice: the model says when the user has interrupted it
	// (Interrupted). Without it, the start of speech is the interruption.
	InterruptNotice bool

	// Truncate: the model must be told what of an interrupted answer was heard.
	Truncate bool

	// Cancel: the model can be made to stop speaking (Interrupt).
	Cancel bool

	// RespondNeeded: after tool results and typed turns the model waits to be asked
	// for its answer (Respond). Without it, Respond does nothing.
	RespondNeeded bool

	// ToolsOff: an answer can be asked for with tools switched off.
	ToolsOff bool

	// ToolCancelNotice: the model withdraws calls that an interruption made moot.
	ToolCancelNotice bool

	// Tools says how the model waits for tools.
	Tools ToolWaiting

	// ToolSchemas is the form in which the model takes a tool's parameters.
	ToolSchemas SchemaForm

	// Scheduling: a late tool result may say when to speak of it.
	Scheduling bool

	// Resume: the model hands out handles with which a conversation goes on over a
	// new connection.
	Resume bool

	// UsageCumulative: the provider reports totals; the adapter makes deltas of
	// them. Told for the curious: Usage events are always deltas.
	UsageCumulative bool

	// ConnectionLife is how long one connection lasts at most; zero if unknown.
	ConnectionLife time.Duration

	// Source says where the row comes from.
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
	// ToolsAsync: the model always goes on while tools run.
	ToolsAsync ToolWaiting = "async"
)

// SchemaForm is a dialect in which tool parameters are declared.
type SchemaForm string

// The dialects. The zero value is SchemaJSON.
const (
	// SchemaJSON is JSON Schema as it is.
	SchemaJSON SchemaForm = ""
	// SchemaOpenAPI is the subset of OpenAPI 3.0 schemas that Gemini takes.
	SchemaOpenAPI SchemaForm = "openapi"
)
