package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"voicegw/session"
	"voicegw/store"
)

// shownPrompt is the prompt and setup of a session's model.
type shownPrompt struct {
	SessionID    string       `json:"session_id"`
	Agent        string       `json:"agent"`
	AgentVersion string       `json:"agent_version,omitempty"`
	Provider     string       `json:"provider"`
	Model        string       `json:"model,omitempty"`
	Voice        string       `json:"voice,omitempty"`
	Language     string       `json:"language,omitempty"`
	Instructions string       `json:"instructions"`
	Tools        []promptTool `json:"tools"`
}

// promptTool is a tool as the model gets it.
type promptTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// showPrompt shows the prompt and tools of a session on any gateway.
func (s operatorAPI) showPrompt(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	p, err := s.prompt(r.Context(), id)
	switch {
	case err == nil:
		answer(w, http.StatusOK, shown(id, p))
	case errors.Is(err, session.ErrNoModel):
		problem(w, http.StatusConflict, "session_connecting", "The session is not connected to a model; try again in a moment.")
	default:
		s.elsewhereFailed(w, "is", "reading a session's prompt failed", err)
	}
}

// prompt returns the current prompt of a session that the caller may see. The error wraps store.ErrUnknown or
// session.ErrNoModel, or is an elsewhereError.
func (s operatorAPI) prompt(ctx context.Context, id string) (p session.Prompt, err error) {
	if running, here := s.opts.Sessions.Session(id); here {
		if !sees(ctx, running.User) {
			return p, store.ErrUnknown
		}
		if p, err = s.opts.Sessions.Prompt(id); !errors.Is(err, session.ErrNotHere) {
			return p, err
		}
	}
	err = s.elsewhere(ctx, id, func(ctx context.Context, found store.SessionRecord) error {
		if !sees(ctx, found.User) {
			return store.ErrUnknown
		}
		return s.atNode(ctx, found.Node, func(n store.Node) error {
			p, err = s.opts.Peers.Prompt(ctx, n, id)
			return err
		})
	})
	return p, err
}

func shown(id string, p session.Prompt) shownPrompt {
	out := shownPrompt{
		SessionID: id, Agent: p.Agent, AgentVersion: p.AgentVersion, Provider: p.Provider, Model: p.Model, Voice: p.Voice,
		Language:     p.Language,
		Instructions: p.Instructions, Tools: []promptTool{},
	}
	for _, t := range p.Tools {
		out.Tools = append(out.Tools, promptTool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	return out
}
