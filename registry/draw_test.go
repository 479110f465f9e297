package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"voicegw/registry/spec"
)

// versionedRegistry has a tool probe with two versions that answer with their own names, and another tool.
// shares are those of probe_b and probe_c.
func versionedRegistry(t testing.TB, shares [2]int, changes ...string) (*Registry, error) {
	t.Helper()
	says := func(name string) Handler {
		return Bind(func(_ context.Context, call Call[none, none]) (Result, error) {
			return Result{Data: name + " of " + call.Tool}, nil
		})
	}
	one := func(id, version string, changes ...string) Entry {
		e, _, _ := simple(t, nil, append([]string{`toolId: "` + id + `"`, `version: "` + version + `"`}, changes...)...)
		e.Guide = "# probe\n\nThe guide of " + id + ".\n"
		return e
	}
	of := append([]string{`variantOf: "probe"`}, changes...)
	opts := Options{
		Handlers: map[string]Handler{"other": says("other"), "probe": says("a"), "probe_b": says("b"), "probe_c": says("c")},
		Settings: map[string]ToolSettings{"probe_b": {Share: shares[0]}, "probe_c": {Share: shares[1]}},
	}
	return Load(encodeFile(t, one("other", "1.0.0"), one("probe", "1.0.0"), one("probe_b", "2.0.0", of...), one("probe_c", "3.0.0", `variantOf: "probe"`)), opts)
}

func mustVersions(t testing.TB, b, c int) *Snapshot {
	t.Helper()
	r, err := versionedRegistry(t, [2]int{b, c})
	if err != nil {
		t.Fatal(err)
	}
	return r.Snapshot()
}

// answers calls probe in a snapshot.
func answers(t testing.TB, s *Snapshot) string {
	t.Helper()
	var said string
	env := s.Execute(t.Context(), "probe", spec.ModeText, nil, Session{})
	if err := json.Unmarshal(env.Data, &said); err != nil {
		t.Fatalf("%s: %v", env.Encode(), err)
	}
	if tool, _ := s.Tool("probe"); env.Meta.Tool != "probe" || env.Meta.ToolVersion != tool.Version {
		t.Errorf("the answer names %s %s", env.Meta.Tool, env.Meta.ToolVersion)
	}
	return said
}

// TestDrawShares: over many users each version gets its share, a user always gets the same version, and 0 and 100 are
// exact.
func TestDrawShares(t *testing.T) {
	const users = 20_000
	for _, c := range []struct{ b, c int }{{0, 0}, {100, 0}, {0, 100}, {1, 0}, {10, 25}, {50, 50}, {33, 33}} {
		t.Run(fmt.Sprintf("%d and %d", c.b, c.c), func(t *testing.T) {
			s := mustVersions(t, c.b, c.c)
			got := map[string]float64{}
			for i := range users {
				by := fmt.Sprintf("user-%d", i)
				drawn := s.Draw(by, nil)
				got[drawn.Drawn()["probe"]]++
				if again := s.Draw(by, nil); again != drawn {
					t.Fatalf("%s draws another snapshot the second time", by)
				}
			}
			for version, share := range map[string]int{"1.0.0": 100 - c.b - c.c, "2.0.0": c.b, "3.0.0": c.c} {
				percent := 100 * got[version] / users
				if math.Abs(percent-float64(share)) > 1.5 || (share == 0 || share == 100) && percent != float64(share) {
					t.Errorf("version %s has %.2f %% of the users, want %d %%", version, percent, share)
				}
			}
		})
	}
}

// TestDrawGrows: a growing share keeps its earlier users.
func TestDrawGrows(t *testing.T) {
	had := map[string]bool{}
	for _, share := range []int{0, 5, 20, 50, 100} {
		s := mustVersions(t, share, 0)
		for i := range 2000 {
			by := fmt.Sprintf("user-%d", i)
			has := s.Draw(by, nil).Drawn()["probe"] == "2.0.0"
			if had[by] && !has {
				t.Fatalf("with %d %% %s has lost the version", share, by)
			}
			had[by] = has
		}
	}
}

// TestDraw: a version has the id of the tool, its own handler and guide; a pin overrides the share.
func TestDraw(t *testing.T) {
	for name, c := range map[string]struct {
		b, c   int
		pinned string
		want   string // the tool's answer
		plain  bool   // the tools have the plain version of the file
	}{
		"no shares":                      {0, 0, "", "a of probe", true},
		"one has all":                    {100, 0, "", "b of probe", false},
		"the other has all":              {0, 100, "", "c of probe", false},
		"pinned to the main one":         {100, 0, "1.0.0", "a of probe", true},
		"pinned to one without a share":  {0, 0, "3.0.0", "c of probe", false},
		"pinned to one that is not here": {0, 100, "9.9.9", "c of probe", false},
	} {
		t.Run(name, func(t *testing.T) {
			whole := mustVersions(t, c.b, c.c)
			has := Selection{Session: inText, Only: []string{"probe"}, SwitchTo: []SwitchTarget{{ID: "sales"}}}
			s := whole.Draw("ada", map[string]string{"probe": c.pinned}).For(has)
			if got := answers(t, s); got != c.want {
				t.Errorf("it answers %q, want %q", got, c.want)
			}
			if got := idsOf(s, spec.ModeText); strings.Join(got, " ") != spec.AgentSwitch+" "+spec.DescribeTool+" probe" {
				t.Errorf("the tools are %v", got)
			}
			if undrawn := whole.For(has).ToolsVersion(); (s.ToolsVersion() == undrawn) != c.plain {
				t.Errorf("the version of the tools is %s, without versions it is %s", s.ToolsVersion(), undrawn)
			}
			if got := s.Drawn()["probe"]; s.Draw("bob", map[string]string{"probe": "1.0.0"}).Drawn()["probe"] != got {
				t.Error("a draw is repeated")
			}
			guide := s.Execute(t.Context(), spec.DescribeTool, spec.ModeText, json.RawMessage(`{"tool":"probe"}`), Session{})
			tool, _ := s.Tool("probe")
			if variant := tool.Variant(); !strings.Contains(string(guide.Data), "The guide of "+map[bool]string{true: "probe.", false: variant + "."}[variant == ""]) {
				t.Errorf("describe_tool answers %s for %q", guide.Encode(), variant)
			}
		})
	}
	if a, b := mustVersions(t, 100, 0).Draw("ada", nil), mustVersions(t, 0, 100).Draw("ada", nil); a.ToolsVersion() == b.ToolsVersion() {
		t.Errorf("two versions are %s", a.ToolsVersion())
	}
}

// TestDrawCounts: the statistics count each version by its own id, and the whole snapshot lists them.
func TestDrawCounts(t *testing.T) {
	r, err := versionedRegistry(t, [2]int{100, 0})
	if err != nil {
		t.Fatal(err)
	}
	whole := r.Snapshot()
	answers(t, whole.Draw("ada", nil))
	answers(t, whole.Draw("ada", map[string]string{"probe": "1.0.0"}))
	if got := r.Stats(); got["probe"].OK != 1 || got["probe_b"].OK != 1 {
		t.Errorf("counted: %+v", got)
	}
	if got := fmt.Sprint(whole.Versions("probe"), whole.Versions("other")); got != "[{probe_b 2.0.0 100} {probe_c 3.0.0 0}] []" {
		t.Errorf("the versions are %s", got)
	}
	if tool, version, ok := whole.VersionOf("probe_c"); tool != "probe" || version != "3.0.0" || !ok {
		t.Errorf("probe_c is %s %s %t", tool, version, ok)
	}
	if _, _, ok := whole.VersionOf("probe"); ok {
		t.Error("the main one is a version of itself")
	}
	if _, ok := whole.Tool("probe_b"); ok {
		t.Error("a model can call a version by the name of its own")
	}
	for name, settings := range map[string]map[string]ToolSettings{
		"a version":        {"probe_b": {Share: 100, Off: true}},
		"all of the tools": {"probe": {Off: true}, "probe_b": {Share: 100}},
	} {
		take, err := r.Configure(settings, Foreign{})
		if err != nil {
			t.Fatalf("%s is switched off: %v", name, err)
		}
		take()
		s := r.Snapshot().Draw("ada", nil)
		if tool, ok := s.Tool("probe"); ok && tool.Variant() != "" || ok != (name == "a version") {
			t.Errorf("%s is switched off, and the tool is %+v", name, tool)
		}
	}
}

// TestVersionsAgree: a version that differs too much from its tool is refused at load.
func TestVersionsAgree(t *testing.T) {
	for name, c := range map[string]struct{ change, want string }{
		"unknown tool":       {`variantOf: "prob"`, `did you mean "probe"`},
		"of a version":       {`variantOf: "probe_c"`, "probe_c"},
		"category":           {`category: "utility"`, `"category" must be that of probe`},
		"side effects":       {`sideEffects: "none"`, `"sideEffects" must be`},
		"approval":           {`requiresConfirmation: true`, `"requiresConfirmation" must be`},
		"modes":              {`allowedModes: ["text"]`, `"allowedModes" must be`},
		"scopes":             {`requires: ["a.b"]`, `"requires" must be`},
		"availability":       {`availability: {"agents": ["default"]}`, `"availability" must be`},
		"rate":               {`rateLimit: {"calls": 1, "window": "1h"}`, `"rateLimit" must be`},
		"the tool's version": {`version: "1.0.0"`, "also that of probe"},
		"another's version":  {`version: "3.0.0"`, "have the same version, 3.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := versionedRegistry(t, [2]int{0, 0}, c.change)
			var found *LoadError
			if !errors.As(err, &found) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("loaded with %v", err)
			}
		})
	}
	if _, err := versionedRegistry(t, [2]int{60, 50}); err == nil || !strings.Contains(err.Error(), "110 together") {
		t.Errorf("shares above 100: %v", err)
	}
}

// TestVersionsAreCounted: a version is counted by its own id, for comparisons.
func TestVersionsAreCounted(t *testing.T) {
	r, err := versionedRegistry(t, [2]int{100, 0})
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{"1.0.0": "probe", "2.0.0": "probe_b"} {
		before := r.Stats()[want].Calls
		answers(t, r.Snapshot().Draw("ada", map[string]string{"probe": version}))
		if got := r.Stats()[want].Calls - before; got != 1 {
			t.Errorf("version %s: %d calls are counted as those of %s: %v", version, got, want, r.Stats())
		}
	}
}
