package gateway

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"voicegw/chat"
	"voicegw/protocol"
)

const completionsPath = "/v1/chat/completions"

// completions implements Chat Completions. The client keeps the conversation.
func (s chatAPI) completions(w http.ResponseWriter, r *http.Request) *problem {
	q, req, done, no := s.askedCompletion(w, r)
	defer done()
	if no != nil {
		return no
	}
	leave, no := s.enterChat(w, r, req.User)
	if no != nil {
		return no
	}
	defer leave()
	s.leaveVoice(r, req.ConversationID, req.User)
	c := &completion{
		id: "chatcmpl-" + rand.Text(), model: cmp.Or(q.model, s.opts.Chat.Name()), created: time.Now().Unix(), w: w,
		withUsage: q.withUsage, json: q.json, absolute: func(address string) string { return s.absolute(r, address) },
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
		return wrongField(field.Field, "invalid_value", field.Message)
	case errors.Is(err, chat.ErrMessage), errors.Is(err, chat.ErrDraining), errors.Is(err, chat.ErrReused):
		return s.chatRefused(err)
	case err != nil:
		s.opts.Logger.Error("starting a completion failed", "error", err)
		return refusal(http.StatusServiceUnavailable, "unavailable", "The gateway is unavailable; try again.")
	}
	return c.end(r.Context())
}

// askedCompletion reads and checks a request. The caller must call done.
func (s chatAPI) askedCompletion(w http.ResponseWriter, r *http.Request) (
	q *completionsQuery, req chat.Request, done func(), no *problem,
) {
	var body map[string]json.RawMessage
	done, no = s.readTurn(w, r, &body, false)
	if no == nil {
		q, no = readCompletionsQuery(body)
	}
	if no == nil {
		req, no = s.completionsRequest(r, q)
	}
	if no == nil {
		no = mayWrite(r, req, q.scopes)
	}
	return q, req, done, no
}

func (s chatAPI) modelShape() map[string]any {
	return map[string]any{"id": s.opts.Chat.Name(), "object": "model", "created": 0, "owned_by": "voicegw"}
}

func (s chatAPI) models(w http.ResponseWriter, _ *http.Request) *problem {
	return answer(w, http.StatusOK, map[string]any{"object": "list", "data": []any{s.modelShape()}})
}

func (s chatAPI) model(w http.ResponseWriter, r *http.Request) *problem {
	if id := r.PathValue("id"); id != s.opts.Chat.Name() {
		no := wrongField("model", "model_not_found", fmt.Sprintf("There is no model %q here; there is %q.",
			clip(id), s.opts.Chat.Name()))
		no.status = http.StatusNotFound
		return no
	}
	return answer(w, http.StatusOK, s.modelShape())
}

type openaiTrouble struct {
	status int
	kind   string // the field type
	code   string
	param  string
}

// openaiTroubles has the status, if nothing was sent, and the error by code. Codes are OpenAI's where possible
// (developers.openai.com/api/docs/guides/error-codes, read 2026-11-23). The provider rejecting the gateway's key isn't
// a 401. docs/chat.md has this list (TestTroublesStandInTheDocs).
var openaiTroubles = map[string]openaiTrouble{
	protocol.CodeProviderBusy:        {http.StatusTooManyRequests, "rate_limit_error", "rate_limit_exceeded", ""},
	protocol.CodeProviderQuota:       {http.StatusTooManyRequests, "insufficient_quota", "insufficient_quota", ""},
	protocol.CodeTooLong:             {http.StatusBadRequest, "invalid_request_error", "context_length_exceeded", "messages"},
	protocol.CodeContentFilter:       {http.StatusBadRequest, "invalid_request_error", "content_filter", "messages"},
	protocol.CodeSettingRefused:      {http.StatusBadRequest, "invalid_request_error", "unsupported_value", ""},
	protocol.CodeProviderAuth:        {http.StatusBadGateway, "server_error", protocol.CodeProviderAuth, ""},
	protocol.CodeProviderAnswer:      {http.StatusBadGateway, "server_error", protocol.CodeProviderAnswer, ""},
	protocol.CodeProviderError:       {http.StatusBadGateway, "server_error", protocol.CodeProviderError, ""},
	protocol.CodeProviderUnavailable: {http.StatusServiceUnavailable, "server_error", protocol.CodeProviderUnavailable, ""},
	protocol.CodeNoAnswer:            {http.StatusServiceUnavailable, "server_error", protocol.CodeNoAnswer, ""},
	protocol.CodeDraining:            {http.StatusServiceUnavailable, "server_error", protocol.CodeDraining, ""},
	protocol.CodeStoreUnavailable:    {http.StatusServiceUnavailable, "server_error", protocol.CodeStoreUnavailable, ""},
}

func troubleOf(e *protocol.Error) openaiTrouble {
	t, known := openaiTroubles[e.Code]
	if !known {
		t = openaiTrouble{http.StatusBadGateway, "server_error", e.Code, ""}
		if e.Retryable {
			t.status = http.StatusServiceUnavailable
		}
	}
	t.param = cmp.Or(t.param, e.Ref)
	return t
}

func (t openaiTrouble) problem(message string) *problem {
	return &problem{status: t.status, kind: t.kind, code: t.code, param: t.param, message: message}
}

// refuseTurn is the answer to a failed turn. Clients must not retry automatically: its tools may have run.
func refuseTurn(w http.ResponseWriter, e *protocol.Error) *problem {
	w.Header().Set("X-Should-Retry", "false")
	if e.RetryAfterMS > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt((e.RetryAfterMS+999)/1000, 10))
		w.Header().Set("Retry-After-Ms", strconv.FormatInt(e.RetryAfterMS, 10))
	}
	return troubleOf(e).problem(e.Message)
}
