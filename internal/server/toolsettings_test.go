package server

import (
	"slices"
	"testing"

	"voicegw/config"
	"voicegw/config/setting"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
)

// TestToolSettingsAreJoined: the settings that tools declare become settings of the configuration, and their values reach
// the registry with their types.
func TestToolSettingsAreJoined(t *testing.T) {
	data := registrytest.File(t, registry.Entry{Spec: spec.Spec{ToolID: "weather", Settings: map[string]spec.Setting{
		"api_key": {Type: spec.SettingString, Secret: true, Description: "Key."},
		"retries": {Type: spec.SettingInteger, Description: "How often.", Default: []byte("3")},
	}}, Forms: registry.Forms{OpenAI: []byte("{}"), OpenAIChat: []byte("{}")}})
	p := Host{Registry: func() ([]byte, error) { return data, nil }}
	file, err := p.BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(config.Source{Tools: file.Tools, Environ: []string{"VOICEGW_TOOLS_WEATHER_API_KEY=key-of-weather", "VOICEGW_TOOLS_WEATHER_ENABLED=no"}})
	if err != nil {
		t.Fatal(err)
	}
	got := toolSettings(cfg)["weather"]
	key, ok := got.Values["api_key"].(setting.Secret)
	if !got.Off || !ok || key.Reveal() != "key-of-weather" || got.Values["retries"] != 3 {
		t.Errorf("the registry gets %+v", got)
	}
	if tried := p.anySettings()["weather"].Values["api_key"]; tried != (setting.Secret{}) {
		t.Errorf("the build tries it with %v", tried)
	}
	if all := (Host{Registry: func() ([]byte, error) { return nil, registry.ErrEmpty }}).anySettings(); len(all) > 0 {
		t.Errorf("without a registry there are %v", all)
	}
}

// TestSwitchedOff: the log names only the tools that the operator switched off, not those that change agents, which are
// off by default, and not those without a setting.
func TestSwitchedOff(t *testing.T) {
	off, unset := []string{"agent_create", "kb_search", "weather"}, []registry.Unset{{Tool: "weather", Settings: []string{"api_key"}}}
	for _, on := range []bool{false, true} {
		cfg := config.Default()
		cfg.Agents.Tools = on
		want := []string{"kb_search"}
		if on {
			want = []string{"agent_create", "kb_search"}
		}
		if got := switchedOff(cfg, off, unset); !slices.Equal(got, want) {
			t.Errorf("with agents.tools %t the log names %v", on, got)
		}
	}
}
