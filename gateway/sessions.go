package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"
	"voicegw/internal/auth"
	"voicegw/internal/conversation"
	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/session"
	"voicegw/session/handoff"
	"voicegw/store"
)

// Voice creates voice sessions and reads conversations; *handoff.Handoffs implements it. It must be safe for concurrent
// use.
type Voice interface {
	// Invite creates a voice session.
	Invite(ctx context.Context, in handoff.Invitation) (registry.VoiceOffer, error)
	// Conversation returns a conversation, or store.ErrUnknown.
	Conversation(ctx context.Context, id string) (*conversation.Conversation, error)
	// Conversations returns a page of the stored conversations; store.ErrCursor if the query's After is not the Next
	// of a page.
	Conversations(ctx context.Context, q store.Query) (store.Page, error)
}

type sessionBody struct {
	User           string        `json:"user"`
	Scopes         []string      `json:"scopes"`
	Agent          string        `json:"agent"`
	PendingRequest string        `json:"pending_request"`
	Context        string        `json:"context"`
	Messages       []saidMessage `json:"messages"`
	ConversationID string        `json:"conversation_id"`
	Origin         string        `json:"origin"`
	Inspect        bool          `json:"inspect"`
}

// sessionOffer is the response of POST /v1/sessions.
type sessionOffer struct {
	SessionID      string `json:"session_id"`
	ConversationID string `json:"conversation_id"`
	// Ticket is a secret for the client.
	Ticket string `json:"ticket"`
	URL    string `json:"url"`
	// ExpiresAt is RFC 3339 in UTC with milliseconds.
	ExpiresAt string `json:"expires_at"`
	// Subprotocols let a browser send the ticket in the handshake.
	Subprotocols []string `json:"subprotocols"`
}

// maxContext limits the context of a sessionBody, in characters.
const maxContext = 8000

// makeSession creates a voice session and its ticket.
func (s *Server) makeSession(w http.ResponseWriter, r *http.Request) {
	var body sessionBody
	if !s.readBody(w, r, &body, true, plainError) {
		return
	}
	if no := forSelf(r, &body); no != nil {
		no.answer(w, plainError)
		return
	}
	in, wrong := invitation(body)
	// A console is a browser, so it cannot vouch for users.
	caller := auth.From(r.Context())
	in.Vouched, in.Guarantor = caller.Kind != auth.KindConsole,
		registry.Guarantor{ID: caller.ID, Mark: caller.Mark, Expires: caller.Expires}
	in.Scopes = grantsOf(r, in.Scopes)
	refused := grantProblem(r, body.Scopes)
	switch {
	case wrong != "":
		problem(w, http.StatusBadRequest, "invalid_message", wrong)
		return
	case refused != "":
		problem(w, http.StatusForbidden, "scopes_not_allowed", refused)
		return
	case !s.opts.Sessions.HasAgent(body.Agent):
		s.unknownAgent(w, body.Agent)
		return
	case s.opts.Sessions.Draining():
		retryAfter(w, 5*time.Second)
		problem(w, http.StatusServiceUnavailable, "draining", "The gateway is shutting down; ask another one.")
		return
	case s.shutOut(w, in.User, plainError, "The user is temporarily blocked."):
		return
	}
	if s.spent(w, r, in.User, plainError) {
		return
	}
	s.leaveVoice(r, in.ConversationID, in.User)
	offer, err := s.opts.Voice.Invite(protocol.WithTraceParent(r.Context(), parentOf(r)), in)
	if err != nil {
		s.notInvited(w, err)
		return
	}
	s.opts.Logger.Info("voice session offered", "session_id", offer.SessionID, "conversation_id", offer.ConversationID,
		"addr", s.clientAddr(r).String())
	answer(w, http.StatusCreated, sessionOffer{
		SessionID: offer.SessionID, ConversationID: offer.ConversationID, Ticket: offer.Ticket,
		URL: s.voiceURL(r), ExpiresAt: offer.ExpiresAt.UTC().Format(timeForm),
		Subprotocols: []string{protocol.Subprotocol, protocol.TicketSubprotocol(offer.Ticket)},
	})
}

// forSelf restricts a body to its caller, unless the caller may name users: a ticket is then only for that user and
// page, and inspects only what the caller may.
func forSelf(r *http.Request, body *sessionBody) *wrongName {
	p := auth.From(r.Context())
	if p.Names() {
		return nil
	}
	if who, err := user.Parse(body.User); body.User != "" && (err != nil || who != p.Self()) {
		return notAllowed()
	}
	body.User = p.Self().String()
	if from := pageOf(r); from != "" {
		body.Origin = from
	}
	body.Inspect = body.Inspect && p.May(auth.ScopeInspect)
	return nil
}

// invitation converts a body to an Invitation without a voucher, or returns the problem.
func invitation(body sessionBody) (in handoff.Invitation, wrong string) {
	origin, ok := store.CleanOrigin(body.Origin)
	who, unnamed := user.Parse(body.User)
	switch {
	case body.User == "":
		return in, "user is missing."
	case unnamed != nil:
		return in, "user " + unnamed.Error() + "."
	case utf8.RuneCountInString(body.PendingRequest) > protocol.MaxTextChars:
		return in, fmt.Sprintf("pending_request is longer than %d characters.", protocol.MaxTextChars)
	case utf8.RuneCountInString(body.Context) > maxContext:
		return in, fmt.Sprintf("context is longer than %d characters; send a summary, or messages, which are truncated.", maxContext)
	case body.Context != "" && len(body.Messages) > 0:
		return in, "context and messages are mutually exclusive."
	case body.ConversationID != "" && !conversation.ValidID(body.ConversationID):
		return in, fmt.Sprintf("conversation_id must be 1 to %d letters, digits, dots, hyphens and underscores.", conversation.MaxID)
	case !ok:
		return in, "origin must be a scheme and a host, such as https://app.example.org, without a path."
	}
	if wrong := scopesProblem(body.Scopes); wrong != "" {
		return in, wrong
	}
	said, wrong := saidBefore(body.Messages, time.Now())
	return handoff.Invitation{
		User: who, Scopes: body.Scopes, Agent: body.Agent, PendingRequest: strings.TrimSpace(body.PendingRequest), Context: body.Context,
		Entries: said, ConversationID: body.ConversationID, Origin: origin,
		Inspect: body.Inspect,
	}, wrong
}

// saidMessage is an earlier message, as text.
type saidMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// saidBefore converts messages to entries, or returns the problem.
func saidBefore(messages []saidMessage, now time.Time) (said []conversation.Entry, wrong string) {
	if len(messages) > maxChatMessages {
		return nil, fmt.Sprintf("messages has %d messages; at most %d are allowed.", len(messages), maxChatMessages)
	}
	turn := 0
	for i, m := range messages {
		e := conversation.Entry{At: now, Side: conversation.SideText, Role: conversation.Role(m.Role), Text: m.Content}
		switch e.Role {
		case conversation.RoleUser:
			turn++
		case conversation.RoleAssistant:
		default:
			return nil, fmt.Sprintf("messages[%d].role must be user or assistant; omit others.", i)
		}
		if n := utf8.RuneCountInString(m.Content); n > conversation.MaxText {
			return nil, fmt.Sprintf("messages[%d].content has %d characters; at most %d are allowed.", i, n, conversation.MaxText)
		}
		e.Turn = turn
		said = append(said, e)
	}
	return said, ""
}

// shutOut answers if the user is blocked.
func (s *Server) shutOut(w http.ResponseWriter, who user.User, shape errorShape, message string) bool {
	if s.opts.Blocked == nil {
		return false
	}
	until, blocked := s.opts.Blocked(who)
	if blocked {
		told := shape(http.StatusForbidden, protocol.CodeBlocked, message)
		told["until"] = until.UTC().Format(timeForm)
		answer(w, http.StatusForbidden, map[string]any{"error": told})
	}
	return blocked
}

// notInvited answers why no voice session was created.
func (s *Server) notInvited(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, store.ErrVoiceActive):
		problem(w, http.StatusConflict, protocol.CodeVoiceActive,
			"This conversation already has a running voice session, which must end first.")
	case errors.Is(err, handoff.ErrTaken):
		problem(w, http.StatusConflict, "conversation_taken",
			"The conversation belongs to another user; omit conversation_id, or use another one.")
	case errors.Is(err, store.ErrFull):
		retryAfter(w, time.Minute)
		problem(w, http.StatusTooManyRequests, "limit", "Too many tickets were created within the last hour; try again later.")
	default:
		s.storeFailed(w, "creating a voice session failed", err)
	}
}

// voiceURL is the URL for voice clients, with the host of the request.
func (s *Server) voiceURL(r *http.Request) string {
	scheme := "ws"
	if from, _ := s.scheme(r); from == "https" {
		scheme = "wss"
	}
	return scheme + "://" + r.Host + voicePath
}

// absolute makes a path of this gateway a URL with the request's host; URLs stay unchanged.
func (s *Server) absolute(r *http.Request, address string) string {
	if !strings.HasPrefix(address, "/") {
		return address
	}
	at, err := url.Parse(s.voiceURL(r))
	if err != nil || at.Host == "" {
		return address
	}
	return strings.Replace(at.Scheme, "ws", "http", 1) + "://" + at.Host + address
}

type runningLine struct {
	ID             string `json:"id"`
	User           string `json:"user"`
	Agent          string `json:"agent"`
	AgentVersion   string `json:"agent_version,omitempty"`
	ConversationID string `json:"conversation_id,omitempty"`
	Provider       string `json:"provider"`
	Model          string `json:"model"`
	StartedAt      string `json:"started_at"`
	Turn           int    `json:"turn"`
	Phase          string `json:"phase"`
	Away           bool   `json:"away,omitempty"`
	CostUSDMicros  int64  `json:"cost_usd_micros"`
	Unpriced       int64  `json:"unpriced,omitempty"`
}

func lineOf(r session.Running) runningLine {
	return runningLine{
		ID: r.ID, User: r.User, Agent: r.Agent, AgentVersion: r.AgentVersion, ConversationID: r.ConversationID,
		Provider: r.Provider, Model: r.Model,
		StartedAt: r.StartedAt.UTC().Format(timeForm), Turn: r.Turn, Phase: string(r.Phase), Away: r.Away,
		CostUSDMicros: int64(r.Cost.Micros), Unpriced: r.Cost.Unpriced,
	}
}

// listSessions lists the local sessions, and then those of other gateways.
func (s operatorAPI) listSessions(w http.ResponseWriter, r *http.Request) {
	lines := []any{}
	for _, running := range s.opts.Sessions.Sessions() {
		if sees(r.Context(), running.User) {
			lines = append(lines, lineOf(running))
		}
	}
	others, nodes, err := s.others(r.Context())
	for _, other := range others {
		if sees(r.Context(), other.User) {
			lines = append(lines, other)
		}
	}
	body := map[string]any{"sessions": lines}
	if nodes != nil {
		body["nodes"] = nodes
	}
	if err != nil {
		s.opts.Logger.Warn("listing other gateways' sessions failed", "error", err)
		body["incomplete"] = true
	}
	answer(w, http.StatusOK, body)
}

// showSession shows a running session of any gateway, or one that ended within the last minutes.
func (s operatorAPI) showSession(w http.ResponseWriter, r *http.Request) {
	var line any
	var err error
	running, here := s.opts.Sessions.Session(r.PathValue("id"))
	switch {
	case !here:
		line, err = s.showThere(r.Context(), r.PathValue("id"))
	case sees(r.Context(), running.User):
		line = lineOf(running)
	default:
		err = store.ErrUnknown
	}
	if err != nil {
		s.elsewhereFailed(w, "is", "reading a session failed", err)
		return
	}
	answer(w, http.StatusOK, line)
}

// showConversation shows a conversation's text and voice entries.
func (s operatorAPI) showConversation(w http.ResponseWriter, r *http.Request) {
	c, err := s.opts.Voice.Conversation(r.Context(), r.PathValue("id"))
	switch {
	case errors.Is(err, store.ErrUnknown), err == nil && !sees(r.Context(), c.User):
		problem(w, http.StatusNotFound, "conversation_unknown", "There is no such conversation, or it has expired.")
	case err != nil:
		s.storeFailed(w, "reading a conversation failed", err)
	default:
		answer(w, http.StatusOK, shownConversation(c))
	}
}

// parentOf returns the caller's span from the header traceparent. A sampled span makes the gateway export the spans
// below it and mixes the request into another trace, so only callers with inspect may send one, or local ones while
// no credentials are required.
func parentOf(r *http.Request) protocol.TraceParent {
	p := auth.From(r.Context())
	given := r.Header.Values(protocol.TraceHeader)
	if len(given) != 1 || !p.May(auth.ScopeInspect) && p.Kind != auth.KindLocal {
		return protocol.TraceParent{}
	}
	parent, _ := protocol.ParseTraceParent(given[0]) // the specification says to ignore an invalid one
	return parent
}
