package scenario

import (
	"encoding/json"
	"time"

	"voicegw/sim/fault"
)

// Heard is one complete input of the user.
type Heard struct {
	// Text is the typed text. It is empty for speech: the simulator does not
	// recognise words.
	Text string
	// Spoken means that the input was speech.
	Spoken bool
	// Duration is the length of the speech, without the silence around it.
	Duration time.Duration
}

// Tool is a tool that the client declared.
type Tool struct {
	Name        string
	Description string
	// Parameters is the JSON Schema or the OpenAPI subset of Gemini (type names
	// in either case). Empty means no parameters.
	Parameters json.RawMessage
}

// Context is what the model knows when it answers.
type Context struct {
	// Instructions is the system instruction.
	Instructions string
	// Tools are the tools that are declared and allowed now.
	Tools []Tool
	// Memory is the conversation as the model knows it, the oldest line first, without the
	// input that is being answered. The dialogue keeps nothing of it.
	Memory []Memory
	// ToolsOff forbids calls (tool_choice "none"). Scripted calls are left out too.
	ToolsOff bool
	// ToolRequired requires at least one call (tool_choice "required").
	ToolRequired bool
	// ToolNamed requires a call of this tool (tool_choice {"name": …}).
	ToolNamed string
	// Now is the time on which ${today} and ${tomorrow} are based. Zero means the simulated
	// model's own day, which is the same in every run.
	Now time.Time
	// Preamble means that this model speaks a line before it calls a tool on its own initiative.
	Preamble bool
}

// Result is the client's answer to one tool call.
type Result struct {
	// Name is the tool's name.
	Name string
	// Output is the answer as received: text, or JSON text.
	Output string
}

// Turn is the model's reaction to one input.
type Turn struct {
	// Heard is the transcript of what the user said: the typed text, the
	// scenario's `heard`, or "(speech, 11.0 seconds)". Empty for Results and Continue.
	Heard string
	// Steps are carried out in order. Without steps the model does not
	// answer. Only Wait, Fault or End may follow a Calls step:
	// Dialogue.Results returns what comes after the results.
	Steps []Step
}

// Step is one of Say, Calls, Wait, Fault, End.
type Step interface{ step() }

// Say speaks (or writes, if the session's output is text).
type Say struct {
	// Text is the line with its variables filled in.
	Text string
	// Refusal means that Text declines to answer. A wire without refusals
	// speaks it like any line.
	Refusal bool
	// Silence, if Text is empty, is silent audio of that length: an answer
	// that cannot be heard. A text session leaves it out.
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
	// ID is the call's id; if it is empty the wire makes one.
	ID string
	// WithoutID leaves the id out.
	WithoutID bool
	// Repeat sends the same call (same id) this many more times.
	Repeat int
	// Late, above 0, sends the call this long after the turn has ended.
	Late time.Duration
}

// Wait does nothing for a while; earlier output has been sent already.
type Wait struct {
	For time.Duration
}

// Fault injects a fault at this place.
type Fault struct {
	Action fault.Action
}

// End closes the connection.
type End struct {
	Code   int // the close code, 1000 if the scenario names none
	Reason string
}

func (Say) step()   {}
func (Calls) step() {}
func (Wait) step()  {}
func (Fault) step() {}
func (End) step()   {}
