package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"voicegw/chat"
	"voicegw/session/wsclient"
)

// completionsBody is what of a Chat Completions request is understood
// (developers.openai.com/api/docs/api-reference/chat, read 2026-11-21). Settings of the
// model, such as temperature, are the gateway's and are ignored.
type completionsBody struct {
	Model         string              `json:"model"`
	Messages      []completionMessage `json:"messages"`
	Stream        bool                `json:"stream"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	User   string            `json:"user"`
	Scopes []string          `json:"scopes"` // the gateway's own
	N      *int              `json:"n"`
	Tools  []json.RawMessage `json:"tools"`
}

// completionMessage is a message whose content is text or a list of parts.
type completionMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

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
	var body completionsBody
	if !s.readBody(w, r, &body, false, openaiError) {
		return
	}
	req, wrong := s.completionsRequest(r, body)
	if wrong != "" {
		refuse(w, openaiError, http.StatusBadRequest, "invalid_message", wrong)
		return
	}
	if wrong := s.instructs(r, req); wrong != "" {
		refuse(w, openaiError, http.StatusForbidden, "system_message", wrong)
		return
	}
	if wrong := s.grants(r, body.Scopes); wrong != "" {
		refuse(w, openaiError, http.StatusForbidden, "scopes_not_allowed", wrong)
		return
	}
	leave, ok := s.enterChat(w, r, req.User, openaiError)
	if !ok {
		return
	}
	defer leave()
	c := &completion{id: "chatcmpl-" + rand.Text(), model: body.Model, created: time.Now().Unix(), w: w}
	if c.model == "" {
		c.model = s.opts.Chat.Name()
	}
	if body.Stream {
		c.flush = http.NewResponseController(w)
		c.withUsage = body.StreamOptions != nil && body.StreamOptions.IncludeUsage
	}
	err := s.opts.Chat.Respond(r.Context(), req, func(m wsclient.ServerMessage) {
		s.reachable(r, m)
		c.take(m)
	})
	switch {
	case errors.Is(err, chat.ErrMessage):
		refuse(w, openaiError, http.StatusBadRequest, "invalid_message", err.Error())
	case err != nil:
		s.opts.Logger.Error("a completion could not begin", "error", err)
		refuse(w, openaiError, http.StatusServiceUnavailable, "unavailable", "The gateway cannot answer at the moment; try again.")
	default:
		c.end(r.Context())
	}
}

// maxModel is the longest name of a model, in bytes: it is repeated in each chunk.
const maxModel = 128

// completionsRequest makes a turn of a body, or says what is wrong with it.
func (s *Server) completionsRequest(r *http.Request, body completionsBody) (chat.Request, string) {
	switch {
	case len(body.Messages) == 0:
		return chat.Request{}, "messages is missing or empty."
	case body.N != nil && *body.N != 1:
		return chat.Request{}, "n must be 1: there is one answer."
	case len(body.Model) > maxModel:
		return chat.Request{}, "model is longer than " + strconv.Itoa(maxModel) + " bytes; any short name will do."
	case len(body.Tools) > 0:
		return chat.Request{}, "tools cannot be given: this endpoint runs the gateway's own tools."
	}
	messages := make([]chatMessage, len(body.Messages))
	for i, m := range body.Messages {
		text, ok := contentText(m.Content)
		if !ok {
			return chat.Request{}, "messages[" + strconv.Itoa(i) + "].content must be text, or a list of parts of type text."
		}
		messages[i] = chatMessage{Role: m.Role, Content: text}
	}
	who, wrong := s.speaker(r, body.User)
	if wrong != "" {
		return chat.Request{}, wrong
	}
	if wrong := scopesProblem(body.Scopes); wrong != "" {
		return chat.Request{}, wrong
	}
	return withHistory(chat.Request{User: who, Vouched: body.User != "" && s.vouched(r), Scopes: body.Scopes, Origin: pageOf(r)}, messages)
}

// contentText is the text of a message's content.
func contentText(raw json.RawMessage) (string, bool) {
	var text string
	if len(raw) == 0 || string(raw) == "null" {
		return "", true
	}
	if json.Unmarshal(raw, &text) == nil {
		return text, true
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return "", false
	}
	var all []string
	for _, p := range parts {
		if p.Type != "text" {
			return "", false
		}
		all = append(all, p.Text)
	}
	return strings.Join(all, "\n"), true
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
