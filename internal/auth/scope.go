package auth

import (
	"fmt"
	"slices"
	"strings"
)

// Scopes is a set of scopes.
type Scopes uint8

// The scopes; docs/authentication.md describes them.
const (
	ScopeVoice   Scopes = 1 << iota // speak
	ScopeChat                       // write
	ScopeTickets                    // make tickets for any user, and name a message's user
	ScopeInspect                    // read sessions and conversations
	ScopeConfirm                    // answer confirmations
	ScopeAdmin                      // everything
	ScopeMetrics                    // read the metrics
)

// AllScopes has every scope.
const AllScopes = ScopeMetrics<<1 - 1

var inOrder = []string{"voice", "chat", "tickets", "inspect", "confirm", "admin", "metrics"}

// ScopeNames returns all scope names.
func ScopeNames() []string { return slices.Clone(inOrder) }

// scopeNamed returns the scope with a name; none if it is unknown.
func scopeNamed(name string) Scopes {
	if i := slices.Index(inOrder, name); i >= 0 {
		return 1 << i
	}
	return 0
}

// The limits of grants, as in package registry.
const (
	MostGrants    = 32
	maxGrantBytes = 64
)

// separators are characters that a grant contains once and a scope name never.
const separators = ".:/"

// ValidGrant reports whether a word can be a scope for tools, such as kb:staff: at most 64 ASCII letters, digits, and .
// _ : / -, with a letter or digit at both ends and one of . : /, so that a misspelt scope is not taken for one.
func ValidGrant(word string) bool {
	return len(word) <= maxGrantBytes && strings.ContainsAny(word, separators) && !strings.ContainsFunc(word, func(r rune) bool {
		return !alphanumeric(r) && !strings.ContainsRune(separators+"_-", r)
	}) && alphanumeric(rune(word[0])) && alphanumeric(rune(word[len(word)-1]))
}

func alphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

// ParseAccess splits scopes into those for endpoints and grants. The error names the first invalid word.
func ParseAccess(words []string) (scopes Scopes, grants []string, err error) {
	for _, word := range words {
		scope := scopeNamed(word)
		if scope == 0 && !ValidGrant(word) {
			return 0, nil, fmt.Errorf("unknown scope %.40q; known are %s, and scopes for tools, which contain . : or /", word,
				strings.Join(inOrder, ", "))
		}
		scopes |= scope
		if scope == 0 && !slices.Contains(grants, word) {
			grants = append(grants, word)
		}
	}
	if len(grants) > MostGrants {
		return 0, nil, fmt.Errorf("it has %d scopes for tools; the maximum is %d", len(grants), MostGrants)
	}
	return scopes, grants, nil
}

// Names returns the scope names in a fixed order.
func (s Scopes) Names() []string {
	var names []string
	for i, name := range inOrder {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

func (s Scopes) String() string { return strings.Join(s.Names(), " ") }
