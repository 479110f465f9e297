package gateway

import (
	"fmt"
	"slices"
	"strings"

	"voicegw/auth/scope"
)

// The patterns and paths that more than one place names; completionsPath is another one.
const (
	voicePath      = "/v1/voice"
	voicePattern   = "GET " + voicePath
	metricsPattern = "GET /metrics"
	modelsPath     = "/v1/models"
	sessionsPath   = "/v1/sessions"
)

// access says who may use a route.
type access struct {
	// pattern is the route's, in the form of http.ServeMux.
	pattern string
	// scopes are those of which one is enough; empty means that everybody may use the route, and that
	// credentials are not looked at.
	scopes scope.Set
	// free says that the route needs no credentials as long as no key and no issuer is configured.
	free bool
}

// accesses is the table of all routes, for which docs/authentication.md has the reasons. A route
// that has no row cannot be registered. OPTIONS, which browsers ask before a request of a page
// (CORS), is for everybody.
var accesses = []access{
	{pattern: voicePattern, scopes: scope.Voice, free: true}, // a ticket or a resume token opens it as well
	{pattern: "GET /v1/providers", scopes: scope.Voice | scope.Chat | scope.Tickets | scope.Inspect, free: true},
	{pattern: "GET /v1/tools", scopes: scope.Voice | scope.Chat | scope.Inspect, free: true},
	{pattern: "GET /v1/tools/{id}", scopes: scope.Inspect, free: true},
	{pattern: "POST /v1/chat", scopes: scope.Chat, free: true},
	{pattern: "POST " + completionsPath, scopes: scope.Chat, free: true},
	{pattern: "GET " + modelsPath, scopes: scope.Chat, free: true},
	{pattern: "GET " + modelsPath + "/{id...}", scopes: scope.Chat, free: true},
	{pattern: "POST " + sessionsPath, scopes: scope.Tickets | scope.Voice}, // voice alone: for the caller itself
	{pattern: "GET " + sessionsPath, scopes: scope.Inspect},
	{pattern: "GET /v1/sessions/{id}", scopes: scope.Inspect},
	{pattern: "GET /v1/sessions/{id}/prompt", scopes: scope.Inspect},
	{pattern: "DELETE /v1/sessions/{id}", scopes: scope.Admin},
	{pattern: "POST /v1/sessions/{id}/agent", scopes: scope.Admin},
	{pattern: "GET " + conversationsPath, scopes: scope.Inspect},
	{pattern: "GET " + conversationsPath + "/{id}", scopes: scope.Inspect},
	{pattern: "GET /v1/usage", scopes: scope.Inspect},
	{pattern: "GET " + agentsPath, scopes: scope.Inspect},
	{pattern: "GET " + agentsPath + "/{id}", scopes: scope.Inspect},
	{pattern: "POST " + agentsPath, scopes: scope.Admin},
	{pattern: "PUT " + agentsPath + "/{id}", scopes: scope.Admin},
	{pattern: "PATCH " + agentsPath + "/{id}", scopes: scope.Admin},
	{pattern: "DELETE " + agentsPath + "/{id}", scopes: scope.Admin},
	{pattern: "POST /v1/confirmations", scopes: scope.Confirm},
	{pattern: "GET /v1/approvals", scopes: scope.Admin},
	{pattern: "GET " + jobsPath, scopes: scope.Voice | scope.Chat | scope.Inspect}, // without inspect only one's own
	{pattern: "GET " + jobsPath + "/{id}", scopes: scope.Voice | scope.Chat | scope.Inspect},
	{pattern: "DELETE " + jobsPath + "/{id}", scopes: scope.Voice | scope.Chat | scope.Admin},
	{pattern: "GET /v1/blocks", scopes: scope.Admin},
	{pattern: "DELETE /v1/blocks/{user}", scopes: scope.Admin},
	{pattern: "GET /v1/simulator", scopes: scope.Admin},
	{pattern: "POST /v1/simulator/faults", scopes: scope.Admin},
	{pattern: "POST /v1/drain", scopes: scope.Admin},
	{pattern: "GET /v1/drain", scopes: scope.Admin},
	{pattern: "POST /v1/admin/reload", scopes: scope.Admin},
	{pattern: metricsPattern, scopes: scope.Metrics},
	{pattern: "POST /v1/console/codes", scopes: scope.Admin}, // not by a console's token: see consoleCode
	{pattern: "POST /v1/console/login"},
	{pattern: "GET /v1/images/{id}"}, // the address is a secret
	{pattern: "/v1/confirmations/{token...}"},
	{pattern: "GET /healthz"},
	{pattern: "GET /readyz"},
	{pattern: "/v1/"},
	{pattern: "/"},
}

// accessOf returns the row of a route. It panics if the route has no row: a route would be open to
// everybody because somebody forgot it.
func accessOf(pattern string) access {
	if strings.HasPrefix(pattern, "OPTIONS ") {
		return access{pattern: pattern}
	}
	i := slices.IndexFunc(accesses, func(a access) bool { return a.pattern == pattern })
	if i < 0 {
		panic(fmt.Sprintf("gateway: the route %s has no row in accesses (access.go)", pattern))
	}
	return accesses[i]
}

// public reports whether everybody may use the route.
func (a access) public() bool { return a.scopes == 0 }
