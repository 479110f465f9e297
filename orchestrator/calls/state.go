package calls

import "slices"

// state is where an open call stands.
type state uint8

// The states of a call.
const (
	// called: the model has asked for it, and nothing is decided yet.
	called state = iota
	// joined: it waits for the answer of another call.
	joined
	// asking: the question whether it may run is being recorded.
	asking
	// waiting: a person is asked. The model has been told so, which is the call's answer.
	waiting
	// resolving: what the person has said is being recorded.
	resolving
	// queued: it may run when a place is free.
	queued
	// running: its tool runs.
	running
	// stopping: its tool was told to stop, and has not ended yet.
	stopping
	// answered: it is over, and the model has its answer, or is told of it soon.
	answered
	// withdrawn: it is over, and nobody waits for an answer.
	withdrawn
)

// follows is the whole life of a call: what may come after each state. A call begins as
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

// String names a state, for tests and logs.
func (s state) String() string {
	return [...]string{"called", "joined", "asking", "waiting for a person", "resolving", "queued", "running", "stopping", "answered", "withdrawn"}[s]
}

// move moves a call to its next state.
func (c *Calls) move(k *call, next state) {
	c.strayed = c.strayed || !slices.Contains(follows[k.state], next)
	k.state = next
}

// Strayed says whether a call has ever taken a way that the table of states does not have:
// that is a bug of this package, which tests look for.
func (c *Calls) Strayed() bool { return c.strayed }

// Reader says who waits for the answer of a call.
type Reader uint8

// The readers of an answer.
const (
	// ByCall: the model does, as the answer to its call.
	ByCall Reader = iota
	// ByNotice: the model is told in a turn of its own: a person has approved the call, and
	// the model's own call has its answer or never was.
	ByNotice
	// Nobody waits because the call is another one announced again, which gets the answer;
	Repeated
	// because the model was answered when the user went on;
	Superseded
	// or because the model has withdrawn the call.
	Cancelled
)

// why says in the audit why the model was not given an answer; empty if it waits for it.
func (r Reader) why() string {
	return map[Reader]string{Repeated: "repeated", Superseded: "superseded", Cancelled: "cancelled"}[r]
}

// wants says whether the model waits for the answer.
func (r Reader) wants() bool { return r == ByCall || r == ByNotice }
