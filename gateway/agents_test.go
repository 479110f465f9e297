package gateway

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"voicegw/internal/agent"
	"voicegw/protocol"
	"voicegw/store"
)

// agentsServer is a server with agents of a store in memory, and two of files.
func agentsServer(t *testing.T) *Server {
	t.Helper()
	keep, err := store.Open(t.Context(), store.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keep.Close() })
	c := agent.New(agent.Options{
		Default: agent.Agent{ID: "default", Name: "default"},
		Files:   []agent.Agent{{ID: "billing", Name: "Billing", Playbook: "Bills."}, {ID: "reception", Name: "R", Playbook: "Hello.", SwitchTo: []string{"billing"}}},
		World:   func() agent.World { return agent.World{Tools: []string{"kb_get", "kb_search"}} }, Edits: keep.Agents,
	})
	return New(Options{Agents: c, Auth: operators(testKey)})
}

// does sends an operator's request. header holds names and values.
func does(s *Server, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Authorization", "Bearer "+testKey)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func codeOf(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var reply struct{ Error struct{ Code string } }
	if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return reply.Error.Code
}

const salesDocument = `{"id":"sales","name":"Sales","playbook":"Sell."}`

// TestEditAgents: an agent is made, shown, replaced, patched and deleted, each with the entity tag that the caller has.
func TestEditAgents(t *testing.T) {
	s := agentsServer(t)
	made := does(s, "POST", "/v1/agents", salesDocument)
	tag := made.Header().Get("ETag")
	if made.Code != http.StatusCreated || made.Header().Get("Location") != "/v1/agents/sales" || !strings.HasPrefix(tag, `"`) {
		t.Fatalf("made: %d %v %s", made.Code, made.Header(), made.Body)
	}
	var shown shownAgent
	got := does(s, "GET", "/v1/agents/sales", "")
	if json.Unmarshal(got.Body.Bytes(), &shown) != nil || got.Header().Get("ETag") != tag || shown.Document.Playbook != "Sell." || shown.Source != string(agent.SourceStore) || shown.UpdatedBy == "" || shown.UpdatedAt.IsZero() || !shown.Enabled {
		t.Errorf("shown: %v %s", got.Header(), got.Body)
	}
	for _, same := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
		if w := does(s, "GET", "/v1/agents/sales", "", "If-None-Match", same); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
			t.Errorf("If-None-Match %s: %d", same, w.Code)
		}
	}
	changed := does(s, "PUT", "/v1/agents/sales", `{"id":"sales","name":"Sales","playbook":"Sell more.","description":"x"}`, "If-Match", tag)
	if changed.Code != http.StatusOK || changed.Header().Get("ETag") == tag {
		t.Errorf("replaced: %d %s", changed.Code, changed.Body)
	}
	tag = changed.Header().Get("ETag")
	patch := does(s, "PATCH", "/v1/agents/sales", `{"description":null,"tools":["kb_get"],"budget":{"voice":{"total":2}},"enabled":false}`, "If-Match", tag, "Content-Type", "application/merge-patch+json")
	if want := `"document":{"id":"sales","name":"Sales","playbook":"Sell more.","tools":["kb_get"],"budget":{"voice":{"total":2}},"enabled":false}`; patch.Code != http.StatusOK || !strings.Contains(patch.Body.String(), want) {
		t.Errorf("patched: %d %s", patch.Code, patch.Body)
	}
	if w := does(s, "PATCH", "/v1/agents/sales", `{"enabled":true,"budget":null}`, "If-Match", "*"); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "budget") {
		t.Errorf("patched in any state: %d %s", w.Code, w.Body)
	}
	if w := does(s, "DELETE", "/v1/agents/sales", "", "If-Match", tag); w.Code != http.StatusPreconditionFailed {
		t.Errorf("deleted in an older state: %d %s", w.Code, w.Body)
	}
	if w := does(s, "DELETE", "/v1/agents/sales", "", "If-Match", "*"); w.Code != http.StatusNoContent {
		t.Errorf("deleted: %d %s", w.Code, w.Body)
	}
	if w := does(s, "GET", "/v1/agents/sales", ""); w.Code != http.StatusNotFound || codeOf(t, w) != "unknown_agent" {
		t.Errorf("after that: %d %s", w.Code, w.Body)
	}
}

// TestListAgents: one answer has all agents, without playbooks.
func TestListAgents(t *testing.T) {
	s := agentsServer(t)
	w := does(s, "GET", "/v1/agents", "")
	var list struct {
		Version, Default string
		Agents           []protocol.Agent
	}
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || strings.Contains(w.Body.String(), "Bills.") {
		t.Fatalf("%v: %s", err, w.Body)
	}
	var ids []string
	for _, a := range list.Agents {
		ids = append(ids, a.ID+" "+string(a.Source))
	}
	if want := []string{"billing file", "default configuration", "reception file"}; !slices.Equal(ids, want) || list.Default != "default" || !strings.HasPrefix(list.Version, "1.0.") {
		t.Errorf("listed: %s", w.Body)
	}
}

// TestYAMLOfAnAgent: the body of a request may be a YAML file, and problems have its line numbers.
func TestYAMLOfAnAgent(t *testing.T) {
	s := agentsServer(t)
	w := does(s, "PUT", "/v1/agents/sales", "id: sales\nname: Sales\nplaybook: x\ntools:\n  - kb-get\n  - kb_get\nswitch_to: [biling]\n", "If-None-Match", "*", "Content-Type", "application/yaml")
	want := `{"error":{"code":"agent_invalid","message":"The document is invalid: there is no tool \"kb-get\" (did you mean \"kb_get\"?); run voicegw tools list; and one more problem.","problems":[{"line":5,"message":"there is no tool \"kb-get\" (did you mean \"kb_get\"?); run voicegw tools list"},{"line":7,"message":"switch_to names the agent \"biling\", which does not exist (did you mean \"billing\"?); there is billing, default and reception"}]}}` + "\n"
	if w.Code != http.StatusUnprocessableEntity || w.Body.String() != want {
		t.Errorf("%d %s\nwant %s", w.Code, w.Body, want)
	}
	if w := does(s, "PUT", "/v1/agents/sales", "id: sales\nname: Sales\nplaybook: x\n", "If-None-Match", "*", "Content-Type", "application/yaml; charset=utf-8"); w.Code != http.StatusCreated {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestEditsAreRefused: each refusal has the HTTP status of its reason.
func TestEditsAreRefused(t *testing.T) {
	s := agentsServer(t)
	if w := does(s, "POST", "/v1/agents", salesDocument); w.Code != http.StatusCreated {
		t.Fatal(w.Body)
	}
	for name, c := range map[string]struct {
		method, path, body string
		header             []string
		status             int
		code               string
	}{
		"new, and there":             {"POST", "/v1/agents", salesDocument, nil, 409, "agent_exists"},
		"no condition":               {"PUT", "/v1/agents/sales", salesDocument, nil, 428, "precondition_required"},
		"no condition of a patch":    {"PATCH", "/v1/agents/sales", `{}`, nil, 428, "precondition_required"},
		"no condition of an end":     {"DELETE", "/v1/agents/sales", "", nil, 428, "precondition_required"},
		"a state that is over":       {"PUT", "/v1/agents/sales", salesDocument, []string{"If-Match", `"4711"`}, 412, "precondition_failed"},
		"a weak state":               {"PUT", "/v1/agents/sales", salesDocument, []string{"If-Match", `W/"1"`}, 412, "precondition_failed"},
		"a new agent that exists":    {"PUT", "/v1/agents/sales", salesDocument, []string{"If-None-Match", "*"}, 412, "precondition_failed"},
		"any state of none":          {"PUT", "/v1/agents/other", strings.ReplaceAll(salesDocument, "sales", "other"), []string{"If-Match", "*"}, 412, "precondition_failed"},
		"a tag without quotes":       {"PUT", "/v1/agents/sales", salesDocument, []string{"If-Match", "1"}, 400, "invalid_message"},
		"a tag that is not closed":   {"PUT", "/v1/agents/sales", salesDocument, []string{"If-Match", `"1`}, 400, "invalid_message"},
		"none of a tag":              {"PUT", "/v1/agents/sales", salesDocument, []string{"If-None-Match", `"1"`}, 400, "invalid_message"},
		"another agent's document":   {"PUT", "/v1/agents/billing", salesDocument, []string{"If-Match", "*"}, 422, "agent_invalid"},
		"not a document":             {"PUT", "/v1/agents/sales", `[]`, []string{"If-Match", "*"}, 422, "agent_invalid"},
		"a patch that breaks it":     {"PATCH", "/v1/agents/sales", `{"playbook":null}`, []string{"If-Match", "*"}, 422, "agent_invalid"},
		"a patch of a wrong form":    {"PATCH", "/v1/agents/sales", `[]`, []string{"If-Match", "*"}, 400, "invalid_message"},
		"another form":               {"PUT", "/v1/agents/sales", salesDocument, []string{"If-Match", "*", "Content-Type", "text/plain"}, 415, "invalid_message"},
		"another form of a patch":    {"PATCH", "/v1/agents/sales", `{}`, []string{"If-Match", "*", "Content-Type", "application/yaml"}, 415, "invalid_message"},
		"too big":                    {"POST", "/v1/agents", `{"id":"` + strings.Repeat("x", maxChatBody), nil, 413, "too_big"},
		"the end of a file's":        {"DELETE", "/v1/agents/billing", "", []string{"If-Match", "*"}, 409, "agent_in_file"},
		"delete of an unknown agent": {"DELETE", "/v1/agents/unknown", "", []string{"If-Match", "*"}, 404, "unknown_agent"},
		"patch of an unknown agent":  {"PATCH", "/v1/agents/unknown", `{}`, []string{"If-Match", "*"}, 404, "unknown_agent"},
		"the default one, off":       {"PUT", "/v1/agents/default", `{"id":"default","name":"D","playbook":"x","enabled":false}`, []string{"If-Match", "*"}, 422, "agent_invalid"},
		"an unknown agent, by GET":   {"GET", "/v1/agents/unknown", "", nil, 404, "unknown_agent"},
		"a document with a problem":  {"POST", "/v1/agents", `{"id":"x","name":"X","playbook":"x","tool":[]}`, nil, 422, "agent_invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			if w := does(s, c.method, c.path, c.body, c.header...); w.Code != c.status || codeOf(t, w) != c.code {
				t.Errorf("%d %s; want %d %s", w.Code, w.Body, c.status, c.code)
			}
		})
	}
	does(s, "PATCH", "/v1/agents/billing", `{"switch_to":["sales"]}`, "If-Match", "*")
	if w := does(s, "DELETE", "/v1/agents/sales", "", "If-Match", "*"); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), `These agents switch to \"sales\": billing. Change them first.`) {
		t.Errorf("the end of one that others switch to: %d %s", w.Code, w.Body)
	}
}

// FuzzTags: any list of entity tags is read or refused.
func FuzzTags(f *testing.F) {
	for _, seed := range []string{"*", `"1"`, `W/"1", "2"`, `"a,b" , "c"`, `"`, `"1" "2"`, ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		tags, any, ok := tagsOf([]string{header}, true)
		if any && len(tags) > 0 || !ok && len(tags) > 0 {
			t.Errorf("%q: %v %t %t", header, tags, any, ok)
		}
		for _, tag := range tags {
			if strings.Contains(tag, `"`) {
				t.Errorf("%q has the tag %q", header, tag)
			}
		}
	})
}
