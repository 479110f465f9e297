package calls

import (
	"encoding/json"
	"slices"
	"time"
	"voicegw/protocol"

	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/spec"
)

// Called is a tool call as the model made it.
type Called struct {
	// Turn is the number of the turn, counted from 1.
	Turn int
	// Model is the name under which the model expects the answer, Provider the provider's id for
	// the call; Provider is empty if the provider gave none.
	Model, Provider string
	Tool            string
	// Args is what the model wrote; it has not been checked.
	Args json.RawMessage
	// SpokenAt is when the user last began to speak or typed something, for [ConfirmAction].
	SpokenAt time.Time
	// Message identifies the call within a message that a client may send again. If the tool has
	// no business key, calls with the same Message are the same deed, even if the model writes
	// them differently the second time. Empty for a call that is not repeated in this way.
	Message string
}

// Called takes a call that the model has made and decides what happens to it.
func (c *Calls) Called(at time.Time, in Called) []Action {
	k, do := c.begin(at, in)
	switch {
	case c.rules.Spoken && in.Tool == ConfirmAction:
		return append(do, c.confirmAction(k, in.SpokenAt)...)
	case c.rules.MaxOpen > 0 && c.UnderWay() >= c.rules.MaxOpen:
		return append(do, c.refuse(k, registry.NewError(registry.ErrorRateLimit, prompts.TooManyCalls()))...)
	default:
		return append(do, c.decide(at, k)...)
	}
}

// Refuse answers a call of the model with an error, without running it.
func (c *Calls) Refuse(at time.Time, in Called, why *registry.Error) []Action {
	k, do := c.begin(at, in)
	return append(do, c.refuse(k, why)...)
}

// begin names a call and tells the client about it.
func (c *Calls) begin(at time.Time, in Called) (call, []Action) {
	k := call{
		id: c.NextName(), by: c.book.Agent(), tools: c.book.Tools(), model: in.Model, provider: in.Provider, tool: in.Tool, runs: in.Tool, turn: in.Turn,
		written: in.Args, message: in.Message, askedAt: at,
	}
	return k, []Action{Tell{&protocol.ToolStarted{Header: protocol.Header{Turn: k.turn}, CallID: k.id, Tool: k.tool, Category: c.category(k.tool)}}}
}

// decide chooses what happens to a call, in the order of docs/policy.md. The calls of one batch
// are decided one after another, in the order given.
func (c *Calls) decide(at time.Time, k call) []Action {
	args := registry.Decode(k.written)
	k.asked = args.Text()
	if do, settled := c.repeat(at, &k, args); settled {
		return do
	}
	p, refusal := c.book.Prepare(k.tool, args)
	if p != nil {
		k.keys.Business = p.BusinessKey()
		c.meets(&k, p)
		if do, settled := c.duplicate(at, k, p); settled {
			return do
		}
	}
	c.book.Charge(k.tool)
	k.budget = c.book.Told()
	exceeded, noSwitch := c.book.Exceeded(k.tool), c.switchRefused(p)
	switch {
	case refusal != nil && (exceeded == nil || refusal.Error.Type != registry.ErrorValidation):
		refusal.Meta.DurationMS = 0 // a decision takes no time, whatever the clock measured
		return c.decided(k, *refusal)
	case exceeded != nil:
		a := c.answer(&k, *exceeded, false)
		a.OverBudget = true
		return []Action{a}
	case noSwitch != nil:
		return c.refuse(k, noSwitch)
	case c.book.Confirms(p):
		return c.ask(k, p)
	default:
		return c.queue(at, k, p)
	}
}

// switchRefused returns why a call of agent_switch is refused; nil if it is allowed, and for any other tool.
// p is nil for a call that cannot be prepared.
func (c *Calls) switchRefused(p *registry.Prepared) *registry.Error {
	if p == nil || p.Tool().ToolID != spec.AgentSwitch {
		return nil
	}
	if c.first(func(o *call) bool { return o.runs == spec.AgentSwitch }) != nil {
		return registry.NewError(registry.ErrorConflict, prompts.SwitchUnderWay())
	}
	var args struct{ Agent string }
	if err := json.Unmarshal(p.Args(), &args); err != nil {
		return nil // checked against the schema before
	}
	return c.book.MaySwitch(args.Agent)
}

// repeat gives a call its idempotency key, and recognises a repetition under the same key. If
// the provider's id already belongs to another call, the key is made from the arguments.
func (c *Calls) repeat(at time.Time, k *call, args registry.Arguments) (do []Action, settled bool) {
	if k.keys.Idempotency = ProviderKey(k.provider); k.keys.Idempotency != "" {
		if do, settled := c.same(at, *k, args, true); settled || !c.taken(k.keys.Idempotency) {
			return do, settled
		}
	}
	k.keys.Idempotency = HashKey(k.tool, k.asked, k.turn)
	return c.same(at, *k, args, false)
}

// same finds the open call or the stored answer with k's key. If the provider's id made the key
// (named), k is that same call, announced again; otherwise k may be another call, and joins.
func (c *Calls) same(at time.Time, k call, args registry.Arguments, named bool) (do []Action, settled bool) {
	for i := range c.open {
		first := &c.open[i]
		if first.keys.Idempotency != k.keys.Idempotency || first.runs != k.tool || first.asked != k.asked || !first.joinable() {
			continue
		}
		if k.echo = named && !first.unlinked; k.echo && first.reader.wants() {
			k.reader = repeated // the model waits for one answer to both
		}
		c.join(k, first)
		return nil, true
	}
	if env, ok := c.book.Known(k.keys.Idempotency, k.tool, k.asked); ok {
		p, _ := c.book.Prepare(k.tool, args)
		return c.again(at, k, p, env), true
	}
	return nil, false
}

// again answers a call with the stored answer of an earlier one. If that answer began long work, the Executor looks
// up how far the work is, without asking a person again. p is nil if the conversation has lost the tool.
func (c *Calls) again(at time.Time, k call, p *registry.Prepared, env registry.Envelope) []Action {
	if env.Meta.Job == "" || p == nil {
		return c.decided(k, env)
	}
	k.budget, k.repeats = c.book.Told(), &env
	return c.queue(at, k, p)
}

// taken reports whether an idempotency key already belongs to a call.
func (c *Calls) taken(key string) bool {
	return c.book.Taken(key) || slices.ContainsFunc(c.open, func(o call) bool { return o.keys.Idempotency == key && o.joinable() })
}

// duplicate recognises a call that asks for something already under way, or already done. An
// approved call does not wait for a question about the same.
func (c *Calls) duplicate(at time.Time, k call, p *registry.Prepared) (do []Action, settled bool) {
	for i := range c.open {
		first := &c.open[i]
		if !first.hasTool() || first.runs != k.runs || first.state == asking && k.approval != nil {
			continue
		}
		equal := string(first.args) == string(p.Args()) && (first.turn == k.turn || p.Tool().SideEffects == spec.SideEffectsWrites)
		if equal || k.keys.Business != "" && first.keys.Business == k.keys.Business {
			c.join(k, first)
			return nil, true
		}
	}
	if env, ok := c.book.Done(k.runs, k.keys.Business); ok {
		return c.again(at, k, p, env), true
	}
	return nil, false
}

// join makes k wait for the answer of first, or of the call that first itself has joined.
func (c *Calls) join(k call, first *call) {
	c.move(&k, joined)
	if k.into = first.id; first.state == joined {
		k.into = first.into
	}
	if first.unlinked && first.reader == byNotice && first.approval == nil {
		first.reader = repeated // the model asks again on its new connection, and is answered there
	}
	k.budget = c.book.Told()
	c.open = append(c.open, k)
}

// queue adds a call to those that run as soon as there is a free place.
func (c *Calls) queue(at time.Time, k call, p *registry.Prepared) []Action {
	c.move(&k, queued)
	k.prepares(p)
	k.queuedAt = at
	k.progressAt = at.Add(time.Duration(p.Tool().LatencyBudgetMS) * time.Millisecond)
	c.open = append(c.open, k)
	return c.places()
}

// places starts queued calls in their order, as long as there are free places.
func (c *Calls) places() (do []Action) {
	free := maxParallel
	for _, k := range c.open {
		if k.state == running || k.state == stopping {
			free--
		}
	}
	for i := range c.open {
		k := &c.open[i]
		if k.state != queued || free <= 0 {
			continue
		}
		free--
		c.move(k, running)
		do = append(do, k.run())
	}
	return do
}

// decided answers a call without running it.
func (c *Calls) decided(k call, env registry.Envelope) []Action {
	if k.budget == nil {
		k.budget = c.book.Told()
	}
	return []Action{c.answer(&k, env, false)}
}

// refuse answers a call with an error, without running it.
func (c *Calls) refuse(k call, why *registry.Error) []Action {
	return []Action{c.answer(&k, c.book.Refuse(k.tool, why), false)}
}
