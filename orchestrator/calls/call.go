package calls

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"
	"unicode/utf8"

	"voicegw/internal/audit"
	"voicegw/protocol"
	"voicegw/registry"
)

type call struct {
	id       string // the gateway's name for the call
	model    string // the model's name for the call; empty for an approved action
	provider string // the provider's id of the call
	tool     string // the tool as the client knows it
	runs     string // the tool that runs; differs from tool for ConfirmAction
	turn     int
	by       Agent              // the agent that made it
	tools    *registry.Snapshot // that agent's tools; may be nil
	state    state
	reader   reader
	unlinked bool   // the model's connection is gone
	into     string // if joined: the call that answers it
	echo     bool   // if joined: the provider repeated that call

	written  json.RawMessage // the arguments as the model wrote them
	asked    string          // written in canonical form
	args     json.RawMessage // the tool's arguments, with defaults and limits applied
	prepared *registry.Prepared
	keys     Keys
	budget   json.RawMessage
	message  string
	approval *Approved // may be nil
	repeats  *registry.Envelope
	question *OpenQuestion // if waiting or resolving; never changed in place

	askedAt    time.Time
	queuedAt   time.Time
	progressAt time.Time // when the client gets the next tool.progress
	progress   progress
}

// hasTool reports whether a tool runs for the call, or will run unless the user declines.
func (k *call) hasTool() bool { return k.state == asking || k.state == queued || k.working() }

func (k *call) working() bool { return k.state == running || k.state == stopping }

// wasAsked reports whether the user was asked about the call, so that the model has its answer already.
func (k *call) wasAsked() bool { return k.state == waiting || k.state == resolving }

// joinable reports whether a call with the same key may join this one.
func (k *call) joinable() bool { return k.hasTool() || k.state == joined && !k.echo }

// stoppable reports whether the tool can be stopped, or prevented from starting.
func (k *call) stoppable() bool {
	return (k.state == running || k.state == queued) && k.prepared != nil && k.prepared.Tool().Cancellable
}

func (k *call) run() Run {
	r := Run{Turn: k.turn, Call: k.id, Prepared: k.prepared, Keys: k.keys, Message: k.message, Repeats: k.repeats}
	if k.approval != nil {
		r.Reference = k.approval.Reference
	}
	return r
}

func (c *openCalls) find(id string) *call {
	return c.first(func(k *call) bool { return k.id == id && id != "" })
}

func (c *openCalls) first(is func(*call) bool) *call {
	for i := range c.open {
		if is(&c.open[i]) {
			return &c.open[i]
		}
	}
	return nil
}

func (c *openCalls) remove(id string) (k call) {
	if i := slices.IndexFunc(c.open, func(o call) bool { return o.id == id }); i >= 0 {
		k = c.open[i]
		c.open = slices.Delete(c.open, i, i+1)
	}
	return k
}

// awaited reports whether the model waits for the answer.
func (k *call) awaited() bool { return !k.wasAsked() && k.reader.wants() }

func (c *openCalls) number(is func(*call) bool) (n int) {
	for i := range c.open {
		if is(&c.open[i]) {
			n++
		}
	}
	return n
}

// UnderWay returns the number of open calls without questions.
func (c *openCalls) UnderWay() int { return len(c.open) - c.Questions() }

// Owed reports whether the model waits for the answer to a call of that turn.
func (c *openCalls) Owed(turn int) bool {
	return c.first(func(k *call) bool { return k.turn == turn && k.awaited() }) != nil
}

// Awaited returns the number of calls whose answer the model waits for.
func (c *openCalls) Awaited() int { return c.number((*call).awaited) }

// Questions returns the number of open questions.
func (c *openCalls) Questions() int { return c.number((*call).wasAsked) }

// wanted reports whether the model waits for the answer to a call or to one that joined it.
func (c *openCalls) wanted(id string) bool {
	return c.first(func(k *call) bool { return (k.id == id || k.into == id) && k.reader.wants() }) != nil
}

// Answer ends a call with its result.
type Answer struct {
	Turn int
	Call string
	Tool string
	// Model is the model's name for the call. reader says how the model gets the answer, or why not.
	Model        string
	reader       reader
	Envelope     registry.Envelope
	Ran          bool               // true if this call produced the result, false if it repeats another call's
	OverBudget   bool               // the model must answer without further tools
	Owed         bool               // the model waits for other calls of the turn
	Prepared     *registry.Prepared // the call that ran or was about to run; nil if there was none
	Approval     *Approved          // nil for a call that needed none
	Written      json.RawMessage    // the arguments as the model wrote them, possibly invalid JSON
	Queued, Took time.Duration      // until the handler started, and its time; zero if nothing ran

	category string
	tools    *registry.Snapshot // of the agent that made the call; may be nil
	record   audit.Record       // without the result, and the answer's delivery
}

func (c *Calls) answer(k *call, env registry.Envelope, ran bool) Answer {
	c.remember(k, env)
	end := withdrawn
	if k.reader.wants() {
		end = answered
	}
	c.setState(k, end)
	a := Answer{
		Owed: c.Owed(k.turn),
		Turn: k.turn, Call: k.id, Tool: k.tool, Model: k.model, reader: k.reader, Envelope: env, Ran: ran,
		Prepared: k.prepared, Approval: k.approval, Written: k.written, category: c.category(k.tool),
		tools: k.tools,
		record: audit.Record{
			Agent: k.by.Name, AgentVersion: k.by.Version, ToolID: k.tool, Mode: c.book.rules.Mode, TurnID: k.turn,
			ToolCall: audit.ToolCall{CallID: k.id, ProviderCallID: k.provider,
				IdempotencyKey: k.keys.Idempotency, BusinessKey: k.keys.Business},
			Budget: k.budget, Args: k.args,
		},
	}
	if k.args != nil {
		a.record.ToolID = k.runs
	}
	if k.approval != nil {
		a.record.Approval = audit.Approval{ConfirmedBy: string(k.approval.By), Reference: k.approval.Reference, Waited: k.approval.Waited}
	}
	return a
}

// Wanted reports whether the model waits for the answer.
func (a Answer) Wanted() bool { return a.reader.wants() }

// ByNotice reports whether the model gets the answer in a separate turn: its own call is answered or never existed.
func (a Answer) ByNotice() bool { return a.reader == byNotice }

// Intents returns the tool's intents. A call that did not run has none.
func (a Answer) Intents() []registry.Intent {
	if !a.Ran || !a.Envelope.OK || a.Envelope.Meta.CacheHit {
		return nil
	}
	return a.Envelope.Intents
}

// Effect describes the delivery of an answer: the intents, why the last was refused, and why the model did not get it.
type Effect struct {
	Applied, Refused  []registry.Intent
	Why, NotDelivered string
}

// Record returns the audit record of the call. An answer that the model does not wait for counts as not delivered.
func (a Answer) Record(at time.Time, e Effect) audit.Record {
	r := a.record
	r.Queued, r.Intents, r.Refused, r.Why = a.Queued, audit.IntentTypes(e.Applied), audit.IntentTypes(e.Refused), e.Why
	r.NotDelivered = cmp.Or(a.reader.why(), e.NotDelivered)
	return audit.Call(at, r, a.tools, a.Envelope)
}

// Inside returns the inspector's message, which follows Message. r is the complete audit record.
func (a Answer) Inside(r audit.Record) (*protocol.InspectCall, error) {
	args := r.Args
	if args == nil {
		args = askedFor(a.Written)
	}
	r.Args = nil
	record, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return &protocol.InspectCall{
		Header: protocol.Header{Turn: a.Turn}, CallID: a.Call, Tool: a.Tool,
		QueuedMS: a.Queued.Milliseconds(), RunMS: a.Took.Milliseconds(),
		Record: record, Args: args, Envelope: a.Envelope.Encode(),
	}, nil
}

// askedFor returns a model's arguments as JSON: invalid JSON becomes a string, missing arguments an empty object.
func askedFor(raw json.RawMessage) json.RawMessage {
	switch {
	case len(raw) == 0:
		return json.RawMessage("{}")
	case json.Valid(raw) && utf8.Valid(raw): // invalid UTF-8 would break the client's connection
		return raw
	}
	text, _ := json.Marshal(string(raw)) // only a string: it cannot fail
	return text
}

// Message returns the client's message about the end of the call.
func (a Answer) Message() *protocol.ToolEnded {
	m := &protocol.ToolEnded{Header: protocol.Header{Turn: a.Turn}, CallID: a.Call, Tool: a.Tool, Category: a.category,
		OK: a.Envelope.OK, DurationMS: a.Envelope.Meta.DurationMS, Deduplicated: a.Envelope.Meta.CacheHit}
	if a.Envelope.Error != nil {
		m.Error, _ = json.Marshal(a.Envelope.Error) // the model gets the same text: it cannot fail
	}
	if len(a.Envelope.Meta.Clamped) > 0 {
		m.Clamped, _ = json.Marshal(a.Envelope.Meta.Clamped) // only numbers: it cannot fail
	}
	return m
}

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
	byCall     reader = iota // as the answer to its call
	byNotice                 // in a separate turn, because the model's own call is answered or never existed
	repeated                 // the call repeats another one, which gets the answer
	superseded               // the model was answered when the user moved on
	cancelled                // the model has withdrawn the call
	lost                     // another process ran the call, and its outcome is unknown
)

// why returns the audit's reason why the model does not get the answer; empty if it does.
func (r reader) why() string {
	return map[reader]string{repeated: "repeated", superseded: "superseded", cancelled: "cancelled", lost: "node_lost"}[r]
}

func (r reader) wants() bool { return r == byCall || r == byNotice }
