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

// Voice creates voice sessions and reads conversations; see handoff.Handoffs. Safe for concurrent use.
type Voice interface {
	Invite(ctx context.Context, in handoff.Invitation) (registry.VoiceOffer, error)
	// MakeSecret makes a client secret, and Secret looks one up.
	MakeSecret(ctx context.Context, in handoff.Invitation, c store.ClientSecret, expires time.Time) (secret string, err error)
	Secret(ctx context.Context, secret, origin string) (*handoff.Secret, error)
	Conversation(ctx context.Context, id string) (*conversation.Conversation, error)
	// Conversations returns a page; store.ErrCursor for a query with a wrong After.
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

type sessionOffer struct {
	SessionID      string   `json:"session_id"`
	ConversationID string   `json:"conversation_id"`
	Ticket         string   `json:"ticket"`
	URL            string   `json:"url"`
	ExpiresAt      string   `json:"expires_at"`
	Subprotocols   []string `json:"subprotocols"`
}

// maxContext limits the context of a sessionBody, in characters.
const maxContext = 8000

func (s *Server) makeSession(w http.ResponseWriter, r *http.Request) *problem {
	var body sessionBody
	if no := readBody(w, r, &body, true); no != nil {
		return no
	}
	in, no := s.invited(w, r, &body, user.User{})
	if no != nil {
		return no
	}
	s.leaveVoice(r, in.ConversationID, in.User)
	offer, err := s.opts.Voice.Invite(protocol.WithTraceParent(r.Context(), parentOf(r)), in)
	if err != nil {
		return s.notInvited(err)
	}
	s.opts.Logger.Info("voice session offered", "session_id", offer.SessionID, "conversation_id", offer.ConversationID,
		"addr", s.clientAddr(r).String())
	return answer(w, http.StatusCreated, sessionOffer{
		SessionID: offer.SessionID, ConversationID: offer.ConversationID, Ticket: offer.Ticket,
		URL: s.voiceURL(r), ExpiresAt: offer.ExpiresAt.UTC().Format(timeForm),
		Subprotocols: []string{protocol.Subprotocol, protocol.TicketSubprotocol(offer.Ticket)},
	})
}

// invited returns the invitation of a request whose user may begin a session now. anonymous is the user of a caller that
// names none; zero if it must name one.
func (s *Server) invited(w http.ResponseWriter, r *http.Request, body *sessionBody, anonymous user.User) (handoff.Invitation, *problem) {
	if no := forSelf(r, body); no != nil {
		return handoff.Invitation{}, no
	}
	in, wrong := invitation(*body, anonymous)
	// A console is a browser, so it cannot vouch for users.
	caller := auth.From(r.Context())
	in.Vouched, in.Guarantor = caller.Kind != auth.KindConsole && in.User != anonymous,
		registry.Guarantor{ID: caller.ID, Mark: caller.Mark, Expires: caller.Expires}
	in.Scopes = grantsOf(r, in.Scopes)
	no := grantProblem(r, body.Scopes)
	switch {
	case wrong != "":
		return in, invalid(wrong)
	case no != nil:
		return in, no
	case !s.opts.Sessions.HasAgent(body.Agent):
		return in, s.unknownAgent(body.Agent)
	case s.opts.Sessions.Draining():
		return in, draining("ask another one")
	}
	if no = s.shutOut(in.User, "The user is temporarily blocked."); no == nil {
		no = s.spent(w, r, in.User)
	}
	return in, no
}

// forSelf restricts a ticket to its caller's user, page and permissions, unless the caller may name users.
func forSelf(r *http.Request, body *sessionBody) *problem {
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

func invitation(body sessionBody, anonymous user.User) (in handoff.Invitation, wrong string) {
	origin, ok := store.CleanOrigin(body.Origin)
	who, unnamed := user.Parse(body.User)
	if body.User == "" {
		who, unnamed = anonymous, nil
	}
	switch {
	case who.IsZero() && unnamed == nil:
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
		Entries: said, ConversationID: body.ConversationID, Origin: origin, Inspect: body.Inspect,
	}, wrong
}

type saidMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

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

func (s *Server) shutOut(who user.User, message string) *problem {
	if s.opts.Blocked == nil {
		return nil
	}
	until, blocked := s.opts.Blocked(who)
	if !blocked {
		return nil
	}
	return refusal(http.StatusForbidden, protocol.CodeBlocked, message).until(until)
}

func (s *Server) notInvited(err error) *problem {
	switch {
	case errors.Is(err, store.ErrVoiceActive):
		return refusal(http.StatusConflict, protocol.CodeVoiceActive,
			"This conversation already has a running voice session, which must end first.")
	case errors.Is(err, handoff.ErrTaken):
		return refusal(http.StatusConflict, "conversation_taken",
			"The conversation belongs to another user; omit conversation_id, or use another one.")
	case errors.Is(err, store.ErrFull):
		return refusal(http.StatusTooManyRequests, "limit",
			"Too many tickets were created within the last hour; try again later.").after(time.Minute)
	default:
		return s.storeFailed("creating a voice session failed", err)
	}
}

func (s *Server) voiceURL(r *http.Request) string {
	scheme := "ws"
	if from, _ := s.scheme(r); from == "https" {
		scheme = "wss"
	}
	return scheme + "://" + r.Host + voicePath
}

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

// sessionLine has the fields that all gateways know of a session.
type sessionLine struct {
	ID             string `json:"id"`
	User           string `json:"user"`
	Agent          string `json:"agent"`
	AgentVersion   string `json:"agent_version,omitempty"`
	ConversationID string `json:"conversation_id,omitempty"`
	Provider       string `json:"provider"`
	Model          string `json:"model"`
	StartedAt      string `json:"started_at"`
}

type runningLine struct {
	sessionLine
	Turn          int    `json:"turn"`
	Phase         string `json:"phase"`
	Away          bool   `json:"away,omitempty"`
	CostUSDMicros int64  `json:"cost_usd_micros"`
	Unpriced      int64  `json:"unpriced,omitempty"`
}

func lineOf(r session.Running) runningLine {
	return runningLine{
		sessionLine: sessionLine{r.ID, r.User, r.Agent, r.AgentVersion, r.ConversationID, r.Provider, r.Model,
			r.StartedAt.UTC().Format(timeForm)},
		Turn: r.Turn, Phase: string(r.Phase), Away: r.Away, CostUSDMicros: int64(r.Cost.Micros),
		Unpriced: r.Cost.Unpriced,
	}
}

func (s operatorAPI) listSessions(w http.ResponseWriter, r *http.Request) *problem {
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
	return answer(w, http.StatusOK, body)
}

func (s operatorAPI) showSession(w http.ResponseWriter, r *http.Request) *problem {
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
		return s.elsewhereFailed("is", "reading a session failed", err)
	}
	return answer(w, http.StatusOK, line)
}

func (s operatorAPI) showConversation(w http.ResponseWriter, r *http.Request) *problem {
	c, err := s.opts.Voice.Conversation(r.Context(), r.PathValue("id"))
	switch {
	case errors.Is(err, store.ErrUnknown), err == nil && !sees(r.Context(), c.User):
		return refusal(http.StatusNotFound, "conversation_unknown", "There is no such conversation, or it has expired.")
	case err != nil:
		return s.storeFailed("reading a conversation failed", err)
	default:
		return answer(w, http.StatusOK, shownConversation(c))
	}
}

// parentOf returns the span in traceparent. A sampled one makes the gateway export spans, so only callers with inspect
// may send one, or local ones while no credentials are required.
func parentOf(r *http.Request) protocol.TraceParent {
	p := auth.From(r.Context())
	given := r.Header.Values(protocol.TraceHeader)
	if len(given) != 1 || !p.May(auth.ScopeInspect) && p.Kind != auth.KindLocal {
		return protocol.TraceParent{}
	}
	parent, _ := protocol.ParseTraceParent(given[0]) // the specification says to ignore an invalid one
	return parent
}
