package wire

import (
	"cmp"
	"slices"
	"time"

	"voicegw/sim/fault"
	"voicegw/sim/scenario"
)

// Protocol is a wire's side of a connection, for Run.
type Protocol interface {
	// Due is when Proceed must be called; false if only the client can cause something.
	Due() (time.Time, bool)
	Proceed(now time.Time)
	Handle(data []byte)
	// Commit carries out faults that need the protocol.
	Commit(as []fault.Action)
}

// Run is the owner's loop until the connection is over. ending is the reason of the close by an ending server.
func (c *Conn) Run(p Protocol, ending string) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for !c.closed {
		wait := time.Hour
		if at, ok := p.Due(); ok {
			wait = max(time.Until(at), 0)
		}
		timer.Reset(wait)
		select {
		case f := <-c.frames:
			if f.err != nil {
				return
			}
			p.Commit(c.Flush()) // a fault that was injected before the frame came applies to it
			p.Handle(f.data)
		case <-c.timer.C:
			p.Commit(c.Flush())
		case <-timer.C:
		case <-c.done:
			c.Close(1001, ending)
			return
		}
		p.Proceed(time.Now())
	}
}

// Agenda holds actions in the order of their times. The zero value is empty.
type Agenda struct {
	tasks []task
}

type task struct {
	at time.Time
	do func(now time.Time)
}

// Add adds an action after those of the same time.
func (a *Agenda) Add(at time.Time, do func(now time.Time)) {
	i, _ := slices.BinarySearchFunc(a.tasks, at, func(t task, at time.Time) int { return cmp.Or(t.at.Compare(at), -1) })
	a.tasks = slices.Insert(a.tasks, i, task{at, do})
}

// Next is the time of the next action; false without any.
func (a *Agenda) Next() (time.Time, bool) {
	if len(a.tasks) == 0 {
		return time.Time{}, false
	}
	return a.tasks[0].at, true
}

// Run carries out the actions that are due, until closed is true.
func (a *Agenda) Run(now time.Time, closed func() bool) {
	for len(a.tasks) > 0 && !a.tasks[0].at.After(now) && !closed() {
		do := a.tasks[0].do
		a.tasks = a.tasks[1:]
		do(now)
	}
}

// PlanCall applies the faults of a call to it and returns the other faults. made is the id of a call without its own.
func PlanCall(call *scenario.Call, made string, as []fault.Action) (others []fault.Action) {
	for _, a := range as {
		switch a.Kind {
		case fault.DuplicateCall:
			call.Repeat += a.Times
		case fault.LateCall:
			call.Late = max(call.Late, a.For, time.Millisecond)
		case fault.MissingID:
			call.WithoutID = true
		default:
			others = append(others, a)
		}
	}
	call.ID = cmp.Or(call.ID, made)
	if call.WithoutID {
		call.ID = ""
	}
	return others
}
