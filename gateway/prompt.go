package gateway

import (
	"encoding/json"
	"net/http"
)

// shownPrompt is what the model of a session is set up with.
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

// showPrompt shows what the model of a session that runs here is told, and which tools it has.
func (s *Server) showPrompt(w http.ResponseWriter, r *http.Request) {
	running, ok := s.opts.Sessions.Session(r.PathValue("id"))
	if !ok || !sees(r.Context(), running.User) {
		problem(w, http.StatusNotFound, "session_unknown", "No session of that id runs on this gateway; GET /v1/sessions lists those that do.")
		return
	}
	p, ok := s.opts.Sessions.Prompt(running.ID)
	if !ok {
		problem(w, http.StatusConflict, "session_connecting", "The session has no model yet, or is over; ask again in a moment.")
		return
	}
	shown := shownPrompt{
		SessionID: running.ID, Agent: p.Agent, AgentVersion: p.AgentVersion, Provider: p.Provider, Model: p.Model, Voice: p.Voice, Language: p.Language,
		Instructions: p.Instructions, Tools: []promptTool{},
	}
	for _, t := range p.Tools {
		shown.Tools = append(shown.Tools, promptTool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	answer(w, http.StatusOK, shown)
}
