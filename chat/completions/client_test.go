package completions

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/chat"
)

// hello is a good answer.
var hello = stream(text("Hello"), chunk(`{}`, "stop"))

// object parses JSON.
func object(t *testing.T, s string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestRequest: a prompt stands on the wire as Chat Completions has it.
func TestRequest(t *testing.T) {
	p := &provider{answers: []response{{body: hello}}}
	c := p.client(t, Options{BaseURL: "http://provider.test/v1/"})
	_, _, err := ask(t.Context(), c, chat.Prompt{
		User: "u1", ToolsOff: true,
		Tools: []chat.Tool{{Name: "kb_get", Description: "Gets.", Parameters: json.RawMessage(`{"type":"object","properties":{"ids":{"type":"array","items":{"type":"string"}}},"additionalProperties":false}`)}},
		Messages: []chat.Message{
			{Role: chat.RoleSystem, Text: "Be brief."}, {Role: chat.RoleUser, Text: "Who?"},
			{Role: chat.RoleAssistant, Calls: []chat.ToolCall{{ID: "call_a", Name: "kb_get", Args: json.RawMessage(`{"ids":["x"]`)}}},
			{Role: chat.RoleTool, CallID: "call_a", Text: `{"ok":false}`}, {Role: chat.RoleAssistant, Text: "Ada."}, {Role: chat.RoleUser, Text: "And?"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := object(t, `{"model":"test-model","max_tokens":2048,"stream":true,"stream_options":{"include_usage":true},"user":"u1","tool_choice":"none",
		"tools":[{"type":"function","function":{"name":"kb_get","description":"Gets.","parameters":{"type":"object","properties":{"ids":{"type":"array","items":{"type":"string"}}},"additionalProperties":false}}}],
		"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Who?"},
		{"role":"assistant","tool_calls":[{"id":"call_a","type":"function","function":{"name":"kb_get","arguments":"{\"ids\":[\"x\"]"}}]},
		{"role":"tool","tool_call_id":"call_a","content":"{\"ok\":false}"},{"role":"assistant","content":"Ada."},{"role":"user","content":"And?"}]}`)
	if diff := cmp.Diff(want, any(p.bodies[0])); diff != "" {
		t.Error(diff)
	}
	if got := p.headers[0].Get("Authorization"); got != "Bearer "+secretKey || p.path != "/v1/chat/completions" {
		t.Errorf("%s with %q", p.path, got)
	}
}

// TestLimitByServer: OpenAI and Azure take max_completion_tokens, others max_tokens.
func TestLimitByServer(t *testing.T) {
	for base, field := range map[string]string{
		"": "max_completion_tokens", "https://api.openai.com/v1": "max_completion_tokens", "https://x.openai.azure.com/openai/v1": "max_completion_tokens",
		"https://generativelanguage.googleapis.com/v1beta/openai": "max_tokens", "http://localhost:11434/v1": "max_tokens",
	} {
		p := &provider{answers: []response{{body: hello}}}
		c, err := New(Options{BaseURL: base, Model: "m", MaxOutput: 7, HTTPClient: &http.Client{Transport: p}})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := ask(t.Context(), c, chat.Prompt{}); err != nil {
			t.Fatal(err)
		}
		got := map[string]any{}
		for _, name := range []string{"max_tokens", "max_completion_tokens"} {
			if v, ok := p.bodies[0][name]; ok {
				got[name] = v
			}
		}
		if diff := cmp.Diff(map[string]any{field: 7.0}, got); diff != "" {
			t.Errorf("%s: %s", base, diff)
		}
		if _, ok := p.bodies[0]["tools"]; ok || p.bodies[0]["tool_choice"] != nil {
			t.Errorf("there are no tools, and the request has %v", p.bodies[0])
		}
		if p.headers[0].Get("Authorization") != "" {
			t.Error("there is no key, and one was sent")
		}
	}
}

// TestRetries: what may pass is asked again, with pauses, before the first byte alone.
func TestRetries(t *testing.T) {
	failed := func(status int, header map[string]string) response {
		return response{status: status, header: header, body: `{"error":{"message":"not now","type":"x","code":"y"}}`}
	}
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	for name, tc := range map[string]struct {
		answers []response
		retries int
		asked   int
		least   time.Duration // of all pauses together
		most    time.Duration
		kind    chat.ErrorKind // empty for an answer
	}{
		"429":                               {answers: []response{failed(429, nil), {body: hello}}, asked: 2, least: 300 * time.Millisecond, most: time.Second},
		"500, 503, and a broken connection": {answers: []response{failed(500, nil), failed(503, nil), {err: refused}, {body: hello}}, asked: 4, least: 2 * time.Second, most: 4 * time.Second},
		"Retry-After is kept":               {answers: []response{failed(429, map[string]string{"Retry-After": "7"}), {body: hello}}, asked: 2, least: 7 * time.Second, most: 7 * time.Second},
		"as long as allowed":                {answers: []response{failed(503, nil)}, asked: 4, least: 2 * time.Second, most: 4 * time.Second, kind: chat.KindUnavailable},
		"never":                             {answers: []response{failed(503, nil)}, retries: -1, asked: 1, kind: chat.KindUnavailable},
		"400 is not":                        {answers: []response{failed(400, nil)}, asked: 1, kind: chat.KindRequest},
		"401 is not":                        {answers: []response{failed(401, nil)}, asked: 1, kind: chat.KindAuth},
		"after the first byte":              {answers: []response{{body: lines(text("Hel")), cut: true}}, asked: 1, kind: chat.KindUnavailable},
		"an error in the stream":            {answers: []response{{body: lines(text("Hel"), `{"error":{"message":"overloaded"}}`)}}, asked: 1, kind: chat.KindUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &provider{answers: tc.answers}
				reply, _, err := ask(t.Context(), p.client(t, Options{Retries: tc.retries}), chat.Prompt{})
				if len(p.bodies) != tc.asked {
					t.Errorf("it was asked %d times, want %d", len(p.bodies), tc.asked)
				}
				if took := p.at[len(p.at)-1].Sub(p.at[0]); took < tc.least || took > tc.most {
					t.Errorf("the pauses were %s, want %s to %s", took, tc.least, tc.most)
				}
				if tc.kind == "" {
					if err != nil || reply.Text != "Hello" {
						t.Errorf("%+v, %v", reply, err)
					}
					return
				}
				var e *chat.ModelError
				if !errors.As(err, &e) || e.Kind != tc.kind {
					t.Errorf("%v, want %s", err, tc.kind)
				}
			})
		})
	}
}

// TestErrors: what went wrong is classed, says what a log needs, and neither the key nor
// the request.
func TestErrors(t *testing.T) {
	long := strings.Repeat("x", maxText/2+1)
	manyCalls := []string{}
	for range maxCalls + 1 {
		manyCalls = append(manyCalls, call(`{"id":"call_`+string(rune('a'+len(manyCalls)))+`","function":{"name":"one","arguments":"{}"}}`))
	}
	for name, tc := range map[string]struct {
		answer    response
		kind      chat.ErrorKind
		status    int
		after     time.Duration
		begun     bool
		retryable bool
		says      string
	}{
		"key":                    {answer: response{status: 401, body: `{"error":{"message":"Incorrect API key provided: ` + secretKey + `.","code":"invalid_api_key"}}`}, kind: chat.KindAuth, status: 401, says: "Incorrect API key"},
		"not allowed":            {answer: response{status: 403, body: `{"error":{"message":"no"}}`}, kind: chat.KindAuth, status: 403, says: "no"},
		"wrong request":          {answer: response{status: 400, body: `{"error":{"message":"Unknown parameter","param":"tools"}}`}, kind: chat.KindRequest, status: 400, says: "Unknown parameter"},
		"no such model":          {answer: response{status: 404, body: `no json`}, kind: chat.KindRequest, status: 404, says: "Not Found"},
		"too much":               {answer: response{status: 429, header: map[string]string{"Retry-After": "3"}, body: `{"error":{"message":"slow down"}}`}, kind: chat.KindRateLimit, status: 429, after: 3 * time.Second, retryable: true, says: "slow down"},
		"Retry-After is a date":  {answer: response{status: 429, header: map[string]string{"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, body: `{}`}, kind: chat.KindRateLimit, status: 429, retryable: true},
		"overloaded":             {answer: response{status: 503, body: `<html>busy</html>`}, kind: chat.KindUnavailable, status: 503, retryable: true, says: "Service Unavailable"},
		"a timeout":              {answer: response{status: 408, body: `{}`}, kind: chat.KindUnavailable, status: 408, retryable: true},
		"unreachable":            {answer: response{err: &url.Error{Op: "Post", URL: "http://provider.test/v1?key=" + secretKey, Err: errors.New("no route to host")}}, kind: chat.KindUnavailable, retryable: true, says: "no route"},
		"broken off":             {answer: response{body: lines(text("Hel")), cut: true}, kind: chat.KindUnavailable, begun: true, retryable: true},
		"ended early":            {answer: response{body: lines(text("Hel"))}, kind: chat.KindUnavailable, begun: true, retryable: true, says: "finish_reason"},
		"ended early, in a call": {answer: response{body: lines(call(`{"id":"call_a","function":{"name":"one","arguments":"{}"}}`))}, kind: chat.KindUnavailable, begun: true, retryable: true},
		"empty":                  {answer: response{}, kind: chat.KindUnavailable, retryable: true},
		"only the end":           {answer: response{body: stream()}, kind: chat.KindUnavailable, retryable: true},
		"an error in the stream": {answer: response{body: lines(`{"error":{"message":"bad key ` + secretKey + `"}}`)}, kind: chat.KindUnavailable, retryable: true, says: "bad key"},
		"garbage":                {answer: response{body: lines(text("Hel"), `{"choices":`)}, kind: chat.KindProtocol, begun: true},
		"too long":               {answer: response{body: stream(text(long), text(long), chunk(`{}`, "stop"))}, kind: chat.KindProtocol, begun: true, says: "262144 bytes"},
		"too many calls":         {answer: response{body: stream(append(manyCalls, chunk(`{}`, "tool_calls"))...)}, kind: chat.KindProtocol, begun: true, says: "32 tools"},
		"arguments too long":     {answer: response{body: stream(call(`{"index":0,"id":"a","function":{"name":"one","arguments":"`+long+`"}}`), call(`{"index":1,"id":"b","function":{"name":"one","arguments":"`+long+`"}}`))}, kind: chat.KindProtocol, begun: true, says: "arguments"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &provider{answers: []response{tc.answer}}
			c := p.client(t, Options{Retries: -1, BaseURL: "http://provider.test/v1"})
			_, _, err := ask(t.Context(), c, chat.Prompt{Messages: []chat.Message{{Role: chat.RoleUser, Text: "my diagnosis"}}})
			var e *chat.ModelError
			if !errors.As(err, &e) {
				t.Fatalf("%v is no ModelError", err)
			}
			if e.Kind != tc.kind || e.Status != tc.status || e.RetryAfter != tc.after || e.Begun != tc.begun || e.Retryable() != tc.retryable {
				t.Errorf("%+v", e)
			}
			if !strings.Contains(err.Error(), tc.says) || strings.HasSuffix(err.Error(), ": ") {
				t.Errorf("the error says %q", err)
			}
			for _, secret := range []string{secretKey, "provider.test", "my diagnosis"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%q is in the error %q", secret, err)
				}
			}
		})
	}
}

// TestShortWords: a provider's long words are cut, at a whole character.
func TestShortWords(t *testing.T) {
	p := &provider{answers: []response{{status: 400, body: `{"error":{"message":"` + strings.Repeat("ä", 2000) + `"}}`}}}
	_, _, err := ask(t.Context(), p.client(t, Options{}), chat.Prompt{})
	if err == nil || len(err.Error()) > 600 || strings.ContainsRune(err.Error(), '\uFFFD') {
		t.Errorf("%v", err)
	}
}

// TestLeaving: who leaves while the answer streams, or in a pause before another try,
// gets the cause at once, and nothing is left: TestMain looks.
func TestLeaving(t *testing.T) {
	left := errors.New("the client has left")
	reached := make(chan struct{}, 1) // from the handler: the first delta is out
	gone := make(chan struct{}, 1)    // from the handler: its request has ended
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		if strings.HasPrefix(r.URL.Path, "/busy") {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(http.StatusTooManyRequests)
			reached <- struct{}{}
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, lines(text("Hel")))
		w.(http.Flusher).Flush()
		reached <- struct{}{}
		<-r.Context().Done()
		gone <- struct{}{}
	}))
	defer srv.Close()
	for _, path := range []string{"/v1", "/busy/v1"} {
		transport := &http.Transport{}
		c, err := New(Options{BaseURL: srv.URL + path, Model: "m", HTTPClient: &http.Client{Transport: transport}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancelCause(t.Context())
		stop := make(chan struct{}) // closed when the goroutine below has left
		go func() {
			defer close(stop)
			<-reached
			leave(left)
		}()
		_, _, err = ask(ctx, c, chat.Prompt{})
		<-stop
		if !errors.Is(err, left) {
			t.Errorf("%s: %v", path, err)
		}
		if path == "/v1" {
			<-gone // the provider is told by the end of the connection
		}
		transport.CloseIdleConnections()
	}
}

// TestNew: a model must be named.
func TestNew(t *testing.T) {
	if _, err := New(Options{}); err == nil || !strings.Contains(err.Error(), "chat.model") {
		t.Errorf("%v", err)
	}
}
