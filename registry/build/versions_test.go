package build

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestVersionFolder: a version has its own folder, its guide has the heading of the tool, and it agrees with the
// tool; a check of the version alone finds disagreements too.
func TestVersionFolder(t *testing.T) {
	for name, c := range map[string]struct{ from, to, rule string }{
		"valid":                  {"", "", ""},
		"its own heading":        {"# weather_lookup\n", "# weather_lookup_next\n", ruleGuide},
		"the tool's version":     {`"0.2.0"`, `"0.1.0"`, ruleVariant},
		"another category":       {`"category": "retrieval"`, `"category": "utility"`, ruleVariant},
		"a tool that is missing": {`"variantOf": "weather_lookup"`, `"variantOf": "weather_lokup"`, ruleVariant},
		"of itself":              {`"variantOf": "weather_lookup"`, `"variantOf": "weather_lookup_next"`, ruleVariant},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			tools := filepath.Join(dir, toolsDir)
			if err := os.Mkdir(tools, 0o755); err != nil {
				t.Fatal(err)
			}
			if _, err := New(dir, "weather-lookup", "retrieval"); err != nil {
				t.Fatal(err)
			}
			next := filepath.Join(tools, "weather-lookup-next")
			if err := os.CopyFS(next, os.DirFS(filepath.Join(tools, "weather-lookup"))); err != nil {
				t.Fatal(err)
			}
			change := func(file string, pairs ...string) {
				text, err := os.ReadFile(filepath.Join(next, file))
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(next, file), []byte(strings.NewReplacer(pairs...).Replace(string(text))), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for _, file := range []string{"handler.go", "handler_test.go"} {
				change(file, "package weatherlookup", "package weatherlookupnext", "Package weatherlookup", "Package weatherlookupnext")
			}
			change(schemaFile, `"toolId": "weather_lookup"`, `"toolId": "weather_lookup_next", "variantOf": "weather_lookup"`, `"version": "0.1.0"`, `"version": "0.2.0"`)
			if c.from != "" {
				change(schemaFile, c.from, c.to)
				change(guideFile, c.from, c.to)
			}
			for _, names := range [][]string{nil, {"weather-lookup-next"}} {
				report, err := Lint(Options{Dir: dir}, names...)
				if err != nil {
					t.Fatal(err)
				}
				var rules []string
				for _, f := range report.Findings {
					if f.Severity == SeverityError {
						rules = append(rules, f.Rule)
					}
				}
				if got := strings.Join(rules, " "); !strings.Contains(got, c.rule) || c.rule == "" && got != "" {
					t.Errorf("%v: the findings are %q, want %q: %+v", names, got, c.rule, report.Findings)
				}
			}
		})
	}
}
