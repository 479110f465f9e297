package main

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"voicegw/config"
	"voicegw/config/setting"
	"voicegw/sim"
)

// TestProvidersOfAnyName: a session of each of several providers uses the configured wire under the provider's own name.
func TestProvidersOfAnyName(t *testing.T) {
	t.Parallel()
	provider, err := sim.Start(t.Context(), "", sim.Options{Speed: -1, FirstAudioMS: -1, PlaybackSpeed: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = provider.Close() })
	args := []string{"--provider", "azure-eu"}
	named := map[string]string{"azure-eu": wireOpenAI, "openai": wireOpenAI, "vertex": wireGemini, "gemini": wireGemini}
	for name, wire := range named {
		args = append(args, "--set", "providers."+name+".wire="+wire, "--set", "providers."+name+".base_url="+provider.URL(wire))
	}
	r := start(t, append(args, "--set", "drain_timeout=1s")...)
	var got struct {
		Default   string
		Providers []struct{ Name, Model string }
	}
	r.get(t, "/v1/providers", &got)
	if got.Default != "azure-eu" || len(got.Providers) != len(named) {
		t.Fatalf("%+v", got)
	}
	for _, p := range got.Providers {
		if !strings.HasPrefix(p.Model, map[string]string{wireOpenAI: "gpt-", wireGemini: "gemini-"}[named[p.Name]]) {
			t.Errorf("%s has the model %s", p.Name, p.Model)
		}
		c := r.phone(t, p.Name)
		c.ask("hello")
		if end := c.answered(); end.Status != "completed" {
			t.Errorf("%s: %+v", p.Name, end)
		}
	}
}

// TestSimulatedWires: the simulator has an address for each simulated wire, and for no other.
func TestSimulatedWires(t *testing.T) {
	local, err := sim.Start(t.Context(), "", sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = local.Close() })
	for _, w := range config.Wires() {
		if (local.URL(w.Name) != "") != w.Simulated {
			t.Errorf("%s: simulated %v, and the simulator's address is %q", w.Name, w.Simulated, local.URL(w.Name))
		}
	}
	if local.URL("other") != "" {
		t.Error("the simulator has an address for a wire that it does not speak")
	}
}

// TestImagesWithoutAMaker: a provider that makes no images, or would need another provider's key, stops the start with an
// error that names the setting.
func TestImagesWithoutAMaker(t *testing.T) {
	for want, set := range map[string]func(*config.Config){
		"image.api_key is missing": func(c *config.Config) {
			c.Image.Provider, c.Image.BaseURL = "gemini", "https://x.example"
		},
		"cannot make images": func(c *config.Config) {
			c.Providers["third"] = &config.Provider{Wire: "third", APIKey: setting.NewSecret("k")}
			c.Image.Provider = "third"
		},
	} {
		cfg := config.Default()
		set(cfg)
		_, err := newImageGenerator(cfg, nil)
		var problems config.Problems
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestTheTextAgentsProvider: chat models and images come from the first provider that has them, whatever its name; Voice
// Live has none.
func TestTheTextAgentsProvider(t *testing.T) {
	cfg := config.Default()
	set := func(name, wire, key, url string) {
		cfg.Providers[name] = &config.Provider{Wire: wire, APIKey: setting.NewSecret(key), BaseURL: url, Settings: map[string]string{}}
	}
	check := func(key, url, images string) {
		t.Helper()
		if o := chatOptions(cfg, nil); o.APIKey != key || o.BaseURL != url {
			t.Errorf("the text agent uses %s with %s, want %s with %s", o.BaseURL, o.APIKey, url, key)
		}
		if s := imageServiceOf(cfg, nil); s.key != key || s.wire != images {
			t.Errorf("images come from %+v, want %s with %s", s, images, key)
		}
	}
	set("b-vertex", wireGemini, "g", "")
	check("g", geminiChatURL, wireGemini)
	set("a-live", wireOpenAI, "l", "https://x.services.ai.azure.com/voice-live")
	check("g", geminiChatURL, wireGemini)
	set("z-compatible", wireOpenAI, "z", "wss://z.example/v1")
	check("z", "https://z.example/v1", wireOpenAI)
	if _, err := newTransports(cfg, nil, nil, nil, slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
}
