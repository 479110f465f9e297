package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"voicegw/config"
	"voicegw/internal/audit"
	"voicegw/internal/backends/calendar"
	"voicegw/internal/backends/kb"
	"voicegw/orchestrator/calls"
	"voicegw/orchestrator/execute"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/sim"
	"voicegw/store"
)

// toolset has the tools and the parts that their calls need.
type toolset struct {
	host     Host
	cfg      *config.Config // at the start
	caps     *capabilities
	tools    *registry.Registry
	agents   *agents
	executor *execute.Executor
	audit    *audit.Log
	sim      *sim.Local // nil if no provider is simulated
}

// Tools are the tools of a configuration, for commands without a gateway. It is safe for concurrent use.
type Tools struct{ toolset }

// OpenTools opens the tools. kept means the store and the audit log of a gateway; otherwise nothing is kept, unless the
// store has servers of its own. The caller must close the tools. The error wraps config.Problems for a problem of the
// configuration.
func (h Host) OpenTools(ctx context.Context, cfg *config.Config, kept bool, logger *slog.Logger) (*Tools, error) {
	kept = kept || cfg.Store.URL != ""
	keep := store.Options{Memory: true, Logger: logger}
	dataDir, err := h.DataDir(cfg) // also for calendars, which work without one
	imageDir := ""                 // without a store, images are removed when the program ends
	if kept {
		if err != nil {
			return nil, err
		}
		keep, imageDir = storeOptions(cfg, dataDir, logger), dataDir
	}
	caps, err := openCapabilities(ctx, cfg, dataDir, keep, logger)
	if err != nil {
		return nil, err
	}
	t := &Tools{toolset{host: h, cfg: cfg, caps: caps, executor: newExecutor(cfg, caps.store, nil, logger)}}
	if err := t.open(ctx, kept, dataDir, imageDir); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (t *Tools) open(ctx context.Context, kept bool, dataDir, imageDir string) error {
	var err error
	switch logger := t.caps.logger; {
	case t.cfg.Store.URL != "": // a gateway may be writing to the file, so the records go only to the store
		t.audit = audit.New(audit.Options{Stream: t.caps.store.Audit, Arguments: audit.Arguments(t.cfg.Audit.Arguments), Logger: logger})
	case kept: // standard output has the answer
		t.audit, err = openAudit(t.cfg, dataDir, t.caps.store, t.host.Stderr, logger)
	default:
		t.audit = audit.New(audit.Options{}) // which discards the records
	}
	if err != nil {
		return err
	}
	if t.sim, err = simulatorFor(ctx, t.cfg, t.caps.logger); err != nil {
		return err
	}
	if err := openImages(t.cfg, imageDir, t.sim, t.caps, new(liveImages)); err != nil {
		return err
	}
	cfg := *t.cfg
	cfg.Dev = false // the tools of this program
	if t.tools, _, err = t.host.loadTools(t.caps.registryOptions(false), &cfg, t.caps); err != nil {
		return err
	}
	if err := checkTools(t.cfg, t.tools.Snapshot()); err != nil {
		return err
	}
	return t.openAgents(nil)
}

// Close ends the tools and their parts.
func (t *Tools) Close() error {
	t.executor.Close()
	return errors.Join(closeAudit(t.audit)(), t.caps.close(), when(t.sim != nil, t.sim.Close)())
}

// Snapshot returns the current tools.
func (t *Tools) Snapshot() *registry.Snapshot { return t.tools.Snapshot() }

// Agents returns the names of the agents.
func (t *Tools) Agents() []string { return t.agents.Names() }

// Record writes a record to the audit log.
func (t *Tools) Record(r audit.Record) { t.audit.Write(r) }

// Prepare completes a call whose session has a user and a mode: the executor, and the rules and tools of its agent, by
// default agent.name. ok is false if there is no such agent.
func (t *Tools) Prepare(c *execute.SingleCall) (has registry.Selection, ok bool) {
	name := cmp.Or(c.Session.Agent, t.cfg.Agent.Name)
	c.Session.Agent, c.Agent = name, calls.Agent{Name: name}
	c.Executor, c.Rules = t.executor, toolRules(t.cfg, c.Session.Mode)
	has = registry.Selection{Session: c.Session, Live: t.live}
	e := t.agents.persona(name)
	if e == nil {
		return has, name == t.cfg.Agent.Name
	}
	c.Agent.Version = e.Version
	has.Only, has.SwitchTo = e.Tools, e.SwitchTo
	if c.Session.Mode == spec.ModeVoice {
		c.Rules.Budget = t.agents.Agent(name).Budget.Or(c.Rules.Budget)
	} else {
		c.Rules.Budget = e.Budget.Or(c.Rules.Budget)
	}
	return has, true
}

const vectorWait = 20 * time.Second

// AwaitVectors waits until every record of the knowledge base has a vector. The error says how many have none after 20 s,
// or when the endpoint of embeddings has failed.
func (t *Tools) AwaitVectors(ctx context.Context) error {
	if t.caps.embed == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, vectorWait)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		without := 0
		held, err := t.caps.kb.Held(ctx)
		for _, h := range held {
			if !h.Complete {
				without++
			}
		}
		failed := t.caps.source.State().Waiting > 0 // the endpoint didn't answer
		switch {
		case err == nil && without == 0:
			return nil
		case failed || ctx.Err() != nil:
			return fmt.Errorf("%d of %d records have no vector (kb.embeddings) and are found only by their words", without, len(held))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// live returns the values of a source under dynamic. It does not block and is safe for concurrent use.
func (t *toolset) live(source string, session registry.Session) []string {
	switch source {
	case spec.LiveAgents:
		return t.agents.switchable(session.Agent)
	case spec.LiveCalendars:
		names := []string{string(calendar.Primary)}
		if t.cfg.Calendar.Team != "" {
			names = append(names, string(calendar.Team))
		}
		if t.cfg.Calendar.Personal != "" {
			names = append(names, string(calendar.Personal))
		}
		return names
	case spec.LiveNamespaces:
		var names []string
		for _, namespace := range t.caps.library.For(kb.Asker{User: session.UserID, Vouched: session.Vouched,
			Agent: session.Agent, Scopes: session.Scopes}).Granted() {
			names = append(names, string(namespace))
		}
		return names
	}
	return nil
}
