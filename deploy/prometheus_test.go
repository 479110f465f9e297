package deploy

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
)

// promtool runs it and fails the test unless it accepts a file.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command(installed(t, "promtool", "Prometheus' files are not checked"), args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// mount copies the files of a service's mounts and secrets below a folder, at their paths in the container.
func mount(t *testing.T, p *types.Project, service, root string) {
	t.Helper()
	for _, v := range p.Services[service].Volumes {
		if v.Type != types.VolumeTypeBind {
			continue
		}
		err := filepath.WalkDir(v.Source, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			below, err := filepath.Rel(v.Source, path)
			if err != nil {
				return err
			}
			text, err := os.ReadFile(path)
			write(t, filepath.Join(root, v.Target, below), string(text))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range p.Services[service].Secrets {
		write(t, filepath.Join(root, "run/secrets", s.Source), p.Environment[p.Secrets[s.Source].Environment])
	}
}

// TestPrometheusOfCompose starts a real Prometheus with the files that the compose file mounts. It reads a real
// gateway by the names of the compose file.
func TestPrometheusOfCompose(t *testing.T) {
	prometheus := installed(t, "prometheus", "the compose file's Prometheus is not started")
	p, err := compose(t, "VOICEGW_API_KEY=an-operators-key-0123456789", "VOICEGW_CLUSTER_SECRET="+strings.Repeat("0123456789abcdef", 4))
	if err != nil {
		t.Fatal(err)
	}
	gateway := startGateway(t, p)
	// A proxy replaces the names of Docker's network. It changes no Host.
	names := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(*httputil.ProxyRequest) {},
		Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if !strings.HasPrefix(address, "gateway-") || !strings.HasSuffix(address, ":8080") {
				t.Errorf("Prometheus reads %s, which is not a gateway", address)
			}
			return (&net.Dialer{}).DialContext(ctx, network, gateway)
		}},
	})
	t.Cleanup(names.Close)
	root := t.TempDir()
	mount(t, p, "prometheus", root)
	config := filepath.Join(root, "etc/prometheus/prometheus.yml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	here := strings.NewReplacer("/etc/prometheus/", root+"/etc/prometheus/", "/run/secrets/", root+"/run/secrets/",
		"scrape_interval: 15s", "scrape_interval: 1s", "- job_name: voicegw\n", "- job_name: voicegw\n    proxy_url: "+names.URL+"\n")
	write(t, config, here.Replace(string(text)))
	promtool(t, "check", "config", config)

	address := freeAddress(t)
	run(t, exec.Command(prometheus, "--config.file="+config, "--storage.tsdb.path="+t.TempDir(), "--web.listen-address="+address, "--log.level=warn"))
	type target struct {
		Labels            map[string]string
		Health, LastError string
	}
	var targets []target
	await(t, "Prometheus has read each gateway", func() bool {
		resp, err := http.Get("http://" + address + "/api/v1/targets")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		var found struct {
			Data struct{ ActiveTargets []target }
		}
		if json.NewDecoder(resp.Body).Decode(&found) != nil {
			return false
		}
		targets = found.Data.ActiveTargets
		for _, one := range targets {
			if one.Health == "down" {
				t.Fatalf("%s: %s", one.Labels["instance"], one.LastError)
			}
			if one.Health != "up" {
				return false
			}
		}
		return len(targets) == 3
	})
	resp, err := http.Get("http://" + address + "/api/v1/rules")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var rules struct{ Data struct{ Groups []any } }
	if err := json.NewDecoder(resp.Body).Decode(&rules); err != nil || len(rules.Data.Groups) == 0 {
		t.Errorf("Prometheus has no rules: %v", err)
	}
}

// TestRules: Prometheus' own program reads the rules, and runs the cases of each alert.
func TestRules(t *testing.T) {
	promtool(t, "check", "rules", "prometheus/rules.yaml")
	promtool(t, "test", "rules", "prometheus/rules_test.yaml")
}

// TestScrapeOfThePage gives the example of docs/metrics.md to Prometheus' own program.
func TestScrapeOfThePage(t *testing.T) {
	page, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(scrape_configs:.*?)```").FindStringSubmatch(string(page))
	if block == nil {
		t.Fatal("the page has no scrape_configs")
	}
	key := regexp.MustCompile(`credentials_file: (\S+)`).FindStringSubmatch(block[1])
	if key == nil {
		t.Fatal("the page's example has no key")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "key"), "x")
	config := filepath.Join(dir, "prometheus.yml")
	write(t, config, strings.Replace(block[1], key[1], filepath.Join(dir, "key"), 1))
	promtool(t, "check", "config", config)
}
