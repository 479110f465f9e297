package spec

import (
	"fmt"
	"strings"
	"voicegw/registry/document"
)

// requires parses the scopes that the tool requires.
func (r *specReader) requires() []string {
	v, has := r.object["requires"]
	if !has {
		return nil
	}
	list, ok := v.([]any)
	switch {
	case !ok || len(list) == 0:
		r.problem(document.Pointer{"requires"},
			"\"requires\" is a list of scopes, such as [\"calendar.write\"], got %s; for a tool that everybody "+
				"has, leave it out.", document.Describe(v))
		return nil
	case len(list) > MaxScopes:
		r.problem(document.Pointer{"requires"},
			"A conversation has at most %d scopes, and the tool requires %d, so nobody would have it; require fewer.", MaxScopes, len(list))
		return nil
	}
	form := fmt.Sprintf("A scope has 1 to %d letters, digits and the signs . _ : / -", MaxScopeBytes)
	return r.words(document.Pointer{"requires"}, list, "The scope ", form, ValidScope)
}

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
