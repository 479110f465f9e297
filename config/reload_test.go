package config

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReloadsAreDocumented compares the tables of docs/configuration.md, "Settings that a reload applies", with the code,
// and checks that each row is a setting.
func TestReloadsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "## Settings that a reload applies\n")
	section, _, ends := strings.Cut(rest, "\n## ")
	if !found || !ends {
		t.Fatal("docs/configuration.md has no section on reloads")
	}
	taken, restart, found := strings.Cut(section, "| setting | why it needs a restart")
	if !found {
		t.Fatal("the second table is missing")
	}
	row := regexp.MustCompile("(?m)^\\| `([a-z0-9_.<>*]+)` \\|")
	listed := map[string]bool{}
	for text, is := range map[string]bool{taken: true, restart: false} {
		for _, found := range row.FindAllStringSubmatch(text, -1) {
			listed[strings.TrimSuffix(found[1], "*")] = is
		}
	}
	var keys []string
	l := newLoader(Source{Wires: Wires(), Tools: anyTools})
	for _, in := range namedSections {
		l.introduce(&in, "any")
	}
	keys = l.keys
	for key, is := range reloads {
		if was, ok := listed[key]; !ok || was != is {
			t.Errorf("docs/configuration.md says that %s reloads: %v, %v; want %v", key, was, ok, is)
		}
		if !slices.ContainsFunc(keys, func(k string) bool {
			return k == strings.ReplaceAll(key, "<name>", "any") || strings.HasSuffix(key, ".") && strings.HasPrefix(k, key)
		}) {
			t.Errorf("%s is not a setting", key)
		}
	}
	for key := range listed {
		if _, ok := reloads[key]; !ok {
			t.Errorf("docs/configuration.md says that %s reloads; the code does not know it", key)
		}
	}
}

// read loads a configuration from a text.
func read(t *testing.T, text string) *Config {
	t.Helper()
	c, _, err := Load(Source{File: "voicegw.yaml", ReadFile: files{"voicegw.yaml": text}.ReadFile})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const (
	keyA = "\n    a: {id: aaaaaaaa, sha256: \"1111111111111111111111111111111111111111111111111111111111111111\", scopes: [voice]}"
	keyB = "\n    b: {id: bbbbbbbb, sha256: \"2222222222222222222222222222222222222222222222222222222222222222\", scopes: [voice]}"
)

// TestTakeOver: settings that may change at run time are applied; the others remain and are reported.
func TestTakeOver(t *testing.T) {
	for name, tc := range map[string]struct {
		now, read        string
		changed, restart []string
		check            func(*Config) bool
		kept             string // why the change cannot be undone at run time; empty if it can
	}{
		"nothing": {now: "limits: {sessions: 5}", read: "limits: {sessions: 5}", check: func(c *Config) bool { return c.Limits.Sessions == 5 }},
		"a limit, and settings that need a restart": {now: "limits: {sessions: 5}", read: "drain_timeout: 1m\nlimits: {sessions: 6, resume_grace: 1s, message_bytes: 8192}",
			changed: []string{"limits.sessions"}, restart: []string{"drain_timeout", "limits.message_bytes", "limits.resume_grace"},
			check: func(c *Config) bool {
				return c.Limits.Sessions == 6 && c.DrainTimeout.Seconds() == 30 && c.Limits.ResumeGrace.Seconds() == 30 && c.Limits.MessageBytes == 65536
			}},
		"directories of tools": {now: "tool_dirs: [/a]", read: "tool_dirs: [/b, /c]", changed: []string{"tool_dirs"},
			check: func(c *Config) bool { return slices.Equal(c.ToolDirs, []string{"/b", "/c"}) }},
		"features": {now: "features: [a, b]", read: "features: [b@desk]", changed: []string{"features"},
			check: func(c *Config) bool { return !c.Feature("", "a") && c.Feature("desk", "b") }},
		"keys are added and removed": {now: "auth:\n  keys:" + keyA, read: "auth:\n  keys:" + keyB,
			changed: []string{"auth.keys.a", "auth.keys.b"},
			check:   func(c *Config) bool { return len(c.Auth.Keys) == 1 && c.Auth.Keys["b"] != nil }},
		"a provider's key": {now: "providers: {openai: {api_key: sk-one, model: m}}", read: "providers: {openai: {api_key: sk-two, model: n}}",
			changed: []string{"providers.openai.api_key"}, restart: []string{"providers.openai.model"},
			check: func(c *Config) bool {
				return c.Providers["openai"].APIKey.Reveal() == "sk-two" && c.Providers["openai"].Model == "m"
			}},
		"the first key of a provider": {now: "", read: "providers: {openai: {api_key: sk-one}}",
			restart: []string{"provider", "providers.openai.api_key"}, check: func(c *Config) bool { return c.Services()[0].Simulated }},
		"another provider": {now: "providers: {openai: {api_key: sk-one}}", read: "providers: {openai: {api_key: sk-one}, azure: {wire: openai, api_key: k, base_url: \"https://a.example/openai/v1\"}}",
			restart: []string{"providers.azure"},
			check:   func(c *Config) bool { return c.Providers["azure"] == nil }},
		"hosts, origins, prices, the log, the operators' key": {now: "", read: "hosts: [a.example]\norigins: [\"https://b.example\"]\nprices: {file: p.yaml}\nlog: {level: debug, format: json}\napi_key: 0123456789abcdef",
			changed: []string{"api_key", "hosts", "log.level", "origins", "prices.file"}, restart: []string{"log.format"},
			check: func(c *Config) bool {
				return c.APIKey.IsSet() && c.Log.Format == "auto" && c.Log.Level == "debug" && len(c.Hosts)+len(c.Origins) == 2
			}, kept: "api_key is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			now, next := read(t, tc.now), read(t, tc.read)
			got, err := TakeOver(now, next)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Changed, tc.changed) || !slices.Equal(got.Restart, tc.restart) {
				t.Errorf("changed %q, want %q; needs a restart %q, want %q", got.Changed, tc.changed, got.Restart, tc.restart)
			}
			if !tc.check(got.Next) {
				t.Errorf("next is %+v", got.Next)
			}
			// Settings that need a restart are reported again; applied ones are not.
			if again, err := TakeOver(got.Next, next); err != nil || len(again.Changed) > 0 || !slices.Equal(again.Restart, tc.restart) {
				t.Errorf("again: changed %q, needs a restart %q", again.Changed, again.Restart)
			}
			undone, err := TakeOver(got.Next, now)
			if tc.kept == "" && err != nil || tc.kept != "" && (err == nil || !strings.Contains(err.Error(), tc.kept)) {
				t.Errorf("undoing it: %v", err)
			}
			if !slices.Equal(undone.Changed, tc.changed) || len(undone.Restart) > 0 {
				t.Errorf("undone: changed %q, needs a restart %q", undone.Changed, undone.Restart)
			}
		})
	}
}
