package gateway

import (
	"encoding/json"
	"net/http"

	"voicegw/internal/auth"
	"voicegw/registry"
	"voicegw/registry/spec"
)

type toolLine struct {
	ToolID               string             `json:"toolId"`
	Version              string             `json:"version"`
	Title                string             `json:"title,omitempty"`
	Tags                 []string           `json:"tags,omitempty"`
	Description          string             `json:"description"`
	Summary              string             `json:"summary"`
	Category             spec.Category      `json:"category"`
	SideEffects          spec.SideEffects   `json:"sideEffects"`
	RequiresConfirmation bool               `json:"requiresConfirmation"`
	ConfirmWhen          []spec.ConfirmWhen `json:"confirmWhen,omitempty"`
	AllowedModes         []spec.Mode        `json:"allowedModes"`
	Requires             []string           `json:"requires,omitempty"`
	RateLimit            *spec.RateLimit    `json:"rateLimit,omitempty"`
	Availability         *spec.Availability `json:"availability,omitempty"`
	Job                  *spec.Job          `json:"job,omitempty"`
	LatencyBudgetMS      int                `json:"latencyBudgetMs"`
	// Output is the JSON Schema of the answer's data, if the tool has one.
	Output json.RawMessage `json:"output,omitempty"`
	// Versions are additional versions, if any.
	Versions []registry.Version `json:"versions,omitempty"`
}

// toolsFor returns the tools that the caller may see: those of its own conversations, or all with inspect.
func (s *Server) toolsFor(r *http.Request) *registry.Snapshot {
	all, p := s.opts.Tools(), auth.From(r.Context())
	if p.May(auth.ScopeInspect) {
		return all
	}
	return all.Permitted(p.Granted())
}

// tools lists the tools of ?mode=text or voice, or all.
func (s *Server) tools(w http.ResponseWriter, r *http.Request) {
	snapshot := s.toolsFor(r)
	tools := snapshot.All()
	switch mode := spec.Mode(r.URL.Query().Get("mode")); mode {
	case "":
	case spec.ModeText, spec.ModeVoice:
		tools = snapshot.Tools(mode)
	default:
		problem(w, http.StatusBadRequest, "invalid_mode", "mode must be text or voice.")
		return
	}
	list := []toolLine{}
	for _, t := range tools {
		list = append(list, toolLine{
			ToolID: t.ToolID, Version: t.Version, Title: t.Title, Tags: t.Tags, Output: t.Output,
			Versions: snapshot.Versions(t.ToolID), Description: t.Description, Summary: t.Summary, Category: t.Category,
			SideEffects: t.SideEffects, RequiresConfirmation: t.RequiresConfirmation, ConfirmWhen: t.ConfirmWhen,
			AllowedModes: t.AllowedModes, Requires: t.Requires, RateLimit: t.RateLimit, Availability: t.Availability,
			Job: t.Job, LatencyBudgetMS: t.LatencyBudgetMS,
		})
	}
	answer(w, http.StatusOK, map[string]any{"version": snapshot.Version(), "tools": list, "envelope": registry.EnvelopeSchema()})
}

// tool shows a tool with its guide.
func (s *Server) tool(w http.ResponseWriter, r *http.Request) {
	snapshot := s.toolsFor(r)
	id := r.PathValue("id")
	t, ok := snapshot.Tool(id)
	if !ok {
		problem(w, http.StatusNotFound, "not_found", "There is no tool "+clip(id)+"; see GET /v1/tools.")
		return
	}
	answer(w, http.StatusOK, struct {
		RegistryVersion string `json:"registryVersion"`
		registry.Entry
	}{snapshot.Version(), t.Entry})
}
