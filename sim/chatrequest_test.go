package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"voicegw/sim/wire"
)

// TestChatRefusals: the simulator refuses the same requests as the provider, with its texts and keys.
func TestChatRefusals(t *testing.T) {
	h := fast(t, "")
	messages := `"messages":[{"role":"user","content":"hi"}]`
	with := func(more string) string { return `{"model":"gpt-5",` + messages + "," + more + "}" }
	talk := func(list string) string { return `{"model":"gpt-5","messages":[` + list + `]}` }
	call := `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	for _, c := range []struct {
		body, param, code, message string
	}{
		{`{`, "", "", "We could not parse the JSON body"},
		{`[]`, "", "", "We could not parse the JSON body"},
		{`null`, "", "", "We could not parse the JSON body"},
		{`{"model":"gpt-5"}`, "messages", "missing_required_parameter", "Missing required parameter: 'messages'."},
		{`{"messages":[{"role":"user","content":"hi"}]}`, "", "", "you must provide a model parameter"},
		{talk(``), "messages", "empty_array", "Invalid 'messages': empty array."},
		{talk(`{"content":"x"}`), "messages[0].role", "missing_required_parameter", "Missing"},
		{talk(`{"role":"robot","content":"x"}`), "messages[0].role", "invalid_value", "Invalid value: 'robot'."},
		{talk(`{"role":"user"}`), "messages.[0].content", "", "expected a string, got null"},
		{talk(`{"role":"user","content":7}`), "messages[0].content", "invalid_type", "Invalid type"},
		{talk(`{"role":"user","content":[{"type":"smell"}]}`), "messages[0].content[0]", "invalid_value", "Invalid value: 'smell'."},
		{talk(`{"role":"user","content":[{"type":"image_url"}]}`), "messages[0].content[0].image_url.url", "missing_required_parameter", "Missing"},
		{talk(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.com/x","detail":"best"}}]}`), "messages[0].content[0].image_url.detail", "invalid_value", "'best'"},
		{talk(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,eHg="}}]}`), "messages[0].content[0].image_url.url", "invalid_image_url", "Invalid"},
		{talk(`{"role":"tool","content":"x","tool_call_id":"call_1"}`), "messages.[0].role", "", "messages with role 'tool' must be a response"},
		{talk(`{"role":"user","content":"hi"},` + call), "messages.[2].role", "", "did not have response messages: call_1"},
		{talk(call + `,{"role":"user","content":"hi"}`), "messages.[1].role", "", "did not have response messages: call_1"},
		{talk(call + `,{"role":"tool","content":"x"}`), "messages[1].tool_call_id", "missing_required_parameter", "Missing"},
		{talk(call + `,{"role":"tool","content":"x","tool_call_id":"call_2"}`), "messages.[1].tool_call_id", "", "'call_2' not found"},
		{talk(strings.Replace(call, `"id":"call_1",`, "", 1)), "messages[0].tool_calls[0].id", "missing_required_parameter", "Missing"},
		{with(`"colour":"red"`), "", "", "Unrecognized request argument supplied: colour"},
		{with(`"functions":[]`), "functions", "unsupported_parameter", "tools"},
		{with(`"stream":"yes"`), "stream", "invalid_type", "Invalid type for 'stream': expected a boolean, but got string instead."},
		{with(`"temperature":3`), "temperature", "decimal_above_max_value", "Expected a value <= 2, but got 3"},
		{with(`"top_p":-1`), "top_p", "decimal_below_min_value", "below"},
		{with(`"n":0`), "n", "integer_below_min_value", "below"},
		{with(`"n":129`), "n", "integer_above_max_value", "above"},
		{with(`"max_tokens":1,"max_completion_tokens":1`), "", "invalid_parameter_combination", "at the same time"},
		{with(`"stream_options":{}`), "stream_options", "", "only allowed when 'stream'"},
		{with(`"stop":["a","b","c","d","e"]`), "stop", "array_above_max_length", "too long"},
		{with(`"stop":7`), "stop", "invalid_type", "Invalid type"},
		{with(`"tool_choice":"required"`), "tool_choice", "", "only allowed when 'tools'"},
		{with(`"parallel_tool_calls":true`), "parallel_tool_calls", "", "only allowed when 'tools'"},
		{with(declared + `,"tool_choice":"sometimes"`), "tool_choice", "invalid_value", "Invalid value: 'sometimes'"},
		{with(declared + `,"tool_choice":{"type":"function","function":{"name":"nobody"}}`), "tool_choice", "", "'nobody' not found"},
		{with(declared + `,"tool_choice":{"type":"function"}`), "tool_choice.function", "missing_required_parameter", "Missing"},
		{with(`"tools":[{}]`), "tools[0].type", "missing_required_parameter", "Missing"},
		{with(`"tools":[{"type":"function","function":{"name":"a b"}}]`), "tools[0].function.name", "invalid_value", "does not match pattern"},
		{with(`"response_format":{"type":"json_object"}`), "messages", "", "must contain the word 'json'"},
		{with(`"response_format":{"type":"xml"}`), "response_format.type", "invalid_value", "Invalid value: 'xml'"},
	} {
		w := postChat(h, path, "sk-x", c.body)
		var e struct {
			Error struct {
				Message, Type string
				Param, Code   *string
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
			t.Errorf("%s: %v", c.body, err)
			continue
		}
		value := func(s *string) string {
			if s == nil {
				return ""
			}
			return *s
		}
		if w.Code != http.StatusBadRequest || e.Error.Type != "invalid_request_error" || value(e.Error.Param) != c.param ||
			value(e.Error.Code) != c.code || !strings.Contains(e.Error.Message, c.message) {
			t.Errorf("%s: %d %s", c.body, w.Code, w.Body)
		}
	}
	if n := h.opts.Group.Len(); n != 0 {
		t.Errorf("%d requests are still open", n)
	}
}

func TestKeysMethodsAndModels(t *testing.T) {
	h := fast(t, "")
	body := func(model string) string {
		return fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"count"}]}`, model)
	}
	for _, c := range []struct {
		path, key, body string
		status          int
		text            string
	}{
		{path, "", body("gpt-5"), 401, "You didn't provide an API key"},
		{path, "sk-invalid-1", body("gpt-5"), 401, `"code":"invalid_api_key"`},
		{path, "expired", body("gpt-5"), 401, `"code":"expired_api_key"`},
		{path, "quota", body("gpt-5"), 429, `"type":"insufficient_quota"`},
		{path, "k", body("gpt-5.9-fantasy"), 404, `"code":"model_not_found"`},
		{path, "k", body("gpt-realtime"), 404, "This is not a chat model"},
		{path, "k", body("text-embedding-3-small"), 404, "This is not a chat model"},
		{path, "k", body("gpt-4o-mini"), 200, "a b c"},
		{path, "k", body("gpt-4o-2024-11-20"), 200, "a b c"},
		{path, "k", body("gpt-5.5"), 200, "a b c"},
		{path, "k", body("gpt-6.1-sol"), 200, "a b c"},
		{path, "k", body("o4-mini"), 200, "a b c"},
		{"/v1beta/openai/chat/completions", "k", body("gemini-2.5-flash"), 200, "a b c"},
		{"/openai/v1/chat/completions", "k", body("our-deployment"), 200, "a b c"},
		{"/openai/deployments/our-own/chat/completions", "k", `{"messages":[{"role":"user","content":"count"}]}`, 200, `"model":"our-own"`},
		{"/v1/completions", "k", body("gpt-5"), 404, "has nothing at /v1/completions"},
	} {
		w := postChat(h, c.path, c.key, c.body)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.text) {
			t.Errorf("%s %s %s: %d %s", c.path, c.key, c.body, w.Code, w.Body)
		}
		if strings.Contains(w.Body.String(), "sk-invalid-1") {
			t.Errorf("the key is in %s", w.Body)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "POST" {
		t.Errorf("GET: %d %v", w.Code, w.Header())
	}
}

// FuzzChatRequest: any request is answered or refused, and the answer is JSON.
func FuzzChatRequest(f *testing.F) {
	for _, seed := range []string{
		`{"model":"gpt-5","messages":[{"role":"user","content":"parallel"}],` + declared + `}`,
		`{"model":"gpt-5","stream":true,"stop":["a"],"messages":[{"role":"user","content":[{"type":"text","text":"count"}]}]}`,
		`{"model":"gpt-5","messages":[{"role":"user","content":"one"},{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","function":{"name":"weather","arguments":"{"}}]},{"role":"tool","tool_call_id":"call_1","content":"{\"sky\":1}"}],` + declared + `,"tool_choice":{"type":"function","function":{"name":"store"}}}`,
		`{"model":"gpt-5","messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}}}`,
		`{"messages":{}}`, `{"messages":[null]}`, `7`, ``,
	} {
		f.Add([]byte(seed))
	}
	o := options(&testing.T{}, "")
	f.Fuzz(func(t *testing.T, body []byte) {
		r, bad := parseChat(body, "", false)
		if bad != nil {
			var e *Error
			if !errors.As(error(bad), &e) || e.Status < 400 || e.Message == "" || !json.Valid(wire.OpenAIError(e)) {
				t.Fatalf("%+v", bad)
			}
			return
		}
		if r.choices() > 4 {
			return // slow, with the same result
		}
		w := postChat(New(o), path, "k", string(body))
		if w.Code == http.StatusOK && !r.Stream && !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%s", w.Body)
		}
		if w.Code == http.StatusOK && r.Stream && !strings.HasSuffix(w.Body.String(), "\n\n") {
			t.Fatalf("%s", w.Body)
		}
	})
}
