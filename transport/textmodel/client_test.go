package textmodel

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

	"voicegw/transport"
)

// hello is a valid answer.
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

// TestRequest: a prompt is sent in the form of Chat Completions.
func TestRequest(t *testing.T) {
	p := &provider{answers: []response{{body: hello}}}
	c := p.client(t, Options{BaseURL: "http://provider.test/v1/"})
	_, _, err := ask(t.Context(), c, Prompt{
		User: "u1", ToolsOff: true,
		Tools: []Tool{{Name: "kb_get", Description: "Gets.", Parameters: json.RawMessage(`{"type":"object","properties":{"ids":{"type":"array","items":{"type":"string"}}},"additionalProperties":false}`)}},
		Messages: []Message{
			{Role: RoleSystem, Text: "Be brief."}, {Role: RoleUser, Text: "Who?"},
			{Role: RoleAssistant, Calls: []ToolCall{{ID: "call_a", Name: "kb_get", Args: json.RawMessage(`{"ids":["x"]`)}}},
			{Role: RoleTool, CallID: "call_a", Text: `{"ok":false}`}, {Role: RoleAssistant, Text: "Ada."}, {Role: RoleUser, Text: "And?"},
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

// TestSettings: a client's settings are sent unchanged, and its limit counts if it is lower than the operator's.
func TestSettings(t *testing.T) {
	for most, want := range map[int]float64{0: 2048, 7: 7, 9999: 2048} {
		p := &provider{answers: []response{{body: hello}}}
		_, _, err := ask(t.Context(), p.client(t, Options{}), Prompt{MaxOutput: most, Settings: map[string]json.RawMessage{
			"temperature": json.RawMessage(`0.5`), "stop": json.RawMessage(`["a"]`), "response_format": json.RawMessage(`{"type":"json_object"}`), "seed": json.RawMessage(`9007199254740993`),
		}})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]any{}
		for _, name := range []string{"temperature", "stop", "response_format", "max_tokens"} {
			got[name] = p.bodies[0][name]
		}
		if diff := cmp.Diff(map[string]any{"temperature": 0.5, "stop": []any{"a"}, "response_format": map[string]any{"type": "json_object"}, "max_tokens": want}, got); diff != "" {
			t.Error(diff)
		}
	}
}

// TestReasoning: a configured effort is sent in the model's form; without one the field is missing.
func TestReasoning(t *testing.T) {
	for _, effort := range []string{"", "none", "xhigh"} {
		p := &provider{answers: []response{{body: hello}}}
		c := p.client(t, Options{BaseURL: "http://provider.test/v1/", Reasoning: effort})
		if _, _, err := ask(t.Context(), c, Prompt{Messages: []Message{{Role: RoleUser, Text: "Who?"}}}); err != nil {
			t.Fatal(err)
		}
		sent, has := p.bodies[0]["reasoning_effort"]
		if has != (effort != "") || has && sent != effort {
			t.Errorf("with %q, %v was sent", effort, sent)
		}
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
		if _, _, err := ask(t.Context(), c, Prompt{}); err != nil {
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

// TestRetries: a temporary failure is retried, with pauses, but only before the first byte.
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
		kind    transport.Kind // zero for an answer
	}{
		"429":                               {answers: []response{failed(429, nil), {body: hello}}, asked: 2, least: 300 * time.Millisecond, most: time.Second},
		"500, 503, and a broken connection": {answers: []response{failed(500, nil), failed(503, nil), {err: refused}, {body: hello}}, asked: 4, least: 2 * time.Second, most: 4 * time.Second},
		"Retry-After is observed":           {answers: []response{failed(429, map[string]string{"Retry-After": "7"}), {body: hello}}, asked: 2, least: 7 * time.Second, most: 7 * time.Second},
		"as long as allowed":                {answers: []response{failed(503, nil)}, asked: 4, least: 2 * time.Second, most: 4 * time.Second, kind: transport.KindServer},
		"never":                             {answers: []response{failed(503, nil)}, retries: -1, asked: 1, kind: transport.KindServer},
		"quota is not":                      {answers: []response{{status: 429, body: `{"error":{"message":"x","code":"insufficient_quota"}}`}}, asked: 1, kind: transport.KindQuota},
		"400 is not":                        {answers: []response{failed(400, nil)}, asked: 1, kind: transport.KindInvalid},
		"401 is not":                        {answers: []response{failed(401, nil)}, asked: 1, kind: transport.KindAuth},
		"after the first byte":              {answers: []response{{body: lines(text("Hel")), cut: true}}, asked: 1, kind: transport.KindRetry},
		"an error in the stream":            {answers: []response{{body: lines(text("Hel"), `{"error":{"message":"overloaded"}}`)}}, asked: 1, kind: transport.KindRetry},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &provider{answers: tc.answers}
				reply, _, err := ask(t.Context(), p.client(t, Options{Retries: tc.retries}), Prompt{})
				if len(p.bodies) != tc.asked {
					t.Errorf("it was asked %d times, want %d", len(p.bodies), tc.asked)
				}
				if took := p.at[len(p.at)-1].Sub(p.at[0]); took < tc.least || took > tc.most {
					t.Errorf("the pauses were %s, want %s to %s", took, tc.least, tc.most)
				}
				if tc.kind == 0 {
					if err != nil || reply.Text != "Hello" {
						t.Errorf("%+v, %v", reply, err)
					}
					return
				}
				var e *Error
				if !errors.As(err, &e) || e.Kind != tc.kind {
					t.Errorf("%v, want %s", err, tc.kind)
				}
			})
		})
	}
}

// TestErrors: an error has its kind and the details for a log, but neither the key nor the request.
func TestErrors(t *testing.T) {
	long := strings.Repeat("x", maxText/2+1)
	manyCalls := []string{}
	for range maxCalls + 1 {
		manyCalls = append(manyCalls, call(`{"id":"call_`+string(rune('a'+len(manyCalls)))+`","function":{"name":"one","arguments":"{}"}}`))
	}
	for name, tc := range map[string]struct {
		answer    response
		kind      transport.Kind
		status    int
		after     time.Duration
		begun     bool
		retryable bool
		says      string
	}{
		"key":                        {answer: response{status: 401, body: `{"error":{"message":"Incorrect API key provided: ` + secretKey + `.","code":"invalid_api_key"}}`}, kind: transport.KindAuth, status: 401, says: "Incorrect API key"},
		"not allowed":                {answer: response{status: 403, body: `{"error":{"message":"no"}}`}, kind: transport.KindAuth, status: 403, says: "no"},
		"wrong request":              {answer: response{status: 400, body: `{"error":{"message":"Unknown parameter","param":"tools"}}`}, kind: transport.KindInvalid, status: 400, says: "Unknown parameter"},
		"no such model":              {answer: response{status: 404, body: `no json`}, kind: transport.KindInvalid, status: 404, says: "Not Found"},
		"too much":                   {answer: response{status: 429, header: map[string]string{"Retry-After": "3"}, body: `{"error":{"message":"slow down"}}`}, kind: transport.KindRateLimit, status: 429, after: 3 * time.Second, retryable: true, says: "slow down"},
		"Retry-After is a date":      {answer: response{status: 429, header: map[string]string{"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, body: `{}`}, kind: transport.KindRateLimit, status: 429, retryable: true},
		"overloaded":                 {answer: response{status: 503, body: `<html>busy</html>`}, kind: transport.KindServer, status: 503, retryable: true, says: "Service Unavailable"},
		"a timeout":                  {answer: response{status: 408, body: `{}`}, kind: transport.KindRetry, status: 408, retryable: true},
		"unreachable":                {answer: response{err: &url.Error{Op: "Post", URL: "http://provider.test/v1?key=" + secretKey, Err: errors.New("no route to host")}}, kind: transport.KindRetry, retryable: true, says: "no route"},
		"broken off":                 {answer: response{body: lines(text("Hel")), cut: true}, kind: transport.KindRetry, begun: true, retryable: true},
		"ended early":                {answer: response{body: lines(text("Hel"))}, kind: transport.KindRetry, begun: true, retryable: true, says: "finish_reason"},
		"ended early, in a call":     {answer: response{body: lines(call(`{"id":"call_a","function":{"name":"one","arguments":"{}"}}`))}, kind: transport.KindRetry, begun: true, retryable: true},
		"empty":                      {answer: response{}, kind: transport.KindRetry, retryable: true},
		"only the end":               {answer: response{body: stream()}, kind: transport.KindRetry, retryable: true},
		"an error in the stream":     {answer: response{body: lines(`{"error":{"message":"bad key ` + secretKey + `"}}`)}, kind: transport.KindRetry, retryable: true, says: "bad key"},
		"garbage":                    {answer: response{body: lines(text("Hel"), `{"choices":`)}, kind: transport.KindUnreadable, begun: true},
		"out of quota":               {answer: response{status: 429, body: `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`}, kind: transport.KindQuota, status: 429, says: "quota"},
		"out of credits":             {answer: response{status: 402, body: `{"error":{"message":"Insufficient credits","code":402}}`}, kind: transport.KindQuota, status: 402, says: "credits"},
		"a conversation too long":    {answer: response{status: 400, body: `{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`}, kind: transport.KindTooLong, status: 400},
		"too long, in words":         {answer: response{status: 400, body: `{"error":{"message":"the request exceeds the available context size","type":"exceed_context_size_error","code":400}}`}, kind: transport.KindTooLong, status: 400},
		"too long, as a text":        {answer: response{status: 422, body: `{"detail":"prompt is too long: 9000 tokens"}`}, kind: transport.KindTooLong, status: 422},
		"filtered":                   {answer: response{status: 400, body: `{"error":{"message":"The response was filtered","code":"content_filter","status":400}}`}, kind: transport.KindFiltered, status: 400},
		"an error as a text":         {answer: response{status: 404, body: `{"error":"model 'x' not found"}`}, kind: transport.KindInvalid, status: 404, says: "not found"},
		"an error in a list":         {answer: response{status: 429, body: `[{"error":{"code":429,"message":"Resource has been exhausted","status":"RESOURCE_EXHAUSTED"}}]`}, kind: transport.KindRateLimit, status: 429, retryable: true, says: "exhausted"},
		"a wait in ms":               {answer: response{status: 429, header: map[string]string{"Retry-After-Ms": "1500"}, body: `{}`}, kind: transport.KindRateLimit, status: 429, after: 1500 * time.Millisecond, retryable: true},
		"a web page":                 {answer: response{header: map[string]string{"Content-Type": "text/html"}, body: "<!DOCTYPE html><html>Log in</html>"}, kind: transport.KindUnreadable, says: "web page"},
		"no choice":                  {answer: response{body: `{"object":"chat.completion","choices":[]}`}, kind: transport.KindRetry, retryable: true, says: "empty"},
		"a JSON list":                {answer: response{body: `[1]`}, kind: transport.KindUnreadable, says: "list"},
		"half a JSON answer":         {answer: response{body: `{"choices":[{"mess`}, kind: transport.KindUnreadable},
		"an event that is a list":    {answer: response{body: lines(text("Hel"), `[]`)}, kind: transport.KindUnreadable, begun: true},
		"content that is a number":   {answer: response{body: stream(chunk(`{"content":7}`, ""))}, kind: transport.KindUnreadable},
		"an error in one piece":      {answer: response{body: `{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`}, kind: transport.KindRateLimit, retryable: true, says: "slow down"},
		"quota, in the stream":       {answer: response{body: lines(text("Hel"), `{"error":{"message":"no more","code":"insufficient_quota"}}`)}, kind: transport.KindQuota, begun: true, says: "no more"},
		"ended with an error":        {answer: response{body: stream(text("Hel"), chunk(`{}`, "error"))}, kind: transport.KindRetry, begun: true, retryable: true, says: "reason error"},
		"an object that is an error": {answer: response{body: `{"object":"error","message":"no such model","type":"NotFoundError","code":404}`}, kind: transport.KindInvalid, says: "no such model"},
		"the same in an event":       {answer: response{body: lines(`{"object":"error","message":"too busy","code":429}`)}, kind: transport.KindRateLimit, retryable: true, says: "too busy"},
		"a detail":                   {answer: response{body: `{"detail":"Not Found"}`}, kind: transport.KindRetry, retryable: true, says: "Not Found"},
		"a status, in the stream":    {answer: response{body: lines(text("Hel"), `{"error":{"message":"upstream","code":429}}`)}, kind: transport.KindRateLimit, begun: true, retryable: true},
		"an event named error":       {answer: response{body: "event: error\ndata: {\"message\":\"overloaded " + secretKey + "\"}\n\n"}, kind: transport.KindRetry, retryable: true, says: "overloaded"},
		"too long":                   {answer: response{body: stream(text(long), text(long), chunk(`{}`, "stop"))}, kind: transport.KindUnreadable, begun: true, says: "262144 bytes"},
		"too many calls":             {answer: response{body: stream(append(manyCalls, chunk(`{}`, "tool_calls"))...)}, kind: transport.KindUnreadable, begun: true, says: "32 tools"},
		"arguments too long":         {answer: response{body: stream(call(`{"index":0,"id":"a","function":{"name":"one","arguments":"`+long+`"}}`), call(`{"index":1,"id":"b","function":{"name":"one","arguments":"`+long+`"}}`))}, kind: transport.KindUnreadable, begun: true, says: "arguments"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &provider{answers: []response{tc.answer}}
			c := p.client(t, Options{Retries: -1, BaseURL: "http://provider.test/v1"})
			_, _, err := ask(t.Context(), c, Prompt{Messages: []Message{{Role: RoleUser, Text: "my diagnosis"}}})
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%v is not a ModelError", err)
			}
			if e.Kind != tc.kind || e.Status != tc.status || e.RetryAfter != tc.after || e.Begun != tc.begun || e.Kind.Retryable() != tc.retryable {
				t.Errorf("%+v", e)
			}
			if !strings.Contains(err.Error(), tc.says) || strings.HasSuffix(err.Error(), ": ") {
				t.Errorf("the error is %q", err)
			}
			for _, secret := range []string{secretKey, "provider.test", "my diagnosis"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%q is in the error %q", secret, err)
				}
			}
		})
	}
}

// TestShortErrors: a provider's long text is cut, at a complete character.
func TestShortErrors(t *testing.T) {
	p := &provider{answers: []response{{status: 400, body: `{"error":{"message":"` + strings.Repeat("ä", 2000) + `"}}`}}}
	_, _, err := ask(t.Context(), p.client(t, Options{}), Prompt{})
	if err == nil || len(err.Error()) > 600 || strings.ContainsRune(err.Error(), '\uFFFD') {
		t.Errorf("%v", err)
	}
}

// TestLeaving: a client that leaves during the answer, or during a pause before a retry, gets the cause at once, and no
// goroutine remains: TestMain checks that.
func TestLeaving(t *testing.T) {
	left := errors.New("the client has left")
	reached := make(chan struct{}, 1) // from the handler: the first delta is sent
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
		_, _, err = ask(ctx, c, Prompt{})
		<-stop
		if !errors.Is(err, left) {
			t.Errorf("%s: %v", path, err)
		}
		if path == "/v1" {
			<-gone // the end of the connection informs the provider
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

// TestRetryAfter: the time to wait, in each form of the header.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "3", 3 * time.Second}, {"Retry-After", "0.5", 500 * time.Millisecond}, {"Retry-After-Ms", "250", 250 * time.Millisecond},
		{"Retry-After", "Mon, 23 Nov 2026 12:01:00 GMT", time.Minute}, {"Retry-After", "Mon, 23 Nov 2026 11:00:00 GMT", 0},
		{"Retry-After", "-1", 0}, {"Retry-After", "7200", 0}, {"Retry-After", "soon", 0}, {"Retry-After", "NaN", 0}, {"Retry-After", "1e300", 0},
	} {
		if got := retryAfter(http.Header{tc.name: {tc.value}}, now); got != tc.want {
			t.Errorf("%s: %s is %s, want %s", tc.name, tc.value, got, tc.want)
		}
	}
}
