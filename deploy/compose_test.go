package deploy

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

func compose(t *testing.T, environ ...string) (*types.Project, error) {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"compose.yaml"}, cli.WithEnv(environ), cli.WithResolvedPaths(false))
	if err != nil {
		t.Fatal(err)
	}
	return options.LoadProject(context.Background())
}

// TestTheComposeFile: three gateways that differ only in their address, and are as confined as in the chart.
func TestTheComposeFile(t *testing.T) {
	secret := strings.Repeat("0123456789abcdef", 4)
	p, err := compose(t, "VOICEGW_API_KEY=an-operators-key-0123456789", "VOICEGW_CLUSTER_SECRET="+secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gateway-1", "gateway-2", "gateway-3"} {
		s := p.Services[name]
		checkConfig(t, environ(s), s.Command...)
	}
	urls := map[string]bool{}
	for _, s := range p.Services {
		if !strings.HasPrefix(s.Name, "gateway-") {
			continue
		}
		env := s.Environment.Resolve(func(string) (string, bool) { return "", false })
		url := *env["VOICEGW_CLUSTER_URL"]
		if url != "http://"+s.Name+":8090" {
			t.Errorf("%s is reached by others at %s", s.Name, url)
		}
		urls[url] = true
		if *env["VOICEGW_CLUSTER_SECRET"] != secret || *env["VOICEGW_STORE_URL"] != "nats://nats:4222" {
			t.Errorf("the environment of %s is %v", s.Name, env)
		}
		if !s.ReadOnly || s.User != "65532:65532" || len(s.CapDrop) != 1 || len(s.Ports) != 0 {
			t.Errorf("%s is not confined: read-only %t, user %s, without %v, ports %v", s.Name, s.ReadOnly, s.User, s.CapDrop, s.Ports)
		}
		if time.Duration(*s.StopGracePeriod) < 75*time.Second {
			t.Errorf("%s has %s to stop", s.Name, s.StopGracePeriod)
		}
	}
	if len(urls) != 3 {
		t.Errorf("%d gateways, want 3", len(urls))
	}
	for _, s := range p.Services {
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s can be reached by other machines on port %s", s.Name, port.Published)
			}
		}
	}
}

// TestTheComposeFileAsksForItsSecrets: no secret has a public default.
func TestTheComposeFileAsksForItsSecrets(t *testing.T) {
	for _, missing := range []string{"VOICEGW_API_KEY", "VOICEGW_CLUSTER_SECRET"} {
		var environ []string
		for _, name := range []string{"VOICEGW_API_KEY", "VOICEGW_CLUSTER_SECRET"} {
			if name != missing {
				environ = append(environ, name+"=x")
			}
		}
		if _, err := compose(t, environ...); err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("without %s: error %v", missing, err)
		}
	}
}
