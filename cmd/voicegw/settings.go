package main

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"

	"voicegw/config"
)

// serveFlags are the flags of serve. A flag with a key overrides that setting.
type serveFlags struct {
	Config       string   `help:"YAML file to read the configuration from (VOICEGW_CONFIG)." placeholder:"FILE"`
	Listen       string   `key:"listen" help:"Address to serve on (127.0.0.1:8080)." placeholder:"HOST:PORT"`
	Insecure     bool     `key:"insecure" help:"Allow an address that other machines can reach, without authentication."`
	Origin       []string `key:"origins" help:"Origin of a foreign web page that may connect, as a pattern, such as https://app.example.com." placeholder:"ORIGIN"`
	Host         []string `key:"hosts" help:"Name that requests may ask for besides localhost, as a pattern." placeholder:"HOST"`
	DataDir      string   `key:"data_dir" help:"Folder of what outlives the process (~/.local/state/voicegw)." placeholder:"DIR"`
	Provider     string   `key:"provider" help:"Provider for clients that ask for none: gemini or openai." placeholder:"NAME"`
	Dev          bool     `key:"dev" help:"For authors of tools: read registry/tool_registry.json, and again when it changes."`
	DrainTimeout string   `key:"drain_timeout" help:"How long sessions may go on after SIGTERM (30s)." placeholder:"TIME"`
	SimUse       string   `key:"sim.use" name:"sim" help:"When the simulator stands in for the providers: auto, always or never." placeholder:"WHEN"`
	Scenario     string   `key:"sim.scenario" help:"Scenario file of the simulator." placeholder:"FILE"`
	Faults       string   `key:"sim.faults" help:"Fault script of the simulator." placeholder:"FILE"`
	Seed         string   `key:"sim.seed" help:"Seed of the simulator." placeholder:"N"`
	LogLevel     string   `key:"log.level" help:"Least level to log: debug, info, warn or error." placeholder:"LEVEL"`
	LogFormat    string   `key:"log.format" help:"How to log: auto, text or json." placeholder:"FORMAT"`
	CheckConfig  bool     `help:"Check the whole configuration and exit: 0 if it is valid, 2 if not. Opens no port and changes nothing." name:"check-config"`
	AcceptDamage string   `help:"Go on with damaged data, once: the code that the refusal names. docs/data.md tells what it means." placeholder:"CODE" name:"accept-damage"`
	DebugListen  string   `help:"Address on this machine to serve profiles (pprof) and /debug/vars on, such as 127.0.0.1:6060; off without." placeholder:"HOST:PORT" name:"debug-listen"`
	Set          []string `help:"Any setting of docs/configuration.md; may be given several times." placeholder:"KEY=VALUE" sep:"none"`
}

// load reads the configuration of serve.
func (p Process) load(flags serveFlags, parsed *kong.Context) (*config.Config, []string, error) {
	return p.loadFrom(config.Source{Environ: p.Environ, File: flags.Config, FileFrom: "--config"}, flags.Set, parsed)
}

// loadFrom reads a configuration with the flags of a command: those with a key, and the settings of
// --set.
func (p Process) loadFrom(source config.Source, sets []string, parsed *kong.Context) (*config.Config, []string, error) {
	if source.File == "" {
		source.File, source.FileFrom = variable(p.Environ, "VOICEGW_CONFIG"), "VOICEGW_CONFIG"
	}
	var problems config.Problems
	for _, at := range parsed.Path {
		if at.Flag == nil {
			continue
		}
		switch key := at.Flag.Tag.Get("key"); {
		case key != "":
			source.Flags = append(source.Flags, config.Flag{Name: "--" + at.Flag.Name, Key: key, Value: valueOf(at.Flag.Target)})
		case at.Flag.Name == "set":
			key, value, ok := strings.Cut(sets[0], "=")
			if !ok {
				problems = append(problems, config.Problem{Where: "--set", Message: fmt.Sprintf("%q has no value; write it as --set limits.sessions=50.", sets[0])})
			} else {
				source.Flags = append(source.Flags, config.Flag{Name: "--set", Key: strings.TrimSpace(key), Value: value})
			}
			sets = sets[1:]
		}
	}
	source.Tools = p.declaredTools()
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

// valueOf formats the value of a flag.
func valueOf(target reflect.Value) string {
	if list, ok := target.Interface().([]string); ok {
		return strings.Join(list, ",")
	}
	return fmt.Sprint(target.Interface())
}

// variable returns the last value of a variable in an environment.
func variable(environ []string, name string) string {
	value := ""
	for _, entry := range environ {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}
