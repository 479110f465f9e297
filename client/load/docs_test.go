package load_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"voicegw/client/load"
	"voicegw/client/load/report"
	"voicegw/client/voice"
	"voicegw/client/wire"
)

func page(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../../docs/load.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestPageExamples parses the scripts, annotations and thresholds in the page.
func TestPageExamples(t *testing.T) {
	doc := page(t)
	scripts := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(doc, -1)
	notes := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(doc, -1)
	if len(scripts) == 0 || len(notes) == 0 {
		t.Fatalf("%d scripts and %d annotations", len(scripts), len(notes))
	}
	for _, s := range scripts {
		if _, err := load.ParseScript("docs/load.md", []byte(s[1]), wire.Wire{}); err != nil {
			t.Error(err)
		}
	}
	for _, n := range notes {
		if _, err := voice.ParseAnnotation([]byte(n[1]), 1e10); err != nil {
			t.Error(err)
		}
	}
	for _, f := range regexp.MustCompile("--fail-if '([^']+)'").FindAllStringSubmatch(doc, -1) {
		if _, err := report.ParseThreshold(f[1]); err != nil {
			t.Error(err)
		}
	}
	for _, d := range report.DefaultThresholds(nil) {
		if !strings.Contains(doc, "`"+d.Text+"`") {
			t.Errorf("the default %s is not in docs/load.md", d.Text)
		}
	}
}

// TestEverythingIsDocumented covers figures, counters, threshold names, built-in scripts, and the keys and words of
// scripts.
func TestEverythingIsDocumented(t *testing.T) {
	doc := page(t)
	var r report.Report
	r.Measured(report.New(), 0)
	names := slices.AppendSeq(report.OtherNames(), maps.Keys(r.Definitions))
	for _, name := range append(names, load.ExampleNames()...) {
		if !strings.Contains(doc, "`"+name+"`") {
			t.Errorf("%s is not in docs/load.md", name)
		}
	}
	listed := regexp.MustCompile(`(?:knows|one of|is one of|with the keys) ([a-z_, ]+?) and ([a-z_]+)`)
	found := 0
	for _, bad := range []string{
		"{x: 1}", "{turns: [{x: 1}]}", "{turns: [{type: a, wait_for: x}]}", "{turns: [{type: a, expect: {x: 1}}]}", "{begin: {x: 1}, turns: [{type: a}]}", "{turns: [{type: '${x}'}]}",
	} {
		_, err := load.ParseScript("x", []byte(bad), wire.Wire{})
		if err == nil {
			t.Fatalf("%s is accepted", bad)
		}
		for _, m := range listed.FindAllStringSubmatch(err.Error(), -1) {
			for _, key := range append(strings.Split(m[1], ", "), m[2]) {
				found++
				if !strings.Contains(doc, "`"+key+"`") && !strings.Contains(doc, "`${"+key+"}`") {
					t.Errorf("%q is not in docs/load.md", key)
				}
			}
		}
	}
	if found < 35 {
		t.Errorf("only %d keys were found in the errors", found)
	}
}
