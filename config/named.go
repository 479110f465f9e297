package config

import (
	"regexp"
	"strings"
)

// named is a section in which the user gives names: each name has the same settings.
type named struct {
	prefix string // of its settings' keys
	what   string // what has the name, for a person
	// known is the setting by which a variable makes a name known. Not each one does, since a variable
	// with a misspelt name may belong to another program and must not stop this one.
	known string
	// add makes the value of a new name, and returns its settings.
	add func(l *loader, name string) []field
}

// namedSections returns all of them.
func namedSections() []named {
	return []named{
		{providersPrefix, "provider", "wire", (*loader).introduceProvider},
		{authKeysPrefix, "key", "sha256", (*loader).introduceKey},
		{authJWTPrefix, "issuer", "issuer", (*loader).introduceIssuer},
		{webhooksPrefix, "webhook", "url", (*loader).introduceWebhook},
	}
}

// validName matches a valid name. Variables contain the name in capitals, with _ instead of -, so _
// is not allowed in it.
var validName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)

// namedAt returns the section with that prefix, or nil.
func namedAt(prefix string) *named {
	for _, in := range namedSections() {
		if in.prefix == prefix {
			return &in
		}
	}
	return nil
}

// introduce makes the settings of a name known. It returns false if the name is invalid.
func (l *loader) introduce(in *named, name string) bool {
	if !validName.MatchString(name) {
		return false
	}
	if _, known := l.fields[in.prefix+name+"."+in.known]; !known {
		l.know(in.add(l, name))
	}
	return true
}

// introduceAll makes the names known that variables or flags have: a flag introduces one with any of
// its settings.
func (l *loader) introduceAll(vars map[string]string) {
	for _, in := range namedSections() {
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

// takes reports whether each name of a section has a setting.
func (l *loader) takes(in *named, setting string) bool {
	scratch := newLoader(Source{Wires: l.config.wires})
	scratch.introduce(in, "x")
	_, has := scratch.fields[in.prefix+"x."+setting]
	return has
}
