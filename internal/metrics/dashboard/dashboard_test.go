package dashboard_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"voicegw/internal/metrics"
	"voicegw/internal/metrics/dashboard"
)

var (
	named    = regexp.MustCompile(`\bvoicegw_[a-z_]+`)
	recorded = regexp.MustCompile(`\bvoicegw:[a-z0-9_:]+`)
	variable = regexp.MustCompile(`\$\{?([a-z_]+)\}?`)
	of       = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// families are the names of the table of metrics.
func families() map[string]metrics.Family {
	all := map[string]metrics.Family{}
	for _, f := range metrics.Families() {
		all[f.FullName()] = f
	}
	return all
}

// known fails for a metric in an expression that is in no table, and returns those that are.
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

// TestDashboard reads what Grafana would read.
func TestDashboard(t *testing.T) {
	data, err := dashboard.Grafana()
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		UID        string `json:"uid"`
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
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
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
	ids, titles, taken := map[int]bool{}, map[string]bool{}, map[[2]int]string{}
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
			known(t, p.Title, target.Expr)
			if strings.Contains(target.Expr, "@") {
				t.Errorf("%q: @ is left in %s", p.Title, target.Expr)
			}
			for _, m := range variable.FindAllStringSubmatch(target.Expr, -1) {
				if !slices.Contains(variables, m[1]) {
					t.Errorf("%q: there is no variable %s", p.Title, m[1])
				}
			}
		}
	}
}

// unseen are metrics that no panel needs to show.
var unseen = map[string]string{}

// TestEveryMetricIsShown: a metric that nobody looks at is not worth counting.
func TestEveryMetricIsShown(t *testing.T) {
	shown := map[string]bool{}
	for _, row := range dashboard.Rows() {
		for _, p := range row.Panels {
			for _, q := range p.Queries {
				for _, name := range known(t, p.Title, q.Expr) {
					shown[name] = true
				}
			}
		}
	}
	for name := range families() {
		if why := unseen[name]; shown[name] == (why != "") {
			t.Errorf("%s is in no panel, or needlessly in the list of those that need none", name)
		}
	}
}

// TestAlerts: each alert is about metrics that exist, and says what to do.
func TestAlerts(t *testing.T) {
	records := map[string]bool{}
	for _, r := range dashboard.Records() {
		known(t, r.Name, r.Expr)
		records[r.Name] = true
	}
	names := map[string]bool{}
	for _, a := range dashboard.Alerts() {
		known(t, a.Name, a.Expr)
		for _, name := range recorded.FindAllString(a.Expr, -1) {
			if !records[name] {
				t.Errorf("%s: nothing records %s", a.Name, name)
			}
		}
		for _, s := range append(slices.Clone(a.Bad), a.Good...) {
			known(t, a.Name+"'s case", s.Name)
		}
		if names[a.Name] || !strings.HasPrefix(a.Name, "Voicegw") || len(a.Bad) == 0 || len(a.Good) == 0 || a.At == "" || !strings.HasSuffix(a.Summary, ".") || len(a.Runbook) < 80 ||
			a.Severity != "page" && a.Severity != "ticket" {
			t.Errorf("%s is not complete", a.Name)
		}
		names[a.Name] = true
	}
}

// TestRules lets Prometheus's own tool check the rules and try each alert.
func TestRules(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian's package prometheus)")
	}
	dir := t.TempDir()
	for name, make := range map[string]func() ([]byte, error){dashboard.RulesFile: dashboard.Rules, "rules_test.yaml": dashboard.Tests} {
		data, err := make()
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"check", "rules", dashboard.RulesFile}, {"test", "rules", "rules_test.yaml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
