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

// beginCalls prepares the execution of this session's tools. Results become steps, on goroutines
// of the executor.
func (s *session) beginCalls() {
	var caps []any
	if s.byClient != nil {
		caps = append(caps, registry.ClientTools(s.byClient))
	}
	s.calls.Begin(s.opts.Executor, execute.Conversation{
		Session: registry.Session{
			ID: s.id, UserID: s.user.String(), ConversationID: s.start.ConversationID,
			Agent: s.agent.Load().Name, Vouched: s.vouched, Scopes: s.scopes, Mode: spec.ModeVoice, TimeZone: s.start.TimeZone,
		},
		Capabilities: caps,
		Tell:         s.tell,
		Blocked:      func(until time.Time) { s.blockedUntil.Store(&until) },
		Audit:        s.auditWithin,
		Describe:     s.describe,
		Report:       s.report,
		Progress:     func(in calls.Progressed) { s.dispatch(orchestrator.OfCall{In: in}) },
		Sure:         func() bool { return s.place.Sure() },
		Remember:     s.remember,
	})
}

// describe tells a call how the session is now.
func (s *session) describe(to *registry.Session) {
	s.mu.Lock()
	v := s.state.View()
	s.mu.Unlock()
	to.Phase = string(v.Phase)
	to.Suppressed = registry.Suppressed{Audio: v.AudioOff, Transcript: v.TranscriptOff}
}

var errMoved = errors.New("session: it was given up for another gateway")

// remember makes durable that the calls of this session have begun. While the session is given up it
// waits for what comes of that.
func (s *session) remember(ctx context.Context) error {
	if g := s.given(); g != nil {
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
	if !s.keepsCheckpoints() {
		s.mu.Unlock()
		return nil
	}
	err := s.noteNow()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.place.Keep(ctx) //nolint:wrapcheck // it names the store
}

// toolsVersion returns the version of the session's registry.
func (s *session) toolsVersion() string {
	tools := s.tools.Load()
	if tools == nil {
		return ""
	}
	return tools.ToolsVersion()
}

// auditTrail is what a session owes to the audit log. The session's mu guards it.
type auditTrail struct {
	unwritten audit.Unwritten // records that the audit log may not have written; used concurrently
	telling   *audit.Record   // the record that the next command makes true; nil without one
}

// decided takes an audit record: it is written at once, or when its answer is. It also settles the
// approved action that the record is about. The caller must hold mu.
func (s *session) decided(a orchestrator.Audit) {
	if a.Record.Event == audit.EventTool && a.Record.Reference != "" {
		s.calls.Settle(a.Record.Reference)
	}
	s.owe(&a.Record)
	if a.Told {
		s.records.telling = &a.Record
		return
	}
	s.audit(a.Record)
}

// owe holds a record until the audit log has written it.
func (s *session) owe(r *audit.Record) {
	if s.opts.Audit != nil && s.records.unwritten.Add(r) > orchestrator.MaxUnsent {
		s.log().Warn("the audit log is slow: checkpoints leave out the session's oldest record, which is lost if this gateway dies now", "records", orchestrator.MaxUnsent)
	}
}

// auditWait is how long an ended session stays in the directory for records that the audit log has not written: if the
// process dies, the next one writes them from the checkpoint.
const auditWait = 5 * time.Second

// waitForAudit waits until the session's records are written, at most for a time.
func (s *session) waitForAudit(limit time.Duration) {
	if left := s.records.unwritten.Wait(limit); left > 0 {
		s.log().Warn("the session leaves this gateway before the audit log has written its last records", "records", left)
	}
}

// audit writes a record. It may be called concurrently.
func (s *session) audit(r audit.Record) {
	if s.opts.Audit != nil {
		s.opts.Audit(s.ours(r))
	}
}

// auditWithin writes a record that a running tool has caused, such as that of a nested call.
func (s *session) auditWithin(r audit.Record) {
	s.mu.Lock()
	s.owe(&r)
	err := s.noteNow()
	s.mu.Unlock()
	if err != nil {
		s.log().Error("encoding a checkpoint", "error", err)
	}
	s.audit(r)
}

// untold writes the record of an answer that was meant for the model but will never reach it: the
// connection has broken, or the session is over.
func (s *session) untold(r *audit.Record) {
	undelivered := *r
	undelivered.Delivered, undelivered.NotDelivered = false, "not_sent"
	s.audit(undelivered)
}

// declarations returns the tools of a mode in the form that a model gets.
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

// confirmAction declares calls.ConfirmAction.
func confirmAction(form transport.SchemaForm) transport.Tool {
	params := `{"type":"object","properties":{"reference":{"type":"string","description":"` + prompts.ConfirmActionReference + `"},"approved":{"type":"boolean","description":"` + prompts.ConfirmActionApproved + `"}},"required":["reference","approved"],"additionalProperties":false}`
	if form == transport.SchemaOpenAPI {
		params = `{"type":"OBJECT","properties":{"reference":{"type":"STRING","description":"` + prompts.ConfirmActionReference + `"},"approved":{"type":"BOOLEAN","description":"` + prompts.ConfirmActionApproved + `"}},"required":["reference","approved"],"propertyOrdering":["reference","approved"]}`
	}
	return transport.Tool{
		Name:        calls.ConfirmAction,
		Description: prompts.ConfirmAction,
		Parameters:  json.RawMessage(params),
	}
}
