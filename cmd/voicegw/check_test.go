package main

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"voicegw/internal/server"
	"voicegw/registry/registrytest"
)

// runServe runs serve in a folder with files, and returns the exit code and the output.
func runServe(t *testing.T, dir string, environ []string, args ...string) (code int, printed string) {
	t.Helper()
	tools := registrytest.Project(t)
	var out console
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	code = Run(ctx, Process{
		Args: append([]string{"serve"}, args...), Stdin: strings.NewReader(""),
		Host: server.Host{Stdout: &out, Stderr: stopWhenServing{&out, stop}, Environ: append([]string{"HOME=" + dir}, environ...), Registry: func() ([]byte, error) { return tools, nil }},
	})
	return code, out.String()
}

// stopWhenServing stops a gateway after its start, so that the test gets its exit code.
type stopWhenServing struct {
	io.Writer
	stop func()
}

func (w stopWhenServing) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "msg=serving") || strings.Contains(string(b), `"msg":"serving"`) {
		w.stop()
	}
	return w.Writer.Write(b)
}

// write writes files into a folder.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// tree lists the files of a folder.
func tree(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// TestCheckConfig: the check refuses the same configurations as a start, names the place, shows no secret and leaves no
// file behind.
func TestCheckConfig(t *testing.T) {
	t.Parallel()
	const secret = "hush-hush-0123456789abcdef0123456789"
	for name, test := range map[string]struct {
		config string
		files  map[string]string
		want   string
		args   []string
	}{
		"an unknown setting":        {config: "lissen: 127.0.0.1:0\n", want: "voicegw.yaml:1"},
		"exposed":                   {config: "listen: 0.0.0.0:8080\n", want: "voicegw keys new"},
		"a certificate":             {config: "tls: {certificates: [{cert: c.pem, key: k.pem}]}\n", want: "c.pem"},
		"a certificate that is one": {config: "tls: {certificates: [{cert: c.pem, key: k.pem}]}\n", files: map[string]string{"c.pem": "x", "k.pem": secret}, want: "tls."},
		"a host for ACME":           {config: "tls: {acme: {hosts: [localhost]}}\n", want: "tls.acme.hosts"},
		"an agent":                  {config: "agents: {path: agents}\n", files: map[string]string{"agents/sales.yaml": "playbok: x\n"}, want: "sales.yaml:1"},
		"a required tool":           {config: "confirmation: {require: [book_metting]}\n", want: "confirmation.require"},
		"prices":                    {config: "prices: {file: p.yaml}\n", files: map[string]string{"p.yaml": "models: 3\n"}, want: "prices.file"},
		"synonyms":                  {config: "kb: {synonyms: gone.txt}\n", want: "kb.synonyms"},
		"the knowledge base":        {config: "kb: {path: gone}\n", want: "kb.path"},
		"a grant":                   {config: "kb: {namespaces: {studio: {agents: [' x']}}}\n", want: "kb.namespaces.studio.agents"},
		"a time zone":               {config: "calendar: {time_zone: Mars/Base}\n", want: "calendar.time_zone"},
		"Google's credentials":      {config: "calendar: {google: {credentials: g.json}}\n", files: map[string]string{"g.json": "{\"private_key\": \"" + secret + "\"}"}, want: "calendar.google"},
		"a scenario":                {config: "sim: {scenario: s.yaml}\n", files: map[string]string{"s.yaml": "turnss: 3\n"}, want: "s.yaml"},
		"traces":                    {config: "traces: {enabled: true, endpoint: 'http://127.0.0.1:1', headers: '" + secret + "'}\n", want: "traces.headers"},
		"a fallback":                {config: "providers: {openai: {api_key: " + secret + "}, fallback: gemini}\n", want: "fallback"},
		"the store's credentials":   {config: "store: {url: 'nats://127.0.0.1:1', credentials: c.creds}\n", files: map[string]string{"c.creds": secret}, want: "c.creds"},
		"a file of a secret":        {config: "chat: {model: m, base_url: 'http://127.0.0.1:1', api_key_file: gone}\n", want: "chat.api_key_file"},
		"the data folder":           {config: "data_dir: d\n", files: map[string]string{"d": "x"}, want: "data_dir"},
		"the audit":                 {config: "audit: {file: a}\n", files: map[string]string{"a/b": "x"}, want: "audit.file"},
		"the debug address":         {config: "log: {level: warn}\n", args: []string{"--debug-listen", "0.0.0.0:6060"}, want: "--debug-listen"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, test.files)
			write(t, dir, map[string]string{"voicegw.yaml": test.config})
			args := append([]string{"--config", filepath.Join(dir, "voicegw.yaml")}, test.args...)
			before := tree(t, dir)
			code, printed := runServe(t, dir, nil, append(args, "--check-config")...)
			if code != exitUsage || !strings.Contains(printed, test.want) {
				t.Errorf("exit code %d, want 2 and %q in:\n%s", code, test.want, printed)
			}
			if strings.Contains(printed, secret) {
				t.Errorf("a secret is printed:\n%s", printed)
			}
			if after := tree(t, dir); !slices.Equal(before, after) {
				t.Errorf("the check has made files: %q, before %q", after, before)
			}
			if !strings.Contains(test.config, "listen") {
				args = append(args, "--listen", "127.0.0.1:0")
			}
			if code, printed := runServe(t, dir, nil, append(args, "--set", "store.sync=interval", "--log-format", "json")...); code == exitOK {
				t.Errorf("the gateway starts with it:\n%s", printed)
			}
		})
	}
}

// TestCheckConfigOfAValidOne: the check opens no address, calls no server and creates no file.
func TestCheckConfigOfAValidOne(t *testing.T) {
	t.Parallel()
	r := start(t) // its address is in use
	dir := t.TempDir()
	cert, key, _ := certificate(t)
	write(t, dir, map[string]string{
		"openai":            "sk-a-key-of-openai",
		"agents/sales.yaml": "id: sales\nname: Sales\nplaybook: Sell.\n",
		"voicegw.yaml": `
listen: ` + r.addr + `
data_dir: data
tls: {certificates: [{cert: ` + cert + `, key: ` + key + `}]}
metrics: {listen: ` + r.addr + `}
agents: {path: agents}
features: [no-such-feature]
providers: {openai: {api_key_file: openai}}
store: {url: 'nats://nats.invalid:4222'}
cluster: {listen: ` + r.addr + `, url: 'http://gateway-1:8090', secret: 0123456789abcdef0123456789abcdef0123456789abcdef}
audit: {file: audit/audit.jsonl}
auth: {jwt: {corp: {issuer: 'https://login.invalid', discovery: true, audience: [voicegw]}}}
kb: {qdrant: {url: 'http://qdrant.invalid:6333', collection: c}}
traces: {enabled: true, endpoint: 'http://collector.invalid:4318/v1/traces'}
`,
	})
	before := tree(t, dir)
	code, printed := runServe(t, dir, []string{"VOICEGW_METRICS_KEY=x"}, "--check-config", "--config", filepath.Join(dir, "voicegw.yaml"))
	if code != exitOK || !strings.Contains(printed, "The configuration is valid.") {
		t.Errorf("exit code %d:\n%s", code, printed)
	}
	if !strings.Contains(printed, "warning: The environment variable VOICEGW_METRICS_KEY") {
		t.Errorf("no warning about a variable that is not a setting:\n%s", printed)
	}
	if !strings.Contains(printed, "warning: the feature no-such-feature is on") {
		t.Errorf("no warning about a feature of no tool:\n%s", printed)
	}
	if after := tree(t, dir); !slices.Equal(before, after) {
		t.Errorf("the check has made files: %q, before %q", after, before)
	}
}
