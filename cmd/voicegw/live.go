package main

import (
	"slices"

	"voicegw/config"
	"voicegw/internal/backends/calendar"
	"voicegw/internal/backends/kb"
	"voicegw/registry"
	"voicegw/registry/spec"
)

func (s *server) live(source string, session registry.Session) []string {
	return liveValues(s.cfg, s.agents, s.caps, source, session)
}

// liveValues returns the values of a source that schema.json files name under dynamic. It does not block and is safe
// for concurrent use.
func liveValues(cfg *config.Config, all *agents, caps *capabilities, source string, session registry.Session) []string {
	switch source {
	case spec.LiveAgents:
		return all.switchable(session.Agent)
	case spec.LiveCalendars:
		names := []string{string(calendar.Primary)}
		if cfg.Calendar.Team != "" {
			names = append(names, string(calendar.Team))
		}
		if cfg.Calendar.Personal != "" {
			names = append(names, string(calendar.Personal))
		}
		return names
	case spec.LiveNamespaces:
		var names []string
		for _, namespace := range caps.library.For(kb.Asker{User: session.UserID, Vouched: session.Vouched,
			Agent: session.Agent, Scopes: session.Scopes}).Granted() {
			names = append(names, string(namespace))
		}
		return names
	}
	return nil
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
