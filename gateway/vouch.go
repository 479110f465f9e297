package gateway

import (
	"fmt"
	"net/http"

	"voicegw/registry"
)

// vouched says whether a request comes from a trusted caller, one that shows the key itself:
// then the user that it names and the scopes that it grants count. A console's token does not
// suffice, because a browser holds it.
func (s *Server) vouched(r *http.Request) bool { return s.guard.checkKey(r) == nil }

// scopesProblem says what is wrong with the scopes of a request; empty if they are valid.
func scopesProblem(scopes []string) string {
	if len(scopes) > registry.MaxScopes {
		return fmt.Sprintf("scopes has %d entries; at most %d are taken.", len(scopes), registry.MaxScopes)
	}
	for i, scope := range scopes {
		if !registry.ValidScope(scope) {
			return fmt.Sprintf("scopes[%d] must be 1 to %d letters, digits and the signs . _ : / -.", i, registry.MaxScopeBytes)
		}
	}
	return ""
}

// grants says why a request may not grant the scopes that it names; empty if it may. A client
// cannot grant itself anything.
func (s *Server) grants(r *http.Request, scopes []string) (wrong string) {
	if len(scopes) == 0 || s.vouched(r) {
		return ""
	}
	return "scopes are granted by trusted servers alone. Leave them out, or show the gateway's api_key as \"Authorization: Bearer …\"."
}
