package session

import (
	"context"
	"encoding/json"
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/user"
	"voicegw/orchestrator"
	"voicegw/orchestrator/calls"
	"voicegw/orchestrator/execute"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/store"
)

// Confirmed is the result of the API's answer to a confirmation.
type Confirmed struct {
	// Outcome is approved or denied.
	Outcome   calls.Outcome
	SessionID string
	Tool      string
	// Told: an approved call runs in the session here. Otherwise Envelope is its answer, for the model's next turn.
	Told     bool
	Envelope *registry.Envelope // nil for a denial, or if Told
}

// Confirm records the API's answer to a confirmation of any session. An approved call runs in its session if that is
// here, and otherwise at once. The error is store.ErrUnknown, store.ErrUsed, store.ErrExpired, or another reason why
// nothing was recorded.
//
// If who is not zero, other users' questions are unknown.
func (m *Manager) Confirm(ctx context.Context, token string, approved bool, who user.User) (Confirmed, error) {
	if err := m.options().Executor.CheckQuestion(ctx, token, who); err != nil {
		return Confirmed{}, err
	}
	c, err := m.options().Executor.Answer(ctx, "", token, approved)
	if err != nil {
		return Confirmed{}, err
	}
	outcome := calls.OutcomeDenied
	if approved {
		outcome = calls.OutcomeApproved
	}
	done := Confirmed{Outcome: outcome, SessionID: c.Session, Tool: c.Tool}
	if s := m.roster.visit(c.Session); s != nil {
		defer s.visitors.Done()
		if locked(s, func() bool { return s.state.Asks(token) }) { // a session that was taken over may lack questions
			s.dispatch(orchestrator.OfCall{In: calls.Resolved{Token: token, Outcome: outcome, By: calls.ByAPI}})
			done.Told = true
			return done, nil
		}
	}
	r := calls.Decision(audit.Call{At: time.Now(), Mode: spec.Mode(c.Mode), Turn: c.Turn, Tool: c.Tool, Args: c.Args},
		outcome, calls.ByAPI, c.Reference)
	r.ToolVersion, r.RegistryVersion = c.ToolVersion, c.RegistryVersion
	if approved {
		var env registry.Envelope
		env, r = m.runStored(ctx, c)
		done.Envelope = &env
	}
	m.auditStored(c, r)
	m.decided(ctx, c, done.Envelope)
	if approved {
		m.options().Executor.Settle(c.Conversation, c.Session, c.Reference)
	}
	return done, nil
}

// decidedTime bounds the notice to a conversation.
const decidedTime = 5 * time.Second

// decided tells the question's conversation of an answer, even if the caller has left.
func (m *Manager) decided(ctx context.Context, c store.Confirmation, env *registry.Envelope) {
	if m.options().Handoffs == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), decidedTime)
	defer cancel()
	var result json.RawMessage
	if env != nil {
		result = env.Encode()
	}
	if err := m.options().Handoffs.Decided(ctx, c, result); err != nil {
		m.options().Logger.Error("the outcome of a confirmation could not be written into its conversation",
			"session_id", c.Session, "conversation_id", c.Conversation, "reference", c.Reference, "error", err)
	}
}

// runStored runs an approved call of a session that is not here. It returns the answer and the audit record.
func (m *Manager) runStored(ctx context.Context, c store.Confirmation) (registry.Envelope, audit.Record) {
	id := "confirmation_" + c.Reference
	env := registry.NotFound(c.Tool, "", 0)
	tools := m.options().snapshot().Draw(c.User, map[string]string{c.Tool: c.ToolVersion}) // the version that the person was asked about
	if tools != nil {
		env, _ = m.options().Executor.RunStored(ctx, id, tools, c,
			execute.Conversation{Capabilities: []any{noClientCaps{}}, Audit: func(r audit.Record) { m.auditStored(c, r) }})
	}
	line := audit.Call{
		At: time.Now(), Tools: tools, Tool: c.Tool, Mode: spec.Mode(c.Mode), Turn: c.Turn, ID: id,
		Key: calls.ApprovedKeys(c.Reference, "").Idempotency, Args: c.Args, Envelope: env, NotDelivered: "session_over",
		ConfirmedBy: string(calls.ByAPI), Reference: c.Reference, Waited: max(time.Since(c.CreatedAt), 0),
	}
	if !env.Meta.CacheHit && len(env.Intents) > 0 { // the intents of a stored answer no longer apply
		line.Refused, line.Why = env.Intents, "the session is over"
	}
	r := line.Record()
	r.RegistryVersion, r.ToolVersion = env.Meta.RegistryVersion, env.Meta.ToolVersion
	return env, r
}

func (m *Manager) auditStored(c store.Confirmation, r audit.Record) {
	if m.options().Audit != nil {
		r.SessionID, r.UserID, r.ConversationID, r.Agent = c.Session, c.User, c.Conversation, c.Agent
		m.options().Audit(r)
	}
}

// noClientCaps implements the capabilities of text calls without a client.
type noClientCaps struct{}

func (noClientCaps) Invite(registry.VoiceOffer)    {}
func (noClientCaps) Origin() string                { return "" }
func (noClientCaps) Guarantor() registry.Guarantor { return registry.Guarantor{} }
func (noClientCaps) Said() []registry.Utterance    { return nil }
func (noClientCaps) Show(registry.Image)           {}
