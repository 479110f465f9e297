package dashboard

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Runbooks is the page with the paragraphs of the alerts, from the top of the repository.
const Runbooks = "docs/operations.md"

// RulesFile is the name of the file of Rules, as Tests name it.
const RulesFile = "rules.yaml"

// interval is how often the rules are evaluated.
const interval = "30s"

type (
	ruleFile struct {
		Groups []group `yaml:"groups"`
	}
	group struct {
		Name     string `yaml:"name"`
		Interval string `yaml:"interval"`
		Rules    []rule `yaml:"rules"`
	}
	rule struct {
		Record      string            `yaml:"record,omitempty"`
		Alert       string            `yaml:"alert,omitempty"`
		Expr        string            `yaml:"expr"`
		For         string            `yaml:"for,omitempty"`
		Labels      map[string]string `yaml:"labels,omitempty"`
		Annotations map[string]string `yaml:"annotations,omitempty"`
	}
)

// header is before each generated file of YAML.
const header = "# Written by go run ./scripts/dev dashboards from internal/metrics/dashboard; change it there.\n"

// Rules renders the recording rules and the alerts for Prometheus.
func Rules() ([]byte, error) {
	levels, pages := group{Name: "voicegw_levels", Interval: interval}, group{Name: "voicegw_alerts", Interval: interval}
	for _, r := range Records() {
		levels.Rules = append(levels.Rules, rule{Record: r.Name, Expr: r.Expr})
	}
	for _, a := range alerts {
		pages.Rules = append(pages.Rules, rule{
			Alert: a.Name, Expr: a.Expr, For: a.For, Labels: map[string]string{"severity": a.Severity},
			Annotations: map[string]string{"summary": a.Summary, "runbook": Runbooks + "#" + strings.ToLower(a.Name)},
		})
	}
	return inYAML(ruleFile{[]group{levels, pages}})
}

type (
	testFile struct {
		RuleFiles []string   `yaml:"rule_files"`
		Interval  string     `yaml:"evaluation_interval"`
		Tests     []ruleTest `yaml:"tests"`
	}
	ruleTest struct {
		Name     string       `yaml:"name"`
		Interval string       `yaml:"interval"`
		Series   []testSeries `yaml:"input_series"`
		Exprs    []exprTest   `yaml:"promql_expr_test"`
	}
	testSeries struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	}
	exprTest struct {
		Expr string    `yaml:"expr"`
		At   string    `yaml:"eval_time"`
		Want []samples `yaml:"exp_samples"`
	}
	samples struct {
		Labels string  `yaml:"labels"`
		Value  float64 `yaml:"value"`
	}
)

// Tests renders the cases of the alerts for promtool test rules: each fires with its bad series, and
// not with its good ones.
func Tests() ([]byte, error) {
	out := testFile{RuleFiles: []string{RulesFile}, Interval: "1m"}
	for _, a := range alerts {
		count := `count(ALERTS{alertname="` + a.Name + `",alertstate="firing"})`
		fires := exprTest{Expr: count, At: a.At, Want: []samples{{Labels: "{}", Value: 1}}}
		quiet := exprTest{Expr: count, At: a.At, Want: []samples{}}
		out.Tests = append(out.Tests,
			ruleTest{Name: a.Name + " fires", Interval: "1m", Series: series(a.Bad), Exprs: []exprTest{fires}},
			ruleTest{Name: a.Name + " is quiet", Interval: "1m", Series: series(a.Good), Exprs: []exprTest{quiet}})
	}
	return inYAML(out)
}

func series(all []Series) []testSeries {
	var out []testSeries
	for _, s := range all {
		out = append(out, testSeries{s.Name, s.Values})
	}
	return out
}

func inYAML(v any) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(header)
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("dashboard: %w", err)
	}
	return b.Bytes(), nil
}
