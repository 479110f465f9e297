package gateway

import (
	"fmt"
	"slices"
	"strings"

	"voicegw/gateway/phone"
	"voicegw/internal/auth"
)

const (
	voicePath      = "/v1/voice"
	voicePattern   = "GET " + voicePath
	metricsPattern = "GET /metrics"
	modelsPath     = "/v1/models"
	sessionsPath   = "/v1/sessions"
)

type access struct {
	pattern string
	// scopes are alternatives. Without any the route is public and ignores credentials.
	scopes auth.Scopes
	// free means that the route needs no credentials while no key and no issuer is configured.
	free bool
	// realtime means that clients authenticate as at OpenAI's Realtime API: also with the header api-key or, in browsers,
	// a subprotocol; and a client secret is accepted (realtimeCaller).
	realtime bool
}

// accesses lists all routes (docs/authentication.md). OPTIONS, for CORS preflights, is always public.
var accesses = []access{
	{pattern: voicePattern, scopes: auth.ScopeVoice, free: true}, // also opened by a ticket or a resume token
	{pattern: "GET /v1/realtime", scopes: auth.ScopeVoice, free: true, realtime: true},
	{pattern: "GET /openai/v1/realtime", scopes: auth.ScopeVoice, free: true, realtime: true},
	{pattern: "GET /realtime", scopes: auth.ScopeVoice, free: true, realtime: true},
	{pattern: "GET /v1/providers", scopes: auth.ScopeVoice | auth.ScopeChat | auth.ScopeTickets | auth.ScopeInspect, free: true},
	{pattern: "GET /v1/tools", scopes: auth.ScopeVoice | auth.ScopeChat | auth.ScopeInspect, free: true},
	{pattern: "GET /v1/tools/{id}", scopes: auth.ScopeInspect, free: true},
	{pattern: "POST /v1/chat", scopes: auth.ScopeChat, free: true},
	{pattern: "POST " + completionsPath, scopes: auth.ScopeChat, free: true},
	{pattern: "GET " + modelsPath, scopes: auth.ScopeChat, free: true},
	{pattern: "GET " + modelsPath + "/{id...}", scopes: auth.ScopeChat, free: true},
	{pattern: "POST " + mcpPath, scopes: auth.ScopeChat, free: true},
	{pattern: mcpPath, scopes: auth.ScopeChat, free: true},
	// Carriers sign their webhooks, and most of them their streams; a stream also needs a ticket.
	{pattern: "POST /v1/phone/twilio/voice"},
	{pattern: "GET /v1/phone/twilio"},
	{pattern: "POST /v1/phone/telnyx/voice"},
	{pattern: "GET /v1/phone/telnyx"},
	{pattern: "POST /v1/phone/vonage/voice"},
	{pattern: "GET /v1/phone/vonage"},
	{pattern: "POST " + phone.CallsPath, scopes: auth.ScopeAdmin},
	{pattern: "POST " + sessionsPath, scopes: auth.ScopeTickets | auth.ScopeVoice},                // with voice, only for the caller itself
	{pattern: "POST " + secretsPath, scopes: auth.ScopeTickets | auth.ScopeVoice, realtime: true}, // as POST /v1/sessions
	{pattern: "POST " + azurePrefix + secretsPath, scopes: auth.ScopeTickets | auth.ScopeVoice, realtime: true},
	{pattern: "POST " + betaSecretsPath, scopes: auth.ScopeTickets | auth.ScopeVoice, realtime: true},
	{pattern: "POST " + callsPath, scopes: auth.ScopeTickets | auth.ScopeVoice, realtime: true},
	{pattern: "GET " + sessionsPath, scopes: auth.ScopeInspect},
	{pattern: "GET /v1/sessions/{id}", scopes: auth.ScopeInspect},
	{pattern: "GET /v1/sessions/{id}/prompt", scopes: auth.ScopeInspect},
	{pattern: "DELETE /v1/sessions/{id}", scopes: auth.ScopeAdmin},
	{pattern: "POST /v1/sessions/{id}/agent", scopes: auth.ScopeAdmin},
	{pattern: "GET " + conversationsPath, scopes: auth.ScopeInspect},
	{pattern: "GET " + conversationsPath + "/{id}", scopes: auth.ScopeInspect},
	{pattern: "GET /v1/usage", scopes: auth.ScopeInspect},
	{pattern: "GET " + agentsPath, scopes: auth.ScopeInspect},
	{pattern: "GET " + agentsPath + "/{id}", scopes: auth.ScopeInspect},
	{pattern: "POST " + agentsPath, scopes: auth.ScopeAdmin},
	{pattern: "PUT " + agentsPath + "/{id}", scopes: auth.ScopeAdmin},
	{pattern: "PATCH " + agentsPath + "/{id}", scopes: auth.ScopeAdmin},
	{pattern: "DELETE " + agentsPath + "/{id}", scopes: auth.ScopeAdmin},
	{pattern: "POST /v1/confirmations", scopes: auth.ScopeConfirm},
	{pattern: "GET /v1/approvals", scopes: auth.ScopeAdmin},
	{pattern: "GET " + jobsPath, scopes: auth.ScopeVoice | auth.ScopeChat | auth.ScopeInspect}, // without inspect, only the caller's own
	{pattern: "GET " + jobsPath + "/{id}", scopes: auth.ScopeVoice | auth.ScopeChat | auth.ScopeInspect},
	{pattern: "DELETE " + jobsPath + "/{id}", scopes: auth.ScopeVoice | auth.ScopeChat | auth.ScopeAdmin},
	{pattern: "GET /v1/blocks", scopes: auth.ScopeAdmin},
	{pattern: "DELETE /v1/blocks/{user}", scopes: auth.ScopeAdmin},
	{pattern: "GET /v1/simulator", scopes: auth.ScopeAdmin},
	{pattern: "POST /v1/simulator/faults", scopes: auth.ScopeAdmin},
	{pattern: "POST /v1/drain", scopes: auth.ScopeAdmin},
	{pattern: "GET /v1/drain", scopes: auth.ScopeAdmin},
	{pattern: "POST /v1/admin/reload", scopes: auth.ScopeAdmin},
	{pattern: metricsPattern, scopes: auth.ScopeMetrics},
	{pattern: "POST /v1/console/codes", scopes: auth.ScopeAdmin}, // not with a console's token: see consoleCode
	{pattern: "POST /v1/console/login"},
	{pattern: "GET /v1/images/{id}"}, // the URL is a secret
	{pattern: "/v1/confirmations/{token...}"},
	{pattern: "GET /healthz"},
	{pattern: "GET /readyz"},
	{pattern: "/v1/"},
	{pattern: "/"},
}

// accessOf panics for a route without a row, so that a forgotten row doesn't make it public.
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

func (a access) public() bool { return a.scopes == 0 }
