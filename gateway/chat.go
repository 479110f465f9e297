package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"time"

	"voicegw/chat"
	"voicegw/internal/auth"
	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/transport/textmodel"
)

// TextAgent answers text messages; *chat.Agent implements it.
type TextAgent interface {
	Name() string
	Has(name string) bool
	Sees() bool
	Respond(ctx context.Context, req chat.Request, emit chat.Emit) error
}

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

type chatMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`

	// parts and text replace Content for the AI SDK's format, which is already decoded.
	text  string
	parts []textmodel.Part
}

type chatConfirmation struct {
	Token    string `json:"token"`
	Approved *bool  `json:"approved"`
}

const maxChatMessages = 500

type chatAPI struct{ *Server }

func (s chatAPI) chat(w http.ResponseWriter, r *http.Request) *problem {
	body, done, no := s.readChat(w, r)
	defer done()
	if no != nil {
		return no
	}
	req, no := s.chatRequest(r, body)
	if no == nil {
		no = mayWrite(r, req, body.Scopes)
	}
	if no != nil {
		return no
	}
	if !s.opts.Chat.Has(body.Agent) {
		return s.unknownAgent(body.Agent)
	}
	leave, no := s.enterChat(w, r, req.User)
	if no != nil {
		return no
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
	return s.chatRefused(err)
}

const leaveVoiceTime = 3 * time.Second

// leaveVoice ends the conversation's voice session if its client is disconnected: it continues in text.
func (s *Server) leaveVoice(r *http.Request, conversationID string, who user.User) {
	ctx, cancel := context.WithTimeout(r.Context(), leaveVoiceTime)
	defer cancel()
	s.opts.Sessions.EndDetached(ctx, conversationID, who)
}

func (s chatAPI) reachable(r *http.Request, m protocol.ServerMessage) {
	if offer, ok := m.(*protocol.VoiceSessionStart); ok && offer.URL == "" {
		offer.URL = s.voiceURL(r)
	}
}

// turnBy returns a turn of the caller, or of the user that it names.
func (s chatAPI) turnBy(r *http.Request, named string, scopes []string) (chat.Request, *problem) {
	who, known, no := s.speaker(r, named)
	p := auth.From(r.Context())
	return chat.Request{User: who, Vouched: known, Key: p.ID, KeyMark: p.Mark, KeyExpires: p.Expires,
		Inspect: p.May(auth.ScopeInspect), Scopes: grantsOf(r, scopes), Origin: pageOf(r), Parent: parentOf(r)}, no
}

func (s chatAPI) chatRequest(r *http.Request, body chatBody) (chat.Request, *problem) {
	req, no := s.turnBy(r, body.User, body.Scopes)
	if no != nil {
		return req, no
	}
	req.ConversationID, req.TimeZone, req.Agent = body.ConversationID, body.TimeZone, body.Agent
	req.Inside = req.Inspect && body.Inspect
	seen := &pictures{sees: s.opts.Chat.Sees()}
	if req.Message, req.Parts, no = seen.content("message", "user", body.Message); no != nil {
		return req, invalid(no.message)
	}
	if wrong := scopesProblem(body.Scopes); wrong != "" {
		return req, invalid(wrong)
	}
	if body.TimeZone != "" {
		if _, err := user.LoadZone(body.TimeZone); err != nil {
			return req, invalid(`time_zone must be an IANA name such as "Europe/Berlin".`)
		}
	}
	if c := body.Confirmation; c != nil {
		if c.Token == "" || c.Approved == nil {
			return req, invalid(`confirmation must be {"token": "…", "approved": true} or false.`)
		}
		req.Confirmation = &chat.Confirmation{Token: c.Token, Approved: *c.Approved}
	}
	if len(body.Messages) > 0 {
		if len(body.Message) > 0 || body.ConversationID != "" || body.Confirmation != nil {
			return req, invalid("messages cannot be combined with message, conversation_id or confirmation: with " +
				"messages, you " +
				"keep the conversation yourself.")
		}
		if no := withHistory(&req, body.Messages, seen); no != nil {
			return req, no
		}
	}
	req.ID, no = messageID(r, body.MessageID)
	return req, no
}

const reusedWords = "Another message was sent with this message_id or Idempotency-Key. Repeat a message unchanged, or give a " +
	"new message its own id."

// messageID returns the client's id for its message, the same when repeated: the header Idempotency-Key
// (draft-ietf-httpapi-idempotency-key-header, read 2026-11-23) or message_id.
func messageID(r *http.Request, field string) (string, *problem) {
	id := r.Header.Get("Idempotency-Key")
	switch {
	case slices.ContainsFunc(r.Header.Values("Idempotency-Key"), func(other string) bool { return other != id }):
		return "", wrongField("message_id", "invalid_message",
			"The request has two different headers Idempotency-Key; give one.")
	case id != "" && field != "" && id != field:
		return "", wrongField("message_id", "invalid_message",
			"message_id and Idempotency-Key differ; give one of them.")
	}
	return cmp.Or(id, field), nil
}

// mayWrite refuses system messages and scopes of callers that aren't trusted servers.
func mayWrite(r *http.Request, req chat.Request, scopes []string) *problem {
	i := slices.IndexFunc(req.History, func(m textmodel.Message) bool { return m.Role == textmodel.RoleSystem })
	if i >= 0 && !auth.From(r.Context()).May(auth.ScopeTickets) {
		return refusal(http.StatusForbidden, "system_message", "messages["+strconv.Itoa(i)+
			"].role is system or developer, which only operators may send. "+
			"Omit the message, or send a key with the scope tickets, or the gateway's api_key, as \"Authorization: "+
			"Bearer …\".")
	}
	return grantProblem(r, scopes)
}

func withHistory(req *chat.Request, messages []chatMessage, seen *pictures) *problem {
	if len(messages) > maxChatMessages {
		return invalid(fmt.Sprintf("messages has %d messages; at most %d are allowed.", len(messages), maxChatMessages))
	}
	req.History = []textmodel.Message{}
	for i, m := range messages {
		where := "messages[" + strconv.Itoa(i) + "]"
		switch m.Role {
		case "user", "assistant":
		case "system", "developer":
			m.Role = "system"
		case "tool", "function":
			return invalid(where + " has the role tool, but the gateway runs the tools and keeps their messages.")
		default:
			return invalid(where + ".role must be user, assistant or system.")
		}
		if m.Content != nil {
			var no *problem
			if m.text, m.parts, no = seen.content(where+".content", m.Role, m.Content); no != nil {
				return invalid(no.message)
			}
		}
		if i < len(messages)-1 {
			req.History = append(req.History, textmodel.Message{Role: textmodel.Role(m.Role), Text: m.text, Parts: m.parts})
			continue
		}
		if m.Role != "user" {
			return invalid("The last message must be the user's.")
		}
		req.Message, req.Parts = m.text, m.parts
	}
	return nil
}

func (s *Server) nameless(r *http.Request) user.User {
	from := s.clientOf(r)
	return user.Anonymous(from.Addr, from.Own)
}

func (s chatAPI) chatRefused(err error) *problem {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, chat.ErrBusy):
		return refusal(http.StatusConflict, "conversation_busy",
			"Another message of this conversation is being answered; wait for its event done, and send this one "+
				"again.").after(time.Second)
	case errors.Is(err, chat.ErrDraining):
		return draining("use another gateway")
	case errors.Is(err, chat.ErrReused):
		return refusal(http.StatusUnprocessableEntity, "message_reused", reusedWords)
	case errors.Is(err, chat.ErrUnknown):
		return refusal(http.StatusNotFound, "conversation_unknown",
			"This user has no such conversation; omit conversation_id to start one.")
	case errors.Is(err, chat.ErrMessage):
		return invalid(err.Error())
	}
	return s.confirmationRefused("continuing a text conversation failed", err)
}

// isJSON: requiring it forces a CORS preflight before a page of another origin can send a body.
func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == "application/json"
}
