package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"voicegw/protocol"
)

type completion struct {
	id        string
	model     string
	created   int64
	w         http.ResponseWriter
	out       *eventWriter // nil without streaming
	withUsage bool
	json      bool                // the content must be only JSON
	absolute  func(string) string // makes an image's URL absolute

	opened  bool   // the first chunk has been sent
	item    string // the latest text item
	text    strings.Builder
	cut     bool
	refused bool
	refusal string // the model's reason for refusing
	usage   protocol.Usage
	failure *protocol.Error
	images  []any
	calls   []any             // to the client's own tools
	extras  []json.RawMessage // messages without an equivalent in this API
}

func (c *completion) take(m protocol.ServerMessage) {
	switch m := m.(type) {
	case *protocol.TurnStarted:
		c.extra(m)
	case *protocol.TextDelta:
		c.say(m.ItemID, m.Text)
	case *protocol.TextDone:
		c.cut, c.refused = m.Cut, m.Refused
	case *protocol.ConfirmationRequest, *protocol.VoiceSessionStart:
		c.extra(m)
	case *protocol.UIImage:
		c.image(m)
	case *protocol.ToolCall:
		c.call(m)
	case *protocol.TurnUsage:
		c.usage = m.Usage
	case *protocol.Error:
		if m.Code == protocol.CodeRefused { // also an answer in this API: a withheld one
			c.refused, c.refusal = true, m.Message
			return
		}
		c.failure = m
	}
}

// say adds a piece of text. Around a tool call texts are paragraphs; for JSON only the text after the last call counts.
func (c *completion) say(item, text string) {
	another := c.item != "" && c.item != item
	c.item = item
	switch {
	case c.json && another:
		c.text.Reset()
	case another:
		text = "\n\n" + text
	}
	c.text.WriteString(text)
	if !c.json {
		c.chunk(map[string]any{"content": text}, nil, nil)
	}
}

// image adds an image next to the content, as OpenRouter and Vercel's AI Gateway do
// (openrouter.ai/docs/features/multimodal/image-generation, vercel.com/docs/ai-gateway/openai-compat/image-generation,
// read 2026-11-23), and to the content as Markdown.
func (c *completion) image(m *protocol.UIImage) {
	shown := *m
	shown.URL = c.absolute(m.URL)
	part := map[string]any{"type": "image_url", "image_url": map[string]any{"url": shown.URL}, "index": len(c.images)}
	if len(c.images) < maxExtras {
		c.images = append(c.images, part)
	}
	delta := map[string]any{"images": []any{part}}
	if !c.json {
		text := markdownImage(shown.Prompt, shown.URL)
		if c.text.Len() > 0 {
			text = "\n\n" + text
		}
		c.text.WriteString(text)
		if c.item == "" {
			c.item = shown.ID // the next text is a new paragraph
		}
		delta["content"] = text
	}
	c.chunk(delta, nil, nil)
	c.extra(&shown)
}

// call sends a call of a client's own tool: in a stream as two pieces, the name and the arguments.
func (c *completion) call(m *protocol.ToolCall) {
	shape := func(args string) map[string]any {
		return map[string]any{"id": m.CallID, "type": "function", "function": map[string]any{"name": m.Name, "arguments": args}}
	}
	n := len(c.calls)
	c.calls = append(c.calls, shape(string(m.Args)))
	first := shape("")
	first["index"] = n
	c.chunk(map[string]any{"tool_calls": []any{first}}, nil, nil)
	c.chunk(map[string]any{"tool_calls": []any{map[string]any{"index": n,
		"function": map[string]any{"arguments": string(m.Args)}}}}, nil, nil)
}

// maxAlt limits an image's description in Markdown, in characters.
const maxAlt = 120

func markdownImage(about, address string) string {
	about = strings.Join(strings.FieldsFunc(about, func(r rune) bool { return r <= ' ' || strings.ContainsRune(`[]()!\<>`+"`", r) }), " ")
	if r := []rune(about); len(r) > maxAlt {
		about = string(r[:maxAlt]) + "…"
	}
	return "![" + about + "](" + address + ")"
}

const maxExtras = 64

func (c *completion) extra(m protocol.ServerMessage) {
	text, err := protocol.EncodeServer(int64(len(c.extras)+1), m)
	if err != nil || len(c.extras) == maxExtras {
		return // every message encodes: tested in package protocol
	}
	c.extras = append(c.extras, text)
	c.chunk(map[string]any{}, nil, text)
}

func (c *completion) chunk(delta map[string]any, finish *string, extra json.RawMessage) {
	if c.out == nil {
		return
	}
	if !c.opened {
		c.opened = true
		delta["role"] = "assistant"
		if delta["content"] == nil {
			delta["content"] = ""
		}
	}
	out := c.shape("chat.completion.chunk")
	out["choices"] = []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}
	if extra != nil {
		out["voicegw"] = extra
	}
	c.out.data(out)
}

func (c *completion) shape(object string) map[string]any {
	return map[string]any{"id": c.id, "object": object, "created": c.created, "model": c.model}
}

func (c *completion) finish() string {
	switch {
	case len(c.calls) > 0:
		return "tool_calls"
	case c.refused:
		return "content_filter"
	case c.cut:
		return "length"
	default:
		return "stop"
	}
}

func (c *completion) end(ctx context.Context) *problem {
	if ctx.Err() != nil {
		return nil // the client is gone
	}
	usage := map[string]any{
		"prompt_tokens": c.usage.InputTokens, "completion_tokens": c.usage.OutputTokens,
		"total_tokens":          c.usage.InputTokens + c.usage.OutputTokens,
		"prompt_tokens_details": map[string]any{"cached_tokens": c.usage.Input.CachedText},
	}
	if c.failure != nil && !c.opened {
		return refuseTurn(c.w, c.failure)
	}
	finish := c.finish()
	if c.out == nil {
		out := c.shape("chat.completion")
		out["choices"] = []any{map[string]any{"index": 0, "finish_reason": finish, "message": c.message()}}
		out["usage"] = usage
		if len(c.extras) > 0 {
			out["voicegw"] = c.extras
		}
		return answer(c.w, http.StatusOK, out)
	}
	if c.failure != nil {
		c.out.data(map[string]any{"error": openaiError(troubleOf(c.failure).problem(c.failure.Message))})
	} else {
		if c.json && c.text.Len() > 0 {
			c.chunk(map[string]any{"content": c.text.String()}, nil, nil)
		}
		if c.refusal != "" {
			c.chunk(map[string]any{"refusal": c.refusal}, nil, nil)
		}
		c.chunk(map[string]any{}, &finish, nil)
		if c.withUsage {
			out := c.shape("chat.completion.chunk")
			out["choices"], out["usage"] = []any{}, usage
			c.out.data(out)
		}
	}
	c.out.write("data: [DONE]\n\n")
	return nil
}

func (c *completion) message() map[string]any {
	m := map[string]any{"role": "assistant", "content": c.text.String(), "refusal": nil}
	if c.refusal != "" {
		m["refusal"] = c.refusal
	}
	if len(c.images) > 0 {
		m["images"] = c.images
	}
	if len(c.calls) > 0 {
		m["tool_calls"] = c.calls
		if c.text.Len() == 0 {
			m["content"] = nil
		}
	}
	return m
}
