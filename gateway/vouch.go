package gateway

import (
	"fmt"
	"net/http"
	"slices"

	"voicegw/internal/auth"
	"voicegw/registry/spec"
)

// scopesProblem says what is wrong with the scopes of a request; empty if they are valid.
func scopesProblem(scopes []string) string {
	if len(scopes) > spec.MaxScopes {
		return fmt.Sprintf("scopes has %d entries; at most %d are taken.", len(scopes), spec.MaxScopes)
	}
	for i, scope := range scopes {
		if !spec.ValidScope(scope) {
			return fmt.Sprintf("scopes[%d] must be 1 to %d letters, digits and the signs . _ : / -.", i, spec.MaxScopeBytes)
		}
	}
	return ""
}

// grantsOf returns the scopes of a request for tools: those that its body names and those that its
// credentials bring.
func grantsOf(r *http.Request, named []string) []string {
	all := slices.Clone(named)
	for _, scope := range auth.From(r.Context()).Granted() {
		if !slices.Contains(all, scope) {
			all = append(all, scope)
		}
	}
	return all
}

// grantProblem says why a request may not grant the scopes that it names; empty if it may. A client
// cannot grant itself anything.
func grantProblem(r *http.Request, scopes []string) (wrong string) {
	if len(scopes) == 0 || isServer(auth.From(r.Context())) {
		return ""
	}
	return "scopes are granted by trusted servers alone. Leave them out, or show a key with the scope tickets, or the gateway's api_key, as \"Authorization: Bearer …\"."
}
