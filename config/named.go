package config

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"voicegw/internal/checks"
	"voicegw/internal/webhook"
)

// named is a section with names chosen by the user, each with the same settings.
type named struct {
	prefix string // of the settings' keys
	what   string // the kind of named object, for people
	// known is the setting whose variable introduces a name. Other variables don't, because a misspelt one may belong
	// to another program.
	known string
	// add creates the value of a new name, and returns its settings.
	add func(l *loader, name string) []field
	// fields returns the settings of all names.
	fields func(*Config) []field
}

var namedSections = []named{
	{providersPrefix, "provider", "wire", (*loader).introduceProvider, (*Config).providerFields},
	sectionOf(authKeysPrefix, "key", "sha256", func(c *Config) map[string]*AuthKey { return c.Auth.Keys },
		func() *AuthKey { return &AuthKey{} }),
	sectionOf(authJWTPrefix, "issuer", "issuer", func(c *Config) map[string]*AuthIssuer { return c.Auth.JWT },
		func() *AuthIssuer {
			return &AuthIssuer{Claims: AuthClaims{User: "sub", Scopes: "scope"}, Scopes: []string{"voice", "chat"},
				Leeway: 30 * time.Second}
		}),
	sectionOf(webhooksPrefix, "webhook", "url", func(c *Config) map[string]*Webhook { return c.Webhooks },
		func() *Webhook { return &Webhook{Events: webhook.Types(), Timeout: 10 * time.Second} }),
	sectionOf(checksPrefix, "check", "kind", func(c *Config) map[string]*Check { return c.Checks.Rules },
		func() *Check {
			return &Check{Outcome: string(checks.Cut), OnFailure: onFailPass, Timeout: 3 * time.Second}
		}),
	sectionOf(mcpServersPrefix, "MCP server", "url", func(c *Config) map[string]*MCPServer { return c.MCP.Servers },
		func() *MCPServer { return &MCPServer{} }),
}

func sectionOf[T any](prefix, what, known string, in func(*Config) map[string]*T, fresh func() *T) named {
	add := func(l *loader, name string) []field {
		value := fresh()
		in(l.config)[name] = value
		return fieldsOf(prefix+name+".", value)
	}
	return named{prefix, what, known, add, func(c *Config) (all []field) {
		for name, value := range in(c) {
			all = append(all, fieldsOf(prefix+name+".", value)...)
		}
		return all
	}}
}

// validName matches a name. Variables contain it in capitals with _ for -, so it must not contain _.
var validName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)

func namedAt(prefix string) *named {
	if at := slices.IndexFunc(namedSections, func(in named) bool { return in.prefix == prefix }); at >= 0 {
		return &namedSections[at]
	}
	return nil
}

// introduce adds the settings of a name; false if the name is invalid.
func (l *loader) introduce(in *named, name string) bool {
	if !validName.MatchString(name) {
		return false
	}
	if _, known := l.fields[in.prefix+name+"."+in.known]; !known {
		l.know(in.add(l, name))
	}
	return true
}

// introduceAll adds the names in variables and flags; any setting in a flag introduces its name.
func (l *loader) introduceAll(vars map[string]string) {
	for _, in := range namedSections {
		for _, f := range l.source.Flags {
			if rest, ok := strings.CutPrefix(f.Key, in.prefix); ok {
				name, setting, _ := strings.Cut(rest, ".")
				if l.takes(&in, setting) {
					l.introduce(&in, name)
				}
			}
		}
		for variable := range vars {
			name, ok := strings.CutPrefix(strings.TrimSuffix(variable, strings.ToUpper(secretFileSuffix)), env(in.prefix))
			if name, known := strings.CutSuffix(name, env("." + in.known)[len(envPrefix):]); ok && known {
				l.introduce(&in, strings.ReplaceAll(strings.ToLower(name), "_", "-"))
			}
		}
	}
}

// takes reports whether the names of a section have a setting.
func (l *loader) takes(in *named, setting string) bool {
	scratch := newLoader(Source{Wires: l.config.wires})
	scratch.introduce(in, "x")
	_, has := scratch.fields[in.prefix+"x."+setting]
	return has
}
