package onecall

import (
	"context"
	"time"

	"voicegw/internal/audit"
	"voicegw/orchestrator/calls"
	"voicegw/orchestrator/execute"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/store"
)

// Desk carries out the answers to questions of conversations that are not here. It is safe for concurrent use.
type Desk struct {
	Executor *execute.Executor
	Tools    func() *registry.Snapshot // of the gateway; may return nil
	Audit    func(audit.Record)        // may be nil
}

// Decide runs the call that c asked about, if it was approved, and returns its answer; nil if it was declined. It writes
// the audit record. The caller has recorded the answer and then calls [execute.Executor.Settle]. An approved call
// finishes even if ctx ends. The ledger answers a repetition.
func (d Desk) Decide(ctx context.Context, c store.Confirmation, approved bool, by calls.By) *registry.Envelope {
	if !approved {
		r := calls.Decision(audit.Call{At: time.Now(), Mode: spec.Mode(c.Mode), Turn: c.Turn, Tool: c.Tool, Args: c.Args},
			calls.OutcomeDenied, by, c.Reference)
		r.ToolVersion, r.RegistryVersion = c.ToolVersion, c.RegistryVersion
		d.audit(c, r)
		return nil
	}
	id := "confirmation_" + c.Reference
	env := registry.NotFound(c.Tool, "", 0)
	tools := d.Tools().Draw(c.User, map[string]string{c.Tool: c.ToolVersion}) // the version that the person was asked about
	if tools != nil {
		env, _ = d.Executor.RunStored(ctx, id, tools, c,
			execute.Conversation{Capabilities: []any{NoClient{}}, Audit: func(r audit.Record) { d.audit(c, r) }})
	}
	line := audit.Call{
		At: time.Now(), Tools: tools, Tool: c.Tool, Mode: spec.Mode(c.Mode), Turn: c.Turn, ID: id,
		Key: calls.ApprovedKeys(c.Reference, "").Idempotency, Args: c.Args, Envelope: env, NotDelivered: "session_over",
		ConfirmedBy: string(by), Reference: c.Reference, Waited: max(time.Since(c.CreatedAt), 0),
	}
	if by == calls.ByClient {
		line.NotDelivered = "" // its client made the call and waits for it
	}
	if !env.Meta.CacheHit && len(env.Intents) > 0 { // the intents of a stored answer no longer apply
		line.Refused, line.Why = env.Intents, "the session is over"
	}
	r := line.Record()
	r.RegistryVersion, r.ToolVersion = env.Meta.RegistryVersion, env.Meta.ToolVersion
	d.audit(c, r)
	return &env
}

func (d Desk) audit(c store.Confirmation, r audit.Record) {
	if d.Audit != nil {
		r.SessionID, r.UserID, r.ConversationID, r.Agent, r.Channel = c.Session, c.User, c.Conversation, c.Agent, c.Channel
		d.Audit(r)
	}
}

// NoClient implements the capabilities of text calls whose conversation has no client.
type NoClient struct{}

// Invite does nothing.
func (NoClient) Invite(registry.VoiceOffer) {}

// Origin returns "".
func (NoClient) Origin() string { return "" }

// Guarantor returns none.
func (NoClient) Guarantor() registry.Guarantor { return registry.Guarantor{} }

// Said returns nothing.
func (NoClient) Said() []registry.Utterance { return nil }

// Show does nothing: the answer has the image's URL.
func (NoClient) Show(registry.Image) {}
