package session

import (
	"encoding/json"
	"errors"
	"time"

	"voicegw/audit"
	"voicegw/orchestrator"
	"voicegw/orchestrator/execute"
	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/store"
	"voicegw/transport"
)

// beginCalls prepares what runs the tools of this session. Its results come back as
// steps, from goroutines of the executor.
func (s *session) beginCalls() {
	s.calls = s.opts.Executor.Begin(execute.Conversation{
		Session: registry.Session{
			ID: s.id, UserID: s.user.String(), ConversationID: s.start.ConversationID,
			Agent: s.opts.Agent.Name, Vouched: s.vouched, Scopes: s.scopes, Mode: registry.ModeVoice,
		},
		Capabilities: []any{registry.Messenger(messenger{s})},
		Finished: func(r execute.Result) {
			s.dispatch(orchestrator.ToolFinished{Call: r.Call, Envelope: r.Envelope, BegunAt: r.BegunAt})
		},
		Asked: func(q execute.Question) {
			s.dispatch(orchestrator.ConfirmationAsked{Call: q.Call, Refused: q.Refused, Token: q.Token, Reference: q.Reference, ExpiresAt: q.ExpiresAt})
		},
		Resolved: func(r execute.Resolution) {
			in := resolved(r)
			if in.Outcome == orchestrator.OutcomeFailed {
				s.logger.Error("the answer to a confirmation could not be recorded", "error", r.Err)
			}
			s.dispatch(in)
		},
	})
}

// resolved is what an answer has come to. One that came second is told with the outcome
// of the first, which runs here if it was an approval: the first may have been the same
// answer, of which only the acknowledgement was lost, and the ledger sees to it that
// nothing is done twice.
func resolved(r execute.Resolution) orchestrator.ConfirmationResolved {
	in := orchestrator.ConfirmationResolved{Token: r.Token, Outcome: outcomeOf(r.Approved, r.Err), By: orchestrator.ConfirmedBy(r.By)}
	if in.Outcome != orchestrator.OutcomeUsed {
		return in
	}
	switch r.Outcome {
	case store.Approved:
		in.Outcome = orchestrator.OutcomeApproved
	case store.Denied:
		in.Outcome = orchestrator.OutcomeDenied
	}
	if r.Approved != (r.Outcome == store.Approved) || in.By == orchestrator.ConfirmedByClock {
		in.By = orchestrator.ConfirmedByAPI // the only one else who answers
	}
	return in
}

// outcomeOf is what became of a question whose answer was recorded with err.
func outcomeOf(approved bool, err error) orchestrator.Outcome {
	switch {
	case err == nil && approved:
		return orchestrator.OutcomeApproved
	case err == nil:
		return orchestrator.OutcomeDenied
	case errors.Is(err, store.ErrExpired), errors.Is(err, store.ErrUnknown):
		return orchestrator.OutcomeExpired
	case errors.Is(err, store.ErrUsed):
		return orchestrator.OutcomeUsed
	default:
		return orchestrator.OutcomeFailed
	}
}

// job is a call as the executor takes it.
func job(a orchestrator.RunTool) execute.Job {
	return execute.Job{Call: a.Call, Turn: a.Turn, Prepared: a.Prepared, Keys: a.Keys, Approved: a.Confirmation != ""}
}

// toolsVersion is that of the registry which the session holds.
func (s *session) toolsVersion() string {
	if s.tools == nil {
		return ""
	}
	return s.tools.Version()
}

// category is a tool's, empty for one that does not exist.
func (s *session) category(tool string) string {
	if s.tools == nil {
		return ""
	}
	t, ok := s.tools.Tool(tool)
	if !ok {
		return ""
	}
	return string(t.Category)
}

// decided takes a record of what was decided: it is written at once, or when its answer is.
// What came of an approved action is known with that. mu is held.
func (s *session) decided(a orchestrator.Audit) {
	if a.Record.Event == audit.EventTool && a.Record.Reference != "" {
		s.calls.Settle(a.Record.Reference)
	}
	if a.Told {
		s.telling = &a.Record
		return
	}
	s.audit(a.Record)
}

// audit writes a record. It may be called from any goroutine.
func (s *session) audit(r audit.Record) {
	if s.opts.Audit != nil {
		s.opts.Audit(s.ours(r))
	}
}

// untold writes the record of an answer that was on its way to the model and is never
// written to it: the connection has broken, or the session is over.
func (s *session) untold(r *audit.Record) {
	undelivered := *r
	undelivered.Delivered, undelivered.NotDelivered = false, "not_sent"
	s.audit(undelivered)
}

// declarations are the tools of a mode, in the form that a model takes.
func declarations(tools *registry.Snapshot, form transport.SchemaForm, spoken bool) []transport.Tool {
	if tools == nil {
		return nil
	}
	var out []transport.Tool
	for _, t := range tools.Tools(registry.ModeVoice) {
		params := t.Forms.OpenAI
		if form == transport.SchemaOpenAPI {
			params = t.Forms.Gemini
		}
		out = append(out, transport.Tool{
			Name: t.ToolID, Description: t.Description, Parameters: params, NonBlocking: t.Behavior == registry.BehaviorNonBlocking,
		})
	}
	if spoken {
		out = append(out, confirmAction(form))
	}
	return out
}

// confirmAction declares orchestrator.ConfirmAction.
func confirmAction(form transport.SchemaForm) transport.Tool {
	params := `{"type":"object","properties":{"reference":{"type":"string","description":"` + prompts.ConfirmActionReference + `"},"approved":{"type":"boolean","description":"` + prompts.ConfirmActionApproved + `"}},"required":["reference","approved"],"additionalProperties":false}`
	if form == transport.SchemaOpenAPI {
		params = `{"type":"OBJECT","properties":{"reference":{"type":"STRING","description":"` + prompts.ConfirmActionReference + `"},"approved":{"type":"BOOLEAN","description":"` + prompts.ConfirmActionApproved + `"}},"required":["reference","approved"],"propertyOrdering":["reference","approved"]}`
	}
	return transport.Tool{
		Name:        orchestrator.ConfirmAction,
		Description: prompts.ConfirmAction,
		Parameters:  json.RawMessage(params),
	}
}

// messenger lets a tool speak to the session's client. It is a capability of
// tools: it may be used from any goroutine, also after the session.
type messenger struct{ s *session }

// Timeout tells the client that its user is shut out; the session then closes as that of
// a blocked user.
func (m messenger) Timeout(until time.Time, d time.Duration, message string) {
	m.s.blockedUntil.Store(&until)
	m.s.tell(&protocol.Timeout{TimeoutUntil: until.UnixMilli(), DurationSeconds: int(d.Seconds()), Message: message})
}
