package config

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// genai depends on opencensus, which starts a goroutine when it is imported.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

// files is a file system in memory.
type files map[string]string

func (f files) ReadFile(name string) ([]byte, error) {
	data, ok := f[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return []byte(data), nil
}

func load(t *testing.T, file string, environ []string, flags ...Flag) (*Config, []string, error) {
	t.Helper()
	source := Source{Environ: environ, Flags: flags, ReadFile: files{}.ReadFile}
	if file != "" {
		source.File = "dir/voicegw.yaml"
		source.ReadFile = files{"dir/voicegw.yaml": file, "dir/core.md": "CORE", "a.yaml": "A"}.ReadFile
	}
	return Load(source)
}

func mustLoad(t *testing.T, file string, environ []string, flags ...Flag) *Config {
	t.Helper()
	c, _, err := load(t, file, environ, flags...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNothingConfigured(t *testing.T) {
	c := mustLoad(t, "", nil)
	want := []Service{{Name: "gemini", Simulated: true}, {Name: "openai", Simulated: true}, {Name: "live", Simulated: true}}
	if diff := cmp.Diff(want, c.Services()); diff != "" {
		t.Error(diff)
	}
	if c.Listen != "127.0.0.1:8080" || c.DrainTimeout != 30*time.Second || c.Limits.Sessions != 1000 {
		t.Errorf("defaults: %+v", c)
	}
}

func TestLayers(t *testing.T) {
	file := "limits: {sessions: 10, idle: 1m}\nlog:\n  level: debug\ndrain_timeout: 1s\n"
	environ := []string{"VOICEGW_LIMITS_SESSIONS=20", "VOICEGW_LOG_LEVEL=warn", "VOICEGW_DRAIN_TIMEOUT="}
	c := mustLoad(t, file, environ, Flag{"--set", "log.level", "error"}, Flag{"--set", "log.level", "info"})
	if c.Limits.Sessions != 20 || c.Limits.Idle != time.Minute || c.Log.Level != "info" {
		t.Errorf("got %+v %+v", c.Limits, c.Log)
	}
	if c.DrainTimeout != time.Second {
		t.Errorf("an empty variable must count as unset; drain_timeout is %s", c.DrainTimeout)
	}
}

func TestEveryKindOfValue(t *testing.T) {
	c := mustLoad(t, `
insecure: yes
listen: 0.0.0.0:80
origins: [app.example.com, "*.example.com"]
agent:
  instructions: |
    First line.
    Second line.
prompts:
  core: core.md
sim: {speed: 2.5, seed: 7}
vad: {silence_ms: 300}
`, nil)
	if !c.Insecure || c.Sim.Speed != 2.5 || c.Sim.Seed != 7 || c.VAD.SilenceMS != 300 {
		t.Errorf("got %+v", c)
	}
	if diff := cmp.Diff([]string{"app.example.com", "*.example.com"}, c.Origins); diff != "" {
		t.Error(diff)
	}
	if c.Agent.Instructions != "First line.\nSecond line.\n" {
		t.Errorf("instructions %q", c.Agent.Instructions)
	}
	if c.Prompts.Core.Path != "dir/core.md" || string(c.Prompts.Core.Data) != "CORE" {
		t.Errorf("a path in the file is relative to the file's directory: %+v", c.Prompts.Core)
	}
}

func TestPathsOutsideTheFile(t *testing.T) {
	source := Source{Flags: []Flag{{"--scenario", "sim.scenario", "a.yaml"}}, ReadFile: files{"a.yaml": "A"}.ReadFile}
	c, _, err := Load(source)
	if err != nil {
		t.Fatal(err)
	}
	if c.Sim.Scenario.Path != "a.yaml" || string(c.Sim.Scenario.Data) != "A" {
		t.Errorf("got %+v", c.Sim.Scenario)
	}
}

func TestOfferedProviders(t *testing.T) {
	real := func(name string) Service { return Service{Name: name} }
	simulated := func(name string) Service { return Service{Name: name, Simulated: true} }
	tests := []struct {
		name    string
		file    string
		environ []string
		want    []Service
	}{
		{"openai's wire of the simulator", "provider: openai", nil, []Service{simulated("openai"), simulated("gemini"), simulated("live")}},
		{"one key", "", []string{"GEMINI_API_KEY=k"}, []Service{real("gemini")}},
		{"one key decides the default", "", []string{"OPENAI_API_KEY=k"}, []Service{real("openai")}},
		{"both", "provider: openai", []string{"OPENAI_API_KEY=k", "GEMINI_API_KEY=k"}, []Service{real("openai"), real("gemini")}},
		{"a base URL alone", "providers: {gemini: {base_url: 'http://127.0.0.1:8090'}}", nil, []Service{real("gemini")}},
		{"the simulator despite a key", "sim: {use: always}", []string{"OPENAI_API_KEY=k"}, []Service{simulated("gemini"), simulated("openai"), simulated("live")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := mustLoad(t, tt.file, tt.environ)
			if diff := cmp.Diff(tt.want, c.Services()); diff != "" {
				t.Error(diff)
			}
			if c.Services()[0].Name != c.Provider {
				t.Errorf("the default provider is %s, the first one offered %s", c.Provider, c.Services()[0].Name)
			}
		})
	}
}

func TestProvidersOwnVariables(t *testing.T) {
	environ := []string{"GEMINI_API_KEY=gem", "GOOGLE_API_KEY=goo", "OPENAI_API_KEY=open"}
	c := mustLoad(t, "providers: {openai: {api_key: file}}", environ)
	if got := c.Providers["gemini"].APIKey.Reveal(); got != "goo" {
		t.Errorf("gemini key %q; GOOGLE_API_KEY has priority, as in Google's clients", got)
	}
	if got := c.Providers["openai"].APIKey.Reveal(); got != "open" {
		t.Errorf("openai key %q; the environment has priority over the file", got)
	}
	c = mustLoad(t, "", append(environ, "VOICEGW_PROVIDERS_OPENAI_API_KEY=ours"))
	if got := c.Providers["openai"].APIKey.Reveal(); got != "ours" {
		t.Errorf("openai key %q; our own variable has priority over the provider's", got)
	}
}

// wrong is a configuration with problems.
type wrong struct {
	name    string
	file    string
	environ []string
	flags   []Flag
	want    []string // the beginning of each problem, in order
}

func TestProblems(t *testing.T) {
	tests := []wrong{
		{"unknown keys with their lines", "listen: 127.0.0.1:1\nlimts:\n  sessions: 1\nlimits:\n  sesions: 2\n  api_key: x\n  drain: 3\n", nil, nil, []string{
			`dir/voicegw.yaml:2: There is no setting "limts". Did you mean limits?`,
			`dir/voicegw.yaml:5: There is no setting "limits.sesions". Did you mean limits.sessions?`,
			`dir/voicegw.yaml:6: There is no setting "limits.api_key". Did you mean providers.gemini.api_key?`,
			`dir/voicegw.yaml:7: There is no setting "limits.drain". The names here are: sessions,`,
		}},
		{"wrong kinds", "limits:\n  sessions: many\n  idle: 5\ninsecure: maybe\nlog: debug\nagent: []\nlisten: {a: b}\nsim:\n  speed: fast\n", nil, nil, []string{
			`dir/voicegw.yaml:2: limits.sessions must be a whole number, not "many".`,
			`dir/voicegw.yaml:3: limits.idle must be a duration with its unit, such as 30s, 5m or 1h30m, not "5".`,
			`dir/voicegw.yaml:4: insecure must be true or false, not "maybe".`,
			`dir/voicegw.yaml:5: log must have settings, one per line as "name: value", not the value "debug".`,
			`dir/voicegw.yaml:6: agent must have settings, one per line as "name: value", not a list.`,
			`dir/voicegw.yaml:7: listen must be a single value, not a section.`,
			`dir/voicegw.yaml:9: sim.speed must be a number, not "fast".`,
		}},
		{"empty and duplicate", "listen:\nagent:\n  name: a\n  name: b\nlog:\n", nil, nil, []string{
			`dir/voicegw.yaml:1: listen has no value; give one, or remove the line for the default.`,
			`dir/voicegw.yaml:4: agent.name is set twice (first in line 3); remove one.`,
		}},
		{"no yaml", "listen: 127.0.0.1:80\n  provider: [\n", nil, nil, []string{`dir/voicegw.yaml:2: The file is not YAML: `}},
		{"two documents", "listen: 127.0.0.1:80\n---\nlisten: 127.0.0.1:81\n", nil, nil, []string{`dir/voicegw.yaml:`}},
		{"a list", "- a\n", nil, nil, []string{`dir/voicegw.yaml:1: The file must have settings,`}},
		{"a list in a list", "origins: [[a]]\n", nil, nil, []string{`dir/voicegw.yaml:1: origins must be a list of texts; this entry is a list.`}},
		{"the name of each layer", "limits: {idle: 1ms}\n", []string{"VOICEGW_LIMITS_SESSIONS=0", "VOICEGW_SIM_SEED=x"}, []Flag{{"--provider", "provider", "azure"}, {"--set", "log.levl", "x"}}, []string{
			`VOICEGW_SIM_SEED: sim.seed must be a whole number, not "x".`,
			`--set: There is no setting "log.levl". Did you mean log.level?`,
			`--provider: provider must be one of gemini, openai, live, not "azure".`,
			`VOICEGW_LIMITS_SESSIONS: limits.sessions must be from 1 to 1000000, not 0.`,
			`dir/voicegw.yaml:1: limits.idle must be from 1s to 24h0m0s, not 1ms.`,
		}},
		{"a public address", "", nil, []Flag{{"--listen", "listen", ":8080"}}, []string{`--listen: listen is :8080, which other machines can reach`}},
		{"no port", "", []string{"VOICEGW_LISTEN=localhost"}, nil, []string{`VOICEGW_LISTEN: listen must be an address with a port, such as 127.0.0.1:8080`}},
		{"a provider without a key", "provider: gemini\n", []string{"OPENAI_API_KEY=k"}, nil, []string{`dir/voicegw.yaml:1: provider is gemini, but only openai is configured; set GEMINI_API_KEY`}},
		{"no provider at all", "sim: {use: never}\n", nil, nil, []string{`dir/voicegw.yaml:1: sim.use is never, and no provider is configured`}},
		{"missing files", "prompts: {core: nowhere.md}\n", nil, []Flag{{"--faults", "sim.faults", "gone.yaml"}}, []string{
			`dir/voicegw.yaml:1: prompts.core: the file dir/nowhere.md does not exist`,
			`--faults: sim.faults: the file gone.yaml does not exist`,
		}},
		{"base URLs", "providers:\n  gemini: {base_url: localhost}\n  openai: {base_url: 'https://me:hush@example.com/v1'}\n", nil, nil, []string{
			`dir/voicegw.yaml:2: providers.gemini.base_url must be a whole URL`,
			`dir/voicegw.yaml:3: providers.openai.base_url has a user or a password`,
		}},
		{"origins", "origins: ['https://a.example/x', '*', 'https://*']\nhosts: ['*', 'https://a', 'a b']\n", nil, nil, []string{
			`dir/voicegw.yaml:1: origins has the entry "https://a.example/x", which has a name with a character`,
			`dir/voicegw.yaml:1: origins has the entry "*"`,
			`dir/voicegw.yaml:1: origins has the entry "https://*"`,
			`dir/voicegw.yaml:2: hosts has the entry "*"`,
			`dir/voicegw.yaml:2: hosts has the entry "https://a"; name hosts alone`,
			`dir/voicegw.yaml:2: hosts has the entry "a b", which has a name with a character`,
		}},
	}
	for _, tt := range slices.Concat(tests, stateProblems, providerProblems, authProblems) {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := load(t, tt.file, tt.environ, tt.flags...)
			if err == nil {
				t.Fatal("no problem was found")
			}
			lines := strings.Split(err.Error(), "\n")
			for i, want := range tt.want {
				if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
					t.Errorf("problem %d must begin with %s", i+1, want)
				}
			}
			if len(lines) != len(tt.want) {
				t.Errorf("%d problems, want %d", len(lines), len(tt.want))
			}
			if t.Failed() {
				t.Log("\n" + err.Error())
			}
		})
	}
}

// TestClient: a client of a gateway needs no complete server configuration, but its own settings are checked.
func TestClient(t *testing.T) {
	file := "listen: 0.0.0.0:80\nsim: {use: never}\nprompts: {core: nowhere.md}\n"
	source := Source{Client: true, File: "voicegw.yaml", ReadFile: files{"voicegw.yaml": file}.ReadFile}
	if c, _, err := Load(source); err != nil || c.Listen != "0.0.0.0:80" {
		t.Errorf("%+v, %v", c, err)
	}
	source.Flags = []Flag{{"--listen", "listen", "nowhere"}, {"--api-key", "api_key", "hush"}, {"--set", "lissen", "x"}}
	_, _, err := Load(source)
	var problems Problems
	if !errors.As(err, &problems) || len(problems) != 3 || strings.Contains(err.Error(), "hush") {
		t.Errorf("%v", err)
	}
}

func TestMissingFile(t *testing.T) {
	_, _, err := Load(Source{File: "no.yaml", FileFrom: "--config", ReadFile: files{}.ReadFile})
	if err == nil || !strings.Contains(err.Error(), "--config: The configuration file no.yaml does not exist") {
		t.Errorf("got %v", err)
	}
}

func TestFileTooLarge(t *testing.T) {
	_, _, err := load(t, "#"+strings.Repeat("x", maxFileBytes), nil)
	if err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("got %v", err)
	}
}

func TestUnknownVariables(t *testing.T) {
	_, warnings, err := load(t, "", []string{"VOICEGW_LISTN=x", "VOICEGW_SERVICE_HOST=10.0.0.1", "VOICEGW_PORT=tcp://10.0.0.1:80", "VOICEGW_PORT_80_TCP=x", "VOICEGW_CONFIG=x"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"The environment variable VOICEGW_LISTN is not a setting of voicegw and was ignored. Did you mean VOICEGW_LISTEN?"}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Error(diff)
	}
}

func TestLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:80": true, "127.9.9.9:80": true, "[::1]:80": true, "localhost:80": true, "LOCALHOST:0": true,
		"[::ffff:127.0.0.1]:80": true,
		":80":                   false, "0.0.0.0:80": false, "[::]:80": false, "192.168.0.1:80": false, "localhost.example.com:80": false, "127.0.0.1": false, "": false,
	} {
		if got := Loopback(address); got != want {
			t.Errorf("Loopback(%q) = %v", address, got)
		}
	}
}

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]string{}
	l := newLoader(Source{Wires: Wires()})
	for _, key := range l.keys {
		f := l.fields[key]
		if other, twice := seen[env(f.key)]; twice {
			t.Errorf("%s and %s share the variable %s", f.key, other, env(f.key))
		}
		seen[env(f.key)] = f.key
		if err := f.set("1"); err != nil && strings.Contains(err.Error(), "nobody taught") {
			t.Errorf("%s %v", f.key, err)
		}
	}
}

func FuzzFile(f *testing.F) {
	for _, seed := range []string{
		"", "listen: 127.0.0.1:1\n", "limits:\n  sessions: x\n", "a: &a [*a]\n", "origins: [a, [b], {c: d}]\n", "? {a: b}\n: c\n",
		"providers: {openai: {api_key: hush}}", "providers: {a: {wire: openai}, b: {wire: x}, c: [], d: &a {wire: gemini, thinking: 1}, e: *a}", "sim: {speed: .nan}", "<<: {listen: x}", "log: &x {level: debug}\nagent: *x\n", "--- \n---\n", "listen: !!binary aGk=\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, _, err := Load(Source{File: "voicegw.yaml", ReadFile: func(name string) ([]byte, error) {
			if name == "voicegw.yaml" {
				return data, nil
			}
			return nil, fs.ErrNotExist
		}})
		if (c == nil) == (err == nil) {
			t.Fatalf("configuration %v and error %v", c, err)
		}
		if err == nil && c.Services()[0].Name != c.Provider {
			t.Fatalf("the default provider %q is not offered", c.Provider)
		}
	})
}
