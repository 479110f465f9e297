package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"voicegw/config"
)

// TestComposeSettings: each variable that deploy/compose.yaml passes to a gateway is a setting, and together they are a
// valid configuration.
func TestComposeSettings(t *testing.T) {
	text, err := os.ReadFile("../../deploy/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Environment map[string]any `yaml:"x-environment"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	environ := []string{"VOICEGW_CLUSTER_URL=http://gateway-1:8090"}
	for name, value := range file.Environment {
		set := fmt.Sprint(value)
		if strings.HasPrefix(set, "${") { // a secret of the operator, or an optional key
			set = strings.Repeat("k", 64)
			if strings.HasSuffix(name, "_KEY") && !strings.HasPrefix(name, "VOICEGW_") {
				set = ""
			}
		}
		environ = append(environ, name+"="+set)
	}
	cfg, warnings, err := config.Load(config.Source{Environ: environ})
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v, warnings %q", err, warnings)
	}
	if cfg.Store.URL == "" || cfg.Cluster.URL == "" || cfg.Listen != "0.0.0.0:8080" {
		t.Errorf("store %q, cluster %+v, listen %s", cfg.Store.URL, cfg.Cluster, cfg.Listen)
	}
}
