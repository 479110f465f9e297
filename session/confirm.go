package session

import (
	"context"
	"encoding/json"
	"time"

	"voicegw/audit"
	"voicegw/orchestrator"
	"voicegw/registry"
	"voicegw/store"
)

// Confirmed is what came of an answer that the API has given to a confirmation.
type Confirmed struct {
	// Outcome is approved or denied.
	Outcome   orchestrator.Outcome
	SessionID string
	Tool      string
	// Told says that the session runs here: what is approved runs in it, and its model is
	// told. Otherwise Envelope is what came of it, and the model of its
	// conversation learns of it in the next turn.
	Told     bool
	Envelope *registry.Envelope // nil for a denial, or if Told
}

// Confirm records the answer to a confirmation of any session, for the API. What is
// approved runs in its session if that runs here, and else at once: the gateway may have
// been restarted since. The error is store.ErrUnknown, store.ErrUsed, store.ErrExpired,
// or says that nothing could be recorded.
func (m *Manager) Confirm(ctx context.Context, token string, approved bool) (Confirmed, error) {
	c, err := m.opts.Executor.Answer(ctx, token, approved)
	if err != nil {
		return Confirmed{}, err
	}
	outcome := outcomeOf(approved, nil)
	done := Confirmed{Outcome: outcome, SessionID: c.Session, Tool: c.Tool}
	if s := m.visit(c.Session); s != nil {
		defer s.visitors.Done()
		s.dispatch(orchestrator.ConfirmationResolved{Token: token, Outcome: outcome, By: orchestrator.ConfirmedByAPI})
		done.Told = true
		return done, nil
	}
	r := audit.Record{
		Event: audit.EventConfirmation, Time: time.Now().UTC().Truncate(time.Millisecond), ToolID: c.Tool, ToolVersion: c.ToolVersion,
		RegistryVersion: c.RegistryVersion, Mode: registry.Mode(c.Mode), SessionID: c.Session, UserID: c.User,
		ConversationID: c.Conversation, Agent: c.Agent, TurnID: c.Turn, Args: c.Args,
		Confirmation: string(outcome), ConfirmedBy: string(orchestrator.ConfirmedByAPI), Reference: c.Reference,
	}
	if approved {
		env := m.runStored(ctx, c, &r)
		done.Envelope = &env
	}
	if m.opts.Audit != nil {
		m.opts.Audit(r)
	}
	m.decided(ctx, c, done.Envelope)
	if approved {
		m.opts.Executor.Settle(c.Conversation, c.Session, c.Reference)
	}
	return done, nil
}

// decidedTime bounds how long it takes to tell a conversation of an answer.
const decidedTime = 5 * time.Second

// decided tells the conversation of a question what came of its answer, for the model's next
// turn, whoever has gone by then.
func (m *Manager) decided(ctx context.Context, c store.Confirmation, env *registry.Envelope) {
	if m.opts.Decided == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), decidedTime)
	defer cancel()
	var result json.RawMessage
	if env != nil {
		result = env.Encode()
	}
	if err := m.opts.Decided(ctx, c, result); err != nil {
		m.opts.Logger.Error("a conversation could not be told what came of an answer to a confirmation", "session_id", c.Session, "conversation_id", c.Conversation, "reference", c.Reference, "error", err)
	}
}

// visit returns the session of that id if it runs here, counted as a visitor's.
func (m *Manager) visit(id string) *session {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[id]
	if s != nil {
		s.visitors.Add(1)
	}
	return s
}

// runStored runs what was approved of a session that is not here, and completes its record.
func (m *Manager) runStored(ctx context.Context, c store.Confirmation, r *audit.Record) registry.Envelope {
	env, p := registry.NotFound(c.Tool, "", 0), (*registry.Prepared)(nil)
	if tools := m.snapshot(); tools != nil {
		env, p = m.opts.Executor.RunStored(ctx, tools, c, nobody{})
	}
	r.Event, r.CallID, r.IdempotencyKey = audit.EventTool, "confirmation_"+c.Reference, "confirmation:"+c.Reference
	r.RegistryVersion, r.ToolVersion = env.Meta.RegistryVersion, env.Meta.ToolVersion
	if p != nil {
		r.Category = p.Tool().Category
	}
	r.OK, r.DurationMS, r.CacheHit, r.OriginalTurn = env.OK, env.Meta.DurationMS, env.Meta.CacheHit, env.Meta.OriginalTurn
	r.NotDelivered = "session_over"
	if !env.Meta.CacheHit { // those of a stored answer have had their moment
		for _, intent := range env.Intents {
			r.Refused, r.Why = append(r.Refused, intent.Type), "the session is over"
		}
	}
	if env.Error != nil {
		r.ErrorType, r.PartialSideEffects = env.Error.Type, env.Error.PartialSideEffects
	}
	return env
}

// nobody is the client of a call whose client is gone: what calls bring along by voice
// and by text, for nobody to hear.
type nobody struct{}

func (nobody) Timeout(time.Time, time.Duration, string) {}
func (nobody) Invite(registry.VoiceOffer)               {}
func (nobody) Origin() string                           { return "" }
func (nobody) Keep(context.Context) error               { return nil }
func (nobody) Show(registry.Image)                      {}
