package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"voicegw/chat"
	"voicegw/config"
	"voicegw/internal/agent"
	"voicegw/internal/strict"
	"voicegw/orchestrator/calls"
	"voicegw/registry"
	"voicegw/session"
	"voicegw/transport"
)

// agents provides the agents of this process to voice sessions and the text agent. It is safe for concurrent use.
type agents struct {
	// Fixed after openAgents.
	cfg     *config.Config
	catalog *agent.Catalog
	voices  map[string]string
}

// openAgents reads the agents' files and the edits in the store. An error about files is a config.Problems.
func (t *toolset) openAgents(transports map[string]transport.Transport) error {
	cfg := t.cfg
	o := agent.Options{
		Default: agent.Agent{ID: cfg.Agent.Name, Name: cfg.Agent.Name, Playbook: cfg.Agent.Instructions,
			Greeting: cfg.Agent.Greeting, Language: cfg.Agent.Language},
		World: func() agent.World { return agentWorld(cfg, t.tools.Snapshot(), transports) },
		Edits: t.caps.store.Agents, Logger: t.caps.logger.With("component", "agents"),
	}
	var err error
	if o.Files, err = readAgents(cfg, o.World()); err != nil {
		return err
	}
	logAgentWarnings(o.Logger, o.Files)
	t.agents = &agents{cfg: cfg, catalog: agent.New(o), voices: voices(cfg)}
	t.agents.catalog.Snapshot() // so that sessions don't wait for the edits to be read
	t.caps.agents.Set(t.agents.catalog, t.tools.Snapshot)
	return nil
}

// readAgents reads the agents' files. The error is config.Problems.
func readAgents(cfg *config.Config, w agent.World) ([]agent.Agent, error) {
	folder, normal := string(cfg.Agents.Path), cfg.Agent.Name
	if folder == "" {
		return nil, nil
	}
	w.Agents = []string{normal}
	files, err := agent.Load(os.DirFS(folder), w)
	if err != nil {
		return nil, agentProblems(folder, err)
	}
	for _, a := range files {
		if a.ID == normal && a.Disabled {
			return nil, config.Problems{{Where: "agents.path",
				Message: fmt.Sprintf("The agent %q is the default (agent.name), so it cannot have enabled: false.", a.ID)}}
		}
	}
	return files, nil
}

func logAgentWarnings(logger *slog.Logger, files []agent.Agent) {
	for _, a := range files {
		for _, w := range a.Warnings {
			logger.Warn("an agent may not work", "agent", a.ID, "warning", w)
		}
	}
}

// checkProviderNames checks the models and voices configured for providers. The error is config.Problems.
func checkProviderNames(cfg *config.Config, w agent.World) (warnings []string, err error) {
	var wrong config.Problems
	for _, name := range cfg.ProviderNames() {
		p := cfg.Providers[name]
		problems, doubts := w.Names(name, p.Model, p.Voice)
		for _, text := range problems {
			wrong.Add("providers."+name, "%s.", text)
		}
		for _, text := range doubts {
			warnings = append(warnings, "providers."+name+": "+text)
		}
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	return warnings, nil
}

// keepTime limits the store's part of a reload, which saves the replaced agents.
const keepTime = 5 * time.Second

func (s *agents) reload(files []agent.Agent) {
	ctx, cancel := context.WithTimeout(context.Background(), keepTime)
	defer cancel()
	s.catalog.Reload(ctx, files)
}

func agentProblems(folder string, err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return config.Problems{{Where: "agents.path", Message: fmt.Sprintf("The agents of %s cannot be read: %v.", folder, err)}}
	}
	var problems config.Problems
	for _, one := range joined.Unwrap() {
		found, ok := errors.AsType[*strict.Error](one)
		if !ok {
			problems.Add("agents.path", "%v", one)
			continue
		}
		addStrict(&problems, folder+string(os.PathSeparator)+found.Name, found)
	}
	return problems
}

// agentWorld returns the names that agents may refer to. Without transports, it has all configured providers.
func agentWorld(cfg *config.Config, tools *registry.Snapshot, transports map[string]transport.Transport) agent.World {
	var w agent.World
	for _, t := range tools.All() {
		w.Tools = append(w.Tools, t.ToolID)
	}
	w.Tools = append(w.Tools, tools.Off()...) // an agent may name a disabled tool
	for _, name := range cfg.ProviderNames() {
		p := agent.Provider{Name: name, Offered: transports == nil}
		if t := transports[name]; t != nil {
			p.Offered, p.Models, p.Refuses, p.Voices = true, t.Models(), t.Refuses, t.Voices
		}
		w.Providers = append(w.Providers, p)
	}
	return w
}

func (s *agents) Agent(name string) *session.Agent {
	now := s.catalog.Snapshot()
	e, ok := now.Get(name)
	if !ok || e.Disabled || e.Source == agent.SourceConfig {
		return nil
	}
	return s.forVoice(e, now.Version())
}

// Pinned returns the agent of a voice session that resumes here.
func (s *agents) Pinned(ctx context.Context, name, version string) *session.Agent {
	e := s.catalog.Pinned(ctx, name, version)
	if e == nil || e.Source == agent.SourceConfig {
		return nil
	}
	return s.forVoice(e, s.catalog.Snapshot().Version())
}

func (s *agents) Names() []string { return s.catalog.Snapshot().Names() }

func (s *agents) forVoice(e *agent.Entry, all string) *session.Agent {
	chosen := maps.Clone(s.voices)
	maps.Copy(chosen, e.Voices)
	return &session.Agent{
		Name: e.ID, Version: e.Version, All: all, Instructions: e.Playbook, Greeting: e.Greeting, Voices: chosen, Language: e.Language,
		Notice:   cmp.Or(e.Notice, s.cfg.Exact.Notice),
		Provider: e.Provider, Model: e.Model, Tools: e.Tools, SwitchTo: s.targets(e),
		Budget: agentBudget(e.Budget.Voice, s.cfg.Budget.Voice),
	}
}

func (s *agents) targets(e *agent.Entry) []registry.SwitchTarget {
	var all []registry.SwitchTarget
	now := s.catalog.Snapshot()
	for _, id := range e.SwitchTo {
		if to, ok := now.Get(id); ok && !to.Disabled {
			all = append(all, registry.SwitchTarget{ID: to.ID, Name: to.Name, Description: to.Description})
		}
	}
	return all
}

// persona returns the agent of that name for a new text turn, or nil.
func (s *agents) persona(name string) *chat.Persona {
	e, ok := s.catalog.Snapshot().Get(name)
	if !ok || e.Disabled || e.Source == agent.SourceConfig {
		return nil
	}
	return &chat.Persona{Name: e.ID, Version: e.Version, Instructions: e.Playbook, Tools: e.Tools, SwitchTo: s.targets(e),
		Budget: agentBudget(e.Budget.Text, s.cfg.Budget.Text)}
}

func agentBudget(own agent.Budget, common config.Budget) calls.Budget {
	b := config.Budget{Retrieval: own.Retrieval, Total: own.Total, TopK: own.TopK, ToolTime: time.Duration(own.ToolTime)}
	return budget(b.Or(common))
}

// switchable returns the agents that an agent may hand the user over to now.
func (s *agents) switchable(from string) []string {
	now := s.catalog.Snapshot()
	e, ok := now.Get(from)
	if !ok {
		return nil
	}
	known := now.Names()
	return slices.DeleteFunc(slices.Clone(e.SwitchTo), func(id string) bool { return !slices.Contains(known, id) })
}
