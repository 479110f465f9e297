package session

import (
	"encoding/json"
	"unicode/utf8"

	"voicegw/audit"
	"voicegw/orchestrator"
	"voicegw/protocol"
)

// mayInspect says whether a client is shown the inside of its session: it has asked to be,
// and either its connection or its ticket allows it.
func (g *guest) mayInspect(a *Admission, ticket bool) bool {
	return g.start.Inspect && (a.MayInspect || ticket)
}

// showState tells a client that inspects its session where that stands, if it has
// changed. mu is held.
func (s *session) showState() {
	if !s.inspect {
		return
	}
	v := s.state.View()
	if v == s.shown {
		return
	}
	s.shown = v
	s.tell(&protocol.InspectState{
		Header: inTurn(v.Turn), Phase: string(v.Phase), Speaking: v.Speaking, Responding: v.Responding,
		Awaiting: v.Awaiting, Questions: v.Questions, Muted: v.Muted,
		Suppressed: protocol.InspectSuppressed{Audio: v.AudioOff, Transcript: v.TranscriptOff},
		Budget:     v.Budget(), Notices: v.Notices,
	})
}

// showCall tells a client that inspects its session all of a call that is over.
func (s *session) showCall(a orchestrator.ToolEnded) {
	if !s.inspect {
		return
	}
	r := s.ours(a.Record)
	args := r.Args
	if args == nil {
		args = askedFor(a.Written)
	}
	r.Args = nil
	record, err := json.Marshal(r)
	if err != nil {
		s.logger.Error("a record cannot be shown", "call_id", a.Call, "error", err)
		return
	}
	s.tell(&protocol.InspectCall{
		Header: inTurn(a.Turn), CallID: a.Call, Tool: a.Tool,
		QueuedMS: a.Queued.Milliseconds(), RunMS: a.Took.Milliseconds(),
		Record: record, Args: args, Envelope: a.Envelope.Encode(),
	})
}

// askedFor are arguments as a model wrote them, as JSON: a string of what is none, and no
// arguments of nothing.
func askedFor(raw json.RawMessage) json.RawMessage {
	switch {
	case len(raw) == 0:
		return json.RawMessage("{}")
	case json.Valid(raw) && utf8.Valid(raw): // what is no UTF-8 would break the client's connection
		return raw
	}
	text, _ := json.Marshal(string(raw)) // a string alone: it cannot fail
	return text
}

// intentDecided notes what became of a tool's intent.
func (s *session) intentDecided(a orchestrator.IntentDecided) {
	if a.Why != "" {
		s.logger.Warn("a tool's intent was refused", "intent", string(a.Intent.Type), "phase", string(a.Phase), "why", a.Why)
	}
	if !s.inspect {
		return
	}
	intent, err := json.Marshal(a.Intent)
	if err != nil {
		s.logger.Error("an intent cannot be shown", "intent", string(a.Intent.Type), "error", err)
		return
	}
	s.tell(&protocol.InspectIntent{Header: inTurn(a.Turn), Intent: intent, Applied: a.Why == "", Why: a.Why})
}

// ours adds to a record whose session it is of.
func (s *session) ours(r audit.Record) audit.Record {
	r.SessionID, r.UserID = s.id, s.user.String()
	r.ConversationID, r.Agent = s.start.ConversationID, s.opts.Agent.Name
	return r
}
