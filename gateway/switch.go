package gateway

import (
	"context"
	"errors"
	"net/http"

	"voicegw/session"
	"voicegw/store"
)

type switchBody struct {
	Agent  string `json:"agent"`
	Reason string `json:"reason"`
}

// switchAgent switches a voice session on any gateway to another agent.
func (s operatorAPI) switchAgent(w http.ResponseWriter, r *http.Request) {
	var body switchBody
	if !s.readBody(w, r, &body, true, plainError) {
		return
	}
	if body.Agent == "" {
		problem(w, http.StatusBadRequest, "invalid_message", "agent is missing; see GET /v1/agents.")
		return
	}
	id := r.PathValue("id")
	err := s.opts.Sessions.SwitchAgent(id, body.Agent, body.Reason)
	if errors.Is(err, session.ErrNotHere) {
		err = s.elsewhere(r.Context(), id, func(ctx context.Context, found store.SessionRecord) error {
			return s.atNode(ctx, found.Node, func(n store.Node) error {
				return s.opts.Peers.SwitchAgent(ctx, n, id,
					body.Agent, body.Reason)
			})
		})
	}
	switch {
	case err == nil:
		s.opts.Logger.Info("an operator switched a session's agent", "session_id", id, "agent", body.Agent)
		w.WriteHeader(http.StatusAccepted)
	case errors.Is(err, session.ErrAgent) && !s.opts.Sessions.HasAgent(body.Agent):
		s.unknownAgent(w, body.Agent)
	case errors.Is(err, session.ErrAgent):
		problem(w, http.StatusConflict, "agent_cannot", "The session cannot switch to this agent: "+session.WhyNot(err)+".")
	default:
		s.elsewhereFailed(w, "is", "switching a session's agent failed", err)
	}
}
