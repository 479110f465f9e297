package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/alecthomas/kong"

	"voicegw/config"
	"voicegw/internal/audit"
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

const (
	// maxArgs limits the arguments on standard input, in bytes.
	maxArgs = 1 << 20
	// maxKey limits the flag --key, in bytes.
	maxKey = 200
)

func (flags toolsCallFlags) check() error {
	if len(flags.Key) > maxKey || strings.ContainsFunc(flags.Key, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("--key must be at most %d bytes of printable text", maxKey)
	}
	for _, scope := range flags.Scope {
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
	kept := flags.Store || cfg.Store.URL != ""
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
	case kept: // the answer goes to standard output
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
		err = p.toolsCallWith(ctx, flags, args, cfg, caps, record)
	}
	if closed := errors.Join(closeAudit(record), caps.close(), sim.close()); closed != nil {
		p.complain("%v", closed)
		return cmp.Or(err, shown(exitFailure))
	}
	return err
}

func (p Process) toolsCallWith(ctx context.Context, flags toolsCallFlags, args json.RawMessage, cfg *config.Config,
	caps *capabilities, record *audit.Log) error {
	o := caps.registryOptions(false)
	o.Settings = toolSettings(cfg)
	if p.Handlers != nil {
		o.Handlers = p.Handlers
	}
	others, err := foreignTools(cfg.ToolDirs, cfg.MCP, caps.mcp, caps.hosts)
	if err != nil {
		return usage(err)
	}
	o.Foreign = others.Foreign
	loaded, err := p.loadRegistry(o)
	if err != nil {
		return err
	}
	whole := loaded.Snapshot()
	caps.mcp.Use(mcpServers(cfg.MCP), others.mcp)
	if len(others.Entries) == 0 { // otherwise the version is not that of a file
		p.warnIfOld(whole.Version())
	}
	if err := checkRequired(cfg.Confirmation.Require, whole); err != nil {
		return usage(err)
	}
	all, err := openAgents(cfg, loaded.Snapshot, nil, caps.store.Agents(), caps.logger)
	if err != nil {
		return err
	}
	caps.agents.Set(all.catalog, loaded.Snapshot)
	ctx, stop := p.untilSignal(ctx)
	defer stop()
	c := &oneCall{
		p: p, cfg: cfg, caps: caps, agents: all, yes: flags.Yes, key: flags.Key, tool: strings.ReplaceAll(flags.Name, "-", "_"),
		executor: newExecutor(cfg, caps.store, nil, caps.logger),
	}
	defer c.executor.Close()
	if record != nil {
		c.record = record.Write
	}
	if c.tool == "kb_search" {
		p.awaitVectors(ctx, caps)
	}
	if err := c.begin(flags, whole); err != nil {
		return usage(err)
	}
	envelope := c.run(ctx, args)
	if err := p.printJSON(envelope); err != nil || envelope.OK {
		return err
	}
	return shown(exitFailure)
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
