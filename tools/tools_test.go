package tools_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"voicegw/internal/backends/calendar"
	"voicegw/internal/backends/calendar/calendartest"
	"voicegw/internal/backends/contacts"
	"voicegw/internal/backends/kb"
	"voicegw/internal/backends/kb/local"
	"voicegw/registry"
	"voicegw/registry/build"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/tools"
)

func TestMain(m *testing.M) {
	// genai depends on opencensus, which starts a goroutine when it is imported.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

// client accepts all messages of tools.
type client struct{}

func (client) Timeout(time.Time, time.Duration, string) {}
func (client) Invite(registry.VoiceOffer)               {}
func (client) Said() []registry.Utterance               { return nil }
func (client) Origin() string                           { return "" }
func (client) Guarantor() registry.Guarantor            { return registry.Guarantor{} }
func (client) Show(registry.Image)                      {}

// noted accepts every block.
type noted struct{ registry.Blocks }

func (noted) Block(context.Context, string, time.Time) error { return nil }

// offered accepts every voice session.
type offered struct{}

func (offered) Offer(context.Context, registry.VoiceRequest) (registry.VoiceOffer, error) {
	return registry.VoiceOffer{SessionID: "voice-1", ExpiresAt: time.Now().Add(time.Minute)}, nil
}

// load loads the project's tools with the demo knowledge base, like the gateway.
func load(t *testing.T) *registry.Snapshot {
	t.Helper()
	index, err := local.Open(local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	source, err := kb.OpenSource(t.Context(), index, kb.SourceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := source.Close(); err != nil {
			t.Error(err)
		}
		if err := index.Close(); err != nil {
			t.Error(err)
		}
	})
	loaded, err := registry.Load(registrytest.Project(t), registry.Options{
		Handlers:            tools.Handlers(),
		Capabilities:        []any{kb.NewLibrary(index, kb.Grants{}), noted{}, offered{}, agents{}, contacts.New(), calendar.NewScheduler(calendartest.NewFake(), calendar.SchedulerOptions{}), studio(t)},
		SessionCapabilities: []reflect.Type{reflect.TypeFor[registry.Messenger]()},
		ModeCapabilities:    map[spec.Mode][]reflect.Type{spec.ModeText: {reflect.TypeFor[registry.Inviter](), reflect.TypeFor[registry.Gallery]()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return loaded.Snapshot()
}

func call(s *registry.Snapshot, tool string, mode spec.Mode, args string) registry.Envelope {
	return registrytest.Execute(context.Background(), s, tool, mode, json.RawMessage(args), registry.Session{
		ID: "s", UserID: "ada", ConversationID: "c", Agent: "default", Mode: mode, Turn: 1, Now: time.Now().UTC(),
	}, client{})
}

// TestContract checks the properties of tools that docs and clients rely on.
func TestContract(t *testing.T) {
	type contract struct {
		Category     spec.Category
		SideEffects  spec.SideEffects
		Modes        string
		LatencyMS    int
		Confirmation bool
	}
	want := map[string]contract{
		"ignore_user":         {spec.CategoryAction, spec.SideEffectsWrites, "text voice", 1000, false},
		"start_voice_session": {spec.CategoryUtility, spec.SideEffectsNone, "text", 500, false},
		"end_voice_session":   {spec.CategoryUtility, spec.SideEffectsNone, "voice", 500, false},
		"kb_search":           {spec.CategoryRetrieval, spec.SideEffectsReadOnly, "text voice", 800, false},
		"extract_contacts":    {spec.CategoryUtility, spec.SideEffectsNone, "text", 200, false},
		"kb_get":              {spec.CategoryRetrieval, spec.SideEffectsReadOnly, "text voice", 500, false},

		"image_draft_prompt": {spec.CategoryAction, spec.SideEffectsReadOnly, "text", 1500, false},
		"image_generate":     {spec.CategoryAction, spec.SideEffectsWrites, "text", 5000, false},

		"agent_list":   {spec.CategoryRetrieval, spec.SideEffectsReadOnly, "text", 500, false},
		"agent_get":    {spec.CategoryRetrieval, spec.SideEffectsReadOnly, "text", 500, false},
		"agent_create": {spec.CategoryAction, spec.SideEffectsWrites, "text", 2000, true},
		"agent_update": {spec.CategoryAction, spec.SideEffectsWrites, "text", 2000, true},
		"agent_delete": {spec.CategoryAction, spec.SideEffectsWrites, "text", 2000, true},

		"calendar_get_availability": {spec.CategoryRetrieval, spec.SideEffectsReadOnly, "text", 1500, false},
		"calendar_create_event":     {spec.CategoryAction, spec.SideEffectsWrites, "text voice", 3000, true},
	}
	got := map[string]contract{}
	for _, tool := range load(t).All() {
		if _, ours := want[tool.ToolID]; !ours {
			continue // a tool that the project's user has added
		}
		var modes []string
		for _, mode := range tool.AllowedModes {
			modes = append(modes, string(mode))
		}
		got[tool.ToolID] = contract{tool.Category, tool.SideEffects, strings.Join(modes, " "), tool.LatencyBudgetMS, tool.RequiresConfirmation}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestTheTwoWarnings: ignore_user writes without a confirmation, because the blocked user would have to give it, and
// image_generate, because an image can be discarded: an operator may require one because of the price
// (confirmation.require). There is no other finding.
func TestTheTwoWarnings(t *testing.T) {
	report, err := build.Lint(build.Options{Dir: registrytest.Root(t)})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		if f.Tool != "ignore-user" && f.Tool != "image-generate" || f.Path != "/requiresConfirmation" || f.Severity != build.SeverityWarning {
			t.Errorf("%s: %s %s", f.File, f.Path, f.Message)
		}
	}
}

// TestGeneratedFilesAreCurrent: the committed files are those of a build.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	report, err := build.Build(build.Options{Dir: registrytest.Root(t), Check: true})
	if err != nil {
		t.Fatal(err)
	}
	if report.Errors() > 0 {
		t.Errorf("%+v", report.Findings)
	}
}

var example = regexp.MustCompile("(?s)```json\n(.*?)```")

// TestExamplesRun: the examples of each guide work in every mode of the tool.
func TestExamplesRun(t *testing.T) {
	s := load(t)
	for _, tool := range s.All() {
		for _, mode := range tool.AllowedModes {
			for _, block := range example.FindAllStringSubmatch(tool.Guide, -1) {
				if env := call(s, tool.ToolID, mode, block[1]); !env.OK {
					t.Errorf("%s in %s with %s: %s", tool.ToolID, mode, block[1], env.Encode())
				}
			}
		}
	}
}

// TestArguments: the limits of the schemas, just inside and just outside, and the tools' other refusals.
func TestArguments(t *testing.T) {
	s := load(t)
	long := func(n int) string { return strings.Repeat("é", n) }
	for _, tc := range []struct {
		tool string
		mode spec.Mode
		args string
		want registry.ErrorType // empty: ok
		path string             // of a VALIDATION
	}{
		{"kb_search", "voice", `{"query":"` + long(200) + `"}`, "", ""},
		{"kb_search", "voice", `{"query":"` + long(201) + `"}`, "VALIDATION", "/query"},
		{"kb_search", "voice", `{"query":""}`, "VALIDATION", "/query"},
		{"kb_search", "voice", `{"query":"  "}`, "VALIDATION", "/query"},
		{"kb_search", "voice", `{}`, "VALIDATION", "/query"},
		{"kb_search", "text", `{"query":"x","top_k":10}`, "", ""},
		{"kb_search", "text", `{"query":"x","top_k":11}`, "VALIDATION", "/top_k"},
		{"kb_search", "text", `{"query":"x","top_k":0}`, "VALIDATION", "/top_k"},
		{"kb_search", "text", `{"query":"x","namespace":"private"}`, "VALIDATION", "/namespace"},
		{"kb_search", "text", `{"query":"x","filters":{"tags":["a","b","c","d","e"]}}`, "", ""},
		{"kb_search", "text", `{"query":"x","filters":{"tags":["a","b","c","d","e","f"]}}`, "VALIDATION", "/filters/tags"},
		{"kb_search", "text", `{"query":"x","filters":{"date_range":{"start":"01.02.2026"}}}`, "VALIDATION", "/filters/date_range/start"},
		{"kb_search", "text", `{"query":"x","filters":{"date_range":{"start":"2026-02-01","end":"2026-01-01"}}}`, "VALIDATION", "/filters/date_range"},
		{"kb_search", "text", `{"query":"x","filters":{"type":"faq"}}`, "VALIDATION", "/filters/type"},
		{"kb_search", "text", `{"query":"x","return_fields":["all"]}`, "VALIDATION", "/return_fields/0"},
		{"kb_get", "voice", `{"ids":["a:1","a:2","a:3","a:4","a:5","a:6","a:7","a:8","a:9","person:x"]}`, "", ""},
		{"kb_get", "voice", `{"ids":["1","2","3","4","5","6","7","8","9","10","11"]}`, "VALIDATION", "/ids"},
		{"kb_get", "voice", `{"ids":[]}`, "VALIDATION", "/ids"},
		{"kb_get", "voice", `{}`, "VALIDATION", ""},
		{"ignore_user", "voice", `{"duration_seconds":30,"farewell_message":"` + long(200) + `"}`, "", ""},
		{"ignore_user", "text", `{"duration_seconds":86400,"farewell_message":"Bye."}`, "", ""},
		{"ignore_user", "voice", `{"duration_seconds":29,"farewell_message":"Bye."}`, "VALIDATION", "/duration_seconds"},
		{"ignore_user", "voice", `{"duration_seconds":86401,"farewell_message":"Bye."}`, "VALIDATION", "/duration_seconds"},
		{"ignore_user", "voice", `{"duration_seconds":30,"farewell_message":"` + long(201) + `"}`, "VALIDATION", "/farewell_message"},
		{"start_voice_session", "text", `{"pending_request":"` + long(500) + `"}`, "", ""},
		{"start_voice_session", "text", `{"pending_request":"` + long(501) + `"}`, "VALIDATION", "/pending_request"},
		{"start_voice_session", "voice", `{}`, "MODE_RESTRICTED", ""},
		{"end_voice_session", "voice", `{}`, "", ""},
		{"end_voice_session", "voice", `{"farewell_message":"` + long(201) + `"}`, "VALIDATION", "/farewell_message"},
		{"end_voice_session", "voice", `{"reason":"bored"}`, "VALIDATION", "/reason"},
		{"end_voice_session", "text", `{}`, "MODE_RESTRICTED", ""},
		{"calendar_get_availability", "text", `{"start_date":"2026-11-01T00:00:00Z","end_date":"2026-12-02T00:00:00Z"}`, "", ""},
		{"calendar_get_availability", "text", `{"start_date":"2026-11-01T00:00:00Z","end_date":"2026-12-02T00:00:01Z"}`, "VALIDATION", "/end_date"},
		{"calendar_get_availability", "text", `{"start_date":"2026-11-01T00:00:00Z","end_date":"2026-11-01T00:00:00Z"}`, "VALIDATION", "/end_date"},
		{"calendar_get_availability", "text", `{"start_date":"2026-11-01T00:00:00","end_date":"2026-11-02T00:00:00Z"}`, "", ""},
		{"calendar_get_availability", "text", `{"start_date":"2026-11-01","end_date":"2026-11-02T00:00:00Z"}`, "VALIDATION", "/start_date"},
		{"calendar_get_availability", "text", `{"start_date":"2026-11-01","end_date":"2026-11-02T00:00:00Z"}`, "VALIDATION", "/start_date"},
		{"calendar_get_availability", "text", `{"start_date":"2026-11-01T00:00:00Z"}`, "VALIDATION", "/end_date"},
		{"calendar_get_availability", "text", `{"start_date":"2026-11-01T00:00:00Z","end_date":"2026-11-02T00:00:00Z","calendars":["primary","team","personal"],"min_duration_minutes":480}`, "", ""},
		{"calendar_get_availability", "text", `{"start_date":"2026-11-01T00:00:00Z","end_date":"2026-11-02T00:00:00Z","calendars":["work"]}`, "VALIDATION", "/calendars/0"},
		{"calendar_get_availability", "text", `{"start_date":"2026-11-01T00:00:00Z","end_date":"2026-11-02T00:00:00Z","calendars":["work","team",7]}`, "", ""},
		{"calendar_get_availability", "text", `{"start_date":"2026-11-01T00:00:00Z","end_date":"2026-11-02T00:00:00Z","calendars":[]}`, "VALIDATION", "/calendars"},
		{"calendar_get_availability", "text", `{"start_date":"2026-11-01T00:00:00Z","end_date":"2026-11-02T00:00:00Z","min_duration_minutes":14}`, "VALIDATION", "/min_duration_minutes"},
		{"calendar_get_availability", "text", `{"start_date":"2026-11-01T00:00:00Z","end_date":"2026-11-02T00:00:00Z","min_duration_minutes":481}`, "VALIDATION", "/min_duration_minutes"},
		{"calendar_get_availability", "voice", `{"start_date":"2026-11-01T00:00:00Z","end_date":"2026-11-02T00:00:00Z"}`, "MODE_RESTRICTED", ""},
		{"calendar_create_event", "text", `{"title":"` + long(200) + `","start_time":"2040-11-01T00:00:00Z","end_time":"2040-11-08T00:00:00Z","description":"` + long(2000) + `"}`, "", ""},
		{"calendar_create_event", "text", `{"title":"` + long(201) + `","start_time":"2040-11-01T00:00:00Z","end_time":"2040-11-01T01:00:00Z"}`, "VALIDATION", "/title"},
		{"calendar_create_event", "text", `{"title":" ","start_time":"2040-11-01T00:00:00Z","end_time":"2040-11-01T01:00:00Z"}`, "VALIDATION", "/title"},
		{"calendar_create_event", "text", `{"title":"x","start_time":"2040-11-01T00:00:00Z","end_time":"2040-11-08T00:00:01Z"}`, "VALIDATION", "/end_time"},
		{"calendar_create_event", "text", `{"title":"x","start_time":"2040-11-01T01:00:00Z","end_time":"2040-11-01T01:00:00Z"}`, "VALIDATION", "/end_time"},
		{"calendar_create_event", "text", `{"title":"x","start_time":"2020-11-01T00:00:00Z","end_time":"2020-11-01T01:00:00Z"}`, "VALIDATION", "/start_time"},
		{"calendar_create_event", "text", `{"title":"x","start_time":"tomorrow","end_time":"2040-11-01T01:00:00Z"}`, "VALIDATION", "/start_time"},
		{"calendar_create_event", "text", `{"title":"x","start_time":"2040-11-01T00:00:00Z","end_time":"2040-11-01T01:00:00Z","description":"` + long(2001) + `"}`, "VALIDATION", "/description"},
		{"calendar_create_event", "text", `{"title":"x","start_time":"2040-11-01T00:00:00Z","end_time":"2040-11-01T01:00:00Z","attendees":[]}`, "VALIDATION", "/attendees"},
		{"calendar_create_event", "text", `{"title":"x","start_time":"2040-11-01T00:00:00Z","end_time":"2040-11-01T01:00:00Z","attendees":["a@b.cd"` + strings.Repeat(`,"a@b.cd"`, 50) + `]}`, "VALIDATION", "/attendees"},
		{"calendar_create_event", "text", `{"title":"x","start_time":"2040-11-01T00:00:00Z","end_time":"2040-11-01T01:00:00Z","attendees":["bob"]}`, "VALIDATION", "/attendees/0"},
		{"calendar_create_event", "text", `{"title":"x","start_time":"2040-11-01T00:00:00Z","end_time":"2040-11-01T01:00:00Z","calendar":"team"}`, "VALIDATION", "/calendar"},
		{"calendar_create_event", "voice", `{"title":"x","start_time":"2040-11-01T00:00:00Z","end_time":"2040-11-01T01:00:00Z"}`, "", ""},
		{"extract_contacts", "text", `{"text":"` + long(20000) + `","default_region":"de"}`, "", ""},
		{"extract_contacts", "text", `{"text":"` + long(20001) + `"}`, "VALIDATION", "/text"},
		{"extract_contacts", "text", `{"text":""}`, "VALIDATION", "/text"},
		{"extract_contacts", "text", `{"text":"x","default_region":"DEU"}`, "VALIDATION", "/default_region"},
		{"extract_contacts", "text", `{"text":"x","default_region":"XX"}`, "VALIDATION", "/default_region"},
		{"extract_contacts", "voice", `{"text":"x"}`, "MODE_RESTRICTED", ""},
		{"image_draft_prompt", "text", `{"idea":"` + long(500) + `","style":"photo","count":5}`, "", ""},
		{"image_draft_prompt", "text", `{"idea":"` + long(501) + `"}`, "VALIDATION", "/idea"},
		{"image_draft_prompt", "text", `{"idea":"x","count":6}`, "VALIDATION", "/count"},
		{"image_draft_prompt", "text", `{"idea":"x","style":"cubist"}`, "VALIDATION", "/style"},
		{"image_draft_prompt", "text", `{"idea":" "}`, "VALIDATION", "/idea"},
		{"image_draft_prompt", "voice", `{"idea":"x"}`, "MODE_RESTRICTED", ""},
		{"image_generate", "text", `{"prompt":"` + long(2000) + `","size":"1024x1536","count":4}`, "", ""},
		{"image_generate", "text", `{"prompt":"` + long(2001) + `"}`, "VALIDATION", "/prompt"},
		{"image_generate", "text", `{"prompt":"x","count":5}`, "VALIDATION", "/count"},
		{"image_generate", "text", `{"prompt":"x","count":0}`, "VALIDATION", "/count"},
		{"image_generate", "text", `{"prompt":"x","size":"64x64"}`, "VALIDATION", "/size"},
		{"image_generate", "text", `{"prompt":" "}`, "VALIDATION", "/prompt"},
		{"image_generate", "voice", `{"prompt":"x"}`, "MODE_RESTRICTED", ""},
		{"describe_tool", "text", `{"tool":"start_voice_session"}`, "", ""},
		{"describe_tool", "voice", `{"tool":"start_voice_session"}`, "NOT_FOUND", ""},
	} {
		env := call(s, tc.tool, tc.mode, tc.args)
		switch {
		case tc.want == "" && env.OK:
		case tc.want == "" || env.OK || env.Error.Type != tc.want:
			t.Errorf("%s in %s with %.80s: %s, want %q", tc.tool, tc.mode, tc.args, env.Encode(), tc.want)
		case !strings.Contains(string(env.Error.Details), `"path":"`+tc.path+`"`) && tc.want == "VALIDATION":
			t.Errorf("%s with %.80s: %q is missing from %s", tc.tool, tc.args, tc.path, env.Error.Details)
		}
	}
}

// TestVoiceGetsThree: also when the model gave no number, and the answer says so.
func TestVoiceGetsThree(t *testing.T) {
	s := load(t)
	for mode, want := range map[spec.Mode]int{spec.ModeVoice: 3, spec.ModeText: 5} {
		env := call(s, "kb_search", mode, `{"query":"studio"}`)
		var data struct {
			Results []struct{ Score float64 }
			Clamped bool
		}
		if err := json.Unmarshal(env.Data, &data); err != nil {
			t.Fatal(err)
		}
		if len(data.Results) != want || data.Clamped != (mode == spec.ModeVoice) || (len(env.Meta.Clamped) == 1) != data.Clamped {
			t.Errorf("%s: %d results, clamped %t, meta %+v", mode, len(data.Results), data.Clamped, env.Meta.Clamped)
		}
		for i, r := range data.Results {
			if r.Score <= 0 || r.Score > 1 || i > 0 && r.Score > data.Results[i-1].Score {
				t.Errorf("%s: scores %+v", mode, data.Results)
			}
		}
	}
}

// TestGuidesNameTheirFailures: the error types in a guide are those in the tool's own test.
func TestGuidesNameTheirFailures(t *testing.T) {
	named := regexp.MustCompile("`([A-Z]+(?:_[A-Z]+)*)`")
	tested := regexp.MustCompile(`registry\.Error([A-Z][A-Za-z]+)`)
	for _, dir := range []string{"calendar-get-availability", "calendar-create-event", "extract-contacts", "image-draft-prompt", "image-generate", "kb-search", "kb-get", "ignore-user", "start-voice-session", "end-voice-session"} {
		guide, err := os.ReadFile(filepath.Join(dir, "guide.md"))
		if err != nil {
			t.Fatal(err)
		}
		test, err := os.ReadFile(filepath.Join(dir, "handler_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		inGuide, inTest := map[string]bool{}, map[string]bool{}
		for _, m := range named.FindAllStringSubmatch(string(guide), -1) {
			inGuide[m[1]] = true
		}
		for _, m := range tested.FindAllStringSubmatch(string(test), -1) {
			inTest[screaming(m[1])] = true
		}
		delete(inTest, "TYPE")
		delete(inGuide, string(registry.ErrorModeRestricted)) // the registry's: TestArguments
		delete(inTest, "VALIDATION")                          // every tool may be called with wrong arguments
		delete(inGuide, "VALIDATION")
		if diff := cmp.Diff(inGuide, inTest); diff != "" {
			t.Errorf("%s: the guide and the test differ: %s", dir, diff)
		}
	}
}

// screaming converts SessionActive to SESSION_ACTIVE.
func screaming(s string) string {
	var b strings.Builder
	for i, r := range s {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}

// TestPreviews: a preview has all given arguments, and no others.
func TestPreviews(t *testing.T) {
	s := load(t)
	for _, tc := range []struct{ tool, args, want string }{
		{
			"calendar_create_event", `{"title":"Tea","start_time":"2026-11-23T09:00:00+01:00","end_time":"2026-11-23T10:00:00+01:00"}`,
			`Create the event "Tea" on Mon 23 Nov 2026, 08:00 to 09:00 (Europe/London, UTC).`,
		},
		{
			"calendar_create_event", `{"title":"Tea","start_time":"2026-11-23T09:00:00","end_time":"2026-11-23T10:00"}`,
			`Create the event "Tea" on Mon 23 Nov 2026, 09:00 to 10:00 (Europe/London, UTC).`,
		},
		{
			"calendar_create_event",
			`{"title":"Tea","start_time":"2026-11-23T09:00:00+01:00","end_time":"2026-11-23T10:00:00+01:00","attendees":["a@example.org","b@example.org"],"description":"Earl Grey","include_zoom_link":true}`,
			`Create the event "Tea" on Mon 23 Nov 2026, 08:00 to 09:00 (Europe/London, UTC). Invited: a@example.org and b@example.org. Description: Earl Grey. With a video link: yes.`,
		},
		{"image_generate", `{"prompt":"A cat"}`, `Make 1 image(s) of 1024x1024: A cat`},
	} {
		p, failure := s.Prepare(tc.tool, spec.ModeText, json.RawMessage(tc.args))
		if failure != nil {
			t.Fatalf("%s: %+v", tc.tool, failure.Error)
		}
		london, err := time.LoadLocation("Europe/London")
		if err != nil {
			t.Fatal(err)
		}
		p.SetZone(london)
		if got := p.Preview(); got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.tool, got, tc.want)
		}
	}
}

// agents has three agents, and accepts every change.
type agents struct{}

func (agents) List(limit int) registry.AgentList {
	return registry.AgentList{Agents: []registry.AgentLine{agent("billing"), agent("default"), agent("reception")}[:min(limit, 3)], Total: 3, Default: "default"}
}

func agent(id string) registry.AgentLine {
	return registry.AgentLine{ID: id, Name: id, Enabled: true, Source: "store", State: "1"}
}

func (agents) Get(id string) (registry.AgentShown, error) {
	return registry.AgentShown{AgentLine: agent(id), Playbook: "You answer."}, nil
}

func (agents) Check(registry.AgentChange) error { return nil }

func (agents) Save(_ context.Context, c registry.AgentChange) (registry.AgentSaved, error) {
	return registry.AgentSaved{AgentLine: agent(c.ID), Created: c.ID == "", Tools: c.Tools}, nil
}

func (agents) CheckDelete(string, string) error { return nil }

func (agents) Delete(_ context.Context, id, _ string) (registry.AgentDeleted, error) {
	return registry.AgentDeleted{ID: id}, nil
}
