package spec

import "strings"

// The limits of the scopes of one session.
const (
	MaxScopes     = 32
	MaxScopeBytes = 64
)

// ValidScope reports whether a text can be a scope: 1 to MaxScopeBytes ASCII letters, digits
// and the signs . _ : / -.
func ValidScope(scope string) bool {
	return scope != "" && len(scope) <= MaxScopeBytes && !strings.ContainsFunc(scope, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._:/-", r)
	})
}
