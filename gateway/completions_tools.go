package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"voicegw/transport/textmodel"
)

const (
	maxClientTools = 64
	maxClientTool  = 32 << 10 // bytes of one declaration
)

// toolName is the format of a tool's name (developers.openai.com/api/docs/guides/function-calling, read 2026-11-23).
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func readTools(q *completionsQuery, raw json.RawMessage) string {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return "must be a list of objects"
	}
	if len(list) > maxClientTools {
		return fmt.Sprintf("has %d tools; at most %d are allowed", len(list), maxClientTools)
	}
	for i, raw := range list {
		var t struct {
			Type     string `json:"type"`
			Function *struct {
				Name        string          `json:"name"`
				Description string          `json:"description"`
				Parameters  json.RawMessage `json:"parameters"`
				Strict      *bool           `json:"strict"`
			} `json:"function"`
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		err := d.Decode(&t)
		where := "has as its element " + strconv.Itoa(i) + " "
		switch {
		case err == nil && t.Type != "function":
			return where + "a tool of the type " + strconv.Quote(clip(t.Type)) + "; only function is supported"
		case err != nil || t.Function == nil:
			return where + `no {"type": "function", "function": {"name": "…", "description": "…", "parameters": {…}}}`
		case len(raw) > maxClientTool:
			return where + fmt.Sprintf("a tool of more than %d KiB", maxClientTool>>10)
		case !toolName.MatchString(t.Function.Name):
			return where + "a tool whose name is not 1 to 64 letters, digits, underscores and hyphens"
		case slices.ContainsFunc(q.tools, func(known textmodel.Tool) bool { return known.Name == t.Function.Name }):
			return where + "a second tool called " + strconv.Quote(t.Function.Name)
		}
		f := t.Function
		if string(f.Parameters) == "null" {
			f.Parameters = nil
		}
		var object map[string]json.RawMessage
		if len(f.Parameters) > 0 && json.Unmarshal(f.Parameters, &object) != nil {
			return where + "a tool with parameters that aren't the JSON Schema of an object"
		}
		q.tools = append(q.tools, textmodel.Tool{Name: f.Name, Description: f.Description, Parameters: f.Parameters, Strict: f.Strict})
	}
	return ""
}

func readToolChoice(q *completionsQuery, raw json.RawMessage) string {
	var word string
	var named struct {
		Type     string `json:"type"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	switch {
	case json.Unmarshal(raw, &word) == nil && slices.Contains([]string{"none", "auto", "required"}, word):
		q.choice = json.RawMessage(strconv.Quote(word))
	case word == "" && json.Unmarshal(raw, &named) == nil && named.Type == "function" && named.Function.Name != "":
		q.choice, q.chosen = raw, named.Function.Name
	default:
		return `must be "none", "auto", "required" or {"type": "function", "function": {"name": "…"}}`
	}
	return ""
}

func readCalls(where string, raw json.RawMessage) ([]textmodel.ToolCall, *problem) {
	var calls []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	}
	where += ".tool_calls"
	if json.Unmarshal(raw, &calls) != nil {
		return nil, badField(where, "must be a list of calls as the gateway returned them.")
	}
	var out []textmodel.ToolCall
	for i, c := range calls {
		at := where + "[" + strconv.Itoa(i) + "]"
		switch {
		case c.ID == "" || len(c.ID) > maxCallID:
			return nil, badField(at+".id", "must be a text of at most "+strconv.Itoa(maxCallID)+" bytes.")
		case slices.ContainsFunc(out, func(o textmodel.ToolCall) bool { return o.ID == c.ID }):
			return nil, badField(at+".id", "is used by another call of this list.")
		case c.Type != "function" && c.Type != "":
			return nil, badField(at+".type", "must be function.")
		case !toolName.MatchString(c.Function.Name):
			return nil, badField(at+".function.name", "isn't a valid tool name.")
		}
		out = append(out, textmodel.ToolCall{ID: c.ID, Name: c.Function.Name, Args: json.RawMessage(c.Function.Arguments)})
	}
	return out, nil
}

// maxCallID limits a call's id, in bytes.
const maxCallID = 256

type openCalls struct {
	where string
	ids   []string
}

func (o *openCalls) take(where string, m textmodel.Message) *problem {
	if m.Role == textmodel.RoleTool {
		i := slices.Index(o.ids, m.CallID)
		if i < 0 {
			return badField(where+".tool_call_id", "isn't an unanswered call of the assistant's previous message.")
		}
		o.ids = slices.Delete(o.ids, i, i+1)
		return nil
	}
	if no := o.end(); no != nil {
		return no
	}
	o.where = where
	for _, c := range m.Calls {
		o.ids = append(o.ids, c.ID)
	}
	return nil
}

func (o *openCalls) end() *problem {
	if len(o.ids) == 0 {
		return nil
	}
	return wrongField(o.where+".tool_calls", "invalid_value",
		"The call "+strconv.Quote(clip(o.ids[0]))+" of "+o.where+
			".tool_calls has no answer: a message with the role tool and its tool_call_id must follow.")
}
