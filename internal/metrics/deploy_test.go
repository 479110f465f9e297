package metrics_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"voicegw/internal/metrics"
	"voicegw/transport"
)

// deployed is the folder of the dashboard and the rules.
const deployed = "../../deploy/"

var (
	named    = regexp.MustCompile(`\bvoicegw_[a-z_]+`)
	recorded = regexp.MustCompile(`\bvoicegw:[a-z0-9_:]+`)
	variable = regexp.MustCompile(`\$\{?([a-z_]+)\}?`)
	of       = regexp.MustCompile(`_(bucket|sum|count)$`)
)

func read(t *testing.T, file string, decode func([]byte, any) error, into any) {
	t.Helper()
	data, err := os.ReadFile(deployed + file)
	if err == nil {
		err = decode(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// families are the metrics by their full names.
func families() map[string]metrics.Family {
	all := map[string]metrics.Family{}
	for _, f := range metrics.Families() {
		all[f.FullName()] = f
	}
	return all
}

// known fails for an unknown metric in an expression, and returns the metrics.
func known(t *testing.T, where, expr string) (found []string) {
	t.Helper()
	all := families()
	for _, name := range named.FindAllString(expr, -1) {
		f, ok := all[name]
		if base := of.ReplaceAllString(name, ""); !ok {
			if f, ok = all[base]; ok && f.Kind == metrics.Histogram {
				name = base
			} else {
				ok = false
			}
		}
		if !ok {
			t.Errorf("%s: there is no metric %s", where, name)
			continue
		}
		found = append(found, name)
	}
	return found
}

// TestDashboard reads the dashboard as Grafana does. Every metric is in a panel.
func TestDashboard(t *testing.T) {
	var d struct {
		Templating struct {
			List []struct {
				Name, Type string
				Query      any
			}
		}
		Panels []struct {
			ID          int
			Type, Title string
			GridPos     struct{ X, Y, W, H int }
			FieldConfig struct{ Defaults struct{ Unit string } }
			Targets     []struct{ RefID, Expr, LegendFormat string }
		}
	}
	read(t, "grafana/voicegw.json", json.Unmarshal, &d)
	variables := []string{"__rate_interval", "__range"}
	for _, v := range d.Templating.List {
		if q, ok := v.Query.(map[string]any); ok {
			known(t, "the variable "+v.Name, q["query"].(string))
			for _, m := range variable.FindAllStringSubmatch(q["query"].(string), -1) {
				if !slices.Contains(variables, m[1]) {
					t.Errorf("the variable %s depends on %s, which comes later or never", v.Name, m[1])
				}
			}
		}
		variables = append(variables, v.Name)
	}
	units := []string{"s", "short", "reqps", "percentunit", "currencyUSD", "bytes"}
	ids, titles, taken, shown := map[int]bool{}, map[string]bool{}, map[[2]int]string{}, map[string]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 {
			t.Errorf("%q has the id %d of another panel", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x > 23 {
					t.Fatalf("%q lies on %q", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if !slices.Contains(units, p.FieldConfig.Defaults.Unit) {
			t.Errorf("%q has the unit %q", p.Title, p.FieldConfig.Defaults.Unit)
		}
		if titles[p.Type+p.Title] || p.Title == "" || len(p.Targets) == 0 {
			t.Errorf("there are two panels %q, or it is empty", p.Title)
		}
		titles[p.Type+p.Title] = true
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if refs[target.RefID] || target.LegendFormat == "" {
				t.Errorf("%q: a query without a legend, or a second %s", p.Title, target.RefID)
			}
			refs[target.RefID] = true
			for _, name := range known(t, p.Title, target.Expr) {
				shown[name] = true
			}
			for _, m := range variable.FindAllStringSubmatch(target.Expr, -1) {
				if !slices.Contains(variables, m[1]) {
					t.Errorf("%q: there is no variable %s", p.Title, m[1])
				}
			}
		}
	}
	for name := range families() {
		if !shown[name] {
			t.Errorf("%s is in no panel", name)
		}
	}
}

// rule is a rule of Prometheus.
type rule struct {
	Record, Alert, Expr string
	Labels, Annotations map[string]string
}

// TestAlerts: each alert uses existing metrics, has a runbook, and has tests in which it fires and does not fire.
func TestAlerts(t *testing.T) {
	var rules struct{ Groups []struct{ Rules []rule } }
	read(t, "prometheus/rules.yaml", yaml.Unmarshal, &rules)
	var cases struct {
		Tests []struct {
			Name   string
			Series []struct{ Series string } `yaml:"input_series"`
		}
	}
	read(t, "prometheus/rules_test.yaml", yaml.Unmarshal, &cases)
	tested := map[string]bool{}
	for _, c := range cases.Tests {
		tested[c.Name] = true
		for _, s := range c.Series {
			known(t, c.Name, s.Series)
		}
	}
	page, err := os.ReadFile("../../docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	records, alerts := map[string]bool{}, map[string]string{}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			known(t, r.Record+r.Alert, r.Expr)
			if r.Alert == "" {
				records[r.Record] = true
				continue
			}
			for _, name := range recorded.FindAllString(r.Expr, -1) {
				if !records[name] {
					t.Errorf("%s: nothing records %s", r.Alert, name)
				}
			}
			severity := r.Labels["severity"]
			if alerts[r.Alert] != "" || !strings.HasPrefix(r.Alert, "Voicegw") || !strings.HasSuffix(r.Annotations["summary"], ".") || severity != "page" && severity != "ticket" {
				t.Errorf("%s is not complete", r.Alert)
			}
			if !tested[r.Alert+" fires"] || !tested[r.Alert+" is quiet"] {
				t.Errorf("%s has no case in which it fires, or none in which it is quiet", r.Alert)
			}
			if !strings.Contains(string(page), "\n### "+r.Alert+"\n\n*"+severity+"*: ") || r.Annotations["runbook"] != "docs/alerts.md#"+strings.ToLower(r.Alert) {
				t.Errorf("%s has no section in docs/alerts.md with its severity, or another runbook", r.Alert)
			}
			alerts[r.Alert] = r.Expr
		}
	}
	if len(alerts) < 20 {
		t.Errorf("there are only %d alerts", len(alerts))
	}
	// The alerts about providers count the kinds of failures that the table of failures assigns to them.
	for of, name := range map[transport.Alert]string{transport.AlertDown: "VoicegwProviderDown", transport.AlertKey: "VoicegwProviderRefusesKey"} {
		var kinds []string
		for _, k := range transport.Kinds() {
			if k.Failure().Alert == of {
				kinds = append(kinds, k.String())
			}
		}
		if want := `"` + strings.Join(kinds, "|") + `"`; !strings.Contains(alerts[name], want) {
			t.Errorf("%s does not count %s: %s", name, want, alerts[name])
		}
	}
}

// TestRules lets Prometheus's own tool check the rules and test each alert.
func TestRules(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian's package prometheus)")
	}
	for _, args := range [][]string{{"check", "rules", "rules.yaml"}, {"test", "rules", "rules_test.yaml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = deployed + "prometheus"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
