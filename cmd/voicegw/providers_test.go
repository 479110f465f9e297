package main

import (
	"strings"
	"testing"

	"voicegw/config"
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
	named := map[string]string{"azure-eu": "openai", "openai": "openai", "vertex": "gemini", "gemini": "gemini"}
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
		if !strings.HasPrefix(p.Model, map[string]string{"openai": "gpt-", "gemini": "gemini-"}[named[p.Name]]) {
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
