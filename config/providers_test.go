package config

import (
	"slices"
	"strings"
	"testing"

	"voicegw/transport"
)

// TestProvidersOfOneWire: a provider has any name and its own settings, from the file, variables and flags.
func TestProvidersOfOneWire(t *testing.T) {
	c := mustLoad(t, `
provider: azure-eu
providers:
  openai: {api_key: ours, voice: marin}
  azure-eu: {wire: openai, base_url: 'https://eu.openai.azure.com/openai/v1', api_key: file, model: mine, reasoning: low, interrupt: false}
  vertex: {wire: gemini, thinking: high}
`, []string{
		"VOICEGW_PROVIDERS_AZURE_EU_API_KEY=env", "VOICEGW_PROVIDERS_VERTEX_API_KEY=token",
		"VOICEGW_PROVIDERS_FROM_ENV_WIRE=gemini", "VOICEGW_PROVIDERS_FROM_ENV_API_KEY=e", "VOICEGW_PROVIDERS_FLAGGED_VOICE=Kore",
	}, Flag{"--set", "providers.flagged.wire", "gemini"}, Flag{"--set", "providers.flagged.api_key", "f"}, Flag{"--set", "providers.azure-eu.model", "theirs"})
	var offered []string
	for _, s := range c.Services() {
		offered = append(offered, s.Name)
	}
	if want := []string{"azure-eu", "openai", "flagged", "from-env", "vertex"}; !slices.Equal(offered, want) {
		t.Errorf("offered are %v, want %v", offered, want)
	}
	eu := c.Providers["azure-eu"]
	if eu.Wire != "openai" || eu.APIKey.Reveal() != "env" || eu.Model != "theirs" || eu.Interrupt || eu.Settings["reasoning"] != "low" {
		t.Errorf("azure-eu is %+v", eu)
	}
	if p := c.Providers["openai"]; p.Wire != "openai" || p.APIKey.Reveal() != "ours" || p.Voice != "marin" || !p.Interrupt || len(p.Settings) > 0 {
		t.Errorf("openai is %+v", p)
	}
	if p := c.Providers["flagged"]; p.Voice != "Kore" || p.APIKey.Reveal() != "f" {
		t.Errorf("flagged is %+v", p)
	}
	if w := c.WireOf("vertex"); w == nil || w.Name != "gemini" || c.Providers["vertex"].Settings["thinking"] != "high" {
		t.Errorf("vertex is %+v", c.Providers["vertex"])
	}
}

// TestDefaultProvider: the default is the first configured provider, gemini and openai before other names, unless it is
// chosen explicitly. The simulator replaces a provider of any name.
func TestDefaultProvider(t *testing.T) {
	for file, want := range map[string]string{
		"providers: {azure-eu: {wire: openai, api_key: k}}":                                      "azure-eu",
		"providers: {azure-eu: {wire: openai, api_key: k}, openai: {api_key: k}}":                "openai",
		"providers: {b: {wire: gemini, api_key: k}, a: {wire: openai, api_key: k}}":              "a",
		"provider: b\nproviders: {b: {wire: gemini, api_key: k}, a: {wire: openai, api_key: k}}": "b",
		"providers: {a: {wire: openai, model: m}}":                                               "gemini",
	} {
		if c := mustLoad(t, file, nil); c.Provider != want || c.Services()[0].Name != want {
			t.Errorf("%s: the default is %s, offered are %v", file, c.Provider, c.Services())
		}
	}
	if c := mustLoad(t, "providers: {a: {wire: openai}}\nsim: {use: always}", nil); len(c.Services()) != 4 || !c.Services()[3].Simulated {
		t.Errorf("the simulator does not replace a provider of another name: %v", c.Services())
	}
}

// TestKeyOfAProvider: the variable of a provider's own clients applies to the provider with the wire's name, and only
// if it uses that wire.
func TestKeyOfAProvider(t *testing.T) {
	environ := []string{"OPENAI_API_KEY=secret"}
	for name, c := range map[string]*Config{
		"file":     mustLoad(t, "providers: {openai: {wire: gemini}}", environ),
		"env":      mustLoad(t, "", append(environ, "VOICEGW_PROVIDERS_OPENAI_WIRE=gemini")),
		"flag":     mustLoad(t, "", environ, Flag{"--set", "providers.openai.wire", "gemini"}),
		"not ours": mustLoad(t, "providers: {openai: {api_key: x}, compatible: {wire: openai, base_url: 'https://example.com/v1'}}", nil),
	} {
		for provider, p := range c.Providers {
			if p.APIKey.Reveal() == "secret" {
				t.Errorf("%s: %s, which uses the wire %s, has OpenAI's key", name, provider, p.Wire)
			}
		}
	}
}

// providerProblems are invalid configurations of providers.
var providerProblems = []wrong{
	{"an unknown wire", "providers:\n  openai: {wire: opnai}\n  azure-eu:\n    wire: azure\n", nil, nil, []string{
		`dir/voicegw.yaml:2: providers.openai.wire must be one of gemini, openai, live, not "opnai". Did you mean openai?`,
		`dir/voicegw.yaml:4: providers.azure-eu.wire must be one of gemini, openai, live, not "azure".`,
	}},
	{"no wire", "providers:\n  geminy:\n    api_key: hush\n  azure-eu: {voice: x}\n", nil, []Flag{{"--set", "providers.third.model", "m"}}, []string{
		`dir/voicegw.yaml:4: providers.azure-eu.wire is missing; it is the protocol of azure-eu: gemini or openai or live.`,
		`dir/voicegw.yaml:3: providers.geminy.wire is missing; it is the protocol of geminy: gemini or openai or live. Did you mean providers.gemini?`,
		`--set: providers.third.wire is missing`,
	}},
	{"a setting of another wire", "providers:\n  gemini: {reasoning: low}\n", []string{"VOICEGW_PROVIDERS_OPENAI_THINKING=low"}, nil, []string{
		`dir/voicegw.yaml:2: providers.gemini.reasoning is not a setting of the wire gemini; remove it.`,
		`VOICEGW_PROVIDERS_OPENAI_THINKING: providers.openai.thinking is not a setting of the wire openai; remove it.`,
	}},
	{"an invalid name", "providers:\n  Azure_EU: {wire: openai}\n  api_key: x\n  gemini: {mdel: x}\n", nil, []Flag{{"--set", "providers.a.b", "m"}}, []string{
		`dir/voicegw.yaml:2: There is no setting "providers.Azure_EU". The name of a provider has letters from a to z, digits and hyphens`,
		`dir/voicegw.yaml:3: There is no setting "providers.api_key".`,
		`dir/voicegw.yaml:4: There is no setting "providers.gemini.mdel". Did you mean providers.gemini.model?`,
		`--set: There is no setting "providers.a.b".`,
	}},
	{"a default that is not offered", "provider: azure-eu\nproviders: {azure-eu: {wire: openai}, openai: {api_key: k}}\n", nil, nil, []string{
		`dir/voicegw.yaml:1: provider is azure-eu, but only openai is configured; set providers.azure-eu.api_key`,
	}},
	{"an unknown default", "provider: azur-eu\nproviders: {azure-eu: {wire: openai}}\n", nil, nil, []string{
		`dir/voicegw.yaml:1: provider must be one of gemini, openai, live, azure-eu, not "azur-eu".`,
	}},
	{"one variable for two settings", "providers: {x: {wire: openai}, x-transcription: {wire: openai}}\n", []string{"VOICEGW_PROVIDERS_X_TRANSCRIPTION_MODEL=m"}, nil, []string{
		`VOICEGW_PROVIDERS_X_TRANSCRIPTION_MODEL: The variable belongs to two settings`,
	}},
}

// TestUnknownProviderVariable: a misspelt variable causes only a warning.
func TestUnknownProviderVariable(t *testing.T) {
	_, warnings, err := load(t, "providers: {a: {wire: openai}, openai: {api_key: k}}", []string{"VOICEGW_PROVIDERS_GEMINY_API_KEY=hush"})
	if err != nil || len(warnings) != 2 || strings.Contains(strings.Join(warnings, ""), "hush") ||
		!strings.Contains(warnings[0], "Did you mean VOICEGW_PROVIDERS_GEMINI_API_KEY?") || !strings.Contains(warnings[1], "providers.a has neither api_key nor base_url") {
		t.Errorf("%v\n%s", err, strings.Join(warnings, "\n"))
	}
}

// TestThirdWire: a provider of another wire needs only a row in the table. The simulator does not simulate unknown
// wires.
func TestThirdWire(t *testing.T) {
	third := transport.Wire{Name: "third", KeyVariables: []string{"THIRD_KEY"}, Settings: []string{"tempo"}}
	source := Source{Wires: append(Wires(), third), Environ: []string{"THIRD_KEY=k", "VOICEGW_PROVIDERS_THIRD_TEMPO=slow"}}
	c, _, err := Load(source)
	if err != nil {
		t.Fatal(err)
	}
	if p := c.Providers["third"]; c.Provider != "third" || p.APIKey.Reveal() != "k" || p.Settings["tempo"] != "slow" || c.WireOf("third").Name != "third" {
		t.Errorf("%s, %+v", c.Provider, p)
	}
	source.Environ = []string{"VOICEGW_PROVIDER=third"}
	if _, _, err := Load(source); err == nil || !strings.Contains(err.Error(), "the simulator does not speak its wire, third; set THIRD_KEY") {
		t.Errorf("%v", err)
	}
}

// TestFallback: the fallback must be an offered provider.
func TestFallback(t *testing.T) {
	with := func(fallback string) (*Config, error) {
		file := "providers:\n  fallback: " + fallback + "\n  gemini:\n    api_key: a\n  openai:\n    api_key: b\n  third:\n    wire: openai\n"
		c, _, err := Load(Source{File: "f.yaml", ReadFile: files{"f.yaml": file}.ReadFile})
		return c, err
	}
	if c, err := with("openai"); err != nil || c.Fallback != "openai" {
		t.Errorf("the fallback is %+v: %v", c, err)
	}
	for _, wrong := range []string{"third", "nobody"} {
		if _, err := with(wrong); err == nil || !strings.Contains(err.Error(), "f.yaml:2: providers.fallback is \""+wrong+"\"") || !strings.Contains(err.Error(), "gemini, openai") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
