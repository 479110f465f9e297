package session

import (
	"encoding/json"

	"voicegw/internal/audit"
	"voicegw/internal/auth"
	"voicegw/orchestrator"
	"voicegw/protocol"
)

// mayInspect reports whether a client may see its session's inner state: it has asked to, and its connection or its
// ticket allows it.
func (g *startup) mayInspect(a *Admission, ticket bool) bool {
	return g.start.Inspect && (a.Principal.May(auth.ScopeInspect) || ticket)
}

// inspector shows the session's inner state to a client that inspects it. The session's mu guards it.
type inspector struct {
	shown *orchestrator.View // the last view sent; nil before the first
}

// state sends the session's state to an inspecting client if it has changed. The caller must hold mu.
func (i *inspector) state(s *session) {
	if !s.inspect {
		return
	}
	v := s.state.View()
	if i.shown != nil && v == *i.shown {
		return
	}
	i.shown = &v
	s.send(&protocol.InspectState{
		Header: inTurn(v.Turn), Phase: string(v.Phase), Speaking: v.Speaking, Responding: v.Responding,
		Awaiting: v.Awaiting, Questions: v.Questions, Muted: v.Muted,
		Suppressed: protocol.InspectSuppressed{Audio: v.AudioOff, Transcript: v.TranscriptOff},
		Budget:     v.Budget(), Notices: v.Notices, Cost: protocol.Cost{USDMicros: int64(v.Spent.Micros), Unpriced: v.Spent.Unpriced},
	})
}

func (i *inspector) call(s *session, a orchestrator.ToolEnded) {
	if !s.inspect {
		return
	}
	m, err := a.Inside(s.identified(a.Record))
	if err != nil {
		s.log().Error("a record cannot be shown", "call_id", a.Call, "error", err)
		return
	}
	s.send(m)
}

func (i *inspector) intent(s *session, a orchestrator.IntentDecided) {
	if a.Why != "" {
		s.log().Warn("a tool's intent was refused", "intent", string(a.Intent.Type), "phase", string(a.Phase), "why", a.Why)
	}
	if !s.inspect {
		return
	}
	intent, err := json.Marshal(a.Intent)
	if err != nil {
		s.log().Error("an intent cannot be shown", "intent", string(a.Intent.Type), "error", err)
		return
	}
	s.send(&protocol.InspectIntent{Header: inTurn(a.Turn), Intent: intent, Applied: a.Why == "", Why: a.Why})
}

func (s *session) identified(r audit.Record) audit.Record {
	r.SessionID, r.UserID = s.id, s.user.String()
	r.ConversationID = s.start.ConversationID
	if r.Agent == "" {
		r.Agent, r.AgentVersion = s.agent.Load().Name, s.agent.Load().Version
	}
	return r
}
