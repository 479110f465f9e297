package voice

import "time"

// DefaultPause is the silence between an answer and the next turn, or the end.
const DefaultPause = 300 * time.Millisecond

// Act is a turn's action, named as in a script.
type Act string

// The acts.
const (
	Say  Act = "say"  // speak a recording
	Type Act = "type" // send a text
	Stop Act = "stop" // press the stop button
	Wait Act = "wait" // wait in silence

	// Drop cuts the connection without a close frame, as a network does.
	Drop Act = "drop"
	// Reload leaves like a browser reloading the page: queued audio and playback positions are lost.
	Reload Act = "reload"
	// Roam opens another connection while the old one is open, like a phone that changes networks.
	Roam Act = "roam"
	// Move is not available to scripts: the gateway moves the session to another one and closes the connection.
	Move Act = "move"
)

// Disconnects reports whether the act closes the connection.
func (a Act) Disconnects() bool { return a == Drop || a == Reload || a == Roam }

// WaitFor is the event that ends a turn, named as in a script.
type WaitFor string

// The events.
const (
	ForAnswer     WaitFor = "answer"      // the answer was heard to the end
	ForFirstAudio WaitFor = "first_audio" // the answer begins
	ForNothing    WaitFor = "nothing"     // the speech ended
	ForEnd        WaitFor = "end"         // the model ended the session
	ForTool       WaitFor = "tool"        // a tool finished
)

// From is a moment of the previous turn.
type From int

// The moments.
const (
	FromEnd    From = iota // its end
	FromAnswer             // the first audio of its answer
	FromSpeech             // the first voiced sample of its speech
)

// Approval says who answers when a tool needs approval.
type Approval int

// The approvers.
const (
	// ApprovalNobody lets the question expire.
	ApprovalNobody Approval = iota
	// ApprovalYes approves, ApprovalNo declines.
	ApprovalYes
	ApprovalNo
	// ApprovalAsk puts the question to a person, who answers through Link.Answers. The turn is not over before the
	// question is.
	ApprovalAsk
)

// Turn is an action and the event that ends it.
type Turn struct {
	Act Act
	// Wait is the duration of the act Wait, and the minimum time without a connection of Drop and Reload.
	Wait time.Duration
	// From is the moment from which After counts, for a turn that disconnects. The previous turn continues.
	From  From
	After time.Duration
	// Pause is the silence between the previous answer and this turn.
	Pause time.Duration
	// Interrupts begins the turn InterruptAfter after the first audio of the previous answer instead of after its end.
	Interrupts     bool
	InterruptAfter time.Duration
	// WaitFor is the event that ends the turn. Tool is the tool's name for ForTool.
	WaitFor  WaitFor
	Tool     string
	Approval Approval
	Patience time.Duration
	Error    string
	KeepText bool
}

// Outage disconnects at intervals, even during a turn.
type Outage struct {
	// Act is Drop, Reload or Roam.
	Act Act
	// First is the time from the beginning of the session to the first outage, Every the interval after it.
	First, Every time.Duration
	// Away is the minimum time without a connection. Roam ignores it.
	Away time.Duration
}
