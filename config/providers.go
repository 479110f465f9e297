package config

import (
	"maps"
	"slices"
	"strings"
	"voicegw/config/setting"
	"voicegw/internal/textutil"
	"voicegw/transport"
	"voicegw/transport/gemini"
	"voicegw/transport/live"
	"voicegw/transport/openai"
)

// Providers holds the settings of each provider by its name.
type Providers map[string]*Provider

// Provider configures one provider: its key, address and model. Several providers may use the same wire.
type Provider struct {
	// Protocol: `gemini`, `openai` or `live`.
	Wire string `key:"wire" unset:"the name, if it is a wire's" eg:"gemini"`
	// The provider's key.
	APIKey setting.Secret `key:"api_key" eg:"your-key"`
	// Another [address](#several-providers).
	BaseURL string `key:"base_url" unset:"the wire's own" eg:"https://generativelanguage.googleapis.com"`
	// Model: `gemini-3.8-live` or `gpt-realtime-2.1` (2026-11-23); on Azure the deployment, without a default.
	Model string `key:"model" unset:"the adapter's" eg:"gemini-3.8-live"`
	// Voice, such as `Kore` or `marin`; clients may choose another.
	Voice string `key:"voice" unset:"the provider's" eg:"Kore"`
	// The stop button also interrupts the model. Set `false` if that ends sessions (reported for Gemini 3.1) or a
	// server lacks it.
	Interrupt bool `key:"interrupt"`
	// Settings are the wire's additional settings, by name. A setting without a value is missing.
	Settings map[string]string
}

// Configured reports whether the user has configured access to the real provider.
func (p *Provider) Configured() bool { return p.APIKey.IsSet() || p.BaseURL != "" }

func newProviders(all []transport.Wire) Providers {
	p := Providers{}
	for _, w := range all {
		p[w.Name] = newProvider(w.Name)
	}
	return p
}

func newProvider(wire string) *Provider {
	return &Provider{Wire: wire, Interrupt: true, Settings: map[string]string{}}
}

// Service is a provider that is offered to clients.
type Service struct {
	Name string
	// Simulated means that the simulator in the process replaces it.
	Simulated bool
}

// Services returns the providers to offer, the default one first.
func (c *Config) Services() []Service {
	var real, simulated []Service
	for _, name := range c.ProviderNames() {
		p := c.Providers[name]
		if p.Configured() {
			real = append(real, Service{Name: name})
		}
		if w := c.WireOf(name); w != nil && w.Simulated {
			simulated = append(simulated, Service{Name: name, Simulated: true})
		}
	}
	if c.Sim.Use == UseAlways || c.Sim.Use == useAuto && len(real) == 0 {
		return simulated
	}
	return real
}

// ProviderNames returns the names of all providers: the default one, those with the name of their wire, and the others
// in alphabetical order.
func (c *Config) ProviderNames() []string {
	names := make([]string, 0, len(c.Providers))
	for _, name := range append([]string{c.Provider}, c.wireNames()...) {
		if c.Providers[name] != nil && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// WireOf returns the wire of a provider of the configuration; nil if there is no such provider.
func (c *Config) WireOf(provider string) *transport.Wire {
	if p := c.Providers[provider]; p != nil {
		return c.wire(p.Wire)
	}
	return nil
}

// OfWire returns the configured providers of a wire, in the order of ProviderNames.
func (c *Config) OfWire(wire string) []*Provider {
	var list []*Provider
	for _, name := range c.ProviderNames() {
		if p := c.Providers[name]; p.Wire == wire && p.Configured() {
			list = append(list, p)
		}
	}
	return list
}

func (c *Config) wire(name string) *transport.Wire {
	at := slices.IndexFunc(c.wires, func(w transport.Wire) bool { return w.Name == name })
	if at < 0 {
		return nil
	}
	return &c.wires[at]
}

func (c *Config) wireNames() []string {
	names := make([]string, len(c.wires))
	for i, w := range c.wires {
		names[i] = w.Name
	}
	return names
}

func (l *loader) introduceProvider(name string) []field {
	p := l.config.Providers[name]
	if p == nil {
		p = newProvider("")
		l.config.Providers[name] = p
	}
	prefix := providersPrefix + name + "."
	settings := fieldsOf(prefix, p)
	for _, setting := range l.wireSettings() {
		settings = append(settings, newField(prefix+setting))
	}
	return settings
}

func (c *Config) providerFields() (all []field) {
	for name, p := range c.Providers {
		prefix := providersPrefix + name + "."
		all = append(all, fieldsOf(prefix, p)...)
		for setting, value := range p.Settings {
			f := newField(prefix + setting)
			f.value.SetString(value)
			all = append(all, f)
		}
	}
	return all
}

const providersPrefix = "providers."

func (l *loader) wireSettings() []string {
	var names []string
	for _, w := range l.config.wires {
		names = append(names, w.Settings...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// readKeyVariables reads the keys for the providers' own clients. A provider with another wire must not get the key.
func (l *loader) readKeyVariables(vars map[string]string) {
	for _, w := range l.config.wires {
		key := providersPrefix + w.Name + ".wire"
		wire := l.config.Providers[w.Name].Wire
		if v, ok := vars[env(key)]; ok {
			wire = v
		}
		for _, f := range l.source.Flags {
			if f.Key == key {
				wire = f.Value
			}
		}
		if wire != w.Name {
			continue
		}
		for _, variable := range w.KeyVariables {
			if value, ok := vars[variable]; ok {
				l.set(variable, providersPrefix+w.Name+".api_key", value)
			}
		}
	}
}

func (l *loader) settleProviders() {
	known := l.config.wireNames()
	for _, name := range l.config.ProviderNames() {
		p, prefix := l.config.Providers[name], providersPrefix+name+"."
		w := l.config.WireOf(name)
		switch {
		case l.refused(prefix + "wire"):
			continue
		case p.Wire == "":
			meant := textutil.Nearest(name, known)
			if meant != "" {
				meant = providersPrefix + meant
			}
			l.problems.Add(l.atProvider(name), "%swire is missing; it is the protocol of %s: %s.%s",
				prefix, name, strings.Join(known, " or "), didYouMean(meant))
			continue
		case w == nil:
			l.bad(prefix+"wire", "%swire must be one of %s, not %s.%s",
				prefix, strings.Join(known, ", "), quote(p.Wire), didYouMean(textutil.Nearest(p.Wire, known)))
			continue
		}
		for _, setting := range l.wireSettings() {
			value := l.fields[prefix+setting].value.String()
			switch {
			case value == "":
			case slices.Contains(w.Settings, setting):
				p.Settings[setting] = value
			default:
				l.bad(prefix+setting, "%s is not a setting of the wire %s; remove it.", prefix+setting, w.Name)
			}
		}
	}
}

func (l *loader) atProvider(name string) string {
	prefix := providersPrefix + name + "."
	for _, key := range l.keys {
		if strings.HasPrefix(key, prefix) && l.where[key] != "" {
			return l.where[key]
		}
	}
	return l.at(prefix + "wire")
}

func (v validator) validateProviders() {
	c := v.config
	v.oneOf("provider", c.Provider, c.ProviderNames()...)
	for _, name := range c.ProviderNames() {
		v.baseURL(providersPrefix+name+".base_url", c.Providers[name].BaseURL)
	}
	services := c.Services()
	if !slices.ContainsFunc(services, func(s Service) bool { return s.Name == c.Fallback }) && c.Fallback != "" {
		var names []string
		for _, s := range services {
			names = append(names, s.Name)
		}
		v.wrong("providers.fallback", "is %s, which the gateway does not offer; choose one of %s, or give that provider its api_key "+
			"or base_url", quote(c.Fallback), strings.Join(names, ", "))
	}
	switch {
	case v.refusedBelow(strings.TrimSuffix(providersPrefix, ".")): // the configured providers are unknown
	case len(services) == 0 && c.Sim.Use == useNever:
		var variables []string
		for _, w := range c.wires {
			variables = append(variables, w.KeyVariables[:min(1, len(w.KeyVariables))]...)
		}
		v.wrong("sim.use", "is never, and no provider is configured; set %s, or providers.<name>.base_url",
			strings.Join(variables, " or "))
	case c.WireOf(c.Provider) == nil || len(services) > 0 && services[0].Name == c.Provider:
	case c.Sim.Use == UseAlways || !slices.ContainsFunc(services, func(s Service) bool { return !s.Simulated }):
		v.wrong("provider", "is %s, and the simulator does not speak its wire, %s; set %s, or choose another provider", c.Provider,
			c.WireOf(c.Provider).Name, c.HowToReach(c.Provider))
	default:
		v.wrong("provider", "is %s, but only %s is configured; set %s (or providers.%s.base_url), choose provider %s, or use the "+
			"simulator for both with sim.use: always", c.Provider, services[0].Name, c.HowToReach(c.Provider), c.Provider,
			services[0].Name)
	}
	for _, name := range c.ProviderNames() {
		if !slices.Contains(c.wireNames(), name) && !slices.ContainsFunc(services, func(s Service) bool { return s.Name == name }) {
			v.warnings = append(v.warnings, "providers."+name+" has neither api_key nor base_url, so the gateway does not offer it.")
		}
	}
}

// HowToReach names the variable or the setting for a provider's key.
func (c *Config) HowToReach(provider string) string {
	if w := c.wire(provider); w != nil && len(w.KeyVariables) > 0 {
		return w.KeyVariables[0]
	}
	return providersPrefix + provider + ".api_key"
}

// Wires returns one row per wire; docs/providers.md describes how to add one. The first is that of the default
// provider.
func Wires() []transport.Wire {
	return []transport.Wire{
		gemini.Wire(),
		openai.Wire(),
		live.Wire(),
	}
}
