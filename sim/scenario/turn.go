package scenario

import (
	"encoding/json"
	"time"
)

// Heard is one complete input of the user.
type Heard struct {
	// Text is typed text; empty for speech, which the simulator does not recognise.
	Text   string
	Spoken bool
	// Duration is the length of the speech, without the silence around it.
	Duration time.Duration
}

// Tool is a tool declared by the client.
type Tool struct {
	Name        string
	Description string
	// Parameters is a JSON Schema or Gemini's OpenAPI subset (type names in either case). Empty means no parameters.
	Parameters json.RawMessage
}

// Context is the model's state for an answer.
type Context struct {
	Instructions string
	Tools        []Tool
	// Memory is the conversation known to the model, oldest line first, without the input being answered. The
	// dialogue does not keep it.
	Memory []Memory
	// ToolsOff forbids calls (tool_choice "none"), including scripted ones.
	ToolsOff bool
	// ToolRequired requires a call (tool_choice "required").
	ToolRequired bool
	// ToolNamed requires a call of this tool (tool_choice {"name": …}).
	ToolNamed string
	// Now is the basis of ${today} and ${tomorrow}. Zero means the fixed date of the simulated world.
	Now time.Time
	// Preamble means that the model speaks a line before an unscripted tool call.
	Preamble bool
	// Delegates means that another model has the tools: what a rule declares exists, and a call is a delegation.
	Delegates bool
}

// Result is the client's answer to a tool call.
type Result struct {
	Name string
	// Output is the answer as received: text, or JSON text.
	Output string
}

// Turn is the model's reaction to one input.
type Turn struct {
	// Heard is the transcript of the user's input: typed text, the scenario's `heard`, or "(speech, 11.0 seconds)".
	// Empty for Results and Continue.
	Heard string
	// Steps are carried out in order; none means no answer. Only Wait, Fault or End may follow a Calls step:
	// Dialogue.Results returns the steps after the results.
	Steps []Step
}

// Step is one of Say, Calls, Wait, Fault, End.
type Step interface{ step() }

// Say speaks, or writes if the session's output is text.
type Say struct {
	Text string
	// Refusal means that Text declines to answer. A wire without refusals speaks it.
	Refusal bool
	// Silence, if Text is empty, is silent audio of this length. Text sessions omit it.
	Silence time.Duration
}

// Calls calls tools, in parallel if there are several.
type Calls struct {
	Calls []Call
}

// Call is one tool call.
type Call struct {
	Name string
	// Args is a JSON object.
	Args json.RawMessage
	// ID is the call's id; if empty, the wire makes one.
	ID        string
	WithoutID bool
	// Repeat sends the same call (same id) this many more times.
	Repeat int
	// Late, above 0, sends the call this long after the end of the turn.
	Late time.Duration
}

// Wait pauses; earlier output has been sent.
type Wait struct {
	For time.Duration
}

// End closes the connection.
type End struct {
	Code   int // close code; 1000 by default
	Reason string
}

func (Say) step()   {}
func (Calls) step() {}
func (Wait) step()  {}
func (Fault) step() {}
func (End) step()   {}
