package main

import (
	"encoding/json"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"

	"voicegw/config"
	"voicegw/internal/agent"
	"voicegw/registry"
	"voicegw/registry/spec"
)

var settingTypes = map[spec.SettingType]any{
	spec.SettingString: config.TypeString, spec.SettingInteger: config.TypeInteger, spec.SettingNumber: config.TypeNumber,
	spec.SettingBoolean: config.TypeBoolean, spec.SettingDuration: config.TypeDuration, spec.SettingList: config.TypeList,
}

// declaredTools returns the settings of all tools; none without a registry, which the command that needs it reports.
func (p Process) declaredTools(foreign registry.Foreign) []config.ToolDeclaration {
	data, err := p.registryData()
	if err != nil {
		return nil
	}
	var file registry.File
	if err := json.Unmarshal(data, &file); err != nil {
		return nil
	}
	var all []config.ToolDeclaration
	for _, t := range append(file.Tools, foreign.Entries...) {
		d := config.ToolDeclaration{ID: t.ToolID, VariantOf: t.VariantOf}
		for _, name := range slices.Sorted(maps.Keys(t.Settings)) {
			s := t.Settings[name]
			typ := settingTypes[s.Type]
			if s.Secret {
				typ = config.TypeSecret
			}
			if typ != nil {
				d.Settings = append(d.Settings, config.ToolSetting{Name: name, Type: typ, Default: s.Value(), Description: s.Description})
			}
		}
		all = append(all, d)
	}
	return all
}

// anySettings gives each required setting some value, to check whether the tools load.
func (p Process) anySettings() map[string]registry.ToolSettings {
	all := map[string]registry.ToolSettings{}
	for _, d := range p.declaredTools(registry.Foreign{}) {
		values := map[string]any{}
		for _, s := range d.Settings {
			if s.Default == nil {
				values[s.Name] = reflect.Zero(reflect.TypeOf(s.Type).Elem()).Interface()
			}
		}
		all[d.ID] = registry.ToolSettings{Values: values}
	}
	return all
}

func toolSettings(cfg *config.Config) map[string]registry.ToolSettings {
	all := map[string]registry.ToolSettings{}
	for id, t := range cfg.Tools {
		all[id] = registry.ToolSettings{Off: !t.Enabled, Share: t.Share, Values: t.Values()}
	}
	if !cfg.Agents.Tools {
		for _, id := range agent.Tools() {
			of := all[id]
			of.Off = true
			all[id] = of
		}
	}
	return all
}

// switchedOff returns the tools that the operator disabled, without the tools for agents, which are off by default.
func switchedOff(cfg *config.Config, off []string, unset []registry.Unset) []string {
	return slices.DeleteFunc(slices.Clone(off), func(id string) bool {
		return !cfg.Agents.Tools && slices.Contains(agent.Tools(), id) ||
			slices.ContainsFunc(unset, func(u registry.Unset) bool { return u.Tool == id })
	})
}

func (s *server) logToolSettings(cfg *config.Config) {
	tools := s.tools.Snapshot()
	if off := switchedOff(cfg, tools.Off(), tools.Unset()); len(off) > 0 {
		s.logger.Info("tools are disabled (tools.<id>.enabled)", "tools", strings.Join(off, ", "))
	}
	for _, unset := range tools.Unset() {
		s.logger.Error("a tool is off because it lacks a setting", "tool", unset.Tool, "fix", unset.String())
	}
}

func (s *server) configureTools(cfg *config.Config) (take func(), err error) {
	others, err := foreignTools(cfg.ToolDirs, cfg.MCP, s.caps.mcp, s.caps.hosts)
	if err != nil {
		return nil, err
	}
	if err := checkTools(cfg, s.tools.Snapshot(), others.Entries...); err != nil {
		return nil, err
	}
	swap, err := s.tools.Configure(toolSettings(cfg), others.Foreign)
	if err != nil {
		return nil, config.Problems{{Where: "tools", Message: err.Error()}}
	}
	return func() {
		swap()
		s.logToolSettings(cfg)
		s.caps.mcp.Use(mcpServers(cfg.MCP), others.mcp)
		logForeign(s.logger, others.warnings)
	}, nil
}

func logForeign(logger *slog.Logger, warnings []string) {
	for _, w := range warnings {
		logger.Warn("tools", "warning", w)
	}
}
