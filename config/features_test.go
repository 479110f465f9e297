package config

import (
	"strings"
	"testing"
)

// TestFeatures: an entry for an agent has priority over one for all agents.
func TestFeatures(t *testing.T) {
	c := read(t, "features: [sale, beta@desk, \"!sale@billing\"]\n")
	for asked, on := range map[string]bool{
		"sale@desk": true, "sale@billing": false, "sale@": true, "beta@desk": true, "beta@billing": false, "beta@": false, "other@desk": false,
	} {
		name, agent, _ := strings.Cut(asked, "@")
		if c.Feature(agent, name) != on {
			t.Errorf("%s is on: %v", asked, !on)
		}
	}
}

// TestFeaturesRefused: one error reports all mistakes in the features.
func TestFeaturesRefused(t *testing.T) {
	_, _, err := Load(Source{File: "voicegw.yaml", ReadFile: files{"voicegw.yaml": "features: [Sale, \"!beta\", a, a, b@desk, \"!b@desk\", \"c d\"]\n"}.ReadFile})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{`"Sale"; a feature has`, `"!beta", but a feature that is not listed is off anyway`, `"a" twice`, `"b" is both on and off for "desk"`, `"c d"; a feature has`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
}

// TestToolDirsRefused: a directory must be an absolute path, and not be named twice.
func TestToolDirsRefused(t *testing.T) {
	_, _, err := Load(Source{File: "voicegw.yaml", ReadFile: files{"voicegw.yaml": "tool_dirs: [tools, /a, /a]\n"}.ReadFile})
	for _, want := range []string{`"tools"; write the whole path`, `"/a" twice`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
}
