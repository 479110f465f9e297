package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/chat"
	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/transport/textmodel"
)

// hello is the minimal request.
const hello = `{"model":"gpt-6-astra","messages":[{"role":"user","content":"Hello"}]}`

// varying matches the unpredictable parts of an answer.
var varying = regexp.MustCompile(`"created":\d+|chatcmpl-[A-Z2-7]{26}`)

func settled(s string) string {
	return varying.ReplaceAllStringFunc(s, func(m string) string {
		if strings.HasPrefix(m, "chatcmpl") {
			return "chatcmpl-X"
		}
		return `"created":0`
	})
}

// story is a turn with a tool, a confirmation and an invitation.
func story() func(context.Context, chat.Request, chat.Emit) error {
	return answersWith(
		&protocol.TextDelta{ItemID: "text_1_1", Text: "One moment."}, &protocol.TextDone{ItemID: "text_1_1", Text: "One moment."},
		&protocol.ToolStarted{CallID: "call_1_1", Tool: "pay"},
		&protocol.ConfirmationRequest{Token: "cf_1", Tool: "pay", Args: []byte(`{"to":"Bob"}`), Preview: "Pay Bob", ExpiresAt: protocol.Time{Time: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}},
		&protocol.ToolEnded{CallID: "call_1_1", Tool: "pay"},
		&protocol.TextDelta{ItemID: "text_1_2", Text: "Please "}, &protocol.TextDelta{ItemID: "text_1_2", Text: "approve."}, &protocol.TextDone{ItemID: "text_1_2", Text: "Please approve."},
		&protocol.TurnUsage{Usage: protocol.Usage{InputTokens: 21, OutputTokens: 7, Input: protocol.UsageInput{Text: 21, CachedText: 16}}},
		&protocol.Done{Status: protocol.DoneCompleted},
	)
}

const asked = `{"type":"confirmation.request","seq":1,"token":"cf_1","tool":"pay","args":{"to":"Bob"},"preview":"Pay Bob","expires_at":"2026-11-21T12:00:00.000Z"}`

// TestCompletionStream: a turn as chunks of Chat Completions.
func TestCompletionStream(t *testing.T) {
	s, _ := chatServer(t, &fakeAgent{do: story()}, nil)
	w := send(s, "/v1/chat/completions", `{"model":"m","stream":true,"stream_options":{"include_usage":true},"temperature":0.3,"messages":[{"role":"user","content":"Pay"}]}`, nil)
	head := `"created":0,"id":"chatcmpl-X","model":"m","object":"chat.completion.chunk"`
	piece := func(delta, finish, more string) string {
		return `data: {"choices":[{"delta":` + delta + `,"finish_reason":` + finish + `,"index":0}],` + head + more + "}\n\n"
	}
	want := piece(`{"content":"One moment.","role":"assistant"}`, "null", "") +
		piece(`{}`, "null", `,"voicegw":`+asked) +
		piece(`{"content":"\n\nPlease "}`, "null", "") + piece(`{"content":"approve."}`, "null", "") + piece(`{}`, `"stop"`, "") +
		`data: {"choices":[],` + head + `,"usage":{"completion_tokens":7,"prompt_tokens":21,"prompt_tokens_details":{"cached_tokens":16},"total_tokens":28}}` + "\n\n" +
		"data: [DONE]\n\n"
	if diff := cmp.Diff(want, settled(w.Body.String())); diff != "" {
		t.Error(diff)
	}
	if w.Header().Get("Content-Type") != "text/event-stream" || !w.Flushed {
		t.Errorf("%v", w.Header())
	}
	// Usage is sent only on request.
	s, _ = chatServer(t, &fakeAgent{}, nil)
	w = send(s, "/v1/chat/completions", `{"stream":true,"messages":[{"role":"user","content":"Pay"}]}`, nil)
	if body := w.Body.String(); strings.Contains(body, "usage") || !strings.Contains(body, `"model":"default"`) {
		t.Error(body)
	}
}

// TestCompletion: the same turn in one piece.
func TestCompletion(t *testing.T) {
	a := &fakeAgent{do: story()}
	s, _ := chatServer(t, a, func(o *Options) { o.Turns.AtOnce = 1 }) // each turn frees its slot
	w := send(s, "/v1/chat/completions", hello, nil)
	want := `{"choices":[{"finish_reason":"stop","index":0,"message":{"content":"One moment.\n\nPlease approve.","refusal":null,"role":"assistant"}}],` +
		`"created":0,"id":"chatcmpl-X","model":"gpt-6-astra","object":"chat.completion",` +
		`"usage":{"completion_tokens":7,"prompt_tokens":21,"prompt_tokens_details":{"cached_tokens":16},"total_tokens":28},"voicegw":[` + asked + "]}\n"
	if diff := cmp.Diff(want, settled(w.Body.String())); diff != "" || w.Code != 200 {
		t.Errorf("%d %s", w.Code, diff)
	}
	if diff := cmp.Diff([]chat.Request{{User: user.Must("192.0.2.7"), Message: "Hello", History: []textmodel.Message{}}}, a.requests(), messages); diff != "" {
		t.Error(diff)
	}
	a.do = answersWith(&protocol.TextDelta{Text: "and th"}, &protocol.TextDone{Text: "and th", Cut: true}, &protocol.Done{})
	for _, body := range []string{hello, `{"stream":true,` + hello[1:]} {
		if w := send(s, "/v1/chat/completions", body, nil); !strings.Contains(w.Body.String(), `"finish_reason":"length"`) {
			t.Error(w.Body)
		}
	}
}

// TestCompletionContent: the accepted forms of content.
func TestCompletionContent(t *testing.T) {
	for content, want := range map[string]string{
		`"Hi"`: "Hi", `[{"type":"text","text":"A"},{"type":"text","text":"B"}]`: "A\nB", `[{"type":"refusal","refusal":"No."}]`: "No.", `""`: "", `null`: "",
	} {
		a := &fakeAgent{}
		s, _ := chatServer(t, a, nil)
		send(s, "/v1/chat/completions", `{"user":"ada","messages":[{"role":"assistant","content":`+content+`,"tool_calls":[],"function_call":null,"refusal":null,"annotations":[],"voicegw":{},"images":[]},{"role":"user","content":"x"}]}`, nil)
		if got := a.requests(); len(got) != 1 || got[0].History[0].Text != want || got[0].User != user.Must("ada") {
			t.Errorf("%s: %+v", content, got)
		}
	}
}

// openaiProblem is an error in the shape that clients of Chat Completions read.
func openaiProblem(t *testing.T, w *httptest.ResponseRecorder) (kind, code, message string) {
	t.Helper()
	var failure struct {
		Error map[string]any
	}
	if err := json.Unmarshal(w.Body.Bytes(), &failure); err != nil {
		t.Fatalf("%q: %v", w.Body, err)
	}
	kind, _ = failure.Error["type"].(string)
	code, _ = failure.Error["code"].(string)
	message, _ = failure.Error["message"].(string)
	if _, has := failure.Error["param"]; !has || kind == "" || message == "" {
		t.Errorf("%s has not the shape", w.Body)
	}
	return kind, code, message
}

// TestCompletionRefusals: every refusal has the shape of Chat Completions.
func TestCompletionRefusals(t *testing.T) {
	until := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		body   string
		change func(*http.Request)
		server func(*Options)
		do     func(context.Context, chat.Request, chat.Emit) error
		status int
		kind   string
		code   string
		says   string
	}{
		"another origin":  {change: header("Origin", "https://evil.example"), status: 403, kind: "invalid_request_error", code: "origin"},
		"no JSON":         {body: `{`, status: 400, kind: "invalid_request_error", code: "invalid_message"},
		"not JSON's type": {change: func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, status: 415, kind: "invalid_request_error", code: "invalid_message"},
		"too big":         {server: func(o *Options) { o.Chat = &fakeAgent{blind: true} }, body: `{"x":"` + strings.Repeat("x", maxChatBody) + `"}`, status: 413, kind: "invalid_request_error", code: "invalid_message"},
		"no messages":     {body: `{"model":"m"}`, status: 400, kind: "invalid_request_error", code: "missing_required_parameter", says: "messages"},
		"shut out":        {server: func(o *Options) { o.Blocked = func(user.User) (time.Time, bool) { return until, true } }, status: 403, kind: "invalid_request_error", code: "blocked"},
		"draining":        {server: func(o *Options) { o.Sessions.Close() }, status: 503, kind: "server_error", code: "draining"},
		"an empty text": {do: func(context.Context, chat.Request, chat.Emit) error {
			return fmt.Errorf("%w: the message is empty", chat.ErrMessage)
		}, status: 400, kind: "invalid_request_error", code: "invalid_message", says: "empty"},
		"not begun": {do: func(context.Context, chat.Request, chat.Emit) error { return chat.ErrStore }, status: 503, kind: "server_error", code: "unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := chatServer(t, &fakeAgent{do: tc.do}, tc.server)
			if tc.body == "" {
				tc.body = hello
			}
			w := send(s, "/v1/chat/completions", tc.body, tc.change)
			kind, code, message := openaiProblem(t, w)
			if w.Code != tc.status || kind != tc.kind || code != tc.code || !strings.Contains(message, tc.says) {
				t.Errorf("%d %s %s %q", w.Code, kind, code, message)
			}
		})
	}
}

// TestCompletionFails: a turn that fails before its first output gets an error status and a header against retries; one
// that fails during a stream gets an event.
func TestCompletionFails(t *testing.T) {
	busy := &protocol.Error{Code: "provider_unavailable", Message: "Try again soon.", Retryable: true}
	for name, tc := range map[string]struct {
		do     []protocol.ServerMessage
		stream bool
		status int
		event  bool
	}{
		"at once":                    {do: []protocol.ServerMessage{busy}, status: 503},
		"at once, permanently":       {do: []protocol.ServerMessage{&protocol.Error{Code: "provider_error", Message: "No."}}, status: 502},
		"at once, in a stream":       {do: []protocol.ServerMessage{busy}, stream: true, status: 503},
		"in the middle":              {do: []protocol.ServerMessage{&protocol.TextDelta{Text: "One"}, busy}, status: 503},
		"in the middle, of a stream": {do: []protocol.ServerMessage{&protocol.TextDelta{Text: "One"}, busy}, stream: true, status: 200, event: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := chatServer(t, &fakeAgent{do: answersWith(append(tc.do, &protocol.Done{Status: protocol.DoneFailed})...)}, nil)
			body := hello
			if tc.stream {
				body = `{"stream":true,` + hello[1:]
			}
			w := send(s, "/v1/chat/completions", body, nil)
			if w.Code != tc.status {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			if tc.event {
				if got := w.Body.String(); !strings.HasSuffix(got, `data: {"error":{"code":"provider_unavailable","message":"Try again soon.","param":null,"type":"server_error"}}`+"\n\ndata: [DONE]\n\n") || strings.Contains(got, `"stop"`) {
					t.Error(got)
				}
				return
			}
			if kind, _, _ := openaiProblem(t, w); kind != "server_error" || w.Header().Get("X-Should-Retry") != "false" {
				t.Errorf("%s, %v", kind, w.Header())
			}
		})
	}
}

// TestCompletionKey: with a configured key, only requests with it are answered; clients of OpenAI send it as their API
// key.
func TestCompletionKey(t *testing.T) {
	a := &fakeAgent{}
	s, _ := chatServer(t, a, func(o *Options) { o.Auth, o.GuardCompletions = operators("the-key"), true })
	for auth, status := range map[string]int{"": 401, "Bearer wrong": 401, "Basic the-key": 401, "Bearer the-key": 200} {
		w := send(s, "/v1/chat/completions", hello, func(r *http.Request) {
			if auth != "" {
				r.Header.Set("Authorization", auth)
			}
		})
		if w.Code != status {
			t.Errorf("%q: %d %s", auth, w.Code, w.Body)
		}
		if status == 401 {
			if openaiProblem(t, w); w.Header().Get("WWW-Authenticate") == "" || strings.Contains(w.Body.String(), "the-key") {
				t.Errorf("%q: %v %s", auth, w.Header(), w.Body)
			}
		}
	}
	if len(a.requests()) != 1 {
		t.Errorf("the agent was asked %d times", len(a.requests()))
	}
}

// TestModels: the agent is the only model.
func TestModels(t *testing.T) {
	s, _ := chatServer(t, &fakeAgent{}, nil)
	if w := ask(s, http.MethodGet, "/v1/models/default", nil); strings.TrimSpace(w.Body.String()) != `{"created":0,"id":"default","object":"model","owned_by":"voicegw"}` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, id := range []string{"gpt-6", "openai/gpt-6", ""} {
		w := ask(s, http.MethodGet, "/v1/models/"+id, nil)
		if kind, code, _ := openaiProblem(t, w); w.Code != 404 || kind != "invalid_request_error" || code != "model_not_found" {
			t.Errorf("%q: %d %s", id, w.Code, w.Body)
		}
	}
	w := ask(s, http.MethodGet, "/v1/models", nil)
	if got := strings.TrimSpace(w.Body.String()); got != `{"data":[{"created":0,"id":"default","object":"model","owned_by":"voicegw"}],"object":"list"}` {
		t.Error(got)
	}
}

// TestCompletionTroubles: problems of the model get the texts, statuses and codes of Chat Completions, and the time to
// wait.
func TestCompletionTroubles(t *testing.T) {
	for code, want := range openaiTroubles {
		failure := &protocol.Error{Code: code, Message: "In true words.", RetryAfterMS: 2500}
		s, _ := chatServer(t, &fakeAgent{do: answersWith(failure, &protocol.Done{Status: protocol.DoneFailed})}, nil)
		w := send(s, "/v1/chat/completions", hello, nil)
		var got struct {
			Error struct {
				Message, Type, Code string
				Param               *string
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		param := ""
		if got.Error.Param != nil {
			param = *got.Error.Param
		}
		if w.Code != want.status || got.Error.Type != want.kind || got.Error.Code != want.code || param != want.param || got.Error.Message != failure.Message {
			t.Errorf("%s: %d %s", code, w.Code, w.Body)
		}
		if h := w.Header(); h.Get("Retry-After") != "3" || h.Get("Retry-After-Ms") != "2500" || h.Get("X-Should-Retry") != "false" {
			t.Errorf("%s: %v", code, h)
		}
	}
	if got := troubleOf(&protocol.Error{Code: protocol.CodeSettingRefused, Ref: "seed"}); got.param != "seed" {
		t.Errorf("%+v", got)
	}
	// Clients distinguish these two by the type: one is temporary, the other is not.
	if busy, quota := openaiTroubles[protocol.CodeProviderBusy], openaiTroubles[protocol.CodeProviderQuota]; busy.kind != "rate_limit_error" || quota.kind != "insufficient_quota" {
		t.Errorf("%+v %+v", busy, quota)
	}
	if got := troubleOf(&protocol.Error{Code: "new", Retryable: true}); got.status != 503 {
		t.Errorf("%+v", got)
	}
}

// TestCompletionRefused: a refusal by the model and an answer ended by a filter are answers, not errors.
func TestCompletionRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		do   []protocol.ServerMessage
		says string
	}{
		"without words":     {[]protocol.ServerMessage{&protocol.Error{Code: protocol.CodeRefused, Message: "It refused."}}, `"refusal":"It refused."`},
		"ended by a filter": {[]protocol.ServerMessage{&protocol.TextDelta{Text: "First"}, &protocol.TextDone{Text: "First", Refused: true}}, `"content":"First"`},
	} {
		for _, body := range []string{hello, `{"stream":true,` + hello[1:]} {
			s, _ := chatServer(t, &fakeAgent{do: answersWith(append(tc.do, &protocol.Done{Status: protocol.DoneFailed})...)}, nil)
			w := send(s, "/v1/chat/completions", body, nil)
			if got := w.Body.String(); w.Code != 200 || !strings.Contains(got, tc.says) || !strings.Contains(got, `"finish_reason":"content_filter"`) || strings.Contains(got, `"error"`) {
				t.Errorf("%s: %d %s", name, w.Code, got)
			}
		}
	}
}

// TestTroublesStandInTheDocs: docs/chat.md has a line for each problem, with its status.
func TestTroublesStandInTheDocs(t *testing.T) {
	page, err := os.ReadFile("../docs/chat.md")
	if err != nil {
		t.Fatal(err)
	}
	for code, row := range openaiTroubles {
		line := fmt.Sprintf("\n- `%s`: %d", code, row.status)
		if same := row.kind == "server_error" && row.code == code; !same {
			line += fmt.Sprintf(", `%s`, `%s`", row.kind, row.code)
		}
		if line += "; "; !strings.Contains(string(page), line) {
			t.Errorf("docs/chat.md lacks %q", line)
		}
	}
}

// watched is an answer that a test reads while it is written.
type watched struct {
	mu  sync.Mutex // guards the next field
	rec *httptest.ResponseRecorder
}

func (w *watched) Header() http.Header { return w.rec.Header() }

func (w *watched) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rec.WriteHeader(status)
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rec.Write(p)
}

func (w *watched) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.rec.Flushed {
		w.rec.Flush()
	}
}

// soFar is the text so far.
func (w *watched) soFar() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rec.Body.String()
}

// TestFirstByte: the head of a stream and the conversation's id are sent before the model's first output, and a comment
// follows every 10 s until the answer is complete.
func TestFirstByte(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/chat": `{"message":"Hello"}`, "/v1/chat/completions": `{"stream":true,` + hello[1:],
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &watched{rec: httptest.NewRecorder()}
			a := &fakeAgent{do: func(_ context.Context, _ chat.Request, emit chat.Emit) error {
				emit(&protocol.TurnStarted{ConversationID: "conv-1"})
				if got := w.soFar(); !w.rec.Flushed || !strings.Contains(got, `"conversation_id":"conv-1"`) || strings.Count(got, "data: ") != 1 {
					t.Errorf("%s: at once: %q", path, got)
				}
				<-time.After(25 * time.Second)
				synctest.Wait()
				if got := w.soFar(); strings.Count(got, "\n\n: ") != 2 {
					t.Errorf("%s: after 25 s: %q", path, got)
				}
				emit(&protocol.TextDelta{ItemID: "i", Text: "Hi"})
				emit(&protocol.Done{ConversationID: "conv-1", Status: protocol.DoneCompleted})
				return nil
			}}
			s, m := chatServer(t, a, nil)
			defer m.Close()
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
			r.Host, r.RemoteAddr = "localhost:8080", "192.0.2.7:40000"
			r.Header.Set("Content-Type", "application/json")
			s.ServeHTTP(w, r)
			before := w.soFar()
			<-time.After(time.Minute)
			synctest.Wait()
			if after := w.soFar(); after != before {
				t.Errorf("%s: it continues after its end: %q", path, after)
			}
		})
	}
	// A client without a stream gets the conversation's id as well.
	s, _ := chatServer(t, &fakeAgent{do: answersWith(&protocol.TurnStarted{ConversationID: "conv-1"}, &protocol.TextDelta{Text: "Hi"}, &protocol.Done{})}, nil)
	w := send(s, "/v1/chat/completions", hello, nil)
	if got := w.Body.String(); !strings.Contains(got, `"voicegw":[{"type":"turn.started","seq":1,"conversation_id":"conv-1"}]`) || !strings.HasPrefix(w.Header().Get("X-Request-Id"), "chatcmpl-") {
		t.Errorf("%s %v", got, w.Header())
	}
}

// TestCompletionImages: an image is in the content as Markdown, in a separate list, and complete under "voicegw", with a
// URL that a client can use; its description cannot end the Markdown. JSON content has no images.
func TestCompletionImages(t *testing.T) {
	do := answersWith(
		&protocol.TextDelta{ItemID: "a", Text: "Here."}, &protocol.UIImage{ID: "img_1", URL: "/v1/images/x", Prompt: "A fox](http://evil) [x\n!"},
		&protocol.TextDelta{ItemID: "b", Text: "Done."}, &protocol.Done{})
	s, _ := chatServer(t, &fakeAgent{do: do}, nil)
	const address = "http://localhost:8080/v1/images/x"
	content := "Here.\n\n![A fox http://evil x](" + address + ")\n\nDone."
	var whole struct {
		Choices []struct {
			Message struct {
				Content string
				Images  []struct {
					Type  string
					Image struct{ URL string } `json:"image_url"`
				}
			}
		}
		Voicegw []struct{ Type, URL string }
	}
	if err := json.Unmarshal(send(s, "/v1/chat/completions", hello, nil).Body.Bytes(), &whole); err != nil {
		t.Fatal(err)
	}
	m := whole.Choices[0].Message
	if m.Content != content || len(m.Images) != 1 || m.Images[0].Type != "image_url" || m.Images[0].Image.URL != address || len(whole.Voicegw) != 1 || whole.Voicegw[0].URL != address {
		t.Errorf("%+v", whole)
	}
	said, images := "", 0
	for line := range strings.Lines(send(s, "/v1/chat/completions", `{"stream":true,`+hello[1:], nil).Body.String()) {
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content string
					Images  []any
				}
			}
		}
		if data, ok := strings.CutPrefix(line, "data: {"); ok && json.Unmarshal([]byte("{"+data), &chunk) == nil && len(chunk.Choices) > 0 {
			said += chunk.Choices[0].Delta.Content
			images += len(chunk.Choices[0].Delta.Images)
		}
	}
	if said != content || images != 1 {
		t.Errorf("%q, %d images", said, images)
	}
	for _, more := range []string{"", `"stream":true,`} {
		w := send(s, "/v1/chat/completions", `{`+more+`"response_format":{"type":"json_object"},`+hello[1:], nil)
		if got := w.Body.String(); !strings.Contains(got, `"content":"Done."`) || strings.Contains(got, "![") || strings.Contains(got, "Here.") || !strings.Contains(got, address) {
			t.Error(got)
		}
	}
}
