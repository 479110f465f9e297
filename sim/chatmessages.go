package sim

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"voicegw/internal/openaiwire"
)

type message struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  []toolCall      `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
	Refusal    string          `json:"refusal"`

	// Filled in from Content by checkMessages.
	text   string
	images int
}

type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type messagePart struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
	Image   *struct {
		URL    string `json:"url"`
		Detail string `json:"detail"`
	} `json:"image_url"`
}

var partTypes = []string{"text", "image_url", "input_audio", "refusal", "audio", "file"}

func (r *chatRequest) checkMessages() *Error {
	switch n := len(r.Messages); {
	case r.Messages == nil:
		return openaiwire.Missing("messages")
	case n == 0:
		return emptyArray("messages")
	case n > maxMessages:
		return tooLong("messages", maxMessages, n)
	}
	open := messageOrder{}
	for i := range r.Messages {
		m := &r.Messages[i]
		if bad := m.read(i); bad != nil {
			return bad
		}
		if bad := open.next(i, m); bad != nil {
			return bad
		}
	}
	return open.end(len(r.Messages))
}

// dotted is the place of message i as the provider spells it in some errors.
func dotted(i int) string { return fmt.Sprintf("messages.[%d]", i) }

func (m *message) read(i int) *Error {
	at := openaiwire.Path("messages", i)
	switch m.Role {
	case "system", "developer", "user", "assistant", "tool":
	case "":
		return openaiwire.Missing(at + ".role")
	default: // function messages were replaced by tool messages
		return openaiwire.BadValue(at+".role", m.Role, "system", "assistant", "user", "function", "tool", "developer")
	}
	if len(m.Content) == 0 || string(m.Content) == "null" {
		if m.Role == "assistant" && (len(m.ToolCalls) > 0 || m.Refusal != "") {
			return nil
		}
		return openaiwire.Invalid("", dotted(i)+".content", "Invalid value for 'content': expected a string, got null.")
	}
	if json.Unmarshal(m.Content, &m.text) == nil {
		return nil
	}
	var parts []messagePart
	if json.Unmarshal(m.Content, &parts) != nil {
		return openaiwire.Invalid("invalid_type", at+".content",
			"Invalid type for '%s.content': expected one of a string or array of objects, but got something else instead.", at)
	}
	var texts []string
	for k, p := range parts {
		if !slices.Contains(partTypes, p.Type) {
			return openaiwire.BadValue(openaiwire.Path(at+".content", k), p.Type, partTypes...)
		}
		switch p.Type {
		case "text":
			texts = append(texts, p.Text)
		case "image_url":
			if bad := p.checkImage(openaiwire.Path(at+".content", k)); bad != nil {
				return bad
			}
			m.images++
			texts = append(texts, "[image]") // for scenario rules to match
		case "file", "input_audio":
			m.images++
		}
	}
	m.text = strings.Join(texts, "\n")
	return nil
}

var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// checkImage refuses an image as the provider does
// (developers.openai.com/api/docs/guides/images-vision, read 2026-11-23). It loads nothing.
func (p messagePart) checkImage(at string) *Error {
	switch {
	case p.Image == nil || p.Image.URL == "":
		return openaiwire.Missing(at + ".image_url.url")
	case p.Image.Detail != "" && !slices.Contains([]string{"auto", "low", "high", "original"}, p.Image.Detail):
		return openaiwire.BadValue(at+".image_url.detail", p.Image.Detail, "low", "high", "auto", "original")
	}
	if inline, data := strings.CutPrefix(p.Image.URL, "data:"); data {
		kind, payload, ok := strings.Cut(inline, ";base64,")
		raw, err := base64.StdEncoding.DecodeString(payload)
		if ok && err == nil && len(raw) > 0 && slices.Contains(imageTypes, kind) && http.DetectContentType(raw) == kind {
			return nil
		}
	} else if strings.HasPrefix(p.Image.URL, "https://") || strings.HasPrefix(p.Image.URL, "http://") {
		return nil
	}
	return openaiwire.Invalid("invalid_image_url", at+".image_url.url",
		"Invalid 'image_url': expected the address of an image, or a base64-encoded data URL of a png, jpeg, gif or webp image.")
}

// messageOrder follows calls and their results through the messages.
type messageOrder struct {
	ids []string // calls without a result so far
	all []string // of the last message, if it has calls and only results followed
}

//nolint:misspell // the provider's own words
const orphan = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."

func (o *messageOrder) next(i int, m *message) *Error {
	at := openaiwire.Path("messages", i)
	if m.Role == "tool" {
		switch k := slices.Index(o.ids, m.ToolCallID); {
		case len(o.all) == 0:
			return openaiwire.Invalid("", dotted(i)+".role", orphan)
		case k >= 0:
			o.ids = slices.Delete(o.ids, k, k+1)
		case m.ToolCallID == "":
			return openaiwire.Missing(at + ".tool_call_id")
		case !slices.Contains(o.all, m.ToolCallID):
			return openaiwire.Invalid("", dotted(i)+".tool_call_id",
				"Invalid parameter: 'tool_call_id' of '%s' not found in 'tool_calls' of previous message.", m.ToolCallID)
		}
		return nil
	}
	if bad := o.end(i); bad != nil {
		return bad
	}
	*o = messageOrder{}
	for k, c := range m.ToolCalls {
		call := openaiwire.Path(at+".tool_calls", k)
		switch {
		case m.Role != "assistant":
			return openaiwire.Invalid("unknown_parameter", at+".tool_calls", "Unknown parameter: '%s.tool_calls'.", at)
		case c.ID == "":
			return openaiwire.Missing(call + ".id")
		case c.Function.Name == "":
			return openaiwire.Missing(call + ".function.name")
		}
		if !slices.Contains(o.all, c.ID) { // a call sent twice needs only one result
			o.ids = append(o.ids, c.ID)
			o.all = append(o.all, c.ID)
		}
	}
	return nil
}

func (o *messageOrder) end(i int) *Error {
	if len(o.ids) == 0 {
		return nil
	}
	return openaiwire.Invalid("", dotted(i)+".role",
		"An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "+
			"The following tool_call_ids did not have response messages: %s", strings.Join(o.ids, ", "))
}
