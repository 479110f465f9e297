package auth

import (
	"fmt"
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
