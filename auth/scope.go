package auth

import (
	"fmt"
	"slices"
	"strings"
)

// Scopes is a set of scopes. The zero Scopes is empty.
type Scopes uint8

// The scopes. docs/authentication.md says what each of them opens.
const (
	Voice   Scopes = 1 << iota // speak
	Chat                       // write
	Tickets                    // make tickets for any user, and name the user of a message
	Inspect                    // look inside sessions and conversations
	Confirm                    // answer confirmations
	Admin                      // everything
	Metrics                    // read the metrics
)

// AllScopes has each scope.
const AllScopes = Metrics<<1 - 1

// scopeNames are the names of the scopes, in the order of their bits.
var scopeNames = []string{"voice", "chat", "tickets", "inspect", "confirm", "admin", "metrics"}

// ScopeNames returns the names of all scopes.
func ScopeNames() []string { return append([]string(nil), scopeNames...) }

// ParseScope returns the scope with that name; ok is false if no scope has it.
func ParseScope(name string) (scope Scopes, ok bool) {
	for i, known := range scopeNames {
		if name == known {
			return 1 << i, true
		}
	}
	return 0, false
}

// ParseScopes returns the set of the named scopes. The error names the first one that does not
// exist, and those that do.
func ParseScopes(names []string) (Scopes, error) {
	var set Scopes
	for _, name := range names {
		scope, ok := ParseScope(name)
		if !ok {
			return 0, fmt.Errorf("there is no scope %q; there are %s", clip(name), strings.Join(scopeNames, ", "))
		}
		set |= scope
	}
	return set, nil
}

// GrantPrefix begins the scopes that are for tools: what a tool may read for the principal. They open
// no endpoint.
const GrantPrefix = "kb:"

// The bounds of grants: those of the scopes of a conversation, in package registry.
const (
	MostGrants    = 32
	maxGrantBytes = 64
)

// ValidGrant reports whether a word can be a grant: [GrantPrefix] and ASCII letters, digits and the
// signs . _ : / -, together at most 64.
func ValidGrant(word string) bool {
	rest, ok := strings.CutPrefix(word, GrantPrefix)
	return ok && rest != "" && len(word) <= maxGrantBytes && !strings.ContainsFunc(rest, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._:/-", r)
	})
}

// ParseAccess returns what a list of scopes opens, and its grants. The error names the first word that
// is neither, or says that there are too many grants.
func ParseAccess(words []string) (scopes Scopes, grants []string, err error) {
	var names []string
	for _, word := range words {
		switch {
		case !ValidGrant(word):
			names = append(names, word)
		case !slices.Contains(grants, word):
			grants = append(grants, word)
		}
	}
	if len(grants) > MostGrants {
		return 0, nil, fmt.Errorf("it has %d scopes that begin with %s; at most %d are taken", len(grants), GrantPrefix, MostGrants)
	}
	if scopes, err = ParseScopes(names); err != nil {
		return 0, nil, fmt.Errorf("%w, and those for tools, which begin with %s", err, GrantPrefix)
	}
	return scopes, grants, nil
}

// Names returns the names of the scopes in s, in a fixed order.
func (s Scopes) Names() []string {
	var names []string
	for i, name := range scopeNames {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// String returns the names, separated by spaces.
func (s Scopes) String() string { return strings.Join(s.Names(), " ") }

// clip shortens a text from outside to what an error may repeat.
func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}
