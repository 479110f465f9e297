package server

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"voicegw/config"
	"voicegw/config/setting"
)

func TestDataDir(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	here, err := os.Getwd() // as the system reports it: a temporary folder may be a link
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change  func(*config.Config)
		environ []string
		want    string
	}{
		"chosen":                {func(c *config.Config) { c.DataDir = "/data" }, []string{"XDG_STATE_HOME=/state"}, "/data"},
		"chosen, from here":     {func(c *config.Config) { c.DataDir = "data" }, nil, filepath.Join(here, "data")},
		"the user's":            {nil, []string{"XDG_STATE_HOME=/state", "HOME=/home/ada"}, "/state/voicegw"},
		"the user's by default": {nil, []string{"XDG_STATE_HOME=", "HOME=/home/ada"}, "/home/ada/.local/state/voicegw"},
		"a relative variable":   {nil, []string{"XDG_STATE_HOME=state", "HOME=/home/ada"}, "/home/ada/.local/state/voicegw"},
		"nowhere":               {nil, []string{"HOME=home"}, ""},
		"no data folder needed": {func(c *config.Config) { c.Store.URL, c.Audit.File = "nats://a", setting.Stdout }, nil, ""},
		"only the audit":        {func(c *config.Config) { c.Store.URL = "nats://a" }, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config.Default()
			if tc.change != nil {
				tc.change(cfg)
			}
			got, err := Host{Environ: tc.environ}.DataDir(cfg)
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
			var problems config.Problems
			needed := cfg.Store.URL == "" || cfg.Audit.File == ""
			if errors.As(err, &problems) != (tc.want == "" && needed) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestAuditFile(t *testing.T) {
	cfg := config.Default()
	if got := AuditFile(cfg, "/data"); got != "/data/audit/audit.jsonl" {
		t.Errorf("by default %q", got)
	}
	for _, chosen := range []setting.Path{setting.Stdout, "/log/a.jsonl"} {
		cfg.Audit.File = chosen
		if got := AuditFile(cfg, "/data"); got != chosen {
			t.Errorf("%q instead of %q", got, chosen)
		}
	}
}
