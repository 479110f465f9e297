package calls

import "slices"

// state is the stage of a call's life.
type state uint8

// The states of a call.
const (
	// called: the model has asked for the call, and nothing is decided yet.
	called state = iota
	// joined: the call waits for the answer of another call.
	joined
	// asking: the question whether the call may run is being recorded.
	asking
	// waiting: the user has been asked. The model has been told so, which answers its call.
	waiting
	// resolving: the user's answer is being recorded.
	resolving
	// queued: the call runs as soon as there is a free place.
	queued
	// running: the tool is running.
	running
	// stopping: the tool was told to stop and has not ended yet.
	stopping
	// answered: the call is over, and the model has its answer or will soon be told.
	answered
	// withdrawn: the call is over, and the model does not get its answer.
	withdrawn
)

// follows is the whole life of a call: the states that may follow each state. A call begins as
// called and ends as answered or withdrawn.
var follows = map[state][]state{
	called:    {joined, asking, queued, running, answered, withdrawn},
	joined:    {joined, queued, answered, withdrawn},
	asking:    {waiting, answered, withdrawn},
	waiting:   {resolving, answered},
	resolving: {waiting, answered},
	queued:    {running, answered, withdrawn},
	running:   {stopping, answered, withdrawn},
	stopping:  {answered, withdrawn},
}

// String returns the state's name, for tests and logs.
func (s state) String() string {
	return [...]string{"called", "joined", "asking", "waiting for a person", "resolving", "queued", "running", "stopping", "answered", "withdrawn"}[s]
}

// move moves a call to its next state.
func (c *Calls) move(k *call, next state) {
	c.strayed = c.strayed || !slices.Contains(follows[k.state], next)
	k.state = next
}

// Strayed reports whether a call has ever made a transition that follows does not allow. That
// is a bug in this package; tests look for it.
func (c *Calls) Strayed() bool { return c.strayed }

// Reader tells how the model gets the answer to a call, or why it does not.
type reader uint8

// The readers of an answer.
const (
	// ByCall: the model gets it as the answer to its call.
	byCall reader = iota
	// ByNotice: the model is told in a separate turn, because a person has approved the call and
	// the model's own call is already answered or never existed.
	byNotice
	// Repeated: the call is another one announced again, and that one gets the answer.
	repeated
	// Superseded: the model was already answered when the user moved on.
	superseded
	// Cancelled: the model has withdrawn the call.
	cancelled
	// Lost: another process has run the call, and nobody knows what came of it.
	lost
)

// why returns the audit's word for why the model does not get the answer; empty if it does.
func (r reader) why() string {
	return map[reader]string{repeated: "repeated", superseded: "superseded", cancelled: "cancelled", lost: "node_lost"}[r]
}

// wants reports whether the model waits for the answer.
func (r reader) wants() bool { return r == byCall || r == byNotice }
