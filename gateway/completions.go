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
	User  string            `json:"user"`
	N     *int              `json:"n"`
	Tools []json.RawMessage `json:"tools"`
}

// completionMessage is a message whose content is text or a list of parts.
type completionMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// completions answers as a Chat Completions endpoint, so that any client of one has this
// agent with its tools. The conversation is the client's to keep.
func (s *Server) completions(w http.ResponseWriter, r *http.Request) {
	if s.guard.hasKey {
		if no := s.guard.checkKey(r); no != nil {
			w.Header().Set("WWW-Authenticate", `Bearer realm="voicegw"`)
			completionsError(w, no.status, "invalid_request_error", no.code, no.message)
			return
		}
	}
	var body completionsBody
	if !s.readBody(w, r, &body, false) {
		return
	}
	req, wrong := completionsRequest(r, body)
	if wrong != "" {
		completionsError(w, http.StatusBadRequest, "invalid_request_error", "invalid_message", wrong)
		return
	}
	leave, ok := s.enterChat(w, r, req.User)
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
	err := s.opts.Chat.Respond(r.Context(), req, c.take)
	switch {
	case errors.Is(err, chat.ErrMessage):
		completionsError(w, http.StatusBadRequest, "invalid_request_error", "invalid_message", err.Error())
	case err != nil:
		s.opts.Logger.Error("a completion could not begin", "error", err)
		completionsError(w, http.StatusServiceUnavailable, "server_error", "unavailable", "The gateway cannot answer at the moment; try again.")
	default:
		c.end(r.Context())
	}
}

// completionsRequest makes a turn of a body, or says what is wrong with it.
func completionsRequest(r *http.Request, body completionsBody) (chat.Request, string) {
	switch {
	case len(body.Messages) == 0:
		return chat.Request{}, "messages is missing or empty."
	case body.N != nil && *body.N != 1:
		return chat.Request{}, "n must be 1: there is one answer."
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
	return withHistory(chat.Request{User: chatUser(r, body.User)}, messages)
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
	usage   wsclient.Usage
	failure *wsclient.Error
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
		c.cut = m.Cut
	case *wsclient.ConfirmationRequest, *wsclient.VoiceSessionStart:
		// There is no place for these in the shape; a client that knows finds them here.
		c.chunk(map[string]any{}, nil, m)
	case *wsclient.TurnUsage:
		c.usage = m.Usage
	case *wsclient.Error:
		c.failure = m
	}
}

// chunk writes a piece of a stream.
func (c *completion) chunk(delta map[string]any, finish *string, extra wsclient.ServerMessage) {
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
	if c.cut {
		finish = "length"
	}
	if c.flush == nil {
		if c.failure != nil && c.text.Len() == 0 {
			status := http.StatusBadGateway
			if c.failure.Retryable {
				status = http.StatusServiceUnavailable
			}
			completionsError(c.w, status, "server_error", c.failure.Code, c.failure.Message)
			return
		}
		out := c.shape("chat.completion")
		out["choices"] = []any{map[string]any{"index": 0, "finish_reason": finish, "message": map[string]any{"role": "assistant", "content": c.text.String()}}}
		out["usage"] = usage
		answer(c.w, http.StatusOK, out)
		return
	}
	if c.failure != nil {
		if !c.begun {
			openStream(c.w)
		}
		c.event(map[string]any{"error": map[string]any{"type": "server_error", "code": c.failure.Code, "message": c.failure.Message}})
	} else {
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

// completionsError answers with an error in the shape of Chat Completions.
func completionsError(w http.ResponseWriter, status int, kind, code, message string) {
	answer(w, status, map[string]any{"error": map[string]any{"message": message, "type": kind, "param": nil, "code": code}})
}

// models lists the one agent, for clients that ask before they begin.
func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{"object": "list", "data": []any{
		map[string]any{"id": s.opts.Chat.Name(), "object": "model", "created": 0, "owned_by": "voicegw"},
	}})
}
