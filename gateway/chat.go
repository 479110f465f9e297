package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"time"

	"voicegw/chat"
	"voicegw/internal/auth"
	"voicegw/internal/user"
	"voicegw/protocol"
)

// TextAgent answers text messages; *chat.Agent implements it.
type TextAgent interface {
	Name() string
	// Has reports whether requests may name that agent.
	Has(name string) bool
	// Sees reports whether requests may have images.
	Sees() bool
	Respond(ctx context.Context, req chat.Request, emit chat.Emit) error
}

// chatBody is the body of POST /v1/chat.
type chatBody struct {
	ConversationID string            `json:"conversation_id"`
	MessageID      string            `json:"message_id"`
	Message        json.RawMessage   `json:"message"`
	Messages       []chatMessage     `json:"messages"`
	Agent          string            `json:"agent"`
	User           string            `json:"user"`
	Scopes         []string          `json:"scopes"`
	Confirmation   *chatConfirmation `json:"confirmation"`
	Inspect        bool              `json:"inspect"`
	TimeZone       string            `json:"time_zone"`
}

// chatMessage is a message of a conversation that the client keeps.
type chatMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`

	// parts and text replace Content for the AI SDK's format, which is already decoded.
	text  string
	parts []chat.Part
}

type chatConfirmation struct {
	Token    string `json:"token"`
	Approved *bool  `json:"approved"`
}

// maxChatMessages limits the messages of a request.
const maxChatMessages = 500

// chatAPI has the handlers of the text agent.
type chatAPI struct{ *Server }

// chat answers a turn of a text conversation with server-sent events.
func (s chatAPI) chat(w http.ResponseWriter, r *http.Request) {
	body, done, ok := s.readChat(w, r)
	defer done()
	if !ok {
		return
	}
	who, known, no := s.speaker(r, body.User)
	if no != nil {
		no.answer(w, plainError)
		return
	}
	req, wrong := s.chatRequest(r, body)
	if wrong != "" {
		problem(w, http.StatusBadRequest, "invalid_message", wrong)
		return
	}
	req.User, req.Vouched = who, known
	if req.ID, wrong = messageID(r, body.MessageID); wrong != "" {
		problem(w, http.StatusBadRequest, "invalid_message", wrong)
		return
	}
	if wrong := instructs(r, req); wrong != "" {
		problem(w, http.StatusForbidden, "system_message", wrong)
		return
	}
	if wrong := grantProblem(r, body.Scopes); wrong != "" {
		problem(w, http.StatusForbidden, "scopes_not_allowed", wrong)
		return
	}
	if !s.opts.Chat.Has(body.Agent) {
		s.unknownAgent(w, body.Agent)
		return
	}
	req.Agent = body.Agent
	leave, ok := s.enterChat(w, r, req.User, plainError)
	if !ok {
		return
	}
	defer leave()
	s.leaveVoice(r, req.ConversationID, req.User)
	out := newEventWriter(w)
	defer out.close()
	take := s.taker(r, out)
	err := s.opts.Chat.Respond(r.Context(), req, func(m protocol.ServerMessage) {
		s.reachable(r, m)
		take(m)
	})
	if err != nil {
		s.chatRefused(w, err)
	}
}

// leaveVoiceTime limits the wait for the transcript of a voice session.
const leaveVoiceTime = 3 * time.Second

// leaveVoice ends the conversation's voice session if its client is disconnected, because the conversation continues
// in text.
func (s *Server) leaveVoice(r *http.Request, conversationID string, who user.User) {
	ctx, cancel := context.WithTimeout(r.Context(), leaveVoiceTime)
	defer cancel()
	s.opts.Sessions.EndDetached(ctx, conversationID, who)
}

// reachable adds the URL of the voice endpoint to an invitation without one.
func (s chatAPI) reachable(r *http.Request, m protocol.ServerMessage) {
	if offer, ok := m.(*protocol.VoiceSessionStart); ok && offer.URL == "" {
		offer.URL = s.voiceURL(r)
	}
}

// chatRequest converts a body to a turn, or returns the problem.
func (s chatAPI) chatRequest(r *http.Request, body chatBody) (req chat.Request, wrong string) {
	p := auth.From(r.Context())
	req = chat.Request{ConversationID: body.ConversationID, Key: p.ID, KeyMark: p.Mark, KeyExpires: p.Expires,
		Inspect: p.May(auth.ScopeInspect), TimeZone: body.TimeZone, Scopes: grantsOf(r, body.Scopes), Origin: pageOf(r),
		Parent: parentOf(r)}
	req.Inside = req.Inspect && body.Inspect
	seen := &pictures{sees: s.opts.Chat.Sees()}
	var no *wrongField
	if req.Message, req.Parts, no = seen.content("message", "user", body.Message); no != nil {
		return req, no.message
	}
	if wrong := scopesProblem(body.Scopes); wrong != "" {
		return req, wrong
	}
	if body.TimeZone != "" {
		if _, err := user.LoadZone(body.TimeZone); err != nil {
			return req, `time_zone must be an IANA name such as "Europe/Berlin".`
		}
	}
	if c := body.Confirmation; c != nil {
		if c.Token == "" || c.Approved == nil {
			return req, `confirmation must be {"token": "…", "approved": true} or false.`
		}
		req.Confirmation = &chat.Confirmation{Token: c.Token, Approved: *c.Approved}
	}
	if len(body.Messages) == 0 {
		return req, ""
	}
	if len(body.Message) > 0 || body.ConversationID != "" || body.Confirmation != nil {
		return req, "messages cannot be combined with message, conversation_id or confirmation: with messages, you keep the " +
			"conversation yourself."
	}
	return withHistory(req, body.Messages, seen)
}

// reusedWords explain that the id belongs to another message.
const reusedWords = "Another message was sent with this message_id or Idempotency-Key. Repeat a message unchanged, or give a " +
	"new message its own id."

// messageID returns the client's id for its message, which stays the same when the message is repeated: the header
// Idempotency-Key (draft-ietf-httpapi-idempotency-key-header, read 2026-11-23) or the field message_id. Empty without
// one.
func messageID(r *http.Request, field string) (id, wrong string) {
	all := r.Header.Values("Idempotency-Key")
	id = r.Header.Get("Idempotency-Key")
	if slices.ContainsFunc(all, func(other string) bool { return other != id }) {
		return "", "The request has two different headers Idempotency-Key; give one."
	}
	if id != "" && field != "" && id != field {
		return "", "message_id and Idempotency-Key differ; give one of them."
	}
	id = cmp.Or(id, field)
	return id, ""
}

// instructs returns the reason why a request may not contain system messages; empty if it may. Only operators and
// trusted servers may.
func instructs(r *http.Request, req chat.Request) (wrong string) {
	i := slices.IndexFunc(req.History, func(m chat.Message) bool { return m.Role == chat.RoleSystem })
	if i < 0 || auth.From(r.Context()).May(auth.ScopeTickets) {
		return ""
	}
	return "messages[" + strconv.Itoa(i) + "].role is system or developer, which only operators may send. " +
		"Omit the message, or send a key with the scope tickets, or the gateway's api_key, as \"Authorization: Bearer …\"."
}

// withHistory makes the last message the turn and the earlier ones its history.
func withHistory(req chat.Request, messages []chatMessage, seen *pictures) (chat.Request, string) {
	if len(messages) > maxChatMessages {
		return req, "messages has " + strconv.Itoa(len(messages)) + " messages; at most " + strconv.Itoa(maxChatMessages) + " are allowed."
	}
	req.History = []chat.Message{}
	for i, m := range messages {
		where := "messages[" + strconv.Itoa(i) + "]"
		switch m.Role {
		case "user", "assistant":
		case "system", "developer":
			m.Role = "system"
		case "tool", "function":
			return req, where + " has the role tool, but the gateway runs the tools and keeps their messages."
		default:
			return req, where + ".role must be user, assistant or system."
		}
		if m.Content != nil {
			var no *wrongField
			if m.text, m.parts, no = seen.content(where+".content", m.Role, m.Content); no != nil {
				return req, no.message
			}
		}
		if i == len(messages)-1 {
			if m.Role != "user" {
				return req, "The last message must be the user's."
			}
			req.Message, req.Parts = m.text, m.parts
			break
		}
		req.History = append(req.History, chat.Message{Role: chat.Role(m.Role), Text: m.text, Parts: m.parts})
	}
	return req, ""
}

// nameless returns the user for a client without a name.
func (s *Server) nameless(r *http.Request) user.User {
	from := s.clientOf(r)
	return user.Anonymous(from.Addr, from.Own)
}

// errorShape is the error format of an API.
type errorShape func(status int, code, message string) map[string]any

func plainError(_ int, code, message string) map[string]any {
	return map[string]any{"code": code, "message": message}
}

func refuse(w http.ResponseWriter, shape errorShape, status int, code, message string) {
	answer(w, status, map[string]any{"error": shape(status, code, message)})
}

// chatRefused answers a turn that did not begin.
func (s chatAPI) chatRefused(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, chat.ErrBusy):
		retryAfter(w, time.Second)
		problem(w, http.StatusConflict, "conversation_busy",
			"Another message of this conversation is being answered; wait for its event done, and send this one again.")
	case errors.Is(err, chat.ErrDraining):
		refuseDraining(w, plainError)
	case errors.Is(err, chat.ErrReused):
		problem(w, http.StatusUnprocessableEntity, "message_reused", reusedWords)
	case errors.Is(err, chat.ErrUnknown):
		problem(w, http.StatusNotFound, "conversation_unknown", "This user has no such conversation; omit conversation_id to start one.")
	case errors.Is(err, chat.ErrMessage):
		problem(w, http.StatusBadRequest, "invalid_message", err.Error())
	default:
		if !s.confirmationRefused(w, err) {
			s.storeFailed(w, "continuing a text conversation failed", err)
		}
	}
}

// isJSON reports whether a Content-Type is JSON. Requiring it forces a CORS preflight before a page of another origin
// can send a body.
func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == "application/json"
}
