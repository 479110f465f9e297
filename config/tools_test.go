package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/config/setting"
	"voicegw/registry"
	"voicegw/registry/spec"
)

// TestAgentBudget: an agent's budget overrides the general one, field by field.
func TestAgentBudget(t *testing.T) {
	if diff := cmp.Diff(Default().Budget, Default().AgentBudget()); diff != "" {
		t.Errorf("an agent without a budget: %s", diff)
	}
	c := mustLoad(t, `
budget:
  voice: {total: 4, tool_time: 2s}
  text: {retrieval: 7}
agent:
  budget:
    voice: {top_k: 1, total: 6}
    text: {tool_time: 30s}
`, []string{"VOICEGW_AGENT_BUDGET_TEXT_TOTAL=20"})
	want := Budgets{
		Voice: Budget{Retrieval: 2, Total: 6, TopK: 1, ToolTime: 2 * time.Second},
		Text:  Budget{Retrieval: 7, Total: 20, TopK: 10, ToolTime: 30 * time.Second},
	}
	if diff := cmp.Diff(want, c.AgentBudget()); diff != "" {
		t.Error(diff)
	}
}

// TestPaths: paths in a file are relative to its directory, and "-" is not a path.
func TestPaths(t *testing.T) {
	c := mustLoad(t, "data_dir: state\naudit: {file: '-'}\nstore: {url: 'nats://a:4222', credentials: me.creds}\n", nil)
	if c.DataDir != "dir/state" || c.Store.Credentials != "dir/me.creds" || c.Audit.File != setting.Stdout {
		t.Errorf("data_dir %q, store.credentials %q, audit.file %q", c.DataDir, c.Store.Credentials, c.Audit.File)
	}
	c = mustLoad(t, "data_dir: /var/lib/x\n", nil, Flag{"--set", "audit.file", "here.jsonl"})
	if c.DataDir != "/var/lib/x" || c.Audit.File != "here.jsonl" {
		t.Errorf("data_dir %q, audit.file %q", c.DataDir, c.Audit.File)
	}
}

// TestConfirmations: a list of tools from a file and from a variable.
func TestConfirmations(t *testing.T) {
	c := mustLoad(t, "confirmation: {voice: spoken, life: 1m, require: [a_tool, b_tool], questions_per_tool: 2}\n", nil)
	want := Confirmation{Voice: ConfirmSpoken, Phone: confirmNoKeys, Life: time.Minute, Require: []string{"a_tool", "b_tool"}, QuestionsPerTool: 2, Questions: 10}
	if diff := cmp.Diff(want, c.Confirmation); diff != "" {
		t.Error(diff)
	}
	c = mustLoad(t, "", []string{"VOICEGW_CONFIRMATION_REQUIRE=a_tool, b_tool"})
	if diff := cmp.Diff(want.Require, c.Confirmation.Require); diff != "" {
		t.Error(diff)
	}
}

// weatherTools are tools with a setting of each type.
var weatherTools = []registry.Entry{toolOf("kb_search", ""), {Spec: spec.Spec{ToolID: "weather_lookup", Settings: map[string]spec.Setting{
	"api_key":  {Type: spec.SettingString, Secret: true, Description: "Key of the service."},
	"base_url": {Type: spec.SettingString, Default: []byte(`"https://weather.example"`), Description: "Where it is."},
	"places":   {Type: spec.SettingList, Default: []byte(`["Oslo"]`), Description: "Where it knows the weather."},
	"retries":  {Type: spec.SettingInteger, Description: "How often it is asked again."},
	"share":    {Type: spec.SettingNumber, Default: []byte("0.5"), Description: "How much."},
	"strict":   {Type: spec.SettingBoolean, Default: []byte("true"), Description: "Whether."},
	"timeout":  {Type: spec.SettingDuration, Default: []byte(`"2s"`), Description: "How long."},
}}}}

func toolOf(id, variantOf string) registry.Entry {
	return registry.Entry{Spec: spec.Spec{ToolID: id, VariantOf: variantOf}}
}

// TestToolSettings: settings of tools come from files, variables and flags like all others, have their declared types,
// and keep their secrets hidden.
func TestToolSettings(t *testing.T) {
	const file = "tools:\n  kb_search: {enabled: no}\n  weather_lookup:\n    retries: 0\n    places: [Bergen, Oslo]\n    timeout: 1m\n"
	c, warnings, err := Load(Source{
		File: "voicegw.yaml", ReadFile: files{"voicegw.yaml": file}.ReadFile, Tools: weatherTools,
		Environ: []string{"VOICEGW_TOOLS_WEATHER_LOOKUP_API_KEY=s3cret-s3cret"},
		Flags:   []Flag{{"--set", "tools.weather_lookup.share", "0.25"}},
	})
	if err != nil || len(warnings) > 0 {
		t.Fatal(warnings, err)
	}
	if c.Tools["kb_search"].Enabled || !c.Tools["weather_lookup"].Enabled {
		t.Error("the wrong tool is disabled")
	}
	values := c.Tools["weather_lookup"].Values()
	if key, ok := values["api_key"].(setting.Secret); !ok || key.Reveal() != "s3cret-s3cret" {
		t.Errorf("the key is %v", values["api_key"])
	}
	if text := fmt.Sprintf("%v %+v %#v", values, c.Tools["weather_lookup"], c); strings.Contains(text, "s3cret") {
		t.Errorf("the secret is printed: %s", text)
	}
	if !slices.Contains(c.Secrets(), "s3cret-s3cret") {
		t.Error("the log does not hide the secret")
	}
	delete(values, "api_key")
	want := map[string]any{"base_url": "https://weather.example", "places": []string{"Bergen", "Oslo"}, "retries": 0, "share": 0.25, "strict": true, "timeout": time.Minute}
	if diff := cmp.Diff(want, values); diff != "" {
		t.Error(diff)
	}
}

// TestToolSettingsAreChecked: one error reports every invalid value, and suggests the probable name.
func TestToolSettingsAreChecked(t *testing.T) {
	load := func(file string) error {
		_, _, err := Load(Source{File: "voicegw.yaml", ReadFile: files{"voicegw.yaml": file}.ReadFile, Tools: weatherTools})
		return err
	}
	err := load("tools:\n  kb_serch: {enabled: true}\n  weather_lookup:\n    retries: often\n    api_ky: x\n    timeout: 5\n    api_key: ''\n")
	if err == nil {
		t.Fatal("the configuration was loaded")
	}
	for _, part := range []string{
		`voicegw.yaml:2: There is no setting "tools.kb_serch". Did you mean tools.kb_search?`,
		`voicegw.yaml:4: tools.weather_lookup.retries must be a whole number, not "often".`,
		`voicegw.yaml:5: There is no setting "tools.weather_lookup.api_ky". Did you mean tools.weather_lookup.api_key?`,
		`voicegw.yaml:6: tools.weather_lookup.timeout must be a duration`,
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s\nis not in\n%v", part, err)
		}
	}
	if err := load("tools:\n  weather_lookup: {enabled: false}\n"); err != nil {
		t.Errorf("a disabled tool: %v", err)
	}
	if strings.Contains(err.Error(), "is missing") {
		t.Errorf("a missing setting is a problem of the configuration: %v", err)
	}
}

// TestMissingToolSetting: a missing or empty setting of a tool has no value, and the configuration loads.
func TestMissingToolSetting(t *testing.T) {
	for _, file := range []string{"", "tools:\n  weather_lookup: {api_key: ''}\n"} {
		c, _, err := Load(Source{File: "voicegw.yaml", ReadFile: files{"voicegw.yaml": file}.ReadFile, Tools: weatherTools})
		if err != nil {
			t.Fatalf("%q: %v", file, err)
		}
		values := c.Tools["weather_lookup"].Values()
		if _, has := values["api_key"]; has || values["base_url"] == nil {
			t.Errorf("%q: the values are %v", file, values)
		}
	}
}

// TestToolSettingsReload: settings of tools can change at run time.
func TestToolSettingsReload(t *testing.T) {
	load := func(key, enabled string) *Config {
		t.Helper()
		text := "tools:\n  kb_search: {enabled: " + enabled + "}\n  weather_lookup: {retries: 1, api_key: " + key + "}\n"
		c, _, err := Load(Source{File: "voicegw.yaml", ReadFile: files{"voicegw.yaml": text}.ReadFile, Tools: weatherTools})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	now, read := load("old-old-old", "true"), load("new-new-new", "false")
	to, err := TakeOver(now, read)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"tools.kb_search.enabled", "tools.weather_lookup.api_key"}; !slices.Equal(to.Changed, want) || len(to.Restart) > 0 {
		t.Errorf("changed %v, restart %v", to.Changed, to.Restart)
	}
	secretOf := func(c *Config) string { return c.Tools["weather_lookup"].Values()["api_key"].(setting.Secret).Reveal() }
	if to.Next.Tools["kb_search"].Enabled || secretOf(to.Next) != "new-new-new" || secretOf(now) != "old-old-old" || !now.Tools["kb_search"].Enabled {
		t.Error("the settings were not applied, or the running configuration has changed")
	}
}

// TestToolShares: a version of another tool has a share; other tools have none.
func TestToolShares(t *testing.T) {
	tools := []registry.Entry{toolOf("kb_search", ""), toolOf("kb_search_b", "kb_search"), toolOf("kb_search_c", "kb_search")}
	for name, c := range map[string]struct {
		file string
		want string // part of the error; empty if it loads
	}{
		"nothing":            {"tools: {}", ""},
		"all":                {"tools:\n  kb_search_b: {share: 60}\n  kb_search_c: {share: 40}\n", ""},
		"a disabled version": {"tools:\n  kb_search_b: {share: 60}\n  kb_search_c: {share: 60, enabled: false}\n", ""},
		"too much in total":  {"tools:\n  kb_search_b: {share: 60}\n  kb_search_c: {share: 41}\n", "voicegw.yaml:3: tools.kb_search_c.share is 41, and other versions of kb_search have 60 already"},
		"too much":           {"tools:\n  kb_search_b: {share: 101}\n", "voicegw.yaml:2: tools.kb_search_b.share is 101; it must be the percentage of users who get this version of kb_search, 0 to 100."},
		"negative":           {"tools:\n  kb_search_b: {share: -1}\n", "tools.kb_search_b.share is -1"},
		"no number":          {"tools:\n  kb_search_b: {share: half}\n", "tools.kb_search_b.share must be a whole number"},
		"an unknown version": {"tools:\n  kb_serch_b: {share: 10}\n", `There is no setting "tools.kb_serch_b". Did you mean tools.kb_search_b?`},
		"the tool itself":    {"tools:\n  kb_search: {share: 10}\n", `There is no setting "tools.kb_search.share"`},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, _, err := Load(Source{File: "voicegw.yaml", ReadFile: files{"voicegw.yaml": c.file}.ReadFile, Tools: tools})
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want == "" && name == "all" && cfg.Tools["kb_search_b"].Share != 60:
				t.Errorf("the share is %d", cfg.Tools["kb_search_b"].Share)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v lacks %s", err, c.want)
			}
		})
	}
}
