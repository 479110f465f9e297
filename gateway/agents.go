package gateway

import (
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
	"voicegw/protocol"
	"voicegw/store"
)

const agentsPath = "/v1/agents"

type shownAgent struct {
	protocol.Agent
	Document agent.Agent `json:"document"`
}

func agentLineOf(e *agent.Entry) protocol.Agent {
	return protocol.Agent{
		ID: e.ID, Name: e.Name, Description: e.Description, Enabled: !e.Disabled, Source: string(e.Source), Version: e.Version,
		Revision: e.Revision, UpdatedAt: protocol.Time{Time: e.UpdatedAt}, UpdatedBy: e.UpdatedBy, Problems: e.Problems,
		Warnings: e.Warnings,
	}
}

type agentAPI struct{ *Server }

func (s agentAPI) listAgents(w http.ResponseWriter, _ *http.Request) *problem {
	now := s.opts.Agents.Snapshot()
	lines := make([]protocol.Agent, 0, len(now.All()))
	for _, e := range now.All() {
		lines = append(lines, agentLineOf(e))
	}
	return answer(w, http.StatusOK, map[string]any{"version": now.Version(), "default": now.Default(), "agents": lines})
}

func (s agentAPI) showAgent(w http.ResponseWriter, r *http.Request) *problem {
	e, ok := s.opts.Agents.Snapshot().Get(r.PathValue("id"))
	if !ok {
		return s.agentRefused(r, agent.ErrUnknown)
	}
	if names, any, ok := tagsOf(r.Header.Values("If-None-Match"), true); ok && (any || slices.Contains(names, e.Tag())) {
		w.Header().Set("ETag", tagHeader(e))
		return done(w, http.StatusNotModified)
	}
	return answerAgent(w, http.StatusOK, e)
}

func answerAgent(w http.ResponseWriter, status int, e *agent.Entry) *problem {
	w.Header().Set("ETag", tagHeader(e))
	return answer(w, status, shownAgent{agentLineOf(e), e.Document})
}

func tagHeader(e *agent.Entry) string { return strconv.Quote(e.Tag()) }

func (s agentAPI) createAgent(w http.ResponseWriter, r *http.Request) *problem {
	data, no := readDocument(w, r)
	if no != nil {
		return no
	}
	return s.putAgent(w, r, agent.Edit{Name: documentName, Data: data, Seen: agent.Seen{Absent: true}})
}

func (s agentAPI) replaceAgent(w http.ResponseWriter, r *http.Request) *problem {
	seen, no := seenBy(r, true)
	if no != nil {
		return no
	}
	data, no := readDocument(w, r)
	if no != nil {
		return no
	}
	return s.putAgent(w, r, agent.Edit{ID: r.PathValue("id"), Name: documentName, Data: data, Seen: seen})
}

func (s agentAPI) patchAgent(w http.ResponseWriter, r *http.Request) *problem {
	seen, no := seenBy(r, false)
	if no != nil {
		return no
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/merge-patch+json" && kind != "application/json" {
		return refusal(http.StatusUnsupportedMediaType, "invalid_message",
			"The body must be a JSON merge patch, with Content-Type: application/merge-patch+json.")
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxChatBody))
	var patch map[string]any
	if no := takeBody(w, raw, err, &patch, false); no != nil {
		return no
	}
	e, found := s.opts.Agents.Snapshot().Get(r.PathValue("id"))
	if !found {
		return s.agentRefused(r, agent.ErrUnknown)
	}
	document, err := patched(e.Document, patch)
	if err != nil {
		return invalid("The patch is invalid: " + err.Error() + ".")
	}
	if seen.Any {
		seen = agent.Seen{Tags: []string{e.Tag()}} // replace only the state that was patched
	}
	return s.putAgent(w, r, agent.Edit{ID: e.ID, Name: "the patched document", Data: document, Seen: seen})
}

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

func (s agentAPI) putAgent(w http.ResponseWriter, r *http.Request, e agent.Edit) *problem {
	e.By = auth.From(r.Context()).ID
	entry, created, err := s.opts.Agents.Put(r.Context(), e)
	if err != nil {
		return s.agentRefused(r, err)
	}
	s.opts.Logger.Info("an agent was edited", "agent", entry.ID, "agent_version", entry.Version, "revision", entry.Revision,
		"created", created, "by", e.By)
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		w.Header().Set("Location", agentsPath+"/"+entry.ID)
	}
	return answerAgent(w, status, entry)
}

func (s agentAPI) deleteAgent(w http.ResponseWriter, r *http.Request) *problem {
	seen, no := seenBy(r, false)
	if no != nil {
		return no
	}
	id := r.PathValue("id")
	if err := s.opts.Agents.Delete(r.Context(), id, seen); err != nil {
		return s.agentRefused(r, err)
	}
	s.opts.Logger.Info("an agent was deleted", "agent", id, "by", auth.From(r.Context()).ID)
	return done(w, http.StatusNoContent)
}

// documentName is a document's name in errors.
const documentName = "the document"

// readDocument reads a document in JSON or YAML (RFC 9512).
func readDocument(w http.ResponseWriter, r *http.Request) ([]byte, *problem) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" && kind != "application/yaml" {
		return nil, refusal(http.StatusUnsupportedMediaType, "invalid_message",
			"The body must be an agent's document, with Content-Type: application/json or application/yaml.")
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxChatBody))
	var tooBig *http.MaxBytesError
	switch {
	case errors.As(err, &tooBig):
		return nil, refusal(http.StatusRequestEntityTooLarge, "too_big",
			"The body is larger than "+strconv.Itoa(maxChatBody)+" bytes.")
	case err != nil:
		return nil, invalid("The body could not be read.")
	}
	return data, nil
}

// seenBy returns the conditions of a change (RFC 9110, 13.1). A change without one is refused (RFC 6585, 3): no lost
// updates.
func seenBy(r *http.Request, mayCreate bool) (agent.Seen, *problem) {
	match, none := r.Header.Values("If-Match"), r.Header.Values("If-None-Match")
	if len(none) > 0 && len(match) == 0 && mayCreate {
		if _, any, ok := tagsOf(none, true); ok && any {
			return agent.Seen{Absent: true}, nil
		}
		return agent.Seen{}, invalid("If-None-Match must be *, for an agent that does not exist yet.")
	}
	if len(match) == 0 {
		message := "If-Match must have the ETag of GET " + agentsPath + "/" + clip(r.PathValue("id"))
		if mayCreate {
			message += ", or If-None-Match: * for a new agent"
		}
		return agent.Seen{}, refusal(http.StatusPreconditionRequired, "precondition_required", message+".")
	}
	tags, any, ok := tagsOf(match, false)
	if !ok {
		return agent.Seen{}, invalid(`If-Match must be ETags in quotes, such as "17", or *.`)
	}
	return agent.Seen{Any: any, Tags: tags}, nil
}

// tagsOf parses entity tags (RFC 9110, 8.8.3). Weak tags count only in weak comparisons. tags isn't nil. any means *.
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

func (s agentAPI) agentRefused(r *http.Request, err error) *problem {
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
		return &problem{status: http.StatusUnprocessableEntity, code: "agent_invalid", more: map[string]any{"problems": list},
			message: "The document is invalid: " + wrong.Problems[0].Text + more(len(list)-1) + "."}
	case errors.Is(err, agent.ErrUnknown):
		return refusal(http.StatusNotFound, "unknown_agent", "There is no agent "+id+"; see GET "+agentsPath+".")
	case errors.Is(err, agent.ErrExists) && r.Method == http.MethodPost:
		return refusal(http.StatusConflict, "agent_exists",
			"An agent with that id already exists; change it with PUT or PATCH.")
	case errors.Is(err, agent.ErrExists):
		return refusal(http.StatusPreconditionFailed, "precondition_failed", "The agent "+id+" already exists.")
	case errors.Is(err, agent.ErrChanged):
		return refusal(http.StatusPreconditionFailed, "precondition_failed",
			"The agent "+id+" has changed since the ETag in If-Match; get it again.")
	case errors.As(err, &used):
		return refusal(http.StatusConflict, "agent_in_use",
			"These agents switch to "+id+": "+strings.Join(used.By, ", ")+". Change them first.")
	case errors.Is(err, agent.ErrFixed):
		return refusal(http.StatusConflict, "agent_in_file",
			"The agent "+id+" comes from a file or from the configuration, and has no edits. Remove it there, or "+
				"disable it with enabled: false.")
	case errors.Is(err, store.ErrFull):
		return refusal(http.StatusConflict, "limit", "The maximum number of agents is reached.")
	default:
		return s.storeFailed("saving an agent failed", err)
	}
}

func more(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "; and one more problem"
	}
	return "; and " + strconv.Itoa(n) + " more problems"
}
