package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"voicegw/protocol"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/conversation"
	"voicegw/internal/cost"
	"voicegw/internal/testutil"
	"voicegw/internal/user"
	"voicegw/registry"
	"voicegw/session"
	"voicegw/session/handoff"
	"voicegw/store"
	"voicegw/transport"
)

// desk is a Voice that records its requests.
type desk struct {
	asked  []handoff.Invitation
	under  []protocol.TraceParent // the parent spans of the requests
	err    error
	talks  map[string]*conversation.Conversation
	listed []store.Query
}

func (d *desk) Invite(ctx context.Context, in handoff.Invitation) (registry.VoiceOffer, error) {
	d.asked, d.under = append(d.asked, in), append(d.under, protocol.TraceParentFrom(ctx))
	return registry.VoiceOffer{
		SessionID: "voice-1", ConversationID: "conv-1", Ticket: "s3cret", PendingRequest: in.PendingRequest,
		ExpiresAt: time.Date(2026, 11, 20, 10, 1, 0, 5e6, time.UTC),
	}, d.err
}

func (d *desk) MakeSecret(context.Context, handoff.Invitation, store.ClientSecret, time.Time) (string, error) {
	return "ek_secret", d.err
}

func (d *desk) Secret(context.Context, string, string) (*handoff.Secret, error) {
	return nil, store.ErrUnknown
}

func (d *desk) Conversation(_ context.Context, id string) (*conversation.Conversation, error) {
	if c := d.talks[id]; c != nil {
		return c, nil
	}
	if d.err != nil {
		return nil, d.err
	}
	return nil, store.ErrUnknown
}

func deskServer(t *testing.T, d *desk, change func(*Options)) *Server {
	t.Helper()
	fake := quiet{}
	m, err := session.NewManager(session.Options{Transports: map[string]transport.Transport{"fake": fake}, Provider: "fake"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	opts := Options{Sessions: m, Voice: d, Auth: operators("key"), Settings: Settings{Hosts: named(t, "gw.example", "other")}, TrustedProxies: proxies()}
	if change != nil {
		change(&opts)
	}
	opts.Logger = testutil.Logger(opts.Logger)
	return New(opts)
}

// operate sends an operator's request.
func operate(s *Server, method, path, body string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://gw.example:8080"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer key")
	r.Header.Set("Content-Type", "application/json")
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	checkError(w)
	return w
}

func TestSessionIsOffered(t *testing.T) {
	d := &desk{}
	s := deskServer(t, d, nil)
	w := operate(s, "POST", "/v1/sessions", `{"user":"ada","agent":"default","pending_request":" When? ","conversation_id":"c-7","origin":"HTTPS://App.example:443","inspect":true,
		"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`, nil)
	want := `{"session_id":"voice-1","conversation_id":"conv-1","ticket":"s3cret","url":"ws://gw.example:8080/v1/voice","expires_at":"2026-11-20T10:01:00.005Z","subprotocols":["voicegw.v1","voicegw.ticket.s3cret"]}`
	if w.Code != http.StatusCreated || strings.TrimSpace(w.Body.String()) != want || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	in := d.asked[0]
	var said []string
	for _, e := range in.Entries {
		said = append(said, fmt.Sprint(e.Turn, e.Side, e.Role, e.Text))
	}
	if diff := cmp.Diff([]string{"1textusera", "1textassistantb", "2textuserc"}, said); diff != "" {
		t.Error(diff)
	}
	if in.Guarantor.Mark == "" {
		t.Error("the ticket lacks the operators' key that made it")
	}
	in.Entries, in.Guarantor.Mark = nil, ""
	if diff := cmp.Diff(handoff.Invitation{User: user.Must("ada"), Vouched: true, Agent: "default", PendingRequest: "When?", ConversationID: "c-7", Origin: "https://app.example", Inspect: true, Guarantor: registry.Guarantor{ID: "operator"}}, in); diff != "" {
		t.Error(diff)
	}
	for want, change := range map[string]func(*http.Request){
		"wss://gw.example:8080/v1/voice": func(r *http.Request) {
			r.RemoteAddr = "10.0.0.1:40000"
			r.Header.Set("X-Forwarded-Proto", "https")
		},
		"ws://other/v1/voice": func(r *http.Request) { r.Host = "other" },
	} {
		var o sessionOffer
		if err := json.Unmarshal(operate(s, "POST", "/v1/sessions", `{"user":"ada"}`, change).Body.Bytes(), &o); err != nil || o.URL != want {
			t.Errorf("%q, want %q, %v", o.URL, want, err)
		}
	}
}

// TestSessionIsNotOffered: each refusal has its status, its code and a text that names the field, and no ticket is made.
func TestSessionIsNotOffered(t *testing.T) {
	many := strings.Repeat(`{"role":"user","content":"a"},`, maxChatMessages) + `{"role":"user","content":"a"}`
	for name, tc := range map[string]struct {
		body   string
		change func(*http.Request)
		err    error
		status int
		code   string
		word   string
	}{
		"no user":              {body: `{}`, status: 400, code: "invalid_message", word: "user"},
		"long user":            {body: `{"user":"` + strings.Repeat("x", 257) + `"}`, status: 400, code: "invalid_message", word: "user"},
		"unknown field":        {body: `{"user":"ada","usr":"x"}`, status: 400, code: "invalid_message", word: "usr"},
		"not JSON":             {body: `hello`, status: 400, code: "invalid_message"},
		"two objects":          {body: `{"user":"ada"}{}`, status: 400, code: "invalid_message"},
		"long message":         {body: `{"user":"ada","messages":[{"role":"user","content":"` + strings.Repeat("ü", 16_001) + `"}]}`, status: 400, code: "invalid_message", word: "messages[0].content"},
		"long request":         {body: `{"user":"ada","pending_request":"` + strings.Repeat("ü", 8001) + `"}`, status: 400, code: "invalid_message", word: "pending_request"},
		"long context":         {body: `{"user":"ada","context":"` + strings.Repeat("ü", 8001) + `"}`, status: 400, code: "invalid_message", word: "context"},
		"both":                 {body: `{"user":"ada","context":"x","messages":[{"role":"user","content":"a"}]}`, status: 400, code: "invalid_message", word: "messages"},
		"a tool's":             {body: `{"user":"ada","messages":[{"role":"user","content":"a"},{"role":"tool","content":"a"}]}`, status: 400, code: "invalid_message", word: "messages[1]"},
		"many messages":        {body: `{"user":"ada","messages":[` + many + `]}`, status: 400, code: "invalid_message", word: "501"},
		"conversation":         {body: `{"user":"ada","conversation_id":"a/b"}`, status: 400, code: "invalid_message", word: "conversation_id"},
		"inspect":              {body: `{"user":"ada","inspect":"yes"}`, status: 400, code: "invalid_message", word: "inspect"},
		"origin":               {body: `{"user":"ada","origin":"app.example"}`, status: 400, code: "invalid_message", word: "origin"},
		"agent":                {body: `{"user":"ada","agent":"bob"}`, status: 404, code: "unknown_agent", word: "bob"},
		"too large":            {body: `{"user":"` + strings.Repeat("x", 2<<20) + `"}`, status: 413, code: "invalid_message"},
		"no key":               {body: `{"user":"ada"}`, change: func(r *http.Request) { r.Header.Del("Authorization") }, status: 401, code: "key_missing"},
		"a form":               {body: `user=ada`, change: func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, status: 415, code: "invalid_message"},
		"foreign page":         {body: `{"user":"ada"}`, change: func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, status: 403, code: "origin"},
		"blocked":              {body: `{"user":"mallory"}`, status: 403, code: "blocked"},
		"in voice":             {body: `{"user":"ada"}`, err: store.ErrVoiceActive, status: 409, code: "voice_active"},
		"of another user":      {body: `{"user":"ada"}`, err: handoff.ErrTaken, status: 409, code: "conversation_taken"},
		"too many":             {body: `{"user":"ada"}`, err: fmt.Errorf("x: %w", store.ErrFull), status: 429, code: "limit"},
		"store is unreachable": {body: `{"user":"ada"}`, err: errors.New("disk s3cret"), status: 503, code: "store_unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &desk{err: tc.err}
			s := deskServer(t, d, func(o *Options) {
				o.Blocked = func(u user.User) (time.Time, bool) { return time.Now().Add(time.Hour), u == user.Must("mallory") }
			})
			w := operate(s, "POST", "/v1/sessions", tc.body, tc.change)
			var e struct {
				Error struct{ Code, Message string }
			}
			if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || w.Code != tc.status || e.Error.Code != tc.code || !strings.Contains(e.Error.Message, tc.word) {
				t.Errorf("%d %s, want %d %s", w.Code, w.Body, tc.status, tc.code)
			}
			if strings.Contains(w.Body.String(), "s3cret") || tc.err == nil && len(d.asked) > 0 {
				t.Errorf("asked %v, answered %s", d.asked, w.Body)
			}
			if retry := tc.status == 429 || tc.status == 503; retry != (w.Header().Get("Retry-After") != "") {
				t.Errorf("Retry-After %q", w.Header().Get("Retry-After"))
			}
		})
	}
	d := &desk{}
	s := deskServer(t, d, nil)
	s.opts.Sessions.Close()
	if w := operate(s, "POST", "/v1/sessions", `{"user":"ada"}`, nil); w.Code != 503 || !strings.Contains(w.Body.String(), "draining") || len(d.asked) > 0 {
		t.Errorf("while it leaves: %d %s", w.Code, w.Body)
	}
}

// TestConversationIsShown: operators get the whole conversation, other callers nothing.
func TestConversationIsShown(t *testing.T) {
	at := time.Date(2026, 11, 20, 10, 0, 0, 123456789, time.UTC)
	c := conversation.New("c-7", "ada", "default", at)
	c.Append(at, conversation.Entry{At: at, Side: conversation.SideVoice, Role: conversation.RoleAssistant, Text: "It opens", Turn: 1, SessionID: "voice-1",
		Interrupted: true, Calls: []conversation.Call{{ID: "call_1", Tool: "kb_search", OK: true}}})
	s := deskServer(t, &desk{talks: map[string]*conversation.Conversation{"c-7": c}}, nil)
	want := `{"id":"c-7","user":"ada","agent":"default","turns":1,"entries":[{"side":"voice","role":"assistant","text":"It opens","turn":1,"session_id":"voice-1","interrupted":true,"calls":[{"id":"call_1","tool":"kb_search","ok":true}],"at":"2026-11-20T10:00:00.123Z"}],"created_at":"2026-11-20T10:00:00.123Z","updated_at":"2026-11-20T10:00:00.123Z"}`
	if w := operate(s, "GET", "/v1/conversations/c-7", "", nil); w.Code != 200 || strings.TrimSpace(w.Body.String()) != want {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := operate(s, "GET", "/v1/conversations/c-8", "", nil); w.Code != 404 || !strings.Contains(w.Body.String(), "conversation_unknown") {
		t.Errorf("an unknown one: %d %s", w.Code, w.Body)
	}
	away := deskServer(t, &desk{err: store.ErrUnavailable}, nil)
	if w := operate(away, "GET", "/v1/conversations/c-7", "", nil); w.Code != 503 {
		t.Errorf("without the store: %d %s", w.Code, w.Body)
	}
	for _, path := range []string{"/v1/conversations/c-7", "/v1/sessions", "/v1/sessions/voice-1"} {
		w := operate(s, "GET", path, "", func(r *http.Request) { r.Header.Set("Authorization", "Bearer wrong") })
		if w.Code != 401 || strings.Contains(w.Body.String(), "It opens") {
			t.Errorf("%s with a wrong key: %d %s", path, w.Code, w.Body)
		}
	}
	if w := operate(s, "GET", "/v1/sessions", "", nil); w.Code != 200 || strings.TrimSpace(w.Body.String()) != `{"sessions":[]}` {
		t.Errorf("no session: %d %s", w.Code, w.Body)
	}
	if w := operate(s, "GET", "/v1/sessions/voice-1", "", nil); w.Code != 404 || !strings.Contains(w.Body.String(), "session_unknown") {
		t.Errorf("a session that does not run: %d %s", w.Code, w.Body)
	}
}

// TestSessionLineHasCost: the log line has the cost of a session, also of a free one: zero is an answer too.
func TestSessionLineHasCost(t *testing.T) {
	for amount, want := range map[cost.Amount]string{
		{}:                          `"cost_usd_micros":0}`,
		{Micros: 1250, Unpriced: 2}: `"cost_usd_micros":1250,"unpriced":2}`,
	} {
		if line, err := json.Marshal(lineOf(session.Running{Cost: amount})); err != nil || !strings.HasSuffix(string(line), want) {
			t.Errorf("%+v is logged as %s, %v", amount, line, err)
		}
	}
}
