package gateway

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"voicegw/chat"
	"voicegw/transport/textmodel"
)

type completionMessage struct {
	where   string
	role    string
	content json.RawMessage
	calls   []textmodel.ToolCall
	callID  string
}

// messageFields are the allowed fields by role. Clients send answers back whole; those fields are ignored.
var messageFields = map[string][]string{
	"system":    {"role", "content"},
	"developer": {"role", "content"},
	"user":      {"role", "content"},
	"tool":      {"role", "content", "tool_call_id", "name"},
	"assistant": {"role", "content", "refusal", "annotations", "reasoning", "reasoning_content", "images", "voicegw",
		"tool_calls", "function_call", "audio"},
}

var emptyFields = []string{"function_call", "audio"}

func readMessages(raw json.RawMessage, req *chat.Request, seen *pictures) *problem {
	var messages []map[string]json.RawMessage
	switch err := json.Unmarshal(raw, &messages); {
	case len(raw) == 0:
		return wrongField("messages", "missing_required_parameter", "messages is missing.")
	case err != nil:
		return badField("messages", "must be a list of objects.")
	case len(messages) == 0:
		return badField("messages", "is empty.")
	case len(messages) > maxChatMessages:
		return badField("messages", "has "+strconv.Itoa(len(messages))+" messages; at most "+
			strconv.Itoa(maxChatMessages)+" are allowed.")
	}
	req.History = []textmodel.Message{}
	var open openCalls
	for i, fields := range messages {
		m, no := readMessage("messages["+strconv.Itoa(i)+"]", fields)
		if no != nil {
			return no
		}
		text, parts, no := seen.content(m.where+".content", m.role, m.content)
		if no != nil {
			return no
		}
		said := textmodel.Message{Role: textmodel.Role(m.role), Text: text, Parts: parts, Calls: m.calls, CallID: m.callID}
		if no := open.take(m.where, said); no != nil {
			return no
		}
		switch {
		case i < len(messages)-1 || m.role == "tool":
			req.History = append(req.History, said)
		case m.role != "user":
			return wrongField("messages", "invalid_value",
				"The last message must be from the user, or answer a tool call.")
		default:
			req.Message, req.Parts = text, parts
		}
	}
	return open.end()
}

func readMessage(where string, fields map[string]json.RawMessage) (m completionMessage, no *problem) {
	wrong := func(name, code, message string) (completionMessage, *problem) {
		return m, wrongField(where+"."+name, code, where+"."+name+" "+message+".")
	}
	m = completionMessage{where: where, content: fields["content"]}
	if json.Unmarshal(fields["role"], &m.role) != nil || m.role == "" {
		return wrong("role", "invalid_value", "must be user, assistant, tool, system or developer")
	}
	if m.role == "function" {
		return wrong("role", "invalid_value", "cannot be function; the role is tool")
	}
	known, ok := messageFields[m.role]
	if !ok {
		return wrong("role", "invalid_value", "must be user, assistant, tool, system or developer")
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := string(fields[name])
		switch {
		case value == "null" || slices.Contains(emptyFields, name) && value == "[]":
		case !slices.Contains(known, name):
			return wrong(clip(name), "unknown_parameter", "is not supported in a message with the role "+m.role)
		case slices.Contains(emptyFields, name):
			return wrong(name, "unsupported_parameter", "must be null")
		}
	}
	if raw := fields["tool_calls"]; len(raw) > 0 && string(raw) != "null" {
		calls, no := readCalls(where, raw)
		if no != nil {
			return m, no
		}
		m.calls = calls
	}
	if m.role == "tool" && (json.Unmarshal(fields["tool_call_id"], &m.callID) != nil || m.callID == "") {
		return wrong("tool_call_id", "invalid_value", "must be the id of the answered call")
	}
	if m.role == "developer" {
		m.role = "system"
	}
	return m, nil
}
