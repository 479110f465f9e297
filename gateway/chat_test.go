package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/chat"
	"voicegw/internal/testutil"
	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/session"
	"voicegw/store"
	"voicegw/transport/textmodel"
)

// fakeAgent answers as a test defines, and records the requests.
type fakeAgent struct {
	blind bool // the model sees no images
	// do answers a turn; nil answers with one text.
	do func(ctx context.Context, req chat.Request, emit chat.Emit) error

	mu    sync.Mutex // guards the next field
	asked []chat.Request
}

func (a *fakeAgent) Name() string { return "default" }

func (a *fakeAgent) Has(name string) bool { return name == "" || name == "default" }

func (a *fakeAgent) Sees() bool { return !a.blind }

func (a *fakeAgent) Respond(ctx context.Context, req chat.Request, emit chat.Emit) error {
	a.mu.Lock()
	a.asked = append(a.asked, req)
	a.mu.Unlock()
	if a.do != nil {
		return a.do(ctx, req, emit)
	}
	emit(&protocol.TextDelta{ItemID: "text_1_1", Text: "Hel\nlo"})
	emit(&protocol.TextDone{ItemID: "text_1_1", Text: "Hel\nlo"})
	emit(&protocol.TurnUsage{Usage: protocol.Usage{InputTokens: 21, OutputTokens: 7, Input: protocol.UsageInput{Text: 21, CachedText: 16}, Output: protocol.UsageOutput{Text: 7}}})
	emit(&protocol.Done{ConversationID: "conv-1", Status: protocol.DoneCompleted})
	return nil
}

// requests are the requests so far.
func (a *fakeAgent) requests() []chat.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]chat.Request{}, a.asked...)
}

// answersWith answers every turn with messages.
func answersWith(messages ...protocol.ServerMessage) func(context.Context, chat.Request, chat.Emit) error {
	return func(_ context.Context, _ chat.Request, emit chat.Emit) error {
		for _, m := range messages {
			emit(m)
		}
		return nil
	}
}

// chatServer is a Server with a text agent, without a socket.
func chatServer(t *testing.T, a *fakeAgent, change func(*Options)) (*Server, *session.Manager) {
	t.Helper()
	m, err := session.NewManager(sessionOptions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	o := Options{Sessions: m, Chat: a}
	if change != nil {
		change(&o)
	}
	return New(o), m
}

// send posts JSON.
func send(s *Server, path, body string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Host, r.RemoteAddr = "localhost:8080", "192.0.2.7:40000"
	r.Header.Set("Content-Type", "application/json")
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	checkError(w)
	return w
}

// problemOf is the error of an answer.
func problemOf(t *testing.T, w *httptest.ResponseRecorder) (code, message string) {
	t.Helper()
	var reply struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("%d %q is not an error: %v", w.Code, w.Body, err)
	}
	return reply.Error.Code, reply.Error.Message
}

// TestChatStream: the messages of a turn as server-sent events, byte for byte.
func TestChatStream(t *testing.T) {
	a := &fakeAgent{}
	s, _ := chatServer(t, a, nil)
	w := send(s, "/v1/chat", `{"message":"Hello","conversation_id":"conv-1","agent":"default","user":"ada"}`, nil)
	want := `id: 1
event: text.delta
data: {"type":"text.delta","seq":1,"item_id":"text_1_1","text":"Hel\nlo"}

id: 2
event: text.done
data: {"type":"text.done","seq":2,"item_id":"text_1_1","text":"Hel\nlo"}

id: 3
event: usage
data: {"type":"usage","seq":3,"input_tokens":21,"output_tokens":7,"input":{"text":21,"audio":0,"cached_text":16,"cached_audio":0},"output":{"text":7,"audio":0}}

id: 4
event: done
data: {"type":"done","seq":4,"conversation_id":"conv-1","status":"completed"}

`
	if diff := cmp.Diff(want, w.Body.String()); diff != "" {
		t.Error(diff)
	}
	for name, value := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-Content-Type-Options": "nosniff"} {
		if got := w.Header().Get(name); got != value {
			t.Errorf("%s is %q", name, got)
		}
	}
	if !w.Flushed || w.Code != http.StatusOK {
		t.Errorf("status %d, flushed %v", w.Code, w.Flushed)
	}
	if diff := cmp.Diff([]chat.Request{{ConversationID: "conv-1", User: user.Must("ada"), Agent: "default", Message: "Hello"}}, a.requests(), messages); diff != "" {
		t.Error(diff)
	}
}

// TestThePageIsKnown: on both endpoints a turn has the page of its request, in one form; a program has none.
func TestThePageIsKnown(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/chat":             `{"message":"Hello"}`,
		"/v1/chat/completions": `{"messages":[{"role":"user","content":"Hello"}]}`,
	} {
		for origin, want := range map[string]string{"": "", "http://LOCALHOST:8080": "http://localhost:8080"} {
			a := &fakeAgent{}
			s, _ := chatServer(t, a, nil)
			send(s, path, body, func(r *http.Request) {
				if origin != "" {
					r.Header.Set("Origin", origin)
				}
			})
			if got := a.requests(); len(got) != 1 || got[0].Origin != want {
				t.Errorf("%s from %q: %+v", path, origin, got)
			}
		}
	}
}

// TestChatRequests: the turns that bodies become.
func TestChatRequests(t *testing.T) {
	for body, want := range map[string]chat.Request{
		`{"message":"Hi"}`: {User: user.Must("192.0.2.7"), Message: "Hi"},
		`{"conversation_id":"c","confirmation":{"token":"cf_1","approved":true}}`:  {User: user.Must("192.0.2.7"), ConversationID: "c", Confirmation: &chat.Confirmation{Token: "cf_1", Approved: true}},
		`{"conversation_id":"c","confirmation":{"token":"cf_1","approved":false}}`: {User: user.Must("192.0.2.7"), ConversationID: "c", Confirmation: &chat.Confirmation{Token: "cf_1"}},
		`{"messages":[{"role":"user","content":"Hi"}]}`:                            {User: user.Must("192.0.2.7"), Message: "Hi", History: []textmodel.Message{}},
		`{"user":"ada","messages":[{"role":"user","content":"One"},{"role":"assistant","content":"Two"},{"role":"user","content":"Three"}]}`: {
			User: user.Must("ada"), Message: "Three", History: []textmodel.Message{{Role: textmodel.RoleUser, Text: "One"}, {Role: textmodel.RoleAssistant, Text: "Two"}}},
	} {
		a := &fakeAgent{}
		s, _ := chatServer(t, a, nil)
		if w := send(s, "/v1/chat", body, nil); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
			continue
		}
		if diff := cmp.Diff([]chat.Request{want}, a.requests(), messages); diff != "" {
			t.Errorf("%s: %s", body, diff)
		}
	}
}

// TestInspectOfText: a turn shows details of its calls to a caller that asks for them and has the right.
func TestInspectOfText(t *testing.T) {
	for _, may := range []bool{false, true} {
		for _, asks := range []bool{false, true} {
			a := &fakeAgent{}
			s, _ := chatServer(t, a, func(o *Options) { o.Auth = operators(testKey) })
			w := send(s, "/v1/chat", fmt.Sprintf(`{"message":"Hi","inspect":%t}`, asks), func(r *http.Request) {
				if may {
					r.Header.Set("Authorization", "Bearer "+testKey)
				}
			})
			if w.Code != http.StatusOK {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			if got := a.requests()[0].Inside; got != (asks && may) {
				t.Errorf("asks %t, may %t: inside is %t", asks, may, got)
			}
		}
	}
}

// TestMessageDuringDrain: a message between the start of the drain and that of the agent's drain is also refused with a
// retry elsewhere, in every form.
func TestMessageDuringDrain(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/chat":             `{"message":"Hello"}`,
		"/v1/chat/completions": `{"model":"default","messages":[{"role":"user","content":"Hello"}]}`,
	} {
		a := &fakeAgent{do: func(context.Context, chat.Request, chat.Emit) error { return chat.ErrDraining }}
		s, _ := chatServer(t, a, nil)
		if w := send(s, path, body, nil); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "5" || !strings.Contains(w.Body.String(), `"draining"`) {
			t.Errorf("%s: %d %v %s", path, w.Code, w.Header(), w.Body)
		}
	}
}

// TestChatRefusals: each refusal has its status, code and a text with the solution, and does not reach the agent.
func TestChatRefusals(t *testing.T) {
	until := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	long := `{"message":"` + strings.Repeat("x", maxChatBody) + `"}`
	manyMessages := `{"messages":[` + strings.Repeat(`{"role":"user","content":"x"},`, maxChatMessages) + `{"role":"user","content":"x"}]}`
	for name, tc := range map[string]struct {
		body   string
		change func(*http.Request)
		server func(*Options)
		status int
		code   string
		says   string
		after  string // Retry-After
	}{
		"another origin":       {change: header("Origin", "https://evil.example"), status: 403, code: "origin", says: "origins"},
		"another site":         {change: header("Sec-Fetch-Site", "cross-site"), status: 403, code: "origin"},
		"not JSON's type":      {change: func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, status: 415, code: "invalid_message", says: "application/json"},
		"no type":              {change: func(r *http.Request) { r.Header.Del("Content-Type") }, status: 415, code: "invalid_message"},
		"too big":              {server: func(o *Options) { o.Chat = &fakeAgent{blind: true} }, body: long, status: 413, code: "invalid_message", says: "1 MiB"},
		"no JSON":              {body: `{"message"`, status: 400, code: "invalid_message"},
		"more than one":        {body: `{"message":"x"} {}`, status: 400, code: "invalid_message", says: "unexpected data after"},
		"an unknown field":     {body: `{"message":"x","model":"y"}`, status: 400, code: "invalid_message", says: "model"},
		"a wrong shape":        {body: `{"message":7}`, status: 400, code: "invalid_message", says: "message"},
		"half an answer":       {body: `{"confirmation":{"token":"cf_1"}}`, status: 400, code: "invalid_message", says: "confirmation"},
		"an empty token":       {body: `{"confirmation":{"approved":true}}`, status: 400, code: "invalid_message", says: "confirmation"},
		"a function's message": {body: `{"messages":[{"role":"function","content":"x"},{"role":"user","content":"x"}]}`, status: 400, code: "invalid_message", says: "the gateway runs the tools"},
		"two kinds":            {body: `{"message":"x","messages":[{"role":"user","content":"x"}]}`, status: 400, code: "invalid_message", says: "cannot be combined"},
		"a field twice":        {body: `{"conversation_id":"c","messages":[{"role":"user","content":"x"}]}`, status: 400, code: "invalid_message", says: "cannot be combined"},
		"too many":             {body: manyMessages, status: 400, code: "invalid_message", says: "501"},
		"a tool's message":     {body: `{"messages":[{"role":"tool","content":"x"},{"role":"user","content":"x"}]}`, status: 400, code: "invalid_message", says: "the gateway runs the tools"},
		"an unknown role":      {body: `{"messages":[{"role":"robot","content":"x"}]}`, status: 400, code: "invalid_message", says: "messages[0].role"},
		"no message":           {body: `{"messages":[{"role":"assistant","content":"x"}]}`, status: 400, code: "invalid_message", says: "last"},
		"another agent":        {body: `{"message":"x","agent":"other"}`, status: 404, code: "unknown_agent", says: `"default"`},
		"shut out": {server: func(o *Options) {
			o.Blocked = func(u user.User) (time.Time, bool) { return until, u == user.Must("192.0.2.7") }
		}, status: 403, code: "blocked"},
		"shut out, by name": {body: `{"message":"x","user":"eve"}`, server: func(o *Options) {
			o.Blocked = func(u user.User) (time.Time, bool) { return until, u == user.Must("eve") }
		}, status: 403, code: "blocked"},
		"draining": {server: func(o *Options) { o.Sessions.Close() }, status: 503, code: "draining", after: "5"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &fakeAgent{}
			s, _ := chatServer(t, a, tc.server)
			if tc.body == "" {
				tc.body = `{"message":"Hello"}`
			}
			w := send(s, "/v1/chat", tc.body, tc.change)
			code, message := problemOf(t, w)
			if w.Code != tc.status || code != tc.code || !strings.Contains(message, tc.says) || w.Header().Get("Retry-After") != tc.after {
				t.Errorf("%d %s %q, Retry-After %q", w.Code, code, message, w.Header().Get("Retry-After"))
			}
			if len(a.requests()) != 0 {
				t.Error("the agent was asked")
			}
			if tc.code == "blocked" && !strings.Contains(w.Body.String(), `"until":"2026-11-21T12:00:00.000Z"`) {
				t.Errorf("the time is missing: %s", w.Body)
			}
		})
	}
}

// TestChatAllowedOrigins: the gateway accepts pages of its own host and those that the operator names.
func TestChatAllowedOrigins(t *testing.T) {
	s, _ := chatServer(t, &fakeAgent{}, func(o *Options) { o.Origins = allow(t, "https://*.example.org", "https://app.example.net") })
	for origin, ok := range map[string]bool{
		"http://localhost:8080": true, "https://chat.example.org": true, "https://app.example.net": true,
		"http://app.example.net": false, "https://example.org.evil.net": false, "null": false, "://": false,
	} {
		if w := send(s, "/v1/chat", `{"message":"x"}`, header("Origin", origin)); (w.Code == http.StatusOK) != ok {
			t.Errorf("%s: %d", origin, w.Code)
		}
	}
}

// TestChatNotBegun: a turn that cannot begin gets an error status, without a stream.
func TestChatNotBegun(t *testing.T) {
	for name, tc := range map[string]struct {
		err    error
		status int
		code   string
		after  string
	}{
		"busy":        {chat.ErrBusy, 409, "conversation_busy", "1"},
		"unknown":     {chat.ErrUnknown, 404, "conversation_unknown", ""},
		"wrong":       {fmt.Errorf("%w: the message is empty", chat.ErrMessage), 400, "invalid_message", ""},
		"no question": {store.ErrUnknown, 404, "confirmation_unknown", ""},
		"answered":    {store.ErrUsed, 409, "confirmation_used", ""},
		"late":        {store.ErrExpired, 410, "confirmation_expired", ""},
		"the store":   {fmt.Errorf("%w: disk secret", chat.ErrStore), 503, "store_unavailable", "5"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := chatServer(t, &fakeAgent{do: func(context.Context, chat.Request, chat.Emit) error { return tc.err }}, nil)
			w := send(s, "/v1/chat", `{"message":"x"}`, nil)
			code, message := problemOf(t, w)
			if w.Code != tc.status || code != tc.code || w.Header().Get("Retry-After") != tc.after || strings.Contains(message, "secret") {
				t.Errorf("%d %s %q, Retry-After %q", w.Code, code, message, w.Header().Get("Retry-After"))
			}
		})
	}
}

// TestChatFull: the number of concurrent turns is limited; a turn that ends frees its slot.
func TestChatFull(t *testing.T) {
	a := &fakeAgent{}
	s, _ := chatServer(t, a, func(o *Options) { o.Turns.AtOnce = 1 })
	a.do = func(context.Context, chat.Request, chat.Emit) error {
		for _, path := range []string{"/v1/chat", "/v1/chat/completions"} {
			w := send(s, path, `{"message":"x"}`, nil)
			if path != "/v1/chat" {
				w = send(s, path, `{"messages":[{"role":"user","content":"x"}]}`, nil)
			}
			if code, _ := problemOf(t, w); w.Code != 503 || code != "full" || w.Header().Get("Retry-After") != "1" {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		}
		return chat.ErrBusy
	}
	if w := send(s, "/v1/chat", `{"message":"x"}`, nil); w.Code != 409 {
		t.Errorf("%d", w.Code)
	}
	a.do = nil
	if w := send(s, "/v1/chat", `{"message":"x"}`, nil); w.Code != 200 {
		t.Errorf("afterwards: %d %s", w.Code, w.Body)
	}
}

// TestVoiceURL: an invitation has the tool's URL, or by default the host name that the client uses.
func TestVoiceURL(t *testing.T) {
	for name, tc := range map[string]struct{ offered, want string }{
		"by name":      {"", "ws://localhost:8080/v1/voice"},
		"of the offer": {"wss://other.example.org/v1/voice", "wss://other.example.org/v1/voice"},
	} {
		t.Run(name, func(t *testing.T) {
			do := answersWith(&protocol.VoiceSessionStart{SessionID: "voice-1", Ticket: "t", URL: tc.offered}, &protocol.Done{})
			s, _ := chatServer(t, &fakeAgent{do: do}, nil)
			if w := send(s, "/v1/chat", `{"message":"x"}`, nil); !strings.Contains(w.Body.String(), `"url":"`+tc.want+`"`) {
				t.Error(w.Body)
			}
			s, _ = chatServer(t, &fakeAgent{do: do}, nil)
			if w := send(s, "/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}]}`, nil); !strings.Contains(w.Body.String(), `"url":"`+tc.want+`"`) {
				t.Error(w.Body)
			}
		})
	}
}

// TestClientLeaves: a client that disconnects during a stream ends the turn, over a real socket; TestMain finds leaked
// goroutines.
func TestClientLeaves(t *testing.T) {
	for _, path := range []string{"/v1/chat", "/v1/chat/completions"} {
		ended := make(chan error, 1) // the reason of the turn's end
		a := &fakeAgent{do: func(ctx context.Context, _ chat.Request, emit chat.Emit) error {
			emit(&protocol.TextDelta{ItemID: "text_1_1", Text: "Once upon"})
			<-ctx.Done()
			emit(&protocol.TextDelta{ItemID: "text_1_1", Text: " a time"}) // the client is disconnected
			emit(&protocol.Done{Status: protocol.DoneFailed})
			ended <- ctx.Err()
			return nil
		}}
		s, _ := chatServer(t, a, nil)
		srv := httptest.NewUnstartedServer(s)
		srv.Config.ConnContext = ConnContext
		srv.Listener = Listen(srv.Listener, nil)
		srv.Start()
		ctx, leave := context.WithCancel(t.Context())
		body := `{"message":"Tell me"}`
		if path != "/v1/chat" {
			body = `{"stream":true,"messages":[{"role":"user","content":"Tell me"}]}`
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := srv.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(resp.Body).ReadString('\n')
		if err != nil || line == "" {
			t.Errorf("%q, %v", line, err)
		}
		leave()
		if err := testutil.WaitNext(t, "the turn's end", ended); err == nil {
			t.Error("the turn ended before the client left")
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		srv.Close()
	}
}

// TestMessagesHaveNames: on both endpoints the header or the field names a message; two different names are refused, and
// so is an id of another message, with the endpoint's error.
func TestMessagesHaveNames(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/chat":             `{"message":"Hello"%s}`,
		"/v1/chat/completions": `{"messages":[{"role":"user","content":"Hello"}]%s}`,
	} {
		for name, tc := range map[string]struct{ header, field, want string }{
			"neither":            {"", "", ""},
			"the header":         {"k-1", "", "k-1"},
			"the field":          {"", "m-1", "m-1"},
			"both":               {"m-1", "m-1", "m-1"},
			"two different ones": {"k-1", "m-1", "400"},
			"one header twice":   {"k-1 k-1", "", "k-1"},
			"two headers":        {"k-1 k-2", "", "400"},
		} {
			a := &fakeAgent{}
			s, _ := chatServer(t, a, nil)
			field := ""
			if tc.field != "" {
				field = `,"message_id":"` + tc.field + `"`
			}
			w := send(s, path, fmt.Sprintf(body, field), func(r *http.Request) {
				for _, key := range strings.Fields(tc.header) {
					r.Header.Add("Idempotency-Key", key)
				}
			})
			asked := a.requests()
			if tc.want == "400" {
				if code, _ := problemOf(t, w); w.Code != http.StatusBadRequest || code != "invalid_message" || len(asked) != 0 {
					t.Errorf("%s, %s: %d %s", path, name, w.Code, w.Body)
				}
			} else if len(asked) != 1 || asked[0].ID != tc.want {
				t.Errorf("%s, %s: %+v", path, name, asked)
			}
		}
		a := &fakeAgent{do: func(context.Context, chat.Request, chat.Emit) error { return chat.ErrReused }}
		s, _ := chatServer(t, a, nil)
		w := send(s, path, fmt.Sprintf(body, ""), nil)
		if code, message := problemOf(t, w); w.Code != http.StatusUnprocessableEntity || code != "message_reused" || !strings.Contains(message, "message_id") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
