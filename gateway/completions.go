package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"voicegw/chat"
	"voicegw/session/wsclient"
)

// completionsPath is where clients of Chat Completions ask, and get errors of its shape.
const completionsPath = "/v1/chat/completions"

// completions answers as a Chat Completions endpoint, so that any client of one has this
// agent with its tools. The conversation is the client's to keep.
func (s *Server) completions(w http.ResponseWriter, r *http.Request) {
	if s.opts.GuardCompletions {
		if no := s.guard.check(r); no != nil {
			w.Header().Set("WWW-Authenticate", `Bearer realm="voicegw"`)
			refuse(w, openaiError, no.status, no.code, no.message)
			return
		}
	}
	var body map[string]json.RawMessage
	if !s.readBody(w, r, &body, false, openaiError) {
		return
	}
	q, no := readCompletionsQuery(body)
	if no != nil {
		refuseField(w, no)
		return
	}
	req, no := s.completionsRequest(r, q)
	if no != nil {
		refuseField(w, no)
		return
	}
	if wrong := s.instructs(r, req); wrong != "" {
		refuse(w, openaiError, http.StatusForbidden, "system_message", wrong)
		return
	}
	if wrong := s.grants(r, q.scopes); wrong != "" {
		refuse(w, openaiError, http.StatusForbidden, "scopes_not_allowed", wrong)
		return
	}
	leave, ok := s.enterChat(w, r, req.User, openaiError)
	if !ok {
		return
	}
	defer leave()
	c := &completion{id: "chatcmpl-" + rand.Text(), model: q.model, created: time.Now().Unix(), w: w}
	if c.model == "" {
		c.model = s.opts.Chat.Name()
	}
	if q.stream {
		c.flush = http.NewResponseController(w)
		c.withUsage = q.withUsage
	}
	err := s.opts.Chat.Respond(r.Context(), req, func(m wsclient.ServerMessage) {
		s.reachable(r, m)
		c.take(m)
	})
	switch {
	case errors.Is(err, chat.ErrMessage):
		refuse(w, openaiError, http.StatusBadRequest, "invalid_message", err.Error())
	case errors.Is(err, chat.ErrReused):
		refuse(w, openaiError, http.StatusUnprocessableEntity, "message_reused", reusedWords)
	case err != nil:
		s.opts.Logger.Error("a completion could not begin", "error", err)
		refuse(w, openaiError, http.StatusServiceUnavailable, "unavailable", "The gateway cannot answer at the moment; try again.")
	default:
		c.end(r.Context())
	}
}

// completion makes one answer in the shape of Chat Completions out of a turn's messages.
type completion struct {
	// Fixed after completions.
	id        string
	model     string
	created   int64
	w         http.ResponseWriter
	flush     *http.ResponseController // nil: not a stream
	withUsage bool

	begun   bool
	item    string // the text item that came last
	text    strings.Builder
	cut     bool
	refused bool
	refusal string // why, where the model has said nothing
	usage   wsclient.Usage
	failure *wsclient.Error
	extras  []json.RawMessage // what the shape has no place for
}

// take takes one message of the turn.
func (c *completion) take(m wsclient.ServerMessage) {
	switch m := m.(type) {
	case *wsclient.TextDelta:
		text := m.Text
		if c.item != "" && c.item != m.ItemID {
			text = "\n\n" + text // what was said before a tool and after it
		}
		c.item = m.ItemID
		c.text.WriteString(text)
		c.chunk(map[string]any{"content": text}, nil, nil)
	case *wsclient.TextDone:
		c.cut, c.refused = m.Cut, m.Refused
	case *wsclient.ConfirmationRequest, *wsclient.VoiceSessionStart:
		c.extra(m)
	case *wsclient.TurnUsage:
		c.usage = m.Usage
	case *wsclient.Error:
		if m.Code == wsclient.CodeRefused { // an answer, in this form: one that is withheld
			c.refused, c.refusal = true, m.Message
			return
		}
		c.failure = m
	}
}

// maxExtras bounds what is kept of a turn beside its text; a turn has fewer calls.
const maxExtras = 64

// extra takes a message that the shape has no place for: a client that knows of it finds
// it under "voicegw", in a chunk or, without a stream, in a list.
func (c *completion) extra(m wsclient.ServerMessage) {
	text, err := wsclient.EncodeServer(int64(len(c.extras)+1), m)
	if err != nil || len(c.extras) == maxExtras {
		return // every message of ours can be encoded, which wsclient's tests see to
	}
	c.extras = append(c.extras, text)
	c.chunk(map[string]any{}, nil, text)
}

// chunk writes a piece of a stream.
func (c *completion) chunk(delta map[string]any, finish *string, extra json.RawMessage) {
	if c.flush == nil {
		return
	}
	if !c.begun {
		c.begun = true
		openStream(c.w)
		delta["role"] = "assistant"
	}
	out := c.shape("chat.completion.chunk")
	out["choices"] = []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}
	if extra != nil {
		out["voicegw"] = extra
	}
	c.event(out)
}

func (c *completion) shape(object string) map[string]any {
	return map[string]any{"id": c.id, "object": object, "created": c.created, "model": c.model}
}

// event writes one event. A client that is gone ends the turn through the request's context.
func (c *completion) event(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		return // strings, numbers and messages of ours: it cannot fail
	}
	_, _ = io.WriteString(c.w, "data: "+string(text)+"\n\n")
	_ = c.flush.Flush()
}

// end writes what follows the last message of the turn.
func (c *completion) end(ctx context.Context) {
	if ctx.Err() != nil {
		return // nobody reads it
	}
	usage := map[string]any{
		"prompt_tokens": c.usage.InputTokens, "completion_tokens": c.usage.OutputTokens, "total_tokens": c.usage.InputTokens + c.usage.OutputTokens,
		"prompt_tokens_details": map[string]any{"cached_tokens": c.usage.Input.CachedText},
	}
	finish := "stop"
	switch {
	case c.refused:
		finish = "content_filter"
	case c.cut:
		finish = "length"
	}
	if c.failure != nil && !c.begun {
		refuseTurn(c.w, c.failure)
		return
	}
	if c.flush == nil {
		out := c.shape("chat.completion")
		out["choices"] = []any{map[string]any{"index": 0, "finish_reason": finish, "message": c.message()}}
		out["usage"] = usage
		if len(c.extras) > 0 {
			out["voicegw"] = c.extras
		}
		answer(c.w, http.StatusOK, out)
		return
	}
	if c.failure != nil {
		c.event(map[string]any{"error": troubleOf(c.failure).shape(c.failure.Message)})
	} else {
		if c.refusal != "" {
			c.chunk(map[string]any{"refusal": c.refusal}, nil, nil)
		}
		c.chunk(map[string]any{}, &finish, nil)
		if c.withUsage {
			out := c.shape("chat.completion.chunk")
			out["choices"], out["usage"] = []any{}, usage
			c.event(out)
		}
	}
	_, _ = io.WriteString(c.w, "data: [DONE]\n\n")
	_ = c.flush.Flush()
}

// message is the whole answer.
func (c *completion) message() map[string]any {
	m := map[string]any{"role": "assistant", "content": c.text.String(), "refusal": nil}
	if c.refusal != "" {
		m["refusal"] = c.refusal
	}
	return m
}

// openaiError is the shape of Chat Completions.
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

// models lists the one agent, for clients that ask before they begin.
func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{"object": "list", "data": []any{
		map[string]any{"id": s.opts.Chat.Name(), "object": "model", "created": 0, "owned_by": "voicegw"},
	}})
}
