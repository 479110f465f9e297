package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"voicegw/backends/agentdesk"
	"voicegw/config"
	"voicegw/prompts/toolerror"
	"voicegw/registry"
	"voicegw/registry/build"
	"voicegw/registry/spec"
	"voicegw/store"
)

type toolsCallFlags struct {
	Name     string   `arg:"" help:"Name or id of the tool."`
	Args     string   `arg:"" optional:"" help:"Its arguments, a JSON object; - reads them from standard input." default:"{}"`
	Mode     string   `help:"Side to call from: text or voice; one that the tool allows, without." enum:",text,voice" default:"" placeholder:"MODE"`
	Store    bool     `help:"Work with the store that serve works with, instead of an empty one in memory. That of data_dir is free only while no gateway runs."`
	User     userName `help:"User of the session." default:"author" placeholder:"ID"`
	Scope    []string `help:"Scope that the conversation is granted, besides those that the tool requires; may be given several times." placeholder:"SCOPE"`
	Config   string   `help:"YAML file to read the configuration from (VOICEGW_CONFIG), as serve does." placeholder:"FILE"`
	Set      []string `help:"Any setting of docs/configuration.md; may be given several times." placeholder:"KEY=VALUE" sep:"none"`
	LogLevel string   `help:"Least level to log: debug, info, warn or error." default:"warn" enum:"debug,info,warn,error"`
}

// maxArgs bounds the arguments that are read from standard input, in bytes.
const maxArgs = 1 << 20

// Run runs one tool with everything that the registry adds: defaults, validation, clamping,
// deadline, envelope. It does not add what a conversation adds: budgets and confirmation.
func (flags toolsCallFlags) Run(ctx context.Context, p Process, parsed *kong.Context) error {
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
	logger := newLogger(p.Stderr, flags.LogLevel, "auto")
	keep := store.Options{Memory: true, Logger: logger}
	dataDir, err := p.dataDir(cfg) // also for calendars, which work without one
	if flags.Store {
		if err != nil {
			return usage(err)
		}
		keep = storeOptions(cfg, dataDir, logger)
	}
	caps, err := openCapabilities(ctx, cfg, dataDir, keep, logger)
	if err != nil {
		return err
	}
	sim, err := simulatorFor(ctx, cfg, logger)
	if err == nil {
		// Without --store, images are removed like everything else when the program ends.
		imageDir := ""
		if flags.Store {
			imageDir = dataDir
		}
		err = openImages(ctx, cfg, imageDir, sim, caps, new(liveImages))
	}
	if err == nil {
		err = p.toolsCallWith(ctx, flags, args, cfg, caps)
	}
	if closed := errors.Join(caps.close(), sim.close()); closed != nil {
		p.complain("%v", closed)
		return cmp.Or(err, told(exitFailure))
	}
	return err
}

func (p Process) toolsCallWith(ctx context.Context, flags toolsCallFlags, args json.RawMessage, cfg *config.Config, caps *capabilities) error {
	o := caps.registryOptions(false)
	o.Settings = toolSettings(cfg)
	loaded, err := p.loadRegistry(o)
	if err != nil {
		return err
	}
	snapshot := loaded.Snapshot()
	p.warnIfOld(snapshot.Version())
	id := strings.ReplaceAll(flags.Name, "-", "_")
	switch off := slices.Contains(snapshot.Off(), id); {
	case off && slices.Contains(agentdesk.Tools(), id) && !cfg.Agents.Tools:
		p.complain("%s is switched off (agents.tools)", id)
	case off:
		p.complain("%s is switched off (tools.%s.enabled)", id, id)
	case slices.Contains(agentdesk.Tools(), id):
		all, err := openAgents(cfg, loaded.Snapshot, nil, caps.store.Agents(), caps.logger)
		if err != nil {
			return err
		}
		caps.agents.Set(all.catalog, loaded.Snapshot)
	}
	mode, scopes := spec.Mode(flags.Mode), flags.Scope // the person who runs this can read the folders anyway
	if tool, ok := snapshot.Tool(id); ok {
		scopes = slices.Concat(scopes, tool.Requires)
		mode = cmp.Or(mode, tool.AllowedModes[0])
		if tool.Availability != nil {
			p.complain("in a conversation %s is available only under conditions (%s); called here it runs at once", id, tool.Availability)
		}
		if tool.Job != nil {
			p.complain("in a conversation %s may begin long work (%s); called here it begins none", id, tool.Job)
		}
		if tool.RequiresConfirmation || slices.Contains(cfg.Confirmation.Require, id) {
			p.complain("in a conversation %s waits for a person's approval; called here it runs at once", id)
		}
	}
	ctx, stop := p.untilSignal(ctx)
	defer stop()
	if id == "kb_search" {
		p.awaitVectors(ctx, caps)
	}
	session := registry.Session{
		ID: "tools-call", UserID: string(flags.User), ConversationID: "tools-call", Agent: cfg.Agent.Name,
		Vouched: true, Scopes: scopes,
		Mode: cmp.Or(mode, spec.ModeText), Turn: 1, Now: time.Now().UTC(),
	}
	envelope := snapshot.Execute(ctx, id, session.Mode, args, session, nobody{p, snapshot, session, []string{id}})
	if err := p.printJSON(envelope); err != nil || envelope.OK {
		return err
	}
	return told(exitFailure)
}

// vectorWait is how long a search waits for the vectors of a knowledge base that was just read.
const vectorWait = 20 * time.Second

// awaitVectors waits until every record has its vector, or reports how many have none.
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
		failed := caps.source.State().Waiting > 0 // the endpoint was asked and did not answer
		switch {
		case err == nil && without == 0:
			return
		case failed || ctx.Err() != nil:
			p.complain("%d of %d records have no vector (kb.embeddings): these are found by their words alone", without, len(held))
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// nobody stands for the missing client of a session, and shows what that would be told.
type nobody struct {
	p        Process
	snapshot *registry.Snapshot
	session  registry.Session
	calling  []string // the tools that are calling, the outermost first
}

// Call is registry.Tools.Call: the tool that is called runs at once, too, and its answer is shown.
func (n nobody) Call(ctx context.Context, tool string, args any) registry.Envelope {
	if args == nil {
		args = struct{}{}
	}
	encoded, err := json.Marshal(args)
	refused := func(words toolerror.Words) registry.Envelope {
		env := registry.NotFound(tool, n.snapshot.Version(), 0)
		env.Error = registry.NewError(registry.ErrorPermanent, words)
		return env
	}
	switch {
	case err != nil:
		n.p.complain("the arguments for %s cannot be written as JSON: %v", tool, err)
		return refused(toolerror.FailedUnexpectedly(tool))
	case slices.Contains(n.calling, tool):
		return refused(toolerror.CallsItself(tool))
	case len(n.calling) >= registry.MaxDepth:
		return refused(toolerror.TooDeep(tool, registry.MaxDepth))
	}
	n.p.complain("%s calls %s: %s", n.calling[len(n.calling)-1], tool, encoded)
	n.calling = append(slices.Clip(n.calling), tool)
	envelope := n.snapshot.Execute(ctx, tool, n.session.Mode, encoded, n.session, n)
	n.p.complain("%s answers: %s", tool, envelope.Encode())
	return envelope
}

func (n nobody) Timeout(until time.Time, d time.Duration, message string) {
	n.p.complain("the client would be told: timeout until %s (%s): %s", until.UTC().Format(time.RFC3339), d, message)
}

func (n nobody) Send(name string, data any) error {
	return n.beside("the client would get", name, data)
}

func (n nobody) Note(event string, data any) error {
	return n.beside("the audit would note", event, data)
}

func (n nobody) beside(what, name string, data any) error {
	encoded, err := registry.Aside(name, data)
	if err != nil {
		return err
	}
	n.p.complain("%s %s: %s", what, name, encoded)
	return nil
}

func (n nobody) Tell(text string, fraction float64) {
	if fraction >= 0 {
		n.p.complain("progress: %s (%.0f %%)", text, 100*min(fraction, 1))
		return
	}
	n.p.complain("progress: %s", text)
}

func (nobody) Origin() string { return "" }

func (nobody) Guarantor() registry.Guarantor { return registry.Guarantor{} }

func (nobody) Said() []registry.Utterance { return nil }

func (n nobody) Invite(offer registry.VoiceOffer) {
	n.p.complain("the client would be invited to %s until %s", offer.SessionID, offer.ExpiresAt.UTC().Format(time.RFC3339))
}

func (n nobody) Show(i registry.Image) {
	n.p.complain("the client would be shown %s (%d by %d)", i.URL, i.Width, i.Height)
}

// warnIfOld warns if the project in the current directory has built a registry that differs from
// the one in this binary.
func (p Process) warnIfOld(version string) {
	data, err := os.ReadFile(build.RegistryFile)
	if err != nil {
		return // not in a project, or nothing built: nothing to compare with
	}
	var file registry.File
	if err := json.Unmarshal(data, &file); err == nil && file.Version != version {
		p.complain("this binary holds registry %s, and %s is %s: run make build", version, build.RegistryFile, file.Version)
	}
}
