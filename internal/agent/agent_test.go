package agent

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"voicegw/internal/strict"
)

var update = flag.Bool("update", false, "rewrite the problems that testdata/broken/*.txtar want")

// world is the names to which these documents may refer.
func world() World {
	return World{
		Tools:  []string{"calendar_create_event", "describe_tool", "end_voice_session", "kb_get", "kb_search"},
		Agents: []string{"default", "sales"},
		Providers: []Provider{
			{Name: "gemini", Offered: true, Models: []string{"gemini-3.8-live"}, Refuses: func(model string) bool { return model == "gemini-text" }, Voices: func(model string) []string {
				if model == "gemini-old" {
					return []string{"Puck"}
				}
				return []string{"Puck", "Kore", "Charon"}
			}},
			{Name: "openai", Models: []string{"gpt-realtime"}, Voices: func(string) []string { return []string{"marin", "cedar"} }},
			{Name: "azure-eu", Offered: true, Voices: func(string) []string { return nil }},
		},
	}
}

const whole = `# everything that a document may say
id: billing
name: Billing
description: Invoices and refunds
playbook: |
  You answer questions about invoices.

  Never promise a refund.
tools: [kb_search, kb_get, end_voice_session]
voices: {gemini: Kore, openai: marin, azure-eu: anything}
provider: gemini
model: gemini-3.8-live
language: de-DE
greeting: Say who you are.
switch_to: [default, sales]
budget:
  voice: {retrieval: 1, total: 3, top_k: 2, tool_time: 1500ms}
  text: {total: 20, tool_time: 30s}
enabled: false
`

func wholeAgent() Agent {
	return Agent{
		ID: "billing", Name: "Billing", Description: "Invoices and refunds", Playbook: "You answer questions about invoices.\n\nNever promise a refund.",
		Tools: []string{"kb_search", "kb_get", "end_voice_session"}, Voices: map[string]string{"gemini": "Kore", "openai": "marin", "azure-eu": "anything"},
		Provider: "gemini", Model: "gemini-3.8-live", Language: "de-DE", Greeting: "Say who you are.", SwitchTo: []string{"default", "sales"},
		Budget: Budgets{
			Voice: Budget{Retrieval: 1, Total: 3, TopK: 2, ToolTime: Duration(1500 * time.Millisecond)},
			Text:  Budget{Total: 20, ToolTime: Duration(30 * time.Second)},
		},
		Disabled: true,
	}
}

func TestWholeDocument(t *testing.T) {
	got, err := Read("billing.yaml", []byte(whole)).Check(world())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wholeAgent(), got); diff != "" {
		t.Errorf("the agent (-want +got):\n%s", diff)
	}
	again(t, got)
}

// again writes an agent and reads it back.
func again(t *testing.T, a Agent) {
	t.Helper()
	data, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read("again", data).Check(World{Tools: a.Tools, Agents: a.SwitchTo, Providers: providersOf(a)})
	if err != nil {
		t.Fatalf("%s\nis refused: %v", data, err)
	}
	if !reflect.DeepEqual(got, a) {
		t.Errorf("%s\nis read as %+v", data, got)
	}
	if got.Version() != a.Version() {
		t.Errorf("the version changes from %s to %s", a.Version(), got.Version())
	}
}

func providersOf(a Agent) []Provider {
	list := []Provider{{Name: a.Provider, Offered: true}}
	for name := range a.Voices {
		if name != a.Provider {
			list = append(list, Provider{Name: name})
		}
	}
	return list
}

// TestUnknownNames: an unknown model or voice is only a warning, because the provider may have a new one, and the agent
// keeps it. A provider without a list accepts any name, and a release counts as its model.
func TestUnknownNames(t *testing.T) {
	for _, tt := range []struct{ names, warning string }{
		{"provider: gemini\nmodel: gemini-3.9-live\nvoices: {gemini: Puck}", `line 5: unknown gemini model "gemini-3.9-live" (did you mean "gemini-3.8-live"?); known are gemini-3.8-live`},
		{"provider: gemini\nmodel: gemini-3.8-live\nvoices: {gemini: Korra}", `line 6: unknown gemini voice "Korra" (did you mean "Kore"?); known are Puck, Kore and Charon`},
		{"provider: gemini\nmodel: models/gemini-3.8-live-06-17\nvoices: {gemini: Kore}", ""},
		{"provider: azure-eu\nmodel: my-deployment\nvoices: {azure-eu: Eve}", ""},
	} {
		a, err := Read("a", []byte("id: a\nname: A\nplaybook: Be kind.\n"+tt.names)).Check(world())
		if err != nil || strings.Join(a.Warnings, "\n") != tt.warning {
			t.Errorf("%s\nwarns %q, %v; want %q", tt.names, a.Warnings, err, tt.warning)
		}
		if !strings.Contains(tt.names, "model: "+a.Model) || len(a.Voices) != 1 {
			t.Errorf("%s\nbecame the model %q and the voices %v", tt.names, a.Model, a.Voices)
		}
	}
}

// TestConfiguredNames: configured providers follow the rules of agent documents.
func TestConfiguredNames(t *testing.T) {
	for _, tt := range []struct {
		provider, model, voice string
		problems, warnings     int
	}{
		{"gemini", "", "", 0, 0},
		{"gemini", "gemini-3.8-live", "Kore", 0, 0},
		{"gemini", "gemini-text", "marin", 2, 0},
		{"gemini", "gemini-9-live", "Nova", 0, 2},
		{"azure-eu", "mine", "Nova", 0, 0},
		{"elsewhere", "gemini-text", "x", 0, 0},
	} {
		if problems, warnings := world().Names(tt.provider, tt.model, tt.voice); len(problems) != tt.problems || len(warnings) != tt.warnings {
			t.Errorf("%+v: problems %q, warnings %q", tt, problems, warnings)
		}
	}
}

// TestToolsOrNone: without the key an agent has all tools, with an empty list none; writing and reading preserve the
// difference.
func TestToolsOrNone(t *testing.T) {
	const least = "id: a\nname: A\nplaybook: Be kind.\n"
	all, err := Read("a", []byte(least)).Check(world())
	if err != nil || all.Tools != nil {
		t.Errorf("without tools: %v, %v", all.Tools, err)
	}
	none, err := Read("a", []byte(least+"tools: []\n")).Check(world())
	if err != nil || none.Tools == nil || len(none.Tools) > 0 {
		t.Errorf("with no tool: %#v, %v", none.Tools, err)
	}
	again(t, all)
	again(t, none)
	if all.Version() == none.Version() {
		t.Error("all tools and none have the same version")
	}
}

// TestJSON: the same document in JSON, with a character that YAML's parser would refuse.
func TestJSON(t *testing.T) {
	got, err := Read("a", []byte(" \n{\"id\": \"a\", \"name\": \"A \\ud83d\\ude00\", \"playbook\": \"Be\\nkind.\", \"budget\": {\"voice\": {\"total\": 3}}, \"enabled\": true}")).Check(world())
	if err != nil {
		t.Fatal(err)
	}
	want := Agent{ID: "a", Name: "A 😀", Playbook: "Be\nkind.", Budget: Budgets{Voice: Budget{Total: 3}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the agent (-want +got):\n%s", diff)
	}
}

func TestVersions(t *testing.T) {
	a, b := wholeAgent(), wholeAgent()
	b.ID = "other"
	of := func() string { return VersionOf(map[string]string{a.ID: a.Version(), b.ID: b.Version()}) }
	one := of()
	for range 10 {
		if other := of(); other != one {
			t.Errorf("the order changes the version: %s, %s", one, other)
		}
	}
	a.Playbook += "!"
	if of() == one {
		t.Error("another playbook has the same version")
	}
	if VersionOf(nil) != "" {
		t.Error("no agents have a version")
	}
}

// TestBroken reads each document of testdata/broken. A file has a comment, a document (a file with a name that ends with
// .json or .yaml), and all wanted problems.
func TestBroken(t *testing.T) {
	files, err := filepath.Glob("testdata/broken/*.txtar")
	if err != nil || len(files) < 40 {
		t.Fatalf("only %d broken documents: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil || len(archive.Files) != 2 {
				t.Fatalf("%d files: %v", len(archive.Files), err)
			}
			document, want := archive.Files[0], string(archive.Files[1].Data)
			_, err = Read(document.Name, document.Data).Check(world())
			if err == nil {
				t.Fatal("it is accepted")
			}
			got := err.Error() + "\n"
			if *update {
				archive.Files[1].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBounds: documents that are too large for testdata.
func TestBounds(t *testing.T) {
	const least = "id: a\nname: A\nplaybook: "
	for name, c := range map[string]struct{ document, want string }{
		"playbook": {least + strings.Repeat("x", MaxPlaybook+1), "playbook has 65537 bytes; the maximum is 65536"},
		"document": {strings.Repeat("#", MaxBytes+1), "has 262145 bytes"},
		"tools":    {least + "x\ntools: [" + strings.Repeat("kb_get,", MaxTools+1) + "]", "tools has 501 entries"},
		"greeting": {least + "x\ngreeting: " + strings.Repeat("x", MaxGreeting+1), "greeting has 2001 characters"},
		"deep":     {`{"id":` + strings.Repeat("[", 100), "nested too deep"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read("a", []byte(c.document)).Check(world())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %s", err, c.want)
			}
		})
	}
	longest := least + strings.Repeat("x", MaxPlaybook)
	if _, err := Read("a", []byte(longest)).Check(world()); err != nil {
		t.Errorf("the longest playbook: %v", err)
	}
}

func folder(files map[string]string) fstest.MapFS {
	fs := fstest.MapFS{}
	for name, data := range files {
		fs[name] = &fstest.MapFile{Data: []byte(data)}
	}
	return fs
}

// TestLoad: agents of a folder may refer to each other, and the error has all problems of all files.
func TestLoad(t *testing.T) {
	const a, b = "id: a\nname: A\nplaybook: x\nswitch_to: [b, default]\n", "id: b\nname: B\nplaybook: y\nswitch_to: [a]\n"
	all, err := Load(folder(map[string]string{"b.yaml": b, "a.yaml": a, "README.md": "text", ".a.yaml.swp": "x"}), world())
	if err != nil || len(all) != 2 || all[0].ID != "a" || all[1].ID != "b" {
		t.Fatalf("%+v, %v", all, err)
	}
	_, err = Load(folder(map[string]string{
		"a.yaml": a + "tool: [x]\n", "b.yaml": strings.Replace(b, "id: b", "id: c", 1), "C.yaml": b, "d.yaml": "",
	}), world())
	want := `C.yaml: the file's name must be a valid agent id: lower-case letters, digits, - and _
a.yaml:5: the agent has no key "tool" (did you mean "tools"?); it knows id, name, description, playbook, tools, voices, provider, model, language, greeting, notice, budget, switch_to and enabled
b.yaml: the file has the agent "c"; rename it to c.yaml, or change the id to b
d.yaml: the file is empty`
	if err == nil || err.Error() != want {
		t.Errorf("problems:\n%v\nwant:\n%s", err, want)
	}
	if found, ok := errors.AsType[*strict.Error](err); !ok || found.Name != "C.yaml" {
		t.Errorf("no problems with places: %v", found)
	}
	if _, err = Load(folder(map[string]string{"a.yml": a}), world()); err == nil || !strings.Contains(err.Error(), "rename or move it") {
		t.Errorf("another ending: %v", err)
	}
}

// FuzzRead: any document is refused with an error, or is an agent that is the same after writing and reading.
func FuzzRead(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"id":"a","name":"A","playbook":"x","tools":[],"voices":{"gemini":"Kore"},"enabled":false}`))
	f.Add([]byte("id: a\nname: 1\nplaybook: ~\nbudget: {voice: {tool_time: 1us}}"))
	f.Add([]byte(`{"id":1e400,"name":"\ud800","playbook":["x",{}]}`))
	f.Add([]byte("&a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := Read("f", data).Check(world())
		if err != nil {
			if err.Error() == "" {
				t.Error("refused without a word")
			}
			return
		}
		if a.ID == "" || a.Name == "" || a.Playbook == "" {
			t.Errorf("accepted: %+v", a)
		}
		again(t, a)
	})
}

// manyFiles are the documents of n agents, each with some of 200 tools.
func manyFiles(n int) (fstest.MapFS, World) {
	w := world()
	for i := range 200 {
		w.Tools = append(w.Tools, fmt.Sprintf("tool_%d", i))
	}
	files := map[string]string{}
	for i := range n {
		id := fmt.Sprintf("agent-%d", i)
		files[id+".yaml"] = "id: " + id + "\nname: Agent " + id + "\nplaybook: |\n  " + strings.Repeat("You do this and never that. ", 150) +
			"\ntools: [kb_search, kb_get, " + strings.Join(w.Tools[10+i%100:30+i%100], ", ") + "]\nvoices: {gemini: Kore}\nswitch_to: [default, agent-" + fmt.Sprint((i+1)%n) + "]\n"
	}
	return folder(files), w
}

func BenchmarkLoad1000(b *testing.B) {
	files, w := manyFiles(1000)
	for b.Loop() {
		if all, err := Load(files, w); err != nil || len(all) != 1000 {
			b.Fatal(err)
		}
	}
}

// TestExamples: the documents named in docs/agents.md are valid.
func TestExamples(t *testing.T) {
	w := world()
	w.Tools = append(w.Tools, "start_voice_session", "calendar_get_availability")
	if all, err := Load(os.DirFS("../../docs/agents"), w); err != nil || len(all) != 2 {
		t.Errorf("%d agents: %v", len(all), err)
	}
}

func TestIDFor(t *testing.T) {
	for name, want := range map[string]string{
		"Billing Desk": "billing-desk", "  Bücher & Hefte! ": "bucher-hefte", "Straße 7": "strasse-7", "a__b": "a__b", "_x": "x", "": "", " ": "",
		"日本": "agent-" + sum([]byte("日本")), "!": "agent-" + sum([]byte("!")),
		strings.Repeat("ab ", 40): strings.TrimSuffix(strings.Repeat("ab-", 40)[:MaxID], "-"),
	} {
		if got := IDFor(name); got != want || got != "" && !ValidID(got) {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}
