package gateway

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"voicegw/chat"
	"voicegw/protocol"
)

// completionsPath is the endpoint of Chat Completions. Its errors have that API's format.
const completionsPath = "/v1/chat/completions"

// completions implements Chat Completions, so that any client of that API can use the agent with its tools. The
// client keeps the conversation.
func (s chatAPI) completions(w http.ResponseWriter, r *http.Request) {
	q, req, done, ok := s.askedCompletion(w, r)
	defer done()
	if !ok {
		return
	}
	leave, ok := s.enterChat(w, r, req.User, openaiError)
	if !ok {
		return
	}
	defer leave()
	s.leaveVoice(r, req.ConversationID, req.User)
	c := &completion{
		id: "chatcmpl-" + rand.Text(), model: q.model, created: time.Now().Unix(), w: w, withUsage: q.withUsage, json: q.json,
		absolute: func(address string) string { return s.absolute(r, address) },
	}
	if c.model == "" {
		c.model = s.opts.Chat.Name()
	}
	w.Header().Set("X-Request-Id", c.id)
	if q.stream {
		c.out = newEventWriter(w)
		defer c.out.close()
	}
	var field *chat.FieldError
	err := s.opts.Chat.Respond(r.Context(), req, func(m protocol.ServerMessage) {
		s.reachable(r, m)
		c.take(m)
	})
	switch {
	case errors.As(err, &field):
		refuseField(w, &wrongField{field.Field, "invalid_value", field.Message})
	case errors.Is(err, chat.ErrMessage):
		refuse(w, openaiError, http.StatusBadRequest, "invalid_message", err.Error())
	case errors.Is(err, chat.ErrDraining):
		refuseDraining(w, openaiError)
	case errors.Is(err, chat.ErrReused):
		refuse(w, openaiError, http.StatusUnprocessableEntity, "message_reused", reusedWords)
	case err != nil:
		s.opts.Logger.Error("starting a completion failed", "error", err)
		refuse(w, openaiError, http.StatusServiceUnavailable, "unavailable", "The gateway is unavailable; try again.")
	default:
		c.end(r.Context())
	}
}

// askedCompletion reads and checks a request; if ok is false, it has been answered. The caller must call done, which
// releases the body's slot.
func (s chatAPI) askedCompletion(w http.ResponseWriter, r *http.Request) (q *completionsQuery, req chat.Request, done func(), ok bool) {
	var body map[string]json.RawMessage
	if done, ok = s.readTurn(w, r, &body, false, openaiError); !ok {
		return q, req, done, false
	}
	var no *wrongField
	if q, no = readCompletionsQuery(body); no == nil {
		req, no = s.completionsRequest(r, q)
	}
	if no != nil {
		refuseField(w, no)
		return q, req, done, false
	}
	if wrong := instructs(r, req); wrong != "" {
		refuse(w, openaiError, http.StatusForbidden, "system_message", wrong)
		return q, req, done, false
	}
	if wrong := grantProblem(r, q.scopes); wrong != "" {
		refuse(w, openaiError, http.StatusForbidden, "scopes_not_allowed", wrong)
		return q, req, done, false
	}
	return q, req, done, true
}

// openaiError writes an error in the format of Chat Completions.
func openaiError(status int, code, message string) map[string]any {
	kind := "invalid_request_error"
	if status == http.StatusTooManyRequests {
		kind = "rate_limit_error"
	}
	if status >= http.StatusInternalServerError {
		kind = "server_error"
	}
	return map[string]any{"message": message, "type": kind, "param": nil, "code": code}
}

// modelShape describes the agent as a model of Chat Completions.
func (s chatAPI) modelShape() map[string]any {
	return map[string]any{"id": s.opts.Chat.Name(), "object": "model", "created": 0, "owned_by": "voicegw"}
}

// models lists the agent, for clients that list models first.
func (s chatAPI) models(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{"object": "list", "data": []any{s.modelShape()}})
}

func (s chatAPI) model(w http.ResponseWriter, r *http.Request) {
	if id := r.PathValue("id"); id != s.opts.Chat.Name() {
		e := openaiError(http.StatusNotFound, "model_not_found", "There is no model "+strconv.Quote(clip(id))+
			" here; there is "+strconv.Quote(s.opts.Chat.Name())+".")
		e["param"] = "model"
		answer(w, http.StatusNotFound, map[string]any{"error": e})
		return
	}
	answer(w, http.StatusOK, s.modelShape())
}
