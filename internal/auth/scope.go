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
	ScopeVoice   Scopes = 1 << iota // speak
	ScopeChat                       // write
	ScopeTickets                    // make tickets for any user, and name the user of a message
	ScopeInspect                    // look inside sessions and conversations
	ScopeConfirm                    // answer confirmations
	ScopeAdmin                      // everything
	ScopeMetrics                    // read the metrics
)

// AllScopes has each scope.
const AllScopes = ScopeMetrics<<1 - 1

// inOrder has the names of the scopes, in the order of their bits.
var inOrder = []string{"voice", "chat", "tickets", "inspect", "confirm", "admin", "metrics"}

// ScopeNames returns the names of all scopes.
func ScopeNames() []string { return append([]string(nil), inOrder...) }

// ParseScope returns the scope with that name; ok is false if no scope has it.
func ParseScope(name string) (scope Scopes, ok bool) {
	for i, known := range inOrder {
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
			return 0, fmt.Errorf("there is no scope %.40q; there are %s", name, strings.Join(inOrder, ", "))
		}
		set |= scope
	}
	return set, nil
}

// The bounds of grants: those of the scopes of a conversation, in package registry.
const (
	MostGrants    = 32
	maxGrantBytes = 64
)

// separators are the signs of which a grant has one inside, and the name of a scope none.
const separators = ".:/"

// ValidGrant reports whether a word can be a grant, a scope that is for tools and opens no endpoint, such
// as kb:staff or calendar.write: at most 64 ASCII letters, digits and the signs . _ : / -, a letter or
// digit at both ends, and one of . : / inside, so that a misspelt scope is not taken for one.
func ValidGrant(word string) bool {
	return len(word) <= maxGrantBytes && strings.ContainsAny(word, separators) && !strings.ContainsFunc(word, func(r rune) bool {
		return !alphanumeric(r) && !strings.ContainsRune(separators+"_-", r)
	}) && alphanumeric(rune(word[0])) && alphanumeric(rune(word[len(word)-1]))
}

func alphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
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
		return 0, nil, fmt.Errorf("it has %d scopes for tools; at most %d are taken", len(grants), MostGrants)
	}
	if scopes, err = ParseScopes(names); err != nil {
		return 0, nil, fmt.Errorf("%w, and those for tools, which have a . : or / inside", err)
	}
	return scopes, grants, nil
}

// Names returns the names of the scopes in s, in a fixed order.
func (s Scopes) Names() []string {
	var names []string
	for i, name := range inOrder {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// String returns the names, separated by spaces.
func (s Scopes) String() string { return strings.Join(s.Names(), " ") }
