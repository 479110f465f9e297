package voice

import "time"

// DefaultPause is the silence between an answer and the next turn, or the goodbye.
const DefaultPause = 300 * time.Millisecond

// Act is what a turn does, by the key that a script has for it.
type Act string

// The acts.
const (
	Say  Act = "say"  // speak a recording
	Type Act = "type" // send a text
	Stop Act = "stop" // press the stop button
	Wait Act = "wait" // wait in silence

	// Drop cuts the connection without a word, as a network does.
	Drop Act = "drop"
	// Reload leaves as the page of a browser does that is loaded again: what was to be played is
	// gone, and which audio has come is forgotten.
	Reload Act = "reload"
	// Roam opens another connection while the old one stays open, as a telephone does that changes
	// its network.
	Roam Act = "roam"
	// Move cannot be asked for by a script: the gateway gives the session to another one and ends the
	// connection.
	Move Act = "move"
)

// Disconnects reports whether the act takes the connection away.
func (a Act) Disconnects() bool { return a == Drop || a == Reload || a == Roam }

// WaitFor is the event that ends a turn, by its word in a script.
type WaitFor string

// The events that can end a turn.
const (
	ForAnswer     WaitFor = "answer"      // the answer has been heard to its end
	ForFirstAudio WaitFor = "first_audio" // the answer begins
	ForNothing    WaitFor = "nothing"     // it was said
	ForEnd        WaitFor = "end"         // the model ends the session
	ForTool       WaitFor = "tool"        // a tool has ended
)

// From is a moment of the turn before.
type From int

// The values of Turn.From.
const (
	FromEnd    From = iota // its end
	FromAnswer             // the first audio of its answer
	FromSpeech             // the first voiced sample of its speech
)

// Approval is who answers when a tool needs the user's approval.
type Approval int

// The values of Turn.Approval.
const (
	// ApprovalNobody lets the question expire.
	ApprovalNobody Approval = iota
	// ApprovalYes approves, ApprovalNo declines.
	ApprovalYes
	ApprovalNo
	// ApprovalAsk puts the question to a person, who answers with Conversation.Answer of package
	// voice. The turn is not over before the question is.
	ApprovalAsk
)

// Turn is one thing to do, and what ends it.
type Turn struct {
	Act Act
	// Wait is how long the act Wait waits, and how long Drop and Reload stay without a connection at
	// least.
	Wait time.Duration
	// From is the moment from which After counts, for a turn that takes the connection away. The turn
	// before goes on.
	From  From
	After time.Duration
	// Pause is the silence between the answer before and this turn.
	Pause time.Duration
	// Interrupts begins the turn InterruptAfter after the first audio of the answer before,
	// instead of after its end.
	Interrupts     bool
	InterruptAfter time.Duration
	// WaitFor is the event that ends the turn, Tool the tool's name for ForTool.
	WaitFor WaitFor
	Tool    string
	// Approval is who answers when a tool asks.
	Approval Approval
	// Patience is how long nothing may be heard.
	Patience time.Duration
	// Error is the code of an error that answers the turn; empty if none is expected.
	Error string
	// KeepText keeps what was said in the turn.
	KeepText bool
}

// Outage takes the connection away now and then, whatever is being said.
type Outage struct {
	// Act is Drop, Reload or Roam.
	Act Act
	// First is how long after the beginning of the session it comes first, Every the time from one
	// to the next.
	First, Every time.Duration
	// Away is how long the conversation stays without a connection at least. It means nothing
	// for Roam.
	Away time.Duration
}
