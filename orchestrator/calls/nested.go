package calls

import (
	"encoding/json"

	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/spec"
)

// Nested asks whether a running tool may call another one. The Permit that follows answers it.
type Nested struct {
	Call, Caller string // Call is the model's call that runs; Caller is the tool that asks
	ID           string // the gateway's name of the new call
	Tool         string
	Args         json.RawMessage
}

func (Nested) input() {}

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
	p, refusal := c.book.PrepareOf(k.tools, in.Tool, registry.Decode(in.Args))
	c.book.ChargeOf(k.tools, in.Tool)
	do := Permit{ID: in.ID, Prepared: p, Budget: c.book.Usage()}
	exceeded := c.book.ExceededOf(k.tools, in.Tool)
	switch {
	case exceeded != nil:
		do.Refused = exceeded
	case refusal != nil:
		do.Refused = refusal
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
