package wire

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/coder/websocket"

	"voicegw/sim/scenario"
)

// Protocol is a wire's side of a connection, for Run.
type Protocol interface {
	// Due is when Proceed must be called; false if only the client can cause something.
	Due() (time.Time, bool)
	Proceed(now time.Time)
	Handle(data []byte)
	// Commit carries out faults that need the protocol.
	Commit(as []scenario.Fault)
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

// Pending holds what the connections of OpenAI's wires do later: actions, and the faults of events already sent.
type Pending struct {
	Agenda
	due []scenario.Fault
}

// After adds an action.
func (p *Pending) After(d time.Duration, do func()) {
	p.Add(time.Now().Add(d), func(time.Time) { do() })
}

// Sent takes the faults that are due at an event. They wait for Settle, so that the state does not change while events
// are being sent.
func (p *Pending) Sent(faults []scenario.Fault) { p.due = append(p.due, faults...) }

// Settle commits the faults of the events sent since the last call. They send events too; the limit is for a script
// that answers each event with another.
func (p *Pending) Settle(commit func([]scenario.Fault)) {
	for i := 0; i < 100 && len(p.due) > 0; i++ {
		due := p.due
		p.due = nil
		commit(due)
	}
	p.due = nil
}

// PlanCall applies the faults of a call to it and returns the other faults. made is the id of a call without its own.
func PlanCall(call *scenario.Call, made string, as []scenario.Fault) (others []scenario.Fault) {
	for _, a := range as {
		switch a.Kind {
		case scenario.DuplicateCall:
			call.Repeat += a.Times
		case scenario.LateCall:
			call.Late = max(call.Late, a.For, time.Millisecond)
		case scenario.MissingID:
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

// Serve runs one connection of an API from its handshake to its end. It injects the faults that
// come before the answer to the handshake, upgrades the request and calls run, which owns the
// connection until it returns, with the other faults of the handshake.
func (o *Options) Serve(w http.ResponseWriter, r *http.Request, api scenario.API, c ConnOptions, run func(*Conn, Begin, []scenario.Fault)) {
	begin := o.Begin(api)
	c.Faults, c.Stats = begin.Faults, o.Stats
	if c.Answer == nil {
		c.Answer = func(a scenario.Fault) bool {
			if a.Kind == scenario.HTTPError {
				http.Error(w, cmp.Or(a.Reason, http.StatusText(a.Code)), a.Code)
			}
			return a.Kind == scenario.HTTPError
		}
	}
	ctx, end := context.WithCancel(context.Background())
	defer end()
	leave, open := o.Group.Enter(end)
	defer leave()
	if !open && !c.UpgradeFirst {
		c.Answer(scenario.Fault{Kind: scenario.HTTPError, Code: http.StatusServiceUnavailable, Reason: unavailable})
		return
	}
	rest, ok := c.connect(ctx, w, r)
	if !ok {
		return
	}
	ws, err := Accept(w, r, c)
	if err != nil {
		o.Logger.Info("handshake failed", "api", string(api), "conn", begin.N, "error", err)
		return
	}
	defer ws.Release()
	if !open {
		ws.Close(int(websocket.StatusGoingAway), ShuttingDown)
		return
	}
	defer o.Group.Attach(r.RemoteAddr, ws)()
	defer context.AfterFunc(ctx, ws.End)()
	o.Stats.Connections.Add(1)
	o.Stats.Open.Add(1)
	defer o.Stats.Open.Add(-1)
	run(ws, begin, rest)
}

// ShuttingDown is the reason of a close by an ending server.
const ShuttingDown = "The simulator is shutting down."

const unavailable = "The service is currently unavailable."

// connect injects the faults of the handshake. It returns those that need the connection, and
// false if the request has been answered.
func (o *ConnOptions) connect(server context.Context, w http.ResponseWriter, r *http.Request) (rest []scenario.Fault, ok bool) {
	for _, a := range o.Faults.At(scenario.Point{At: scenario.AtConnect}) {
		if a.Kind == scenario.HTTPError {
			RetryAfter(w, a.For)
		}
		switch {
		case a.Kind == scenario.Delay || a.Kind == scenario.Silence && !o.UpgradeFirst:
			o.Stats.Committed(a.Kind)
			if !pause(server, r.Context(), a) {
				o.Answer(scenario.Fault{Kind: scenario.HTTPError, Code: http.StatusServiceUnavailable, Reason: unavailable})
				return nil, false
			}
		case a.Kind == scenario.Drop:
			o.Stats.Committed(a.Kind)
			// The server closes the TCP connection without an answer.
			panic(http.ErrAbortHandler)
		case o.Answer(a):
			o.Stats.Committed(a.Kind)
			return nil, false
		default:
			rest = append(rest, a)
		}
	}
	return rest, true
}

// pause waits for the end of a delay or a silence; false if the server or the client ends first, or the silence is
// endless.
func pause(server, client context.Context, a scenario.Fault) bool {
	var due <-chan time.Time
	if a.Kind == scenario.Delay || a.For > 0 {
		t := time.NewTimer(a.For)
		defer t.Stop()
		due = t.C
	}
	select {
	case <-due:
		return true
	case <-server.Done():
	case <-client.Done():
	}
	return false
}

// RetryAfter sets the headers for a retry after d, in whole seconds, rounded up, and in ms for OpenAI's clients. Zero
// sets nothing.
func RetryAfter(w http.ResponseWriter, d time.Duration) {
	if d <= 0 {
		return
	}
	w.Header().Set("Retry-After", strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10))
	w.Header().Set("Retry-After-Ms", strconv.FormatInt(d.Milliseconds(), 10))
}
