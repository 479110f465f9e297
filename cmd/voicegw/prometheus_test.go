package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"

	"voicegw/internal/server"
	"voicegw/internal/testutil"
)

// TestMetricsAddress: the metrics are at the gateway's own address, for operators, or at a separate one, without
// credentials.
func TestMetricsAddress(t *testing.T) {
	t.Parallel()
	r := start(t)
	if code := r.status("/metrics"); code != http.StatusUnauthorized {
		t.Errorf("without a key: %d", code)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.addr+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.key())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), "\nvoicegw_ready 1\n") {
		t.Errorf("with the key: %d %v\n%s", resp.StatusCode, err, body)
	}

	own := start(t, "--set", "metrics.listen=127.0.0.1:0", "--set", "hosts=gateway,*.pods.example")
	at := own.logged("serving the metrics")["addr"].(string)
	if code := own.status("/metrics"); code == http.StatusOK || code == http.StatusUnauthorized {
		t.Errorf("the gateway's own address has metrics, too: %d", code)
	}
	there := &running{t: t, addr: at}
	if code, body := there.fetch("/metrics"); code != http.StatusOK || !strings.Contains(string(body), `tools_version="`) {
		t.Errorf("an address of its own: %d\n%s", code, body)
	}
	_, port, err := net.SplitHostPort(at)
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{
		"127.0.0.1:" + port: 200, "10.1.2.3:" + port: 200, "[fd00::1]:" + port: 200, "localhost": 200, "gateway:" + port: 200, "a.pods.example": 200,
		"evil.example": 421, "evil.example:" + port: 421, "127.0.0.1.evil.example": 421, "0x7f000001": 421,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("the Host %s: %d, want %d", host, resp.StatusCode, want)
		}
	}
	if code := there.status("/v1/tools"); code != http.StatusNotFound {
		t.Errorf("the address of the metrics has other endpoints: %d", code)
	}
}

// mayBeEmpty are the panels without data in normal operation.
var mayBeEmpty = []string{
	"Cost per minute of conversation", "Refused", "Reconnects", "Time to reconnect, p95", "Errors sent to clients", "Time to silence after an interruption, p95",
	"Part heard of interrupted answers, median", "Refused client messages", "Cost per hour", "Failed answers", "Broken connections", "Replaced connections",
	"Without a connection, p95", "Model errors", "Text turns", "Text turn duration", "Requests", "Webhook events", "Queued webhook events",
	"Response duration, p95", "Calls", "Call duration, p95", "Approvals, unmatched claims and checks", "Time to approval, p50", "Clamped arguments",
	"Actions with unknown outcome", "Handlers", "Certificates", "MCP servers", "Phone calls",
}

// deployed reads a file of the deployment.
func deployed(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestPrometheus reads a gateway under load with a real Prometheus and evaluates every expression of the dashboard and of
// the rules: each must be valid, and most must have data.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is not installed (Debian's package of that name)")
	}
	var grafana struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Name, Type, Definition string }
		}
	}
	if err := json.Unmarshal(deployed(t, "grafana/voicegw.json"), &grafana); err != nil || len(grafana.Panels) == 0 {
		t.Fatalf("the dashboard has %d panels: %v", len(grafana.Panels), err)
	}
	type rule struct{ Record, Expr string }
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal(deployed(t, "prometheus/rules.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	var rules []rule
	for _, g := range file.Groups {
		rules = append(rules, g.Rules...)
	}
	r := start(t, "--set", "metrics.listen=127.0.0.1:0", "--set", "limits.new_per_second=100")
	p := startPrometheus(t, program, r.logged("serving the metrics")["addr"].(string))
	testutil.WaitUntil(t, "Prometheus has read the gateway", func() bool { return p.ask(t, `sum(scrape_samples_scraped)`).has() })

	// Increases show between two readings, and a busy machine skips readings: callers continue until every panel has had
	// data.
	ctx, hangUp := context.WithCancel(t.Context())
	var calling sync.WaitGroup
	defer calling.Wait()
	defer hangUp()
	calling.Go(func() {
		for ctx.Err() == nil {
			var out console
			code := Run(ctx, Process{
				Args: []string{"load", "run", "--url", "ws://" + r.addr + "/v1/voice", "-n", "4", "--script", "testdata/metrics/talk.yaml", "--any-lag", "--quiet", "--api-key", r.key(), "--fail-if", "sessions<1"}, Stdin: strings.NewReader(""),
				Host: server.Host{Stdout: &out, Stderr: &out, Environ: nil, Signals: make(chan os.Signal, 1)},
			})
			if code == exitUsage {
				t.Errorf("the load: %s", out.String())
				return
			}
		}
	})
	fill := strings.NewReplacer("$job", ".*", "$instance", ".*", "$provider", ".*", "$__rate_interval", "10m", "$__range", "10m")
	for _, panel := range grafana.Panels {
		for _, q := range panel.Targets {
			expr := fill.Replace(q.Expr)
			if slices.Contains(mayBeEmpty, panel.Title) {
				p.ask(t, expr)
				continue
			}
			testutil.WaitUntil(t, "data for "+panel.Title+": "+expr, func() bool { return p.ask(t, expr).has() })
		}
	}
	for _, v := range grafana.Templating.List {
		if v.Type == "query" { // the last scrape may have timed out here, too
			testutil.WaitUntil(t, "values of "+v.Name+": "+v.Definition, func() bool { return p.values(t, fill.Replace(v.Definition)) })
		}
	}
	for _, r := range rules {
		if r.Record != "" {
			testutil.WaitUntil(t, "data for "+r.Record, func() bool { return p.ask(t, r.Record).has() })
		} else {
			p.ask(t, r.Expr)
		}
	}
	p.healthy(t, len(rules))
	// The last scrape may have timed out on a busy machine.
	if n := p.ask(t, `max(max_over_time(scrape_samples_scraped[10m]))`).value(); n < 500 || n > 3000 {
		t.Errorf("the gateway has %v series", n)
	}
	t.Logf("series: %v", p.ask(t, `max(max_over_time(scrape_samples_scraped[10m]))`).value())
}

// promConfig reads one gateway, more often than in production.
const promConfig = `global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - job_name: voicegw
    static_configs: [{targets: [%q]}]
`

// prometheus is a running server.
type prometheus struct{ url string }

func startPrometheus(t *testing.T, program, target string) prometheus {
	t.Helper()
	dir := t.TempDir()
	// The rules are evaluated as often as the gateway is read.
	rules := regexp.MustCompile(`(?m)^(\s+interval): .*$`).ReplaceAll(deployed(t, "prometheus/rules.yaml"), []byte("$1: 1s"))
	ruleFile, config := filepath.Join(dir, "rules.yaml"), filepath.Join(dir, "prometheus.yml")
	for name, data := range map[string][]byte{ruleFile: rules, config: fmt.Appendf(nil, promConfig, ruleFile, target)} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	addr, err := testutil.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var out console
	cmd := exec.CommandContext(ctx, program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr, "--log.level=warn")
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
		if t.Failed() {
			t.Log(out.String())
		}
	})
	p := prometheus{"http://" + addr}
	testutil.WaitUntil(t, "Prometheus is ready", func() bool {
		code, _, err := p.get(t, "/-/ready", nil)
		return err == nil && code == http.StatusOK
	})
	return p
}

func (p prometheus) get(t *testing.T, path string, query url.Values) (int, []byte, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+path+"?"+query.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// answer is the result of a query.
type answer []struct {
	Metric map[string]string
	Value  [2]any
}

// has reports whether the result has a number.
func (a answer) has() bool {
	return slices.ContainsFunc(a, func(s struct {
		Metric map[string]string
		Value  [2]any
	}) bool {
		return s.Value[1] != "NaN"
	})
}

// value is the number of the first series; -1 without one.
func (a answer) value() float64 {
	n := -1.0
	if len(a) > 0 {
		if _, err := fmt.Sscan(fmt.Sprint(a[0].Value[1]), &n); err != nil {
			return -1
		}
	}
	return n
}

// ask evaluates an expression now. It fails the test if the expression is invalid.
func (p prometheus) ask(t *testing.T, expr string) answer {
	t.Helper()
	code, body, err := p.get(t, "/api/v1/query", url.Values{"query": {expr}})
	var found struct {
		Status string
		Data   struct{ Result answer }
	}
	if err == nil {
		err = json.Unmarshal(body, &found)
	}
	if err != nil || code != http.StatusOK || found.Status != "success" {
		t.Fatalf("%s: %d %v %s", expr, code, err, body)
	}
	return found.Data.Result
}

// labelValues is the query of a variable.
var labelValues = regexp.MustCompile(`^label_values\((.*), ([a-z_]+)\)$`)

// values reports whether the query of a variable has a result.
func (p prometheus) values(t *testing.T, query string) bool {
	t.Helper()
	m := labelValues.FindStringSubmatch(query)
	if m == nil {
		t.Fatalf("%s is not a query for values", query)
	}
	return slices.ContainsFunc(p.ask(t, m[1]), func(s struct {
		Metric map[string]string
		Value  [2]any
	}) bool {
		return s.Metric[m[2]] != ""
	})
}

// healthy fails the test if Prometheus could not evaluate a rule.
func (p prometheus) healthy(t *testing.T, want int) {
	t.Helper()
	type rule struct{ Name, Health, LastError string }
	var rules []rule
	testutil.WaitUntil(t, "every rule was evaluated", func() bool {
		_, body, err := p.get(t, "/api/v1/rules", nil)
		var found struct {
			Data struct{ Groups []struct{ Rules []rule } }
		}
		if err != nil || json.Unmarshal(body, &found) != nil {
			return false
		}
		rules = nil
		for _, g := range found.Data.Groups {
			rules = append(rules, g.Rules...)
		}
		return len(rules) > 0 && !slices.ContainsFunc(rules, func(r rule) bool { return r.Health == "unknown" })
	})
	for _, r := range rules {
		if r.Health != "ok" {
			t.Errorf("the rule %s is %s: %s", r.Name, r.Health, r.LastError)
		}
	}
	if len(rules) != want {
		t.Errorf("Prometheus has %d rules of %d", len(rules), want)
	}
}
