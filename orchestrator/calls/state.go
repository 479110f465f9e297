package calls

import "slices"

type state uint8

// Values of state.
const (
	called    state = iota // not decided yet
	joined                 // waits for the answer to another call
	asking                 // the question to the user is being recorded
	waiting                // the user was asked. The model's call is answered.
	resolving              // the user's answer is being recorded
	queued                 // runs once fewer than maxParallel run
	running
	stopping  // the tool is asked to stop and has not ended yet
	answered  // over; the model has its answer or will get it soon
	withdrawn // over; the model does not get the answer
)

// follows lists the states that may follow each state. A call begins as called and ends as answered or withdrawn.
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

func (s state) String() string {
	return [...]string{"called", "joined", "asking", "waiting for a person", "resolving", "queued", "running", "stopping",
		"answered", "withdrawn"}[s]
}

func (c *Calls) setState(k *call, next state) {
	c.strayed = c.strayed || !slices.Contains(follows[k.state], next)
	k.state = next
}

// Strayed reports whether a call has ever made a transition outside follows, which is a bug. Tests check it.
func (c *Calls) Strayed() bool { return c.strayed }

// reader says how the model gets the answer to a call, or why not.
type reader uint8

// Values of reader.
const (
	byCall reader = iota // as the answer to its call
	// byNotice: in a separate turn, because a person has approved the call and the model's own call is answered or
	// never existed.
	byNotice
	repeated   // the call repeats another one, which gets the answer
	superseded // the model was answered when the user moved on
	cancelled  // the model has withdrawn the call
	lost       // another process ran the call, and its outcome is unknown
)

// why returns the audit's reason why the model does not get the answer; empty if it does.
func (r reader) why() string {
	return map[reader]string{repeated: "repeated", superseded: "superseded", cancelled: "cancelled", lost: "node_lost"}[r]
}

func (r reader) wants() bool { return r == byCall || r == byNotice }
