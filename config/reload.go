package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// reloads says which settings a gateway takes over while it runs. A row that ends in a dot stands for
// all settings that begin with it; of several rows the longest counts. What no row names counts from
// the next start. docs/configuration.md has the same table.
var reloads = map[string]bool{
	"agents.path":              true,
	"api_key":                  true,
	"auth.":                    true,
	"features":                 true,
	"hosts":                    true,
	"origins":                  true,
	"limits.":                  true,
	"limits.message_bytes":     false, // gateways that carry each other's clients agree about it
	"limits.resume_grace":      false, // clients were told it, and other gateways keep it
	"prices.day_budget":        true,
	"prices.file":              true,
	"providers.<name>.api_key": true,
	"log.level":                true,
	"tools.":                   true,
	"webhooks.":                true,
}

// Reloads reports whether a gateway takes a setting over while it runs.
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

// Takeover is what becomes of a configuration that was read while a gateway runs with another one.
type Takeover struct {
	// Next is the configuration to run with: what can be taken over is that of the one that was read,
	// everything else that of the start.
	Next *Config
	// Changed are the keys of settings that Next takes over, Restart those that count from the next start;
	// an API key, an issuer, a webhook and a new provider are named as a whole. Both are sorted, and never hold values.
	Changed, Restart []string
}

// TakeOver compares a configuration that was read with the one that the gateway runs with now. None of
// the configurations is changed, and Next shares parts with both.
func TakeOver(now, read *Config) Takeover {
	next := *now
	next.Auth, next.Webhooks, next.Tools, next.Features = read.Auth, read.Webhooks, read.Tools, read.Features
	next.Providers = make(Providers, len(now.Providers))
	for name, p := range now.Providers {
		same := *p
		next.Providers[name] = &same
	}
	t := Takeover{Next: &next}
	mine, theirs, into := now.settings(), read.settings(), next.settings()
	keys := map[string]bool{}
	for key := range mine {
		keys[key] = true
	}
	for key := range theirs {
		keys[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		was, is := mine[key], theirs[key]
		switch {
		case was.IsValid() && is.IsValid() && reflect.DeepEqual(was.Interface(), is.Interface()):
		case !Reloads(key) || !sameServices(now, read) && strings.HasPrefix(key, providersPrefix):
			t.Restart = append(t.Restart, told(key, now, read))
		default:
			if is.IsValid() && into[key].IsValid() {
				into[key].Set(is)
			}
			t.Changed = append(t.Changed, told(key, now, read))
		}
	}
	t.Changed, t.Restart = slices.Compact(t.Changed), slices.Compact(t.Restart)
	return t
}

// told returns how a setting is named to an operator: an API key, an issuer and a webhook as a whole, and also a
// provider that only one of two configurations has.
func told(key string, one, other *Config) string {
	if rest, ok := strings.CutPrefix(key, providersPrefix); ok {
		if name, _, ok := strings.Cut(rest, "."); ok && (one.Providers[name] == nil) != (other.Providers[name] == nil) {
			return providersPrefix + name
		}
	}
	for _, prefix := range []string{authKeysPrefix, authJWTPrefix, webhooksPrefix} {
		if rest, ok := strings.CutPrefix(key, prefix); ok {
			name, _, _ := strings.Cut(rest, ".")
			return prefix + name
		}
	}
	return key
}

// settings returns the values of all settings by their keys.
func (c *Config) settings() map[string]reflect.Value {
	all := fieldsOf("", c)
	for name, p := range c.Providers {
		prefix := providersPrefix + name + "."
		all = append(all, fieldsOf(prefix, p)...)
		for setting, value := range p.Settings {
			f := newField(prefix + setting)
			f.value.SetString(value)
			all = append(all, f)
		}
	}
	for name, k := range c.Auth.Keys {
		all = append(all, fieldsOf(authKeysPrefix+name+".", k)...)
	}
	for name, i := range c.Auth.JWT {
		all = append(all, fieldsOf(authJWTPrefix+name+".", i)...)
	}
	for name, w := range c.Webhooks {
		all = append(all, fieldsOf(webhooksPrefix+name+".", w)...)
	}
	all = append(all, c.toolFields()...)
	values := make(map[string]reflect.Value, len(all))
	for _, f := range all {
		values[f.key] = f.value
	}
	return values
}

// sameServices reports whether two configurations offer the same providers, so that only their keys
// differ.
func sameServices(a, b *Config) bool { return slices.Equal(a.Services(), b.Services()) }
