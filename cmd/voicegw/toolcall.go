package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"voicegw/config"
	"voicegw/internal/audit"
	"voicegw/orchestrator/execute"
	"voicegw/registry"
	"voicegw/registry/build"
	"voicegw/registry/spec"
	"voicegw/store"
)

type toolsCallFlags struct {
	Name     string   `arg:"" help:"Name or id of the tool."`
	Args     string   `arg:"" optional:"" help:"Its arguments, a JSON object; - reads them from standard input." default:"{}"`
	Mode     string   `help:"Mode: text or voice (default: as the tool allows)." placeholder:"MODE" enum:",text,voice" default:""`
	Agent    string   `help:"Agent whose tools and budget apply (default: agent.name)." placeholder:"ID"`
	User     userName `help:"User of the session." default:"author" placeholder:"ID"`
	Scope    []string `help:"Scope of the conversation; may be given several times." placeholder:"SCOPE"`
	Yes      bool     `help:"Approve the call if required, instead of asking at the terminal."`
	Key      string   `help:"Idempotency key: the ledger answers the same key again." placeholder:"KEY"`
	Store    bool     `help:"Use the store and audit log of serve (stop a gateway with the same data_dir first)."`
	Config   string   `help:"YAML file to read the configuration from (VOICEGW_CONFIG), as serve does." placeholder:"FILE"`
	Set      []string `help:"Any setting of docs/configuration.md; may be given several times." placeholder:"KEY=VALUE" sep:"none"`
	LogLevel string   `help:"Minimum log level: debug, info, warn or error." default:"warn" enum:"debug,info,warn,error"`
}

// maxArgs limits the arguments on standard input, in bytes.
const maxArgs = 1 << 20

func (flags toolsCallFlags) check() error {
	if err := execute.CheckKey(flags.Key); err != nil {
		return fmt.Errorf("--key %w", err)
	}
	return checkScopes(flags.Scope)
}

func checkScopes(scopes []string) error {
	for _, scope := range scopes {
		if !spec.ValidScope(scope) {
			return fmt.Errorf("--scope: %q must be 1 to %d letters, digits or . _ : / -", scope, spec.MaxScopeBytes)
		}
	}
	return nil
}

// Run makes one call as the model of a conversation would, with the same policy, ledger and audit log.
func (flags toolsCallFlags) Run(ctx context.Context, p Process, parsed *kong.Context) error {
	if err := flags.check(); err != nil {
		return usage(err)
	}
	args := json.RawMessage(flags.Args)
	if flags.Args == "-" {
		data, err := io.ReadAll(io.LimitReader(p.Stdin, maxArgs))
		if err != nil {
			return fmt.Errorf("reading the arguments: %w", err)
		}
		args = data
	}
	cfg, _, err := p.load(serveFlags{Config: flags.Config, Set: flags.Set}, parsed)
	if err != nil {
		return usage(err)
	}
	logger := newLog(p.Stderr, flags.LogLevel, "auto").logger
	return p.withTools(ctx, cfg, flags.Store, logger, func(bench *toolBench) error {
		ctx, stop := p.untilSignal(ctx)
		defer stop()
		c := &oneCall{p: p, bench: bench, yes: flags.Yes}
		c.call.Tool, c.call.Args, c.call.Key = strings.ReplaceAll(flags.Name, "-", "_"), args, flags.Key
		if c.call.Tool == "kb_search" {
			p.awaitVectors(ctx, bench.caps)
		}
		if err := c.begin(flags, bench.tools.Snapshot()); err != nil {
			return usage(err)
		}
		envelope := c.call.Run(ctx).Kept()
		if err := p.printJSON(envelope); err != nil || envelope.OK {
			return err
		}
		return shown(exitFailure)
	})
}

// toolBench has the tools of serve, for commands without a gateway.
type toolBench struct {
	cfg      *config.Config
	caps     *capabilities
	tools    *registry.Registry
	agents   *agents
	executor *execute.Executor
	record   *audit.Log // nil without an audit log
}

func (b *toolBench) live(source string, s registry.Session) []string {
	return liveValues(b.cfg, b.agents, b.caps, source, s)
}

func (b *toolBench) audit(r audit.Record) {
	if b.record != nil {
		b.record.Write(r)
	}
}

// withTools opens the tools for use. kept means the store and the audit log of serve; otherwise nothing is kept, unless
// the store has servers of its own.
func (p Process) withTools(ctx context.Context, cfg *config.Config, kept bool, logger *slog.Logger, use func(*toolBench) error) error {
	kept = kept || cfg.Store.URL != ""
	keep := store.Options{Memory: true, Logger: logger}
	dataDir, err := p.dataDir(cfg) // also for calendars, which work without one
	imageDir := ""                 // without a store, images are removed when the program ends
	if kept {
		if err != nil {
			return usage(err)
		}
		keep, imageDir = storeOptions(cfg, dataDir, logger), dataDir
	}
	caps, err := openCapabilities(ctx, cfg, dataDir, keep, logger)
	if err != nil {
		return err
	}
	var record *audit.Log
	switch {
	case cfg.Store.URL != "": // a gateway may be writing to the file, so the records go only to the store
		record = audit.New(audit.Options{Stream: caps.store.Audit(), Arguments: audit.Arguments(cfg.Audit.Arguments), Logger: logger})
	case kept: // standard output has the answer
		record, err = openAudit(cfg, dataDir, caps.store, p.Stderr, logger)
	}
	var sim *simulator
	if err == nil {
		sim, err = simulatorFor(ctx, cfg, logger)
	}
	if err == nil {
		err = openImages(ctx, cfg, imageDir, sim, caps, new(liveImages))
	}
	if err == nil {
		bench := &toolBench{cfg: cfg, caps: caps, executor: newExecutor(cfg, caps.store, nil, logger), record: record}
		if err = p.openBench(bench); err == nil {
			err = use(bench)
		}
		bench.executor.Close()
	}
	if closed := errors.Join(closeAudit(record), caps.close(), sim.close()); closed != nil {
		p.complain("%v", closed)
		return cmp.Or(err, shown(exitFailure))
	}
	return err
}

func (p Process) openBench(b *toolBench) error {
	o := b.caps.registryOptions(false)
	o.Settings = toolSettings(b.cfg)
	if p.Handlers != nil {
		o.Handlers = p.Handlers
	}
	others, err := foreignTools(b.cfg.ToolDirs, b.cfg.MCP, b.caps.mcp, b.caps.hosts)
	if err != nil {
		return usage(err)
	}
	o.Foreign = others.Foreign
	if b.tools, err = p.loadRegistry(o); err != nil {
		return err
	}
	b.caps.mcp.Use(mcpServers(b.cfg.MCP), others.mcp)
	if len(others.Entries) == 0 { // otherwise the version is not that of a file
		p.warnIfOld(b.tools.Snapshot().Version())
	}
	if err := checkTools(b.cfg, b.tools.Snapshot()); err != nil {
		return usage(err)
	}
	if b.agents, err = openAgents(b.cfg, b.tools.Snapshot, nil, b.caps.store.Agents(), b.caps.logger); err != nil {
		return err
	}
	b.caps.agents.Set(b.agents.catalog, b.tools.Snapshot)
	return nil
}

const vectorWait = 20 * time.Second

// awaitVectors waits until every record has a vector, or reports how many have none.
func (p Process) awaitVectors(ctx context.Context, caps *capabilities) {
	if caps.embed == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, vectorWait)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		without := 0
		held, err := caps.kb.Held(ctx)
		for _, h := range held {
			if !h.Complete {
				without++
			}
		}
		failed := caps.source.State().Waiting > 0 // the endpoint didn't answer
		switch {
		case err == nil && without == 0:
			return
		case failed || ctx.Err() != nil:
			p.complain("%d of %d records have no vector (kb.embeddings) and are found only by their words", without, len(held))
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// warnIfOld warns if the project in the working directory has built a registry that differs from the built-in one.
func (p Process) warnIfOld(version string) {
	data, err := os.ReadFile(build.RegistryFile)
	if err != nil {
		return // not in a project, or nothing built
	}
	var file registry.File
	if err := json.Unmarshal(data, &file); err == nil && file.Version != version {
		p.complain("this binary has registry %s, but %s is %s: run make build", version, build.RegistryFile, file.Version)
	}
}
