package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"voicegw/sim/scenario"
	"voicegw/sim/wire"
)

const chatScript = `
rules:
  - when: {text: parallel}
    do:
      - call: [{tool: weather, args: {city: Paris}}, {tool: weather, args: {city: London}}]
      - then: [{say: "Both: ${result}"}]
  - when: {text: one}
    do:
      - say: One moment.
      - call: {tool: weather, args: {city: Paris}, id: call_fixed}
      - then:
          - call: {tool: store, args: {what: "${result.sky}"}}
          - then: [{say: "Stored."}]
      - on_error: [{say: "It failed with ${error}."}]
  - when: {text: without}
    do: [{call: {tool: weather, without_id: true}}]
  - when: {text: twice}
    do: [{call: {tool: weather, id: call_x, repeat: 1}}]
  - when: {text: decline}
    do: [{refuse: I may not say.}]
  - when: {text: overload}
    do: [{fault: {do: http_error, code: 503, for: 1500ms, reason: Come back later.}}]
  - when: {text: late}
    do: [{say: Now}, {fault: {do: http_error, code: 500}}, {say: never}]
  - when: {text: pause}
    do: [{say: Now}, {wait: 100ms}, {say: then}]
  - when: {text: nothing}
    do: nothing
  - when: {text: count}
    do: [{say: "a b c d e f"}]
  - when: {text: history}
    do: [{say: "Before: ${history}"}]
`

// fast is a simulator without delays.
func fast(t *testing.T, faults string) *Server {
	t.Helper()
	return New(options(t, faults))
}

func options(t *testing.T, faults string) wire.Options {
	t.Helper()
	s, err := scenario.Parse("s", []byte(chatScript))
	if err != nil {
		t.Fatal(err)
	}
	o := wire.Options{Scenario: s, Seed: 1, Speed: -1, FirstAudioMS: -1, Stats: &wire.Stats{}, Group: &wire.Group{}}
	if faults != "" {
		if o.Faults, err = scenario.ParseFaults("f", []byte(faults)); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

const path = "/v1/chat/completions"

// postChat calls the handler, without a network.
func postChat(h http.Handler, path, key, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const declared = `"tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}},
	{"type":"function","function":{"name":"store"}}]`

// ask posts a conversation that ends with the user's text.
func ask(h http.Handler, said, more string) *httptest.ResponseRecorder {
	return postChat(h, path, "sk-x", fmt.Sprintf(`{"model":"gpt-5-mini","messages":[{"role":"system","content":"Be kind."},{"role":"user","content":%q}]%s}`, said, more))
}

// whole reads a whole answer.
func wholeAnswer(t *testing.T, w *httptest.ResponseRecorder) completion {
	t.Helper()
	var c completion
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &c); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	return c
}

// show writes the deltas of a stream, one per line, without the constant parts.
func show(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	if ct := w.Header().Get("Content-Type"); !strings.HasPrefix(ct, "text/event-stream") {
		t.Fatalf("%d %s %s", w.Code, ct, w.Body)
	}
	var b strings.Builder
	for _, e := range strings.Split(strings.TrimSuffix(w.Body.String(), "\n\n"), "\n\n") {
		data := strings.TrimPrefix(e, "data: ")
		var c struct {
			Object  string
			Choices []struct {
				Index  int
				Delta  json.RawMessage
				Finish *string `json:"finish_reason"`
			}
			Usage *struct {
				Completion int `json:"completion_tokens"`
			}
			Error json.RawMessage
		}
		if json.Unmarshal([]byte(data), &c) != nil {
			fmt.Fprintln(&b, e)
			continue
		}
		switch {
		case c.Error != nil:
			fmt.Fprintf(&b, "error %s\n", c.Error)
		case c.Usage != nil:
			fmt.Fprintf(&b, "usage %d\n", c.Usage.Completion)
		case len(c.Choices) != 1 || c.Object != "chat.completion.chunk":
			fmt.Fprintln(&b, e)
		case c.Choices[0].Finish != nil:
			fmt.Fprintf(&b, "%d %s %s\n", c.Choices[0].Index, c.Choices[0].Delta, *c.Choices[0].Finish)
		default:
			fmt.Fprintf(&b, "%d %s\n", c.Choices[0].Index, c.Choices[0].Delta)
		}
	}
	return b.String()
}

type completion struct {
	ID          string       `json:"id"`
	Object      string       `json:"object"`
	Created     int64        `json:"created"`
	Model       string       `json:"model"`
	Choices     []*choiceOut `json:"choices"`
	Usage       usage        `json:"usage"`
	ServiceTier string       `json:"service_tier"`
	Fingerprint string       `json:"system_fingerprint"`
}

type choiceOut struct {
	Index   int `json:"index"`
	Message struct {
		Role        string    `json:"role"`
		Content     *string   `json:"content"`
		ToolCalls   []callOut `json:"tool_calls,omitempty"`
		Refusal     *string   `json:"refusal"`
		Annotations []string  `json:"annotations"`
	} `json:"message"`
	Finish string `json:"finish_reason"`
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}
