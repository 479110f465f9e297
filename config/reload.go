package config

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// reloads lists the settings that a running gateway applies. A row that ends in a dot is for all settings that begin
// with it; the longest matching row counts. Settings without a row need a restart. docs/configuration.md has the same
// table.
var reloads = map[string]bool{
	"agents.path":              true,
	"api_key":                  true,
	"auth.":                    true,
	"features":                 true,
	"tool_dirs":                true,
	"hosts":                    true,
	"origins":                  true,
	"limits.":                  true,
	"limits.message_bytes":     false, // gateways that carry each other's clients must agree
	"limits.resume_grace":      false, // clients and other gateways already have it
	"mcp.confirm":              true,
	"mcp.lock":                 true,
	"mcp.servers.":             true,
	"mcp.expose":               true,
	"mcp.per_minute":           true,
	"phone.":                   true,
	"phone.public_url":         false, // the routes exist only with it
	"prices.day_budget":        true,
	"prices.file":              true,
	"providers.<name>.api_key": true,
	"log.level":                true,
	"tools.":                   true,
	"webhooks.":                true,
}

// Reloads reports whether a running gateway applies a change of a setting.
func Reloads(key string) bool {
	if rest, ok := strings.CutPrefix(key, providersPrefix); ok {
		if _, setting, ok := strings.Cut(rest, "."); ok {
			key = providersPrefix + "<name>." + setting
		}
	}
	longest, is := "", false
	for row, yes := range reloads {
		if (row == key || strings.HasSuffix(row, ".") && strings.HasPrefix(key, row)) && len(row) > len(longest) {
			longest, is = row, yes
		}
	}
	return is
}

// Takeover is the result of reading a new configuration in a running gateway.
type Takeover struct {
	// Next is the configuration to run with. It has the new values of settings that reload, and the old values of the
	// others.
	Next *Config
	// Changed are the keys of settings that Next has changed, Restart those that need a restart. An API key, an issuer,
	// a webhook and a new provider are one key. Both are sorted and have no values.
	Changed, Restart []string
}

// TakeOver compares a new configuration with the present one. It changes neither, and Next shares parts with both. The
// error is Problems: Next breaks a rule of Load, which the new configuration keeps only with values that need a
// restart, or Next would no longer require credentials.
func TakeOver(now, read *Config) (Takeover, error) {
	next := *now
	next.Auth, next.Webhooks, next.MCP.Servers, next.Tools = read.Auth, read.Webhooks, read.MCP.Servers, read.Tools
	next.Providers = make(Providers, len(now.Providers))
	for name, p := range now.Providers {
		same := *p
		next.Providers[name] = &same
	}
	next.where = maps.Clone(read.where)
	t := Takeover{Next: &next}
	all := next.fields()
	mine, theirs, into := byKey(now.fields()), byKey(read.fields()), byKey(all)
	keys := map[string]bool{}
	for key := range mine {
		keys[key] = true
	}
	for key := range theirs {
		keys[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		was, is := mine[key].value, theirs[key].value
		switch {
		case was.IsValid() && is.IsValid() && reflect.DeepEqual(was.Interface(), is.Interface()):
		case !Reloads(key) || !sameServices(now, read) && strings.HasPrefix(key, providersPrefix):
			t.Restart = append(t.Restart, told(key, now, read))
			next.where[key] = cmp.Or(now.where[key], "default") + ", at the start"
		default:
			// Next already shares the other fields with the new configuration.
			if f, ok := into[key]; ok && is.IsValid() && f.value.Addr().Pointer() != is.Addr().Pointer() {
				f.value.Set(is)
			}
			t.Changed = append(t.Changed, told(key, now, read))
		}
	}
	t.Changed, t.Restart = slices.Compact(t.Changed), slices.Compact(t.Restart)
	broken := next.check(all)
	for i := range broken {
		if len(t.Restart) > 0 {
			broken[i].Message += " A reload leaves these settings as they were at the start: " + strings.Join(t.Restart, ", ") + "."
		}
	}
	return t, append(opened(now, &next), broken...).Err()
}

// opened returns a problem if clients would no longer need credentials: only a restart may do that.
func opened(now, next *Config) (problems Problems) {
	if now.Auth.Enabled() && !next.Auth.Enabled() {
		problems.Add("auth", "auth has no key and no issuer any more, so everyone who reaches the gateway could use it "+
			"without credentials. "+
			"Keep one of them; to withdraw the only key, set its expires to a past date. To run without credentials, restart the gateway.")
	}
	if now.APIKey.IsSet() && !next.APIKey.IsSet() && !next.Auth.Enabled() {
		problems.Add("api_key", "api_key is gone, and auth has no key and no issuer, so POST /v1/chat/completions would need "+
			"no key any more. "+
			"Set another api_key, or restart the gateway to run without one.")
	}
	return problems
}

// check applies the rules of Load to a configuration made of several. all are its fields.
func (c *Config) check(all []field) Problems {
	l := &loader{config: c, fields: byKey(all), where: c.where}
	for _, f := range all {
		l.keys = append(l.keys, f.key)
	}
	validator{l}.validate()
	return l.problems
}

// told returns a setting's name for an operator; a key, an issuer, a webhook and a new provider are one setting.
func told(key string, one, other *Config) string {
	if rest, ok := strings.CutPrefix(key, providersPrefix); ok {
		if name, _, ok := strings.Cut(rest, "."); ok && (one.Providers[name] == nil) != (other.Providers[name] == nil) {
			return providersPrefix + name
		}
	}
	for _, in := range namedSections[1:] { // without the providers
		if rest, ok := strings.CutPrefix(key, in.prefix); ok {
			name, _, _ := strings.Cut(rest, ".")
			return in.prefix + name
		}
	}
	return key
}

func (c *Config) fields() []field {
	all := fieldsOf("", c)
	for _, in := range namedSections {
		all = append(all, in.fields(c)...)
	}
	for _, id := range slices.Sorted(maps.Keys(c.Tools)) {
		all = append(all, c.Tools[id].fields(id)...)
	}
	return all
}

func byKey(all []field) map[string]field {
	fields := make(map[string]field, len(all))
	for _, f := range all {
		fields[f.key] = f
	}
	return fields
}

// sameServices reports whether two configurations offer the same providers, so that only their keys may differ.
func sameServices(a, b *Config) bool { return slices.Equal(a.Services(), b.Services()) }
