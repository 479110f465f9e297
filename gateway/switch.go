package gateway

import (
	"context"
	"errors"
	"net/http"

	"voicegw/session"
	"voicegw/store"
)

// switchBody is what POST /v1/sessions/{id}/agent takes.
type switchBody struct {
	Agent  string `json:"agent"`
	Reason string `json:"reason"`
}

// switchAgent lets another agent go on with a voice session, on whichever gateway it runs.
func (s *Server) switchAgent(w http.ResponseWriter, r *http.Request) {
	var body switchBody
	if !s.readBody(w, r, &body, true, plainError) {
		return
	}
	if body.Agent == "" {
		problem(w, http.StatusBadRequest, "invalid_message", "agent is missing: it names the agent that goes on; GET /v1/agents lists them.")
		return
	}
	id := r.PathValue("id")
	err := s.opts.Sessions.SwitchAgent(id, body.Agent, body.Reason)
	if errors.Is(err, session.ErrNotHere) {
		err = s.elsewhere(r.Context(), id, func(ctx context.Context, found store.SessionRecord) error {
			return s.atNode(ctx, found.Node, func(n store.Node) error { return s.opts.Peers.SwitchAgent(ctx, n, id, body.Agent, body.Reason) })
		})
	}
	switch {
	case err == nil:
		s.opts.Logger.Info("an operator has switched the agent of a session", "session_id", id, "agent", body.Agent)
		w.WriteHeader(http.StatusAccepted)
	case errors.Is(err, session.ErrAgent) && !s.opts.Sessions.HasAgent(body.Agent):
		s.unknownAgent(w, body.Agent)
	case errors.Is(err, session.ErrAgent):
		problem(w, http.StatusConflict, "agent_cannot", "The agent cannot go on with this session: "+session.WhyNot(err)+".")
	default:
		s.elsewhereFailed(w, "is", "the agent of a session cannot be switched", err)
	}
}
