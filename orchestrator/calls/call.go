package calls

import (
	"encoding/json"
	"slices"
	"time"

	"voicegw/audit"
	"voicegw/orchestrator/policy"
	"voicegw/protocol"
	"voicegw/registry"
)

// call is one call that is not over.
type call struct {
	id       string // ours
	model    string // the name that answers it; empty for an action that a person has approved
	provider string // the provider's id of it
	tool     string // as the client was told
	runs     string // the tool that runs for it, which differs for ConfirmAction
	turn     int
	state    state
	reader   Reader
	into     string // of joined: the call whose answer it gets
	echo     bool   // of joined: it is that call, announced again

	written  json.RawMessage // its arguments, as the model wrote them
	asked    string          // the same in canonical form
	args     json.RawMessage // as they run: with defaults, lowered
	prepared *registry.Prepared
	keys     policy.Keys
	budget   json.RawMessage
	message  string
	approval *Approved // that of a person
	question *question // of waiting and resolving

	askedAt    time.Time
	queuedAt   time.Time
	progressAt time.Time // when the client is told next that it still runs
}

// prepares notes what runs for the call.
func (k *call) prepares(p *registry.Prepared) { k.prepared, k.args = p, p.Args() }

// hasTool says whether a tool runs for the call, or is to run unless the user says no.
func (k *call) hasTool() bool {
	return k.state == asking || k.state == queued || k.working()
}

// working says whether the tool runs.
func (k *call) working() bool { return k.state == running || k.state == stopping }

// put says whether the call's question has been put to the user: the model has its answer.
func (k *call) put() bool { return k.state == waiting || k.state == resolving }

// joinable says whether a call with the same key joins this one.
func (k *call) joinable() bool { return k.hasTool() || k.state == joined && !k.echo }

// stoppable says whether the tool can be stopped, or kept from beginning.
func (k *call) stoppable() bool {
	return (k.state == running || k.state == queued) && k.prepared != nil && k.prepared.Tool().Cancellable
}

func (k *call) run() Run {
	r := Run{Turn: k.turn, Call: k.id, Prepared: k.prepared, Keys: k.keys, Message: k.message}
	if k.approval != nil {
		r.Reference = k.approval.Reference
	}
	return r
}

// find finds a call by its name.
func (c *Calls) find(id string) *call {
	return c.first(func(k *call) bool { return k.id == id && id != "" })
}

func (c *Calls) first(is func(*call) bool) *call {
	for i := range c.open {
		if is(&c.open[i]) {
			return &c.open[i]
		}
	}
	return nil
}

// take finds a call by its name and takes it out.
func (c *Calls) take(id string) (k call) {
	c.open = slices.DeleteFunc(c.open, func(o call) bool {
		if o.id == id {
			k = o
		}
		return o.id == id
	})
	return k
}

// UnderWay is how many calls are not over, apart from questions.
func (c *Calls) UnderWay() (n int) {
	for i := range c.open {
		if !c.open[i].put() {
			n++
		}
	}
	return n
}

// Owed says whether the model waits for the answer of a call of that turn.
func (c *Calls) Owed(turn int) bool {
	return c.first(func(k *call) bool { return k.turn == turn && !k.put() && k.reader.wants() }) != nil
}

// Awaited is how many calls the model waits for, and Questions how many questions wait for
// the user.
func (c *Calls) Awaited() (n int) {
	for i := range c.open {
		if k := &c.open[i]; !k.put() && k.reader.wants() {
			n++
		}
	}
	return n
}

// Questions is how many questions wait for the user.
func (c *Calls) Questions() int { return len(c.open) - c.UnderWay() }

// wanted says whether anybody waits for the answer of a call or of one that joined it.
func (c *Calls) wanted(id string) bool {
	return c.first(func(k *call) bool { return (k.id == id || k.into == id) && k.reader.wants() }) != nil
}

// Answer is the end of a call: the terminal that its reader gets.
type Answer struct {
	Turn int
	Call string
	Tool string
	// Model is the name that answers the call. Reader says who gets the answer.
	Model    string
	Reader   Reader
	Envelope registry.Envelope
	// Ran says that the call itself has come to this, and not another one that it repeats.
	Ran bool
	// OverBudget says that the model has to answer without further tools.
	OverBudget bool
	// Owed says that the model waits for other calls of the turn still.
	Owed bool
	// Prepared is what ran, or was to run; nil where nothing was.
	Prepared *registry.Prepared
	// Approval is that of a person; nil for a call that needed none.
	Approval *Approved
	// Written are the arguments as the model wrote them: perhaps no JSON at all.
	Written json.RawMessage
	// Queued is from the model's call until the handler began, Took the handler's own time;
	// both zero where nothing ran.
	Queued, Took time.Duration

	category string
	line     audit.Call // all but the time, and what became of the answer
}

// answer ends a call.
func (c *Calls) answer(k *call, env registry.Envelope, ran bool) Answer {
	if k.reader.wants() {
		c.move(k, answered)
	} else {
		c.move(k, withdrawn)
	}
	a := Answer{
		Owed: c.Owed(k.turn),
		Turn: k.turn, Call: k.id, Tool: k.tool, Model: k.model, Reader: k.reader, Envelope: env, Ran: ran,
		Prepared: k.prepared, Approval: k.approval, Written: k.written, category: c.category(k.tool),
		line: audit.Call{
			Tools: c.book.Tools(), Tool: k.tool, Mode: c.book.Mode(), Turn: k.turn, ID: k.id, ProviderID: k.provider,
			Key: k.keys.Idempotency, Business: k.keys.Business, Budget: k.budget, Args: k.args, Envelope: env,
		},
	}
	if k.args != nil {
		a.line.Tool = k.runs
	}
	if k.approval != nil {
		a.line.ConfirmedBy, a.line.Reference = string(k.approval.By), k.approval.Reference
	}
	return a
}

// Wanted says whether anybody waits for the answer.
func (a Answer) Wanted() bool { return a.Reader.wants() }

// Intents are what the tool asks of the conversation: the answer of a call that did not run
// itself asks for nothing.
func (a Answer) Intents() []registry.Intent {
	if !a.Ran || !a.Envelope.OK || a.Envelope.Meta.CacheHit {
		return nil
	}
	return a.Envelope.Intents
}

// Effect is what became of an answer: which of its intents were applied and which refused
// with the last reason, and why the model was not given it, empty if it was.
type Effect struct {
	Applied, Refused  []registry.Intent
	Why, NotDelivered string
}

// Record is the audit's line of the call. An answer whose reader does not want it was not
// delivered, whatever e says.
func (a Answer) Record(at time.Time, e Effect) audit.Record {
	l := a.line
	l.At, l.Applied, l.Refused, l.Why, l.NotDelivered = at, e.Applied, e.Refused, e.Why, e.NotDelivered
	if why := a.Reader.why(); why != "" {
		l.NotDelivered = why
	}
	return l.Record()
}

// Message is what the client is told of the end of the call.
func (a Answer) Message() *protocol.ToolEnded {
	m := &protocol.ToolEnded{Header: protocol.Header{Turn: a.Turn}, CallID: a.Call, Tool: a.Tool, Category: a.category,
		OK: a.Envelope.OK, DurationMS: a.Envelope.Meta.DurationMS, Deduplicated: a.Envelope.Meta.CacheHit}
	if a.Envelope.Error != nil {
		m.Error, _ = json.Marshal(a.Envelope.Error) // the model gets the same: it cannot fail
	}
	if len(a.Envelope.Meta.Clamped) > 0 {
		m.Clamped, _ = json.Marshal(a.Envelope.Meta.Clamped) // numbers alone: it cannot fail
	}
	return m
}
