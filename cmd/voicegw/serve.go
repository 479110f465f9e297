package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/alecthomas/kong"

	"voicegw/config"
	"voicegw/internal/logging"
	"voicegw/internal/server"
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

func (flags serveFlags) Run(ctx callerContext, p Process, parsed *kong.Context) error {
	read := func() (*config.Config, []string, error) {
		return p.load(configFlags{flags.Config, flags.Set}, false, parsed)
	}
	cfg, warnings, err := read()
	if flags.CheckConfig {
		return flags.checkConfig(ctx, p, cfg, warnings, err)
	}
	if err != nil {
		return usage(err)
	}
	if text := checkDebugListen(flags.DebugListen); text != "" {
		return usage(config.Problems{{Where: "--debug-listen", Message: text}})
	}
	log := logging.Open(p.Stderr, cfg.Log.Level, cfg.Log.Format, append(cfg.Secrets(), p.TraceSecrets(cfg)...)...)
	for _, w := range warnings {
		log.Warn("configuration", "warning", w)
	}
	s, err := server.Start(ctx, p.Host, server.Options{
		Config: cfg, Log: log, Read: read, AcceptDamage: flags.AcceptDamage, DebugListen: flags.DebugListen,
	})
	var problems config.Problems
	switch {
	case errors.As(err, &problems), errors.Is(err, server.ErrSimFiles):
		return usage(err)
	case err != nil:
		return err
	}
	return s.Run(ctx)
}

// checkConfig loads the configuration as Run does, checks it and prints every problem, without secrets. It opens no
// port, contacts no server and changes no file.
func (flags serveFlags) checkConfig(ctx context.Context, p Process, cfg *config.Config, warnings []string, err error) error {
	fence := logging.NewRedactor()
	if err == nil {
		fence.Know(append(cfg.Secrets(), p.TraceSecrets(cfg)...)...)
		doubts, problems := server.Check(ctx, p.Host, cfg)
		warnings = append(warnings, doubts...)
		if text := checkDebugListen(flags.DebugListen); text != "" {
			problems.Add("--debug-listen", "%s", text)
		}
		err = problems.Err()
	}
	for _, w := range warnings {
		p.complain("warning: %s", fence.Text(w))
	}
	if problems, ok := errors.AsType[config.Problems](err); ok {
		for i := range problems {
			problems[i].Where, problems[i].Message = fence.Text(problems[i].Where), fence.Text(problems[i].Message)
		}
		return usage(problems)
	}
	if err != nil {
		return usage(errors.New(fence.Text(err.Error())))
	}
	return p.print("The configuration is valid.\n")
}

// checkDebugListen returns the problem of an address; "" if it has none or is empty.
func checkDebugListen(address string) string {
	if address == "" {
		return ""
	}
	if text := config.CheckListen(address); text != "" {
		return text
	}
	if !config.Loopback(address) {
		return fmt.Sprintf("other machines can reach %s, and profiles reveal secrets. Listen on 127.0.0.1 and use a tunnel.", address)
	}
	return ""
}
