package config

import (
	"strings"
	"testing"
)

// TestFeatures: what an entry says of an agent counts before what another says of all.
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

// TestFeaturesRefused: all that is wrong with the features is told at once.
func TestFeaturesRefused(t *testing.T) {
	_, _, err := Load(Source{File: "voicegw.yaml", ReadFile: files{"voicegw.yaml": "features: [Sale, \"!beta\", a, a, b@desk, \"!b@desk\", \"c d\"]\n"}.ReadFile})
	if err == nil {
		t.Fatal("taken")
	}
	for _, want := range []string{`"Sale"; a feature has`, `"!beta", but a feature that is not listed is off anyway`, `"a" twice`, `"b" is both on and off for "desk"`, `"c d"; a feature has`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
}

// TestToolDirsRefused: a directory needs its whole path, and is named once.
func TestToolDirsRefused(t *testing.T) {
	_, _, err := Load(Source{File: "voicegw.yaml", ReadFile: files{"voicegw.yaml": "tool_dirs: [tools, /a, /a]\n"}.ReadFile})
	for _, want := range []string{`"tools"; write the whole path`, `"/a" twice`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
}
