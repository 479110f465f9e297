package session

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"voicegw/internal/audit"
	"voicegw/orchestrator"
	"voicegw/orchestrator/calls"
	"voicegw/orchestrator/execute"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/transport"
)

// toolHost connects the session's tools with it. Results become steps, on goroutines of the executor.
type toolHost struct{ s *session }

func (h toolHost) conversation() execute.Conversation {
	s := h.s
	var caps []any
	if s.byClient != nil {
		caps = append(caps, registry.ClientTools(s.byClient))
	}
	return execute.Conversation{
		Session: registry.Session{
			ID: s.id, UserID: s.user.String(), ConversationID: s.start.ConversationID,
			Agent: s.agent.Load().Name, Vouched: s.vouched, Scopes: s.scopes, Mode: spec.ModeVoice, TimeZone: s.start.TimeZone,
		},
		Capabilities: caps,
		Tell:         s.send,
		Blocked:      func(until time.Time) { s.blockedUntil.Store(&until) },
		Audit:        h.audit,
		Describe:     h.describe,
		Report:       h.report,
		Progress:     func(in calls.Progressed) { s.dispatch(orchestrator.OfCall{In: in}) },
		Owned:        func() bool { return s.place.Sure() },
		Checkpoint:   s.persist,
	}
}

func (h toolHost) describe(to *registry.Session) {
	v := locked(h.s, func() orchestrator.View { return h.s.state.View() })
	to.Phase = string(v.Phase)
	to.Suppressed = registry.Suppressed{Audio: v.AudioOff, Transcript: v.TranscriptOff}
}

func (h toolHost) audit(r audit.Record) {
	s := h.s
	s.mu.Lock()
	s.addRecord(&r)
	err := s.saveNow()
	s.mu.Unlock()
	if err != nil {
		s.log().Error("encoding a checkpoint", "error", err)
	}
	s.audit(r)
}

var errMoved = errors.New("session: handed over to another gateway")

// persist saves the session, so that its started calls are durable. During a handover it waits for the outcome.
func (s *session) persist(ctx context.Context) error {
	if g := locked(s, s.model.currentHandover); g != nil {
		select {
		case <-g.over:
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // the caller's own
		}
		if g.left {
			return errMoved
		}
	}
	s.mu.Lock()
	if !s.canSave() {
		s.mu.Unlock()
		return nil
	}
	err := s.saveNow()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.place.Keep(ctx) //nolint:wrapcheck // it names the store
}

func declarations(tools *registry.Snapshot, form transport.SchemaForm, spoken bool) []transport.Tool {
	if tools == nil {
		return nil
	}
	var out []transport.Tool
	for _, t := range tools.Tools(spec.ModeVoice) {
		params := t.Forms.OpenAI
		if form == transport.SchemaOpenAPI {
			params = t.Forms.Gemini
		}
		out = append(out, transport.Tool{
			Name: t.ToolID, Description: t.Description, Parameters: params, NonBlocking: t.Behavior == spec.BehaviorNonBlocking,
		})
	}
	if spoken {
		out = append(out, confirmAction(form))
	}
	return out
}

func confirmAction(form transport.SchemaForm) transport.Tool {
	params := `{"type":"object","properties":{"reference":{"type":"string","description":"` +
		prompts.ConfirmActionReference + `"},"approved":{"type":"boolean","description":"` + prompts.ConfirmActionApproved +
		`"}},"required":["reference","approved"],"additionalProperties":false}`
	if form == transport.SchemaOpenAPI {
		params = `{"type":"OBJECT","properties":{"reference":{"type":"STRING","description":"` +
			prompts.ConfirmActionReference + `"},"approved":{"type":"BOOLEAN","description":"` +
			prompts.ConfirmActionApproved + `"}},"required":["reference","approved"],"propertyOrdering":["reference","approved"]}`
	}
	return transport.Tool{
		Name:        calls.ConfirmAction,
		Description: prompts.ConfirmAction,
		Parameters:  json.RawMessage(params),
	}
}
