package gateway

import (
	"fmt"
	"net/http"
	"slices"

	"voicegw/internal/auth"
	"voicegw/registry/spec"
)

// scopesProblem returns the problem with a request's scopes, or an empty string.
func scopesProblem(scopes []string) string {
	if len(scopes) > spec.MaxScopes {
		return fmt.Sprintf("scopes has %d entries; at most %d are allowed.", len(scopes), spec.MaxScopes)
	}
	for i, scope := range scopes {
		if !spec.ValidScope(scope) {
			return fmt.Sprintf("scopes[%d] must be 1 to %d letters, digits or . _ : / -.", i, spec.MaxScopeBytes)
		}
	}
	return ""
}

// grantsOf returns the scopes for tools that a request's body and credentials grant.
func grantsOf(r *http.Request, named []string) []string {
	all := slices.Clone(named)
	for _, scope := range auth.From(r.Context()).Granted() {
		if !slices.Contains(all, scope) {
			all = append(all, scope)
		}
	}
	return all
}

// grantProblem returns the reason why a request may not grant the scopes it names; clients cannot grant scopes to
// themselves.
func grantProblem(r *http.Request, scopes []string) (wrong string) {
	if len(scopes) == 0 || isServer(auth.From(r.Context())) {
		return ""
	}
	return "Only trusted servers may grant scopes. Omit them, or send a key with the scope tickets, or the gateway's api_key, " +
		"as \"Authorization: Bearer …\"."
}
