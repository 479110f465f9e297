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
	Output               json.RawMessage    `json:"output,omitempty"`
	Versions             []registry.Version `json:"versions,omitempty"`
}

func (s *Server) toolsFor(r *http.Request) *registry.Snapshot {
	all, p := s.opts.Tools(), auth.From(r.Context())
	if p.May(auth.ScopeInspect) {
		return all
	}
	return all.Permitted(p.Granted())
}

func (s *Server) tools(w http.ResponseWriter, r *http.Request) *problem {
	snapshot := s.toolsFor(r)
	tools := snapshot.All()
	switch mode := spec.Mode(r.URL.Query().Get("mode")); mode {
	case "":
	case spec.ModeText, spec.ModeVoice:
		tools = snapshot.Tools(mode)
	default:
		return refusal(http.StatusBadRequest, "invalid_mode", "mode must be text or voice.")
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
	return answer(w, http.StatusOK, map[string]any{"version": snapshot.Version(), "tools": list,
		"envelope": registry.EnvelopeSchema()})
}

func (s *Server) tool(w http.ResponseWriter, r *http.Request) *problem {
	snapshot := s.toolsFor(r)
	id := r.PathValue("id")
	t, ok := snapshot.Tool(id)
	if !ok {
		return refusal(http.StatusNotFound, "not_found", "There is no tool "+clip(id)+"; see GET /v1/tools.")
	}
	return answer(w, http.StatusOK, struct {
		RegistryVersion string `json:"registryVersion"`
		registry.Entry
	}{snapshot.Version(), t.Entry})
}
