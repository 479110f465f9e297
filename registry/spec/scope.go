package spec

import "strings"

// Limits of a session's scopes.
const (
	MaxScopes     = 32
	MaxScopeBytes = 64
)

// ValidScope reports whether a text is a scope: 1 to MaxScopeBytes ASCII letters, digits or . _ : / -.
func ValidScope(scope string) bool {
	return scope != "" && len(scope) <= MaxScopeBytes && !strings.ContainsFunc(scope, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._:/-", r)
	})
}
