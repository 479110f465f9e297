package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/chat"
	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/transport/textmodel"
)

// with is the minimal request with one more field.
func with(field string) string {
	return `{` + field + `,"messages":[{"role":"user","content":"Hello"}]}`
}

// TestFieldsReachTheModel: fields about the answer reach the model unchanged; fields for the gateway reach their
// consumer.
func TestFieldsReachTheModel(t *testing.T) {
	settings := func(name, value string) chat.Request {
		return chat.Request{Settings: map[string]json.RawMessage{name: json.RawMessage(value)}}
	}
	tests := map[string]chat.Request{
		`"user":"ada"`:                             {User: user.Must("ada")},
		`"max_tokens":9`:                           {MaxOutput: 9},
		`"max_completion_tokens":9`:                {MaxOutput: 9},
		`"max_tokens":9,"max_completion_tokens":7`: {MaxOutput: 7},
		`"tools":[{"type":"function","function":{"name":"mine","description":"d","parameters":{"type":"object"},"strict":true}}],"tool_choice":{"type":"function","function":{"name":"mine"}},"parallel_tool_calls":false`: {
			Tools:      []textmodel.Tool{{Name: "mine", Description: "d", Parameters: json.RawMessage(`{"type":"object"}`), Strict: new(true)}},
			ToolChoice: json.RawMessage(`{"type":"function","function":{"name":"mine"}}`), Parallel: new(false)},
		`"tool_choice":"none"`: {ToolChoice: json.RawMessage(`"none"`)},
		`"n":1,"store":false,"service_tier":"auto","logprobs":false,"modalities":[ "text" ],"metadata":{},"top_logprobs":null,"tools":null,"audio":null,"response_format":{"type":"text"}`: {},
		`"stream_options":{"include_usage":true,"include_obfuscation":false}`: {},
	}
	for name, value := range map[string]string{
		"temperature": "0.3", "top_p": "1", "presence_penalty": "-2", "frequency_penalty": "2", "seed": "7", "stop": `["a","b"]`, "reasoning_effort": `"low"`,
		"verbosity": `"high"`, "response_format": `{"type":"json_schema","json_schema":{"name":"x","strict":true,"schema":{"type":"object"}}}`,
	} {
		tests[`"`+name+`":`+value] = settings(name, value)
	}
	for field, want := range tests {
		if want.User.IsZero() {
			want.User = user.Must("192.0.2.7")
		}
		want.Message, want.History = "Hello", []textmodel.Message{}
		a := &fakeAgent{}
		s, _ := chatServer(t, a, nil)
		if w := send(s, "/v1/chat/completions", with(field), nil); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", field, w.Code, w.Body)
			continue
		}
		if diff := cmp.Diff([]chat.Request{want}, a.requests(), messages); diff != "" {
			t.Errorf("%s: %s", field, diff)
		}
	}
}

// TestFieldsAreRefusedByName: the error names a field that is unsupported, unknown or has an invalid value, and the
// request does not reach the agent.
func TestFieldsAreRefusedByName(t *testing.T) {
	tests := map[string]string{
		`"frobnicate":1`: "frobnicate", `"Temperature":1`: "Temperature",
		`"n":2`: "n", `"store":true`: "store", `"service_tier":"flex"`: "service_tier", `"logprobs":true`: "logprobs", `"modalities":["text","audio"]`: "modalities",
		`"metadata":{"a":"b"}`: "metadata", `"temperature":2.1`: "temperature", `"temperature":"hot"`: "temperature", `"top_p":-1`: "top_p", `"seed":1.5`: "seed",
		`"presence_penalty":3`: "presence_penalty", `"frequency_penalty":-3`: "frequency_penalty", `"stop":[]`: "stop", `"stop":["a","b","c","d","e"]`: "stop", `"stop":7`: "stop",
		`"stop":""`: "stop", `"reasoning_effort":"much"`: "reasoning_effort", `"verbosity":"long"`: "verbosity", `"max_tokens":0`: "max_tokens", `"max_completion_tokens":"x"`: "max_completion_tokens",
		`"response_format":{"type":"xml"}`: "response_format", `"response_format":{"type":"json_schema"}`: "response_format", `"response_format":"json"`: "response_format",
		`"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"x":"` + strings.Repeat("x", maxFormat) + `"}}}`: "response_format",
		`"stream":"yes"`: "stream", `"stream_options":{"x":1}`: "stream_options", `"stream_options":{"include_usage":1}`: "stream_options", `"stream_options":{"include_obfuscation":true}`: "stream_options",
		`"model":7`: "model", `"model":"` + strings.Repeat("x", 129) + `"`: "model", `"user":7`: "user", `"user":"\u0007"`: "user",
	}
	tool := func(more string) string { return `{"type":"function","function":{"name":"mine"` + more + `}}` }
	for name, values := range map[string][]string{
		"tools": {`7`, `[7]`, `[{"type":"custom","custom":{}}]`, `[{"type":"function"}]`, `[{"type":"function","function":{"name":"a b"}}]`, "[" + tool("") + "," + tool("") + "]",
			"[" + tool(`,"parameters":[]`) + "]", "[" + tool(`,"frob":1`) + "]", "[" + tool(`,"description":"`+strings.Repeat("x", maxClientTool)+`"`) + "]",
			"[" + strings.Repeat(tool("")+",", maxClientTools) + tool("") + "]"},
		"tool_choice":         {`"some"`, `7`, `{"type":"function"}`, `{"type":"allowed_tools"}`, `{"type":"function","function":{"name":"mine"}}`},
		"parallel_tool_calls": {`1`},
	} {
		for _, value := range values {
			tests[`"`+name+`":`+value] = name
		}
	}
	for name, f := range completionsFields {
		if f.read == nil {
			tests[`"`+name+`":[1]`] = name
		}
	}
	for name, messages := range map[string]string{
		"messages[1].tool_call_id": `[{"role":"user","content":"x"},{"role":"tool","content":"x","tool_call_id":"c"}]`, "messages[1].tool_calls": `[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"mine","arguments":"{}"}}]},{"role":"user","content":"y"}]`,
		"messages[0].tool_calls[0].id": `[{"role":"assistant","tool_calls":[{"type":"function","function":{"name":"mine"}}]}]`, "messages[0].tool_calls[0].function.name": `[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{}}]}]`,
		"messages[0].tool_calls[1].id": `[{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"a"}},{"id":"c","function":{"name":"a"}}]}]`,
		"messages":                     `[]`, "messages[0].role": `[{"content":"x"}]`, "messages[1].role": `[{"role":"user","content":"x"},{"role":"robot","content":"x"}]`,
		"messages[0].name": `[{"role":"user","content":"x","name":"ada"}]`, "messages[0].frob": `[{"role":"user","content":"x","frob":1}]`,
		"messages[0].audio":   `[{"role":"assistant","audio":{"id":"x"}},{"role":"user","content":"x"}]`,
		"messages[0].content": `[{"role":"user","content":7}]`, "messages[0].content[0]": `[{"role":"user","content":["x"]}]`,
		"messages[0].content[1].type": `[{"role":"user","content":[{"type":"text","text":"x"},{"type":"input_audio","input_audio":{}}]}]`,
		"messages[0].content[0].type": `[{"role":"user","content":[{"type":"file","file":{}}]}]`,
		"messages[0].content[0].text": `[{"role":"user","content":[{"type":"text"}]}]`,
	} {
		tests[`"messages":`+messages] = name
	}
	for field, param := range tests {
		a := &fakeAgent{}
		s, _ := chatServer(t, a, nil)
		body := with(field)
		if strings.HasPrefix(field, `"messages"`) {
			body = `{` + field + `}`
		}
		w := send(s, "/v1/chat/completions", body, nil)
		var reply struct {
			Error struct{ Message, Type, Param, Code string }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil {
			t.Errorf("%.80s: %v", field, err)
		}
		e := reply.Error
		if w.Code != http.StatusBadRequest || e.Type != "invalid_request_error" || e.Param != param || e.Code == "" || !strings.Contains(e.Message, strings.TrimSuffix(param, ".type")) {
			t.Errorf("%.80s: %d %s", field, w.Code, w.Body)
		}
		if len(a.requests()) > 0 {
			t.Errorf("%.80s: the agent was asked", field)
		}
	}
}

// TestFieldsStandInTheDocs: docs/chat-completions.md has a line for each field, in the right list.
func TestFieldsStandInTheDocs(t *testing.T) {
	page, err := os.ReadFile("../docs/chat-completions.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range completionsFields {
		use := string(f.use)
		_, list, _ := strings.Cut(string(page), "\n**"+strings.ToUpper(use[:1])+use[1:]+"**")
		list, _, _ = strings.Cut(list, "\n**")
		line := "\n- `" + name + "`"
		if f.doc != "" {
			line += ": " + f.doc
		}
		if !strings.Contains(list, line+"\n") {
			t.Errorf("docs/chat-completions.md lacks %q among the fields that are %s", line, use)
		}
	}
}

// FuzzCompletionsRequest: any request results in a turn or a refusal that names a field, without a panic.
func FuzzCompletionsRequest(f *testing.F) {
	f.Add(hello)
	f.Add(`{"":[]}`)
	f.Add(with(`"temperature":1,"stop":["x"],"response_format":{"type":"json_object"},"stream_options":{"include_usage":true}`))
	f.Add(`{"messages":[{"role":"assistant","content":[{"type":"refusal","refusal":"x"}],"tool_calls":[]},{"role":"user","content":[{"type":"text","text":"x"}]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var body map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &body) != nil {
			return
		}
		q, no := readCompletionsQuery(body)
		var req chat.Request
		if no == nil {
			no = readMessages(q.messages, &req, &pictures{sees: true})
		}
		if no != nil && (no.param == "" || no.code == "" || no.message == "") {
			t.Errorf("%+v", no)
		}
		if no == nil && len(req.History) > maxChatMessages {
			t.Errorf("%d messages", len(req.History))
		}
	})
}

// TestToolsOfTheClient: a call of the client's tool ends the answer in the form that its library reads, and the request
// with the result continues the turn.
func TestToolsOfTheClient(t *testing.T) {
	const tools = `"tools":[{"type":"function","function":{"name":"mine"}}]`
	do := answersWith(&protocol.TextDelta{ItemID: "a", Text: "One moment."}, &protocol.ToolCall{CallID: "call_1", Name: "mine", Args: []byte(`{"a":1}`)}, &protocol.ToolCall{CallID: "call_2", Name: "mine", Args: []byte(`{}`)}, &protocol.Done{})
	s, _ := chatServer(t, &fakeAgent{do: do}, nil)
	got := settled(send(s, "/v1/chat/completions", with(tools), nil).Body.String())
	const calls = `"tool_calls":[{"function":{"arguments":"{\"a\":1}","name":"mine"},"id":"call_1","type":"function"},{"function":{"arguments":"{}","name":"mine"},"id":"call_2","type":"function"}]`
	if !strings.Contains(got, calls) || !strings.Contains(got, `"finish_reason":"tool_calls"`) || !strings.Contains(got, `"content":"One moment."`) {
		t.Error(got)
	}
	got = send(s, "/v1/chat/completions", with(`"stream":true,`+tools), nil).Body.String()
	for _, piece := range []string{
		`"tool_calls":[{"function":{"arguments":"","name":"mine"},"id":"call_1","index":0,"type":"function"}]`, `"tool_calls":[{"function":{"arguments":"{\"a\":1}"},"index":0}]`,
		`"tool_calls":[{"function":{"arguments":"","name":"mine"},"id":"call_2","index":1,"type":"function"}]`, `"delta":{},"finish_reason":"tool_calls"`,
	} {
		if _, got, _ = strings.Cut(got, piece); got == "" {
			t.Fatalf("%s is missing or out of order", piece)
		}
	}
	a := &fakeAgent{}
	s, _ = chatServer(t, a, nil)
	w := send(s, "/v1/chat/completions", `{`+tools+`,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,`+calls+`},{"role":"tool","tool_call_id":"call_2","content":"B"},{"role":"tool","tool_call_id":"call_1","content":[{"type":"text","text":"A"}]}]}`, nil)
	want := chat.Request{User: user.Must("192.0.2.7"), Tools: []textmodel.Tool{{Name: "mine"}}, History: []textmodel.Message{
		{Role: textmodel.RoleUser, Text: "x"},
		{Role: textmodel.RoleAssistant, Calls: []textmodel.ToolCall{{ID: "call_1", Name: "mine", Args: json.RawMessage(`{"a":1}`)}, {ID: "call_2", Name: "mine", Args: json.RawMessage(`{}`)}}},
		{Role: textmodel.RoleTool, CallID: "call_2", Text: "B"}, {Role: textmodel.RoleTool, CallID: "call_1", Text: "A"},
	}}
	if diff := cmp.Diff([]chat.Request{want}, a.requests(), messages); diff != "" || w.Code != 200 {
		t.Errorf("%d %s", w.Code, diff)
	}
	// The error of the agent names the field as well.
	s, _ = chatServer(t, &fakeAgent{do: func(context.Context, chat.Request, chat.Emit) error {
		return &chat.FieldError{Field: "tools[0].function.name", Message: "taken"}
	}}, nil)
	if w := send(s, "/v1/chat/completions", with(tools), nil); w.Code != 400 || !strings.Contains(w.Body.String(), `"param":"tools[0].function.name"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
