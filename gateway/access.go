package gateway

import (
	"net/http"

	"voicegw/gateway/phone"
	"voicegw/internal/auth"
)

const (
	voicePath    = "/v1/voice"
	voicePattern = "GET " + voicePath
	modelsPath   = "/v1/models"
	sessionsPath = "/v1/sessions"
)

// access says who may use a route.
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

func (a access) public() bool { return a.scopes == 0 }

var (
	everyone      = access{}
	admins        = access{scopes: auth.ScopeAdmin}
	inspectors    = access{scopes: auth.ScopeInspect}
	chatClients   = access{scopes: auth.ScopeChat, free: true}
	sessionMakers = access{scopes: auth.ScopeTickets | auth.ScopeVoice}
	secretMakers  = access{scopes: sessionMakers.scopes, realtime: true}
)

// addRoutes adds all routes (docs/authentication.md), those of optional backends only with the backend. OPTIONS, for
// CORS preflights, is always public.
func (s *Server) addRoutes() {
	o, texts, realtime := s.opts, chatAPI{s}, realtimeAPI{s}
	// A page may read why its WebSocket fails. A ticket or a resume token also opens it.
	s.forPages(true, "GET", voicePath, access{scopes: auth.ScopeVoice, free: true}, s.voice)
	for _, path := range realtimePaths {
		s.forPages(true, "GET", path, access{scopes: auth.ScopeVoice, free: true, realtime: true}, realtime.realtime)
	}
	s.forPages(true, "GET", "/v1/providers",
		access{scopes: auth.ScopeVoice | auth.ScopeChat | auth.ScopeTickets | auth.ScopeInspect, free: true}, s.providers)
	s.handle(o.Tools != nil, "GET /v1/tools", access{scopes: auth.ScopeVoice | auth.ScopeChat | auth.ScopeInspect, free: true}, s.tools)
	s.handle(o.Tools != nil, "GET /v1/tools/{id}", access{scopes: auth.ScopeInspect, free: true}, s.tool)
	s.forPages(o.Chat != nil, "POST", "/v1/chat", chatClients, texts.chat)
	s.forPages(o.Chat != nil, "POST", completionsPath, chatClients, texts.completions)
	s.forPages(o.Chat != nil, "GET", modelsPath, chatClients, texts.models)
	s.forPages(o.Chat != nil, "GET", modelsPath+"/{id...}", chatClients, texts.model)
	s.forPages(o.MCP != nil, "POST", mcpPath, chatClients, s.mcp)
	s.handle(o.MCP != nil, mcpPath, chatClients, mcpOnlyPost)
	s.forPages(o.Voice != nil, "POST", sessionsPath, sessionMakers, s.makeSession) // with the scope voice, only for the caller itself
	for _, path := range secretPaths {
		s.forPages(o.Voice != nil, "POST", path, secretMakers, realtime.makeClientSecret)
	}
	s.forPages(o.Voice != nil, "POST", callsPath, secretMakers, noCalls)
	for _, carrier := range phone.Carriers() {
		// Carriers sign their webhooks, and most of them their streams; a stream also needs a ticket.
		s.handle(o.Phone != nil, "POST "+phone.VoicePath(carrier), everyone, served(o.Phone.Voice(carrier)))
		s.handle(o.Phone != nil, "GET "+phone.StreamPath(carrier), everyone, s.phoneStream(carrier))
	}
	s.handle(o.Images != nil, "GET /v1/images/{id}", everyone, s.image) // the URL is a secret
	operatorAPI{s}.addRoutes()
	s.handle(true, "GET /healthz", everyone, s.health)
	s.forPages(true, "GET", "/readyz", everyone, s.ready)
	s.handle(true, "/v1/", everyone, func(_ http.ResponseWriter, r *http.Request) *problem {
		return refusal(http.StatusNotFound, "not_found", "There is no endpoint "+r.Method+" "+clip(r.URL.Path)+".")
	})
	s.handle(o.Page != nil, "/", everyone, served(o.Page))
}

func (s operatorAPI) addRoutes() {
	o, agents := s.opts, agentAPI(s)
	jobs := access{scopes: auth.ScopeVoice | auth.ScopeChat | auth.ScopeInspect} // without inspect, only the caller's own
	s.handle(true, "GET "+sessionsPath, inspectors, s.listSessions)
	s.handle(true, "GET /v1/sessions/{id}", inspectors, s.showSession)
	s.handle(true, "GET /v1/sessions/{id}/prompt", inspectors, s.showPrompt)
	s.handle(true, "DELETE /v1/sessions/{id}", admins, s.endSession)
	s.handle(true, "POST /v1/sessions/{id}/agent", admins, s.switchAgent)
	s.handle(o.Voice != nil, "GET /v1/conversations", inspectors, s.listConversations)
	s.handle(o.Voice != nil, "GET /v1/conversations/{id}", inspectors, s.showConversation)
	s.handle(o.Usage != nil, "GET /v1/usage", inspectors, s.showUsage)
	s.handle(o.Agents != nil, "GET "+agentsPath, inspectors, agents.listAgents)
	s.handle(o.Agents != nil, "GET "+agentsPath+"/{id}", inspectors, agents.showAgent)
	s.handle(o.Agents != nil, "POST "+agentsPath, admins, agents.createAgent)
	s.handle(o.Agents != nil, "PUT "+agentsPath+"/{id}", admins, agents.replaceAgent)
	s.handle(o.Agents != nil, "PATCH "+agentsPath+"/{id}", admins, agents.patchAgent)
	s.handle(o.Agents != nil, "DELETE "+agentsPath+"/{id}", admins, agents.deleteAgent)
	s.handle(true, "POST /v1/confirmations", access{scopes: auth.ScopeConfirm}, s.confirm)
	s.handle(true, "/v1/confirmations/{token...}", everyone, confirmationMoved)
	s.handle(o.Approvals != nil, "GET /v1/approvals", admins, s.approvals)
	s.handle(o.Jobs != nil, "GET /v1/jobs", jobs, s.listJobs)
	s.handle(o.Jobs != nil, "GET /v1/jobs/{id}", jobs, s.showJob)
	s.handle(o.Jobs != nil, "DELETE /v1/jobs/{id}", access{scopes: auth.ScopeVoice | auth.ScopeChat | auth.ScopeAdmin}, s.cancelJob)
	s.handle(o.Blocks != nil, "GET /v1/blocks", admins, s.blocks)
	s.handle(o.Blocks != nil, "DELETE /v1/blocks/{user}", admins, s.unblock)
	s.handle(o.Simulator != nil, "GET /v1/simulator", admins, s.listFaults)
	s.handle(o.Simulator != nil, "POST /v1/simulator/faults", admins, s.commitFault)
	s.handle(o.Drain != nil, "POST /v1/drain", admins, s.beginDrain)
	s.handle(o.Drain != nil, "GET /v1/drain", admins, s.showDrain)
	s.handle(o.Reload != nil, "POST /v1/admin/reload", admins, s.reload)
	s.handle(o.Phone != nil, "POST "+phone.CallsPath, admins, s.beginCall)
	s.handle(o.Metrics != nil, "GET /metrics", access{scopes: auth.ScopeMetrics}, served(o.Metrics))
	s.handle(true, "POST /v1/console/codes", admins, s.consoleCode) // not with a console's token: see consoleCode
	s.handle(true, "POST /v1/console/login", everyone, s.consoleLogin)
}

// handle adds a route if its backend exists.
func (s *Server) handle(exists bool, pattern string, a access, h handler) {
	if exists {
		a.pattern = pattern
		s.routes.add(a, s.guarded(a, h))
	}
}

func served(by http.Handler) handler {
	return func(w http.ResponseWriter, r *http.Request) *problem {
		by.ServeHTTP(w, r)
		return nil
	}
}
