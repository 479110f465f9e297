package textmodel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
)

const maxExtra = 512 << 10

// carried is an extra field that a provider wants back unchanged in the same message or call.
type carried struct {
	name    string
	join    func(before, next json.RawMessage) json.RawMessage // joins two pieces of the field from different chunks
	calling bool                                               // only messages of a turn that called tools send the field back
	instead string                                             // names an equivalent field; if it is present, this one is not sent back
}

// messageExtras are the extra fields of messages, callExtras those of tool calls. Read 2026-11-23:
//   - extra_content: thought signatures of Gemini 3 (ai.google.dev/gemini-api/docs/openai and thought-signatures). Within
//     its turn, a call without its signature gets 400;
//   - provider_specific_fields: the same through LiteLLM (docs.litellm.ai/blog/gemini_3);
//   - reasoning_details: OpenRouter, which wants the list unchanged (openrouter.ai/docs/use-cases/reasoning-tokens);
//   - reasoning_content: DeepSeek and others. Without it, later requests get 400 if the turn called tools; other turns
//     should not have it (api-docs.deepseek.com/guides/thinking_mode);
//   - reasoning: the same field in vLLM and OpenRouter.
var (
	messageExtras = []carried{
		{"extra_content", joinObjects, false, ""},
		{"provider_specific_fields", joinObjects, false, ""},
		{"reasoning_details", joinDetails, false, ""},
		{"reasoning_content", joinTexts, true, ""},
		{"reasoning", joinTexts, true, "reasoning_details"},
	}
	callExtras = []carried{
		{"extra_content", joinObjects, false, ""},
		{"provider_specific_fields", joinObjects, false, ""},
	}
)

type fields map[string]json.RawMessage

func (f *fields) take(known []carried, piece string) int {
	var came fields
	if json.Unmarshal([]byte(piece), &came) != nil {
		return 0 // already parsed by the library: an object or empty
	}
	n := 0
	for _, k := range known {
		next := came[k.name]
		if len(next) == 0 || string(next) == "null" {
			continue
		}
		n += len(next)
		if *f == nil {
			*f = fields{}
		}
		if before := (*f)[k.name]; before != nil {
			next = k.join(before, next)
		}
		(*f)[k.name] = next
	}
	return n
}

func (a *answer) takeExtra(f *fields, known []carried, piece string) error {
	if a.extraBytes += f.take(known, piece); a.extraBytes > maxExtra {
		return unreadable(fmt.Sprintf("the answer's extra fields have more than %d bytes", maxExtra))
	}
	return nil
}

func joinTexts(before, next json.RawMessage) json.RawMessage {
	var a, b string
	if json.Unmarshal(before, &a) != nil || json.Unmarshal(next, &b) != nil {
		return next
	}
	return encode(a + b)
}

// joinObjects adds next's members to an object, recursively. next wins, but an empty text changes nothing.
func joinObjects(before, next json.RawMessage) json.RawMessage {
	var a, b fields
	if json.Unmarshal(before, &a) != nil || json.Unmarshal(next, &b) != nil || a == nil || b == nil {
		if string(next) == `""` {
			return before
		}
		return next
	}
	for name, value := range b {
		if old, ok := a[name]; ok {
			value = joinObjects(old, value)
		}
		a[name] = value
	}
	return encode(a)
}

// joinDetails concatenates two lists. It joins pieces of one block, which have the same index and type.
func joinDetails(before, next json.RawMessage) json.RawMessage {
	var a, b []json.RawMessage
	if json.Unmarshal(before, &a) != nil || json.Unmarshal(next, &b) != nil {
		return next
	}
	for _, piece := range b {
		if n := len(a); n > 0 {
			if whole, ok := joinDetail(a[n-1], piece); ok {
				a[n-1] = whole
				continue
			}
		}
		a = append(a, piece)
	}
	return encode(a)
}

func joinDetail(before, next json.RawMessage) (json.RawMessage, bool) {
	var a, b fields
	if json.Unmarshal(before, &a) != nil || json.Unmarshal(next, &b) != nil || a["index"] == nil ||
		!bytes.Equal(a["index"], b["index"]) || !bytes.Equal(a["type"], b["type"]) {
		return nil, false
	}
	for name, value := range b {
		switch old := a[name]; {
		case old != nil && (name == "text" || name == "summary" || name == "data"):
			a[name] = joinTexts(old, value)
		case string(value) != "null" || old == nil:
			a[name] = value
		}
	}
	return encode(a), true
}

func encode(v any) json.RawMessage {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return nil // cannot fail: only strings and parsed JSON
	}
	return bytes.TrimRight(out.Bytes(), "\n")
}

// extra is the form in which chat stores fields, with the model and server: others may reject the fields.
type extra struct {
	From   string `json:"from"`
	Fields fields `json:"fields"`
}

func (a *answer) pack(f fields) json.RawMessage {
	if len(f) == 0 {
		return nil
	}
	return encode(extra{a.from, f})
}

// unpack returns the fields to send back, or nil. calling means that the turn called tools.
func (c *Client) unpack(raw json.RawMessage, known []carried, calling bool) map[string]any {
	var e extra
	if len(raw) == 0 || json.Unmarshal(raw, &e) != nil || e.From != c.from() {
		return nil
	}
	var out map[string]any
	for _, k := range known {
		value := e.Fields[k.name]
		if value == nil || k.calling && !calling || k.instead != "" && e.Fields[k.instead] != nil {
			continue
		}
		if out == nil {
			out = map[string]any{}
		}
		out[k.name] = value
	}
	return out
}

func (c *Client) from() string {
	host := ""
	if at, err := url.Parse(c.options.BaseURL); err == nil {
		host = at.Host
	}
	return host + " " + c.options.Model
}

// calling reports for each message whether its turn called tools. A turn begins with a message of the user.
func calling(messages []Message) []bool {
	turn, turns, called := 0, make([]int, len(messages)), map[int]bool{}
	for i, m := range messages {
		if m.Role == RoleUser {
			turn++
		}
		turns[i] = turn
		called[turn] = called[turn] || len(m.Calls) > 0
	}
	out := make([]bool, len(messages))
	for i := range out {
		out[i] = called[turns[i]]
	}
	return out
}
