package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/auth"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/session"
	"voicegw/transport"
)

// serveTools runs a gateway with the project's tools, without calling any.
func serveTools(t *testing.T) (*httptest.Server, *registry.Registry) {
	t.Helper()
	tools, err := registry.Load(registrytest.Inspected(t, registrytest.Project(t)))
	if err != nil {
		t.Fatal(err)
	}
	return serveThese(t, tools), tools
}

func serveThese(t *testing.T, tools *registry.Registry) *httptest.Server {
	t.Helper()
	m, err := session.NewManager(session.Options{
		Transports: map[string]transport.Transport{"fake": quiet{}}, Provider: "fake",
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(New(Options{Sessions: m, Tools: tools.Snapshot}))
	t.Cleanup(func() {
		m.Close()
		srv.Close()
		srv.Client().CloseIdleConnections()
	})
	return srv
}

// TestVersionsAreListed: the list has each tool once, with its versions and their shares.
func TestVersionsAreListed(t *testing.T) {
	object := json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)
	look := registry.Entry{
		Spec: spec.Spec{
			ToolID: "look", Version: "1.0.0", Description: "A tool of a test.", Category: spec.CategoryUtility, SideEffects: spec.SideEffectsNone,
			Idempotent: true, AllowedModes: []spec.Mode{spec.ModeText}, LatencyBudgetMS: 1000, Parameters: object,
		},
		Summary: "A tool of a test.", Guide: "# look\n", Forms: registry.Forms{OpenAI: object, OpenAIChat: object, Gemini: json.RawMessage(`{"type":"OBJECT"}`)},
	}
	next := look
	next.ToolID, next.VariantOf, next.Version = "look_next", "look", "2.0.0"
	done := registry.Bind(func(context.Context, registry.Call[json.RawMessage, struct{}]) (registry.Result, error) {
		return registry.Result{}, nil
	})
	tools, err := registry.Load(registrytest.File(t, look, next), registry.Options{
		Handlers: map[string]registry.Handler{"look": done, "look_next": done}, Settings: map[string]registry.ToolSettings{"look_next": {Share: 10}},
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := serveThese(t, tools)
	_, body := get(t, srv.URL+"/v1/tools")
	if strings.Count(body, `"toolId":"look`) != 1 || !strings.Contains(body, `"versions":[{"id":"look_next","version":"2.0.0","share":10}]`) {
		t.Errorf("%s", body)
	}
}

// TestToolsOfTheCaller: a caller sees the tools of its conversations, without those that require a scope which its
// credentials lack. A caller that may inspect sees all.
func TestToolsOfTheCaller(t *testing.T) {
	object := json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)
	open := registry.Entry{
		Spec: spec.Spec{
			ToolID: "open_door", Version: "1.0.0", Description: "A tool of a test.", Category: spec.CategoryUtility, SideEffects: spec.SideEffectsNone,
			Idempotent: true, AllowedModes: []spec.Mode{spec.ModeText}, LatencyBudgetMS: 1000, Parameters: object,
		},
		Summary: "A tool of a test.", Guide: "# open_door\n", Forms: registry.Forms{OpenAI: object, OpenAIChat: object, Gemini: json.RawMessage(`{"type":"OBJECT"}`)},
	}
	staff := open
	staff.ToolID, staff.Requires, staff.Guide = "staff_door", []string{"kb:staff"}, "# staff_door\n"
	guests := staff
	guests.ToolID, guests.Requires, guests.Availability, guests.Guide = "guests_door", nil, &spec.Availability{Scopes: []string{"kb:guests", "kb:staff"}}, "# guests_door\n"
	done := registry.Bind(func(context.Context, registry.Call[json.RawMessage, struct{}]) (registry.Result, error) {
		return registry.Result{}, nil
	})
	tools, err := registry.Load(registrytest.File(t, open, staff, guests), registry.Options{Handlers: map[string]registry.Handler{"open_door": done, "staff_door": done, "guests_door": done}})
	if err != nil {
		t.Fatal(err)
	}
	secrets := map[string]string{"operator": testKey, "no credentials": "", "token": tokenFor("ada", "chat", nil), "staff's token": tokenFor("ada", "chat kb:staff", nil)}
	o := auth.Options{OperatorKey: testKey, Issuers: []auth.Issuer{{
		Name: "tests", Issuer: "tests", Audience: []string{"voicegw"}, Secret: tokenSecret, ScopesClaim: "scope", Scopes: auth.ScopeChat, Grants: []string{"kb:staff"}, Leeway: time.Second,
	}}}
	for name, k := range map[string]auth.Key{
		"key": {Scopes: auth.ScopeChat | auth.ScopeVoice | auth.ScopeTickets}, "staff's key": {Scopes: auth.ScopeVoice, Grants: []string{"kb:staff"}}, "inspector": {Scopes: auth.ScopeInspect},
	} {
		made := auth.NewAPIKey()
		k.ID, k.Name, k.Hash = made.ID(), "k", made.Hash()
		o.Keys = append(o.Keys, k)
		secrets[name] = made.Reveal()
	}
	for _, required := range []bool{true, false} {
		if !required {
			o.Keys, o.Issuers = nil, nil
		}
		who, err := auth.New(o)
		if err != nil {
			t.Fatal(err)
		}
		defer who.Close()
		s := New(Options{Tools: tools.Snapshot, Auth: auth.Only(who)})
		for name, secret := range secrets {
			sees := slices.Contains([]string{"operator", "staff's token", "staff's key", "inspector"}, name)
			switch {
			case required && name == "no credentials":
				continue
			case !required:
				sees = name == "operator"
			}
			show := func(r *http.Request) { r.Header.Del("Authorization") }
			if secret != "" {
				show = bearer(secret)
			}
			for _, path := range []string{"/v1/tools", "/v1/tools?mode=text"} {
				w := ask(s, "GET", path, show)
				if text := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(text, `"open_door"`) || strings.Contains(text, `"staff_door"`) != sees || strings.Contains(text, `"guests_door"`) != sees {
					t.Errorf("%s, credentials required %t, %s: %d, want the tool %t", name, required, path, w.Code, sees)
				}
			}
			if w := ask(s, "GET", "/v1/tools/staff_door", show); (w.Code == http.StatusOK) != (sees && (name == "operator" || name == "inspector")) {
				t.Errorf("%s, credentials required %t, its guide: %d", name, required, w.Code)
			}
		}
	}
}

func TestToolsAreListed(t *testing.T) {
	srv, tools := serveTools(t)
	for query, want := range map[string][]string{
		"": {
			"agent_create", "agent_delete", "agent_get", "agent_list", "agent_update",
			"calendar_create_event", "calendar_get_availability", "describe_tool", "end_voice_session", "extract_contacts", "ignore_user",
			"image_draft_prompt", "image_generate", "kb_get", "kb_search", "start_voice_session",
		},
		"?mode=voice": {"calendar_create_event", "describe_tool", "end_voice_session", "ignore_user", "kb_get", "kb_search"},
		"?mode=text": {
			"agent_create", "agent_delete", "agent_get", "agent_list", "agent_update",
			"calendar_create_event", "calendar_get_availability", "describe_tool", "extract_contacts", "ignore_user",
			"image_draft_prompt", "image_generate", "kb_get", "kb_search", "start_voice_session",
		},
	} {
		resp, body := get(t, srv.URL+"/v1/tools"+query)
		var list struct {
			Version string
			Tools   []toolLine

			Envelope map[string]any
		}
		if err := json.Unmarshal([]byte(body), &list); err != nil || resp.StatusCode != 200 || list.Version != tools.Snapshot().Version() {
			t.Fatalf("%s: %d %s %v", query, resp.StatusCode, body, err)
		}
		if list.Envelope["type"] != "object" {
			t.Errorf("%s: the schema of the envelope is %v", query, list.Envelope)
		}
		var ids []string
		for _, tool := range list.Tools {
			ids = append(ids, tool.ToolID)
			if tool.Summary == "" || tool.Category == "" || tool.Version == "" || len(tool.AllowedModes) == 0 {
				t.Errorf("%+v is not complete", tool)
			}
		}
		if diff := cmp.Diff(want, ids); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
	if resp, body := get(t, srv.URL+"/v1/tools?mode=song"); resp.StatusCode != 400 {
		t.Errorf("an unknown mode: %d %s", resp.StatusCode, body)
	}
}

func TestToolIsShown(t *testing.T) {
	srv, tools := serveTools(t)
	_, body := get(t, srv.URL+"/v1/tools/kb_search")
	var got struct {
		RegistryVersion, ToolID, Guide string
		Parameters                     map[string]any
		Forms                          map[string]map[string]any
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	want, _ := tools.Snapshot().Tool("kb_search")
	if got.ToolID != "kb_search" || got.Guide != want.Guide || got.RegistryVersion != tools.Snapshot().Version() ||
		got.Parameters["type"] != "object" || got.Forms["gemini"]["type"] != "OBJECT" {
		t.Errorf("%s", body)
	}
	resp, body := get(t, srv.URL+"/v1/tools/"+strings.Repeat("x", 300))
	if resp.StatusCode != 404 || !strings.Contains(body, "not_found") || len(body) > 300 {
		t.Errorf("an unknown tool: %d %s", resp.StatusCode, body)
	}
}

// TestWithoutTools: a gateway without a registry has no such endpoint.
func TestWithoutTools(t *testing.T) {
	srv, _ := start(t, session.Limits{})
	if resp, _ := get(t, srv.URL+"/v1/tools"); resp.StatusCode != 404 {
		t.Errorf("%d", resp.StatusCode)
	}
}
