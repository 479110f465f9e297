package calls

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
)

// Called is a tool call as the model made it.
type Called struct {
	Turn            int    // counted from 1
	Model, Provider string // Model is the model's name for the call, Provider the provider's id; Provider may be empty
	Tool            string
	Args            json.RawMessage // the model's text, unchecked
	SpokenAt        time.Time       // when the user last began to speak, or typed; for [ConfirmAction]
	// Message identifies the call within a message that a client may send again. If the tool has no business key,
	// calls with the same Message are the same action, even if the model writes them differently the second time. It
	// is empty for other calls.
	Message string
}

// Called decides about a call that the model has made.
func (c *Calls) Called(at time.Time, in Called) []Action {
	k, do := c.begin(at, in)
	switch {
	case c.rules.Spoken && in.Tool == ConfirmAction:
		return append(do, c.confirmAction(k, in.SpokenAt)...)
	case c.rules.MaxOpen > 0 && c.UnderWay() >= c.rules.MaxOpen:
		return append(do, c.refuse(k, registry.NewError(registry.ErrorRateLimit, prompts.TooManyCalls))...)
	default:
		return append(do, c.decide(at, k)...)
	}
}

// Refuse answers a call with an error.
func (c *Calls) Refuse(at time.Time, in Called, why *registry.Error) []Action {
	k, do := c.begin(at, in)
	return append(do, c.refuse(k, why)...)
}

func (c *Calls) begin(at time.Time, in Called) (call, []Action) {
	k := call{
		id: c.NextName(), by: c.book.agent, tools: c.book.tools, model: in.Model, provider: in.Provider, tool: in.Tool,
		runs: in.Tool, turn: in.Turn,
		written: in.Args, message: in.Message, askedAt: at,
	}
	return k, []Action{ToClient{&protocol.ToolStarted{Header: protocol.Header{Turn: k.turn}, CallID: k.id, Tool: k.tool,
		Category: c.category(k.tool)}}}
}

// decide follows the order of docs/policy.md. The calls of a batch are decided one after another.
func (c *Calls) decide(at time.Time, k call) []Action {
	args := registry.Decode(k.written)
	k.asked = args.Text()
	if do, settled := c.repeat(at, &k, args); settled {
		return do
	}
	p, refusal := c.book.Prepare(c.book.tools, k.tool, args)
	if p != nil {
		k.keys.Business = p.BusinessKey()
		c.adoptLostKey(&k, p)
		if do, settled := c.duplicate(at, k, p); settled {
			return do
		}
	}
	c.book.Charge(c.book.tools, k.tool)
	k.budget = c.book.Usage()
	exceeded, noSwitch := c.book.Exceeded(c.book.tools, k.tool), c.switchRefused(p)
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

// switchRefused returns why a call of agent_switch is refused. p is nil for a call that cannot be prepared.
func (c *Calls) switchRefused(p *registry.Prepared) *registry.Error {
	if p == nil || p.Tool().ToolID != spec.AgentSwitch {
		return nil
	}
	if c.first(func(o *call) bool { return o.runs == spec.AgentSwitch }) != nil {
		return registry.NewError(registry.ErrorConflict, prompts.SwitchUnderWay)
	}
	var args struct{ Agent string }
	if err := json.Unmarshal(p.Args(), &args); err != nil {
		return nil // checked against the schema before
	}
	return c.book.MaySwitch(args.Agent)
}

// repeat gives a call its idempotency key and recognises a repetition under it.
func (c *Calls) repeat(at time.Time, k *call, args registry.Arguments) (do []Action, settled bool) {
	if k.keys.Idempotency = ProviderKey(k.provider); k.keys.Idempotency != "" {
		if do, settled := c.same(at, *k, args, true); settled || !c.taken(k.keys.Idempotency) {
			return do, settled
		}
	}
	k.keys.Idempotency = HashKey(k.tool, k.asked, k.turn)
	return c.same(at, *k, args, false)
}

// same finds the open call or the stored answer with k's key. If the key comes from the provider's id (named), k is
// the same call, repeated; otherwise k may be another call, and joins.
func (c *Calls) same(at time.Time, k call, args registry.Arguments, named bool) (do []Action, settled bool) {
	for i := range c.open {
		first := &c.open[i]
		if first.keys.Idempotency != k.keys.Idempotency || first.runs != k.tool || first.asked != k.asked || !first.joinable() {
			continue
		}
		if k.echo = named && !first.unlinked; k.echo && first.reader.wants() {
			k.reader = repeated // the model expects one answer to both
		}
		c.join(k, first)
		return nil, true
	}
	if env, ok := c.book.ByKey(k.keys.Idempotency, k.tool, k.asked); ok {
		p, _ := c.book.Prepare(c.book.tools, k.tool, args)
		return c.again(at, k, p, env), true
	}
	return nil, false
}

// again answers a call with the stored answer of an earlier one. If that started a job, the Executor looks up its
// progress. p is nil if the conversation no longer has the tool.
func (c *Calls) again(at time.Time, k call, p *registry.Prepared, env registry.Envelope) []Action {
	if env.Meta.Job == "" || p == nil {
		return c.decided(k, env)
	}
	k.budget, k.repeats = c.book.Usage(), &env
	return c.queue(at, k, p)
}

func (c *Calls) taken(key string) bool {
	return c.book.HasKey(key) || slices.ContainsFunc(c.open, func(o call) bool { return o.keys.Idempotency == key && o.joinable() })
}

// duplicate recognises a call for something under way or done. An approved call does not wait for a question.
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
	if env, ok := c.book.ByBusinessKey(k.runs, k.keys.Business); ok {
		return c.again(at, k, p, env), true
	}
	return nil, false
}

func (c *Calls) join(k call, first *call) {
	c.setState(&k, joined)
	if k.into = first.id; first.state == joined {
		k.into = first.into
	}
	if first.unlinked && first.reader == byNotice && first.approval == nil {
		first.reader = repeated // the model asks again on its new connection, and is answered there
	}
	k.budget = c.book.Usage()
	c.open = append(c.open, k)
}

func (c *Calls) queue(at time.Time, k call, p *registry.Prepared) []Action {
	c.setState(&k, queued)
	k.prepared, k.args, k.queuedAt = p, p.Args(), at
	k.progressAt = at.Add(time.Duration(p.Tool().LatencyBudgetMS) * time.Millisecond)
	c.open = append(c.open, k)
	return c.startQueued()
}

// startQueued starts queued calls in order while fewer than maxParallel run.
func (c *Calls) startQueued() (do []Action) {
	free := maxParallel - c.number((*call).working)
	for i := range c.open {
		k := &c.open[i]
		if k.state != queued || free <= 0 {
			continue
		}
		free--
		c.setState(k, running)
		do = append(do, k.run())
	}
	return do
}

func (c *Calls) decided(k call, env registry.Envelope) []Action {
	if k.budget == nil {
		k.budget = c.book.Usage()
	}
	return []Action{c.answer(&k, env, false)}
}

func (c *Calls) refuse(k call, why *registry.Error) []Action {
	return []Action{c.answer(&k, c.book.Refuse(k.tool, why), false)}
}

// Nested asks whether a running tool may call another one. The Permit that follows answers it.
type Nested struct {
	Call, Caller string // Call is the model's call that runs; Caller is the tool that asks
	ID           string // the gateway's name of the new call
	Tool         string
	Args         json.RawMessage
}

func (in Nested) take(c *Calls, _ time.Time) []Action { return c.Nested(in) }

// Permit answers a Nested with the same ID: the call may run as prepared, or is refused.
type Permit struct {
	ID       string
	Prepared *registry.Prepared
	Refused  *registry.Envelope
	Budget   json.RawMessage // the account of the turn after the call
}

func (Permit) action() {}

// Nested decides about a call by a tool: with the tools of the agent that made the model's call, the turn's budget, and
// no approval but that of the model's call.
func (c *Calls) Nested(in Nested) []Action {
	k := c.find(in.Call)
	if k == nil || !k.working() {
		env := c.book.Refuse(in.Tool, registry.NewError(registry.ErrorPermanent, prompts.NoNestedCalls(in.Tool)))
		return []Action{Permit{ID: in.ID, Refused: &env}}
	}
	p, refusal := c.book.Prepare(k.tools, in.Tool, registry.Decode(in.Args))
	c.book.Charge(k.tools, in.Tool)
	do := Permit{ID: in.ID, Prepared: p, Refused: cmp.Or(c.book.Exceeded(k.tools, in.Tool), refusal), Budget: c.book.Usage()}
	switch {
	case do.Refused != nil:
	case p.Tool().ByClient() || in.Tool == spec.AgentSwitch:
		do.Refused = refused(p, registry.ErrorPermanent, prompts.NotByTools(in.Tool))
	case k.approval == nil && c.book.Confirms(p):
		do.Refused = refused(p, registry.ErrorConfirmationRequired, prompts.ApprovalNeededWithin(in.Tool, in.Caller))
	}
	if do.Refused != nil {
		do.Refused.Meta.DurationMS = 0
	}
	return []Action{do}
}

func refused(p *registry.Prepared, t registry.ErrorType, words prompts.Words) *registry.Envelope {
	env := p.Refuse(registry.NewError(t, words))
	return &env
}
