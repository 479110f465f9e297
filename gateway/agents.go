package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"voicegw/internal/agent"
	"voicegw/internal/auth"
	"voicegw/internal/strict"
	"voicegw/store"
)

const agentsPath = "/v1/agents"

// Agents manages the agents of all gateways with a common store; *catalog.Catalog implements and documents it. It
// must be safe for concurrent use.
type Agents interface {
	Snapshot() *agent.Snapshot
	Put(ctx context.Context, e agent.Edit) (entry *agent.Entry, created bool, err error)
	Delete(ctx context.Context, id string, seen agent.Seen) error
}

type agentLine struct {
	ID          string       `json:"id"`
	Name        string       `json:"name"`
	Description string       `json:"description,omitempty"`
	Enabled     bool         `json:"enabled"`
	Source      agent.Source `json:"source"`
	Version     string       `json:"version,omitempty"`
	Revision    uint64       `json:"revision,omitempty"`
	// UpdatedAt is RFC 3339 in UTC with milliseconds.
	UpdatedAt string   `json:"updated_at,omitempty"`
	UpdatedBy string   `json:"updated_by,omitempty"`
	Problems  []string `json:"problems,omitempty"`
	// Warnings list probably wrong names.
	Warnings []string `json:"warnings,omitempty"`
}

type shownAgent struct {
	agentLine
	Document agent.Agent `json:"document"`
}

func agentLineOf(e *agent.Entry) agentLine {
	l := agentLine{
		ID: e.ID, Name: e.Name, Description: e.Description, Enabled: !e.Disabled, Source: e.Source, Version: e.Version,
		Revision:  e.Revision,
		UpdatedBy: e.UpdatedBy, Problems: e.Problems, Warnings: e.Warnings,
	}
	if !e.UpdatedAt.IsZero() {
		l.UpdatedAt = e.UpdatedAt.UTC().Format(timeForm)
	}
	return l
}

// agentAPI has the handlers of agents.
type agentAPI struct{ *Server }

func (s agentAPI) listAgents(w http.ResponseWriter, _ *http.Request) {
	now := s.opts.Agents.Snapshot()
	lines := make([]agentLine, 0, len(now.All()))
	for _, e := range now.All() {
		lines = append(lines, agentLineOf(e))
	}
	answer(w, http.StatusOK, map[string]any{"version": now.Version(), "default": now.Default(), "agents": lines})
}

func (s agentAPI) showAgent(w http.ResponseWriter, r *http.Request) {
	e, ok := s.opts.Agents.Snapshot().Get(r.PathValue("id"))
	if !ok {
		s.agentRefused(w, r, agent.ErrUnknown)
		return
	}
	if names, any, ok := tagsOf(r.Header.Values("If-None-Match"), true); ok && (any || slices.Contains(names, e.Tag())) {
		w.Header().Set("ETag", tagHeader(e))
		w.WriteHeader(http.StatusNotModified)
		return
	}
	answerAgent(w, http.StatusOK, e)
}

func answerAgent(w http.ResponseWriter, status int, e *agent.Entry) {
	w.Header().Set("ETag", tagHeader(e))
	answer(w, status, shownAgent{agentLineOf(e), e.Document})
}

func tagHeader(e *agent.Entry) string { return strconv.Quote(e.Tag()) }

func (s agentAPI) createAgent(w http.ResponseWriter, r *http.Request) {
	data, name, ok := readDocument(w, r)
	if !ok {
		return
	}
	s.putAgent(w, r, agent.Edit{Name: name, Data: data, Seen: agent.Seen{Absent: true}})
}

// replaceAgent replaces an agent's document.
func (s agentAPI) replaceAgent(w http.ResponseWriter, r *http.Request) {
	seen, ok := s.seen(w, r, true)
	if !ok {
		return
	}
	data, name, ok := readDocument(w, r)
	if !ok {
		return
	}
	s.putAgent(w, r, agent.Edit{ID: r.PathValue("id"), Name: name, Data: data, Seen: seen})
}

// patchAgent applies a JSON merge patch (RFC 7396) to an agent's document.
func (s agentAPI) patchAgent(w http.ResponseWriter, r *http.Request) {
	seen, ok := s.seen(w, r, false)
	if !ok {
		return
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/merge-patch+json" && kind != "application/json" {
		problem(w, http.StatusUnsupportedMediaType,
			"invalid_message", "The body must be a JSON merge patch, with Content-Type: application/merge-patch+json.")
		return
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxChatBody))
	var patch map[string]any
	if !takeBody(w, raw, err, &patch, false, plainError) {
		return
	}
	e, found := s.opts.Agents.Snapshot().Get(r.PathValue("id"))
	if !found {
		s.agentRefused(w, r, agent.ErrUnknown)
		return
	}
	document, err := patched(e.Document, patch)
	if err != nil {
		problem(w, http.StatusBadRequest, "invalid_message", "The patch is invalid: "+err.Error()+".")
		return
	}
	if seen.Any {
		seen = agent.Seen{Tags: []string{e.Tag()}} // replace only the state that was patched
	}
	s.putAgent(w, r, agent.Edit{ID: e.ID, Name: "the patched document", Data: document, Seen: seen})
}

// patched applies a merge patch to a document.
func patched(to agent.Agent, patch map[string]any) ([]byte, error) {
	data, err := json.Marshal(to)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names it
	}
	var document map[string]any
	if err := json.Unmarshal(data, &document); err != nil {
		return nil, err //nolint:wrapcheck // the caller names it
	}
	return json.Marshal(merged(document, patch)) //nolint:wrapcheck // the caller names it
}

// merged implements MergePatch of RFC 7396, section 2, for objects.
func merged(target, patch map[string]any) map[string]any {
	if target == nil {
		target = map[string]any{}
	}
	for name, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(target, name)
		case map[string]any:
			inner, _ := target[name].(map[string]any)
			target[name] = merged(inner, value)
		default:
			target[name] = value
		}
	}
	return target
}

// putAgent saves an edit and answers with the result.
func (s agentAPI) putAgent(w http.ResponseWriter, r *http.Request, e agent.Edit) {
	e.By = auth.From(r.Context()).ID
	entry, created, err := s.opts.Agents.Put(r.Context(), e)
	if err != nil {
		s.agentRefused(w, r, err)
		return
	}
	s.opts.Logger.Info("an agent was edited", "agent", entry.ID, "agent_version", entry.Version, "revision", entry.Revision,
		"created", created, "by", e.By)
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		w.Header().Set("Location", agentsPath+"/"+entry.ID)
	}
	answerAgent(w, status, entry)
}

// deleteAgent removes an agent's edit.
func (s agentAPI) deleteAgent(w http.ResponseWriter, r *http.Request) {
	seen, ok := s.seen(w, r, false)
	if !ok {
		return
	}
	id := r.PathValue("id")
	if err := s.opts.Agents.Delete(r.Context(), id, seen); err != nil {
		s.agentRefused(w, r, err)
		return
	}
	s.opts.Logger.Info("an agent was deleted", "agent", id, "by", auth.From(r.Context()).ID)
	w.WriteHeader(http.StatusNoContent)
}

// readDocument reads a document in JSON or YAML (RFC 9512), and returns its name in errors.
func readDocument(w http.ResponseWriter, r *http.Request) (data []byte, name string, ok bool) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" && kind != "application/yaml" {
		problem(w, http.StatusUnsupportedMediaType,
			"invalid_message", "The body must be an agent's document, with Content-Type: application/json or application/yaml.")
		return nil, "", false
	}
	data, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxChatBody))
	if err == nil {
		return data, "the document", true
	}
	var tooBig *http.MaxBytesError
	if errors.As(err, &tooBig) {
		problem(w, http.StatusRequestEntityTooLarge, "too_big", "The body is larger than "+strconv.Itoa(maxChatBody)+" bytes.")
		return nil, "", false
	}
	problem(w, http.StatusBadRequest, "invalid_message", "The body could not be read.")
	return nil, "", false
}

// seen returns the conditions of a change (RFC 9110, sections 13.1.1 and 13.1.2). A change without a condition is
// refused (RFC 6585, section 3), to prevent lost updates.
func (s agentAPI) seen(w http.ResponseWriter, r *http.Request, mayCreate bool) (agent.Seen, bool) {
	match, none := r.Header.Values("If-Match"), r.Header.Values("If-None-Match")
	if len(none) > 0 && len(match) == 0 && mayCreate {
		if _, any, ok := tagsOf(none, true); ok && any {
			return agent.Seen{Absent: true}, true
		}
		problem(w, http.StatusBadRequest, "invalid_message", "If-None-Match must be *, for an agent that does not exist yet.")
		return agent.Seen{}, false
	}
	if len(match) == 0 {
		message := "If-Match must have the ETag of GET " + agentsPath + "/" + clip(r.PathValue("id"))
		if mayCreate {
			message += ", or If-None-Match: * for a new agent"
		}
		problem(w, http.StatusPreconditionRequired, "precondition_required", message+".")
		return agent.Seen{}, false
	}
	tags, any, ok := tagsOf(match, false)
	if !ok {
		problem(w, http.StatusBadRequest, "invalid_message", `If-Match must be ETags in quotes, such as "17", or *.`)
		return agent.Seen{}, false
	}
	return agent.Seen{Any: any, Tags: tags}, true
}

// tagsOf parses a list of entity tags (RFC 9110, section 8.8.3). Weak tags count only in weak comparisons. tags is
// empty and not nil if none count. any means *.
func tagsOf(headers []string, weak bool) (tags []string, any, ok bool) {
	all := strings.TrimSpace(strings.Join(headers, ","))
	if all == "*" {
		return nil, true, true
	}
	tags = []string{}
	for all != "" {
		rest, isWeak := strings.CutPrefix(all, "W/")
		if !strings.HasPrefix(rest, `"`) {
			return nil, false, false
		}
		tag, after, closed := strings.Cut(rest[1:], `"`)
		if !closed {
			return nil, false, false
		}
		if weak || !isWeak {
			tags = append(tags, tag)
		}
		after = strings.TrimSpace(after)
		next, more := strings.CutPrefix(after, ",")
		if after != "" && !more {
			return nil, false, false
		}
		all = strings.TrimSpace(next)
	}
	return tags, false, len(headers) > 0
}

// agentRefused answers a failed request.
func (s agentAPI) agentRefused(w http.ResponseWriter, r *http.Request, err error) {
	var wrong *strict.Error
	var used *agent.UsedError
	id := strconv.Quote(clip(r.PathValue("id")))
	switch {
	case errors.As(err, &wrong):
		type found struct {
			Line    int    `json:"line,omitempty"`
			Message string `json:"message"`
		}
		var list []found
		for _, p := range wrong.Problems {
			list = append(list, found{p.Line, p.Text})
		}
		answer(w, http.StatusUnprocessableEntity, map[string]any{"error": map[string]any{
			"code": "agent_invalid", "message": "The document is invalid: " + wrong.Problems[0].Text + more(len(list)-1) +
				".", "problems": list,
		}})
	case errors.Is(err, agent.ErrUnknown):
		problem(w, http.StatusNotFound, "unknown_agent", "There is no agent "+id+"; see GET "+agentsPath+".")
	case errors.Is(err, agent.ErrExists) && r.Method == http.MethodPost:
		problem(w, http.StatusConflict, "agent_exists", "An agent with that id already exists; change it with PUT or PATCH.")
	case errors.Is(err, agent.ErrExists):
		problem(w, http.StatusPreconditionFailed, "precondition_failed", "The agent "+id+" already exists.")
	case errors.Is(err, agent.ErrChanged):
		problem(w, http.StatusPreconditionFailed, "precondition_failed", "The agent "+
			id+" has changed since the ETag in If-Match; get it again.")
	case errors.As(err, &used):
		problem(w, http.StatusConflict, "agent_in_use", "These agents switch to "+id+": "+strings.Join(used.By, ", ")+
			". Change them first.")
	case errors.Is(err, agent.ErrFixed):
		problem(w, http.StatusConflict, "agent_in_file", "The agent "+
			id+" comes from a file or from the configuration, and has no edits. Remove it there, or disable it with enabled: false.")
	case errors.Is(err, store.ErrFull):
		problem(w, http.StatusConflict, "limit", "The maximum number of agents is reached.")
	default:
		s.storeFailed(w, "saving an agent failed", err)
	}
}

// more returns the text for n further problems.
func more(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "; and one more problem"
	}
	return "; and " + strconv.Itoa(n) + " more problems"
}
