package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"voicegw/config"
	"voicegw/config/setting"
)

// serveFlags are the flags of serve. A flag with a key overrides that setting.
type serveFlags struct {
	Config       string   `help:"YAML file to read the configuration from (VOICEGW_CONFIG)." placeholder:"FILE"`
	Listen       string   `key:"listen" help:"Address to serve on (127.0.0.1:8080)." placeholder:"HOST:PORT"`
	Insecure     bool     `key:"insecure" help:"Allow an address that other machines can reach without authentication."`
	Origin       []string `key:"origins" help:"Origin of pages that may connect, such as https://*.example.com." placeholder:"ORIGIN"`
	Host         []string `key:"hosts" help:"Host name of the gateway in addition to localhost, as a pattern." placeholder:"HOST"`
	DataDir      string   `key:"data_dir" help:"Folder for persistent data (~/.local/state/voicegw)." placeholder:"DIR"`
	Provider     string   `key:"provider" help:"Default provider: gemini or openai." placeholder:"NAME"`
	Dev          bool     `key:"dev" help:"For authors of tools: load registry/tool_registry.json, and reload it when it changes."`
	DrainTimeout string   `key:"drain_timeout" help:"Time for sessions to end after SIGTERM (30s)." placeholder:"TIME"`
	SimUse       string   `key:"sim.use" name:"sim" help:"When to simulate the providers: auto, always or never." placeholder:"WHEN"`
	Scenario     string   `key:"sim.scenario" help:"Scenario file of the simulator." placeholder:"FILE"`
	Faults       string   `key:"sim.faults" help:"Fault script of the simulator." placeholder:"FILE"`
	Seed         string   `key:"sim.seed" help:"Seed of the simulator." placeholder:"N"`
	LogLevel     string   `key:"log.level" help:"Minimum log level: debug, info, warn or error." placeholder:"LEVEL"`
	LogFormat    string   `key:"log.format" help:"Log format: auto, text or json." placeholder:"FORMAT"`
	CheckConfig  bool     `help:"Check the configuration and exit: 0 if it is valid, 2 if not. Changes nothing." name:"check-config"`
	AcceptDamage string   `help:"Start with damaged data, once, with the code from the error message (docs/data.md)." placeholder:"CODE"`
	DebugListen  string   `help:"Local address for pprof and /debug/vars, such as 127.0.0.1:6060 (default: off)." placeholder:"HOST:PORT"`
	Set          []string `help:"Any setting of docs/configuration.md; may be given several times." placeholder:"KEY=VALUE" sep:"none"`
}

// configFlags say where commands other than serve read the configuration.
type configFlags struct {
	Config string   `help:"YAML file to read the configuration from (VOICEGW_CONFIG), as serve does." placeholder:"FILE"`
	Set    []string `help:"Any setting of docs/configuration.md; may be given several times." placeholder:"KEY=VALUE" sep:"none"`
}

// benchFlags are those of commands that use the tools without a gateway.
type benchFlags struct {
	Scope []string `help:"Scope of the user; may be given several times." placeholder:"SCOPE"`
	Store bool     `help:"Use the store and audit log of serve (stop a gateway with the same data_dir first)."`
	configFlags
	LogLevel string `help:"Minimum log level: debug, info, warn or error." default:"warn" enum:"debug,info,warn,error"`
}

// source returns a command's source: the file, the environment, the flags with a key, and --set.
func (p Process) source(flags configFlags, parsed *kong.Context) (source config.Source, problems config.Problems) {
	source = config.Source{Environ: p.Environ, File: flags.Config, FileFrom: "--config"}
	if source.File == "" {
		source.File, source.FileFrom = variable(p.Environ, "VOICEGW_CONFIG"), "VOICEGW_CONFIG"
	}
	sets := flags.Set
	for _, at := range parsed.Path {
		if at.Flag == nil {
			continue
		}
		switch key := at.Flag.Tag.Get("key"); {
		case key != "":
			value := fmt.Sprint(at.Flag.Target.Interface())
			if list, ok := at.Flag.Target.Interface().([]string); ok {
				value = strings.Join(list, ",")
			}
			source.Flags = append(source.Flags, config.Flag{Name: "--" + at.Flag.Name, Key: key, Value: value})
		case at.Flag.Name == "set":
			key, value, ok := strings.Cut(sets[0], "=")
			if !ok {
				problems.Add("--set", "%q has no value; write it like --set limits.sessions=50.", sets[0])
			} else {
				source.Flags = append(source.Flags, config.Flag{Name: "--set", Key: strings.TrimSpace(key), Value: value})
			}
			sets = sets[1:]
		}
	}
	return source, problems
}

// load reads a configuration with a command's flags. A client of a gateway needs only its address and key.
func (p Process) load(flags configFlags, client bool, parsed *kong.Context) (*config.Config, []string, error) {
	source, problems := p.source(flags, parsed)
	source.Client = client
	file, _ := p.builtIn() // the command that needs it reports the error
	source.Tools = file.Tools
	if !client {
		others, err := foreignTools(config.ForeignTools(source))
		if err != nil {
			return nil, nil, err // the configuration of tools cannot be checked without them
		}
		source.Tools = append(source.Tools, others.entries...)
	}
	c, warnings, err := config.Load(source)
	if found, ok := errors.AsType[config.Problems](err); ok {
		problems = append(problems, found...)
	} else if err != nil {
		return nil, warnings, err
	}
	if len(problems) > 0 {
		return nil, warnings, problems
	}
	return c, warnings, nil
}

// variable returns the last value of an environment variable.
func variable(environ []string, name string) string {
	value := ""
	for _, entry := range environ {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}

// dataDir returns the absolute path of the data folder: data_dir, or a folder in the XDG state directory
// ($XDG_STATE_HOME, by default ~/.local/state). It is empty if that is unknown and the configuration needs no folder.
// The error is config.Problems.
func (p Process) dataDir(cfg *config.Config) (string, error) {
	if cfg.DataDir != "" {
		dir, err := filepath.Abs(string(cfg.DataDir))
		if err != nil {
			return "", fmt.Errorf("data_dir: %w", err)
		}
		return dir, nil
	}
	// XDG says to ignore a relative path.
	if state := variable(p.Environ, "XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "voicegw"), nil
	}
	if home := variable(p.Environ, "HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "voicegw"), nil
	}
	if cfg.Store.URL != "" && cfg.Audit.File != "" {
		return "", nil
	}
	return "", config.Problems{{
		Where: "VOICEGW_DATA_DIR",
		Message: "data_dir is missing, and it has no default because neither XDG_STATE_HOME nor HOME is set; set it, for " +
			"example with --data-dir.",
	}}
}

// auditFile returns the path of the audit log, or setting.Stdout.
func auditFile(cfg *config.Config, dataDir string) setting.Path {
	return cmp.Or(cfg.Audit.File, setting.Path(filepath.Join(dataDir, "audit", "audit.jsonl")))
}
