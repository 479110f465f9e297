package config

import (
	"regexp"
	"slices"
	"strings"
)

var featureForm = regexp.MustCompile(`^(!)?([a-z][a-z0-9]*(?:[-_][a-z0-9]+)*)(?:@([^@!\s]+))?$`)

// Feature reports whether a feature is on for an agent. Entries for the agent override those for all.
func (c *Config) Feature(agent, name string) bool {
	switch {
	case slices.Contains(c.Features, "!"+name+"@"+agent):
		return false
	case slices.Contains(c.Features, name+"@"+agent):
		return true
	}
	return slices.Contains(c.Features, name)
}

// validateFeatures reports useless and contradictory entries.
func (v validator) validateFeatures() {
	for i, entry := range v.config.Features {
		m := featureForm.FindStringSubmatch(entry)
		switch {
		case m == nil || len(m[2]) > 64 || len(m[3]) > 64:
			v.bad("features", "features holds %s; a feature has small letters, digits, - and _, such as spring-sale, and may "+
				"name an agent: spring-sale@desk is on for that agent, !spring-sale@desk is off for it.", quote(entry))
		case m[1] != "" && m[3] == "":
			v.bad("features", "features holds %s, but a feature that is not listed is off anyway; leave it out, or name the "+
				"agent for which it is off: !%s@desk.", quote(entry), m[2])
		case slices.Contains(v.config.Features[:i], entry):
			v.bad("features", "features holds %s twice; leave one.", quote(entry))
		case slices.Contains(v.config.Features[:i], "!"+entry), m[1] != "" &&
			slices.Contains(v.config.Features[:i], strings.TrimPrefix(entry, "!")):
			v.bad("features", "features says that %s is both on and off for %s; leave one.", quote(m[2]), quote(m[3]))
		}
	}
}
