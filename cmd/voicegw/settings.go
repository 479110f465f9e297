package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"voicegw/config"
	"voicegw/internal/server"
)

// configFlags say where commands other than serve read the configuration.
type configFlags struct {
	Config string   `help:"YAML file to read the configuration from (VOICEGW_CONFIG), as serve does." placeholder:"FILE"`
	Set    []string `help:"Any setting of docs/configuration.md; may be given several times." placeholder:"KEY=VALUE" sep:"none"`
}

// toolsetFlags are those of commands that use the tools without a gateway.
type toolsetFlags struct {
	Scope []string `help:"Scope of the user; may be given several times." placeholder:"SCOPE"`
	Store bool     `help:"Use the store and audit log of serve (stop a gateway with the same data_dir first)."`
	configFlags
	LogLevel string `help:"Minimum log level: debug, info, warn or error." default:"warn" enum:"debug,info,warn,error"`
}

// source returns a command's source: the file, the environment, the flags with a key, and --set.
func (p Process) source(flags configFlags, parsed *kong.Context) (source config.Source, problems config.Problems) {
	source = config.Source{Environ: p.Environ, File: flags.Config, FileFrom: "--config"}
	if source.File == "" {
		source.File, source.FileFrom = p.Variable("VOICEGW_CONFIG"), "VOICEGW_CONFIG"
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
	file, _ := p.BuiltIn() // the command that needs it reports the error
	source.Tools = file.Tools
	if !client {
		others, err := server.ForeignTools(config.ForeignTools(source))
		if err != nil {
			return nil, nil, err // the configuration of tools cannot be checked without them
		}
		source.Tools = append(source.Tools, others...)
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
