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
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/realtime"

	"voicegw/internal/auth"
	"voicegw/internal/openaiwire"
	"voicegw/internal/origin"
	"voicegw/internal/testutil"
	"voicegw/internal/user"
	"voicegw/registry"
	"voicegw/session/handoff"
	"voicegw/store"
)

// secretServer has real tickets.
func secretServer(t *testing.T, current *auth.Current, change func(*Options)) *Server {
	t.Helper()
	kept, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), Sync: store.SyncInterval})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kept.Close(); err != nil {
			t.Error(err)
		}
	})
	return deskServer(t, &desk{}, func(o *Options) {
		o.Voice, o.Auth = handoff.New(kept, "default"), current
		if change != nil {
			change(o)
		}
	})
}

// mint requests a client secret.
func mint(s *Server, key, body string, change func(*http.Request)) *httptest.ResponseRecorder {
	return operate(s, "POST", secretsPath, body, func(r *http.Request) {
		bearer(key)(r)
		if change != nil {
			change(r)
		}
	})
}

// minted is a client secret; the request must succeed.
func minted(t *testing.T, s *Server, key, body string, change func(*http.Request)) (a struct {
	Value     string
	ExpiresAt int64 `json:"expires_at"`
	Session   struct {
		Type, Model, Instructions string
		Tools                     []struct{ Name string }
		ExpiresAt                 int64 `json:"expires_at"`
	}
}) {
	t.Helper()
	w := mint(s, key, body, change)
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != http.StatusOK || !strings.HasPrefix(a.Value, "ek_") {
		t.Fatalf("%s: %d %s", body, w.Code, w.Body)
	}
	return a
}

// call is a handshake of OpenAI's Realtime API.
type call struct {
	p      auth.Principal
	secret *handoff.Secret
	w      *httptest.ResponseRecorder
}

// realtimeCall is a handshake with the credentials in some headers.
func realtimeCall(s *Server, change func(*http.Request)) (c call) {
	row := access{pattern: "GET " + realtimePath, scopes: auth.ScopeVoice, free: true, realtime: true}
	r := httptest.NewRequest(http.MethodGet, "http://gw.example:8080"+realtimePath+"?model=gpt-realtime", nil)
	change(r)
	c.w = httptest.NewRecorder()
	s.guarded(row, func(w http.ResponseWriter, r *http.Request) *problem {
		c.p, c.secret = auth.From(r.Context()), clientSecret(r.Context())
		return done(w, http.StatusSwitchingProtocols)
	})(c.w, r)
	return c
}

func offering(key string) func(*http.Request) {
	return header("Sec-Websocket-Protocol", "realtime, openai-insecure-api-key."+key+", openai-agents-sdk.1")
}

// TestClientSecretIsMade: the answer has OpenAI's form, and the secret opens the session that it was made for.
func TestClientSecretIsMade(t *testing.T) {
	s := secretServer(t, operators("key"), nil)
	now := time.Now().Unix()
	a := minted(t, s, "key", `{"expires_after":{"anchor":"created_at","seconds":60},"session":{"type":"realtime","model":"gpt-realtime-2","instructions":"Sing.",
		"tools":[{"type":"function","name":"look"}]},"voicegw":{"user":"ada","conversation_id":"c-1","pending_request":"Hello?","context":"They like tea."}}`, nil)
	if a.ExpiresAt < now+59 || a.ExpiresAt > now+61 || a.Session.Model != "gpt-realtime-2" || a.Session.Instructions != "Sing." || len(a.Session.Tools) != 1 || a.Session.Type != "realtime" || a.Session.ExpiresAt != a.ExpiresAt {
		t.Errorf("%+v", a)
	}
	for name, change := range map[string]func(*http.Request){
		"Authorization": bearer(a.Value), "api-key": header("Api-Key", a.Value), "subprotocol": offering(a.Value),
	} {
		c := realtimeCall(s, change)
		if c.w.Code != http.StatusSwitchingProtocols || c.secret == nil {
			t.Fatalf("%s: %d %s", name, c.w.Code, c.w.Body)
		}
		if c.p.Kind != auth.KindTicket || c.p.User != user.Must("ada") || c.p.ID != "operator" || c.p.Scopes != auth.ScopeVoice || c.p.Mark == "" {
			t.Errorf("%s: the principal is %+v", name, c.p)
		}
		if x := c.secret; x.User != c.p.User || x.ConversationID != "c-1" || x.Model != "gpt-realtime-2" || !x.LockInstructions || !x.LockTools ||
			string(x.Session) != `{"instructions":"Sing.","tools":[{"type":"function","name":"look"}],"type":"realtime"}` || x.ExpiresAt.Unix() != a.ExpiresAt {
			t.Errorf("%s: the secret is %+v, %s", name, x, x.Session)
		}
	}
	first, err := realtimeCall(s, bearer(a.Value)).secret.Redeem(t.Context())
	if err != nil || first.PendingRequest != "Hello?" || first.Context != "They like tea." || !first.Vouched {
		t.Errorf("%+v, %v", first, err)
	}
	first.Over()
}

// TestOfficialClientMakesASecret: the provider's own client library gets a secret and can read it.
func TestOfficialClientMakesASecret(t *testing.T) {
	s := secretServer(t, operators("key"), func(o *Options) { o.Hosts = origin.Hosts{} })
	srv := httptest.NewServer(s)
	defer srv.Close()
	c := openai.NewClient(option.WithBaseURL(srv.URL+"/v1/"), option.WithAPIKey("key"), option.WithHTTPClient(srv.Client()))
	got, err := c.Realtime.ClientSecrets.New(t.Context(), realtime.ClientSecretNewParams{
		ExpiresAfter: realtime.ClientSecretNewParamsExpiresAfter{Seconds: openai.Int(60)},
		Session: realtime.ClientSecretNewParamsSessionUnion{OfRealtime: &realtime.RealtimeSessionCreateRequestParam{
			Model: "gpt-realtime", Instructions: openai.String("Sing."),
		}},
	}, option.WithHeader(safetyIdentifier, "hash-of-bob"), option.WithMaxRetries(0))
	if err != nil {
		t.Fatal(err)
	}
	if got.Session.Instructions != "Sing." || got.Session.Model != "gpt-realtime" || got.ExpiresAt < time.Now().Unix()+58 {
		t.Errorf("%s", got.RawJSON())
	}
	if call := realtimeCall(s, bearer(got.Value)); call.secret == nil || call.secret.User != user.Must("hash-of-bob") {
		t.Errorf("%d %s", call.w.Code, call.w.Body)
	}
	_, err = c.Realtime.ClientSecrets.New(t.Context(), realtime.ClientSecretNewParams{
		ExpiresAfter: realtime.ClientSecretNewParamsExpiresAfter{Seconds: openai.Int(5)},
	}, option.WithMaxRetries(0))
	var no *openai.Error
	if !errors.As(err, &no) || no.StatusCode != http.StatusBadRequest || no.Param != "expires_after.seconds" || no.Code != "invalid_value" {
		t.Errorf("a life of 5 s: %v", err)
	}
}

// TestLocks: given instructions and tools are locked, unless tools are opened.
func TestLocks(t *testing.T) {
	s := secretServer(t, operators("key"), nil)
	for body, want := range map[string]string{
		``:   "false false gpt-realtime",
		`{}`: "false false gpt-realtime",
		`{"session":{"type":"realtime","model":"m","audio":{"output":{"voice":"marin"}}}}`: "false false m",
		`{"session":{"instructions":""}}`:                                                  "true false gpt-realtime",
		`{"session":{"prompt":{"id":"p"}}}`:                                                "true false gpt-realtime",
		`{"session":{"tools":[]}}`:                                                         "false true gpt-realtime",
		`{"session":{"tools":[]},"voicegw":{"tools":"open"}}`:                              "false false gpt-realtime",
		`{"voicegw":{"tools":"locked"}}`:                                                   "false true gpt-realtime",
		`{"voicegw":{"agent":"default"}}`:                                                  "true false gpt-realtime",
		`{"session":{"model":"agent:default"}}`:                                            "true false agent:default",
		`{"voicegw":{"agent":"default","user":"ada","scopes":["hr"]}}`:                     "true false gpt-realtime",
	} {
		a := minted(t, s, "key", body, nil)
		c := realtimeCall(s, bearer(a.Value))
		if c.secret == nil {
			t.Fatalf("%s: %d %s", body, c.w.Code, c.w.Body)
		}
		if got := fmt.Sprint(c.secret.LockInstructions, c.secret.LockTools, " ", a.Session.Model); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	for _, path := range []string{azurePrefix + secretsPath, betaSecretsPath} {
		if w := operate(s, "POST", path, "{}", nil); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "ek_") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := operate(s, "POST", secretsPath, "{}", func(r *http.Request) { noKey(r); r.Header.Set("Api-Key", "key") }); w.Code != http.StatusOK {
		t.Errorf("with the key in Azure's header: %d %s", w.Code, w.Body)
	}
	w := operate(s, "POST", callsPath, "v=0", nil)
	if w.Code != http.StatusNotImplemented || !strings.Contains(w.Body.String(), "WebSocket") {
		t.Errorf("WebRTC: %d %s", w.Code, w.Body)
	}
}

// TestClientSecretSessions opens sessions over a socket: the secret's settings apply and cannot be changed, and after the
// first session the secret opens the next.
func TestClientSecretSessions(t *testing.T) {
	kept, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), Sync: store.SyncInterval})
	if err != nil {
		t.Fatal(err)
	}
	opts := sessionOptions()
	desk := handoff.New(kept, "default")
	opts.Handoffs = desk
	var s *Server
	srv, m := startOf(t, opts, func(o *Options) {
		o.Voice, o.Auth = desk, operators(testKey)
	})
	t.Cleanup(func() {
		m.Close()
		if err := kept.Close(); err != nil {
			t.Error(err)
		}
	})
	s, _ = srv.Config.Handler.(*Server)
	if s == nil {
		t.Fatal("the handler is not a Server")
	}
	w := send(s, secretsPath, `{"session":{"type":"realtime","model":"other","instructions":"Sing.","tools":[{"type":"function","name":"look"}]},"voicegw":{"user":"ada"}}`, bearer(testKey))
	var made struct{ Value string }
	if err := json.Unmarshal(w.Body.Bytes(), &made); err != nil || made.Value == "" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	dial := func() *websocket.Conn {
		t.Helper()
		c, _, err := websocket.Dial(t.Context(), srv.URL+realtimePath+"?model=gpt-realtime", &websocket.DialOptions{
			Subprotocols: []string{"realtime", keyProtocol + made.Value}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.CloseNow() })
		if c.Subprotocol() != "realtime" {
			t.Errorf("the subprotocol is %q", c.Subprotocol())
		}
		return c
	}
	until := func(c *websocket.Conn, want string) string {
		t.Helper()
		for {
			_, data, err := c.Read(t.Context())
			if err != nil {
				return err.Error()
			}
			if strings.Contains(string(data), want) {
				return string(data)
			}
		}
	}
	write := func(c *websocket.Conn, event string) {
		t.Helper()
		if err := c.Write(t.Context(), websocket.MessageText, []byte(event)); err != nil {
			t.Fatal(err)
		}
	}
	locked := func(event string) {
		t.Helper()
		if !strings.Contains(event, `"instructions":"Sing."`) || !strings.Contains(event, `"name":"look"`) || strings.Contains(event, "Shout") || !strings.Contains(event, `"model":"other"`) {
			t.Errorf("the session is %s", event)
		}
	}
	first := dial()
	locked(until(first, "session.created"))
	write(first, `{"type":"session.update","session":{"type":"realtime","instructions":"Shout.","tools":[]}}`)
	locked(until(first, "session.updated"))
	write(first, `{"type":"conversation.item.create","item":{"type":"message","role":"system","content":[{"type":"input_text","text":"Shout."}]}}`)
	if got := until(first, `"error"`); !strings.Contains(got, `"param":"item.role"`) {
		t.Errorf("a system message: %s", got)
	}
	write(first, `{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]}}`)
	until(first, "conversation.item.done")
	testutil.WaitUntil(t, "the session", func() bool { return len(m.Sessions()) == 1 })
	if one := m.Sessions()[0]; one.User != "ada" || one.Principal.ID != "operator" {
		t.Errorf("the session is %+v", one)
	}
	second := dial()
	write(second, `{"type":"response.create"}`)
	if got := until(second, "nothing"); !strings.Contains(got, "4") || len(m.Sessions()) != 1 {
		t.Errorf("a second session at the same time: %s", got)
	}
	write(first, `{"type":"session.close"}`)
	until(first, "nothing")
	testutil.WaitUntil(t, "its end", func() bool { return len(m.Sessions()) == 0 })
	third := dial()
	write(third, `{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]}}`)
	testutil.WaitUntil(t, "the next session", func() bool { return len(m.Sessions()) == 1 })
	write(third, `{"type":"session.close"}`)
	until(third, "nothing")
	testutil.WaitUntil(t, "the end of all", func() bool { return len(m.Sessions()) == 0 })
}

// TestUsersOfClientSecrets: a server names the user, in the body or in OpenAI's header; otherwise each secret has a new
// one. A user gets secrets for itself.
func TestUsersOfClientSecrets(t *testing.T) {
	callers := everyCaller(t)
	s := secretServer(t, callers.current, nil)
	who := func(caller, body string, change func(*http.Request)) string {
		t.Helper()
		c := realtimeCall(s, bearer(minted(t, s, callers.secrets[caller], body, change).Value))
		if c.secret == nil {
			t.Fatalf("%s: %d %s", caller, c.w.Code, c.w.Body)
		}
		in, err := c.secret.Redeem(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		in.Over()
		return fmt.Sprint(c.secret.User, " ", in.Vouched)
	}
	identifier := header(safetyIdentifier, "hash-of-bob")
	for _, tc := range []struct {
		caller, body string
		change       func(*http.Request)
		want         string
	}{
		{"key:tickets", `{"voicegw":{"user":"eve"}}`, identifier, "eve true"},
		{"key:tickets", `{}`, identifier, "hash-of-bob true"},
		{"user:voice", `{}`, identifier, "ada true"},
		{"user:voice", `{"voicegw":{"user":"ada"}}`, nil, "ada true"},
		{"key of ada", `{}`, nil, "ada true"},
	} {
		if got := who(tc.caller, tc.body, tc.change); got != tc.want {
			t.Errorf("%s with %s: %s, want %s", tc.caller, tc.body, got, tc.want)
		}
	}
	one, two := who("key:tickets", `{}`, nil), who("key:tickets", `{}`, nil)
	if one == two || !strings.HasPrefix(one, "anonymous:") || !strings.HasSuffix(one, " false") {
		t.Errorf("users without a name: %s and %s", one, two)
	}
}

// TestClientSecretIsNotMade: each refusal has OpenAI's form, with the field.
func TestClientSecretIsNotMade(t *testing.T) {
	callers := everyCaller(t)
	s := secretServer(t, callers.current, nil)
	minted(t, s, testKey, `{"voicegw":{"user":"bob","conversation_id":"bobs"}}`, nil)
	ek := minted(t, s, testKey, `{}`, nil).Value
	for name, tc := range map[string]struct {
		key, body   string
		change      func(*http.Request)
		status      int
		code, param string
	}{
		"a scope":            {key: callers.secrets["key:chat"], body: `{}`, status: 403, code: "scope_missing"},
		"another's":          {key: callers.secrets["user:voice"], body: `{"voicegw":{"user":"bob"}}`, status: 403, code: userNotAllowed},
		"own scopes":         {key: callers.secrets["user:voice"], body: `{"voicegw":{"scopes":["hr"]}}`, status: 403, code: "scopes_not_allowed"},
		"conversation":       {key: callers.secrets["user:voice"], body: `{"voicegw":{"conversation_id":"bobs"}}`, status: 409, code: "conversation_taken"},
		"a client secret":    {key: ek, body: `{}`, status: 403, code: "secret_not_allowed"},
		"wrong key":          {key: "ek_" + strings.Repeat("a", 52), body: `{}`, status: 401, code: "wrong_key"},
		"not JSON":           {key: testKey, body: `{`, status: 400, code: "invalid_message"},
		"an array":           {key: testKey, body: `[]`, status: 400, code: "invalid_type", param: "body"},
		"unknown field":      {key: testKey, body: `{"sesion":{}}`, status: 400, code: "unknown_parameter", param: "sesion"},
		"too short":          {key: testKey, body: `{"expires_after":{"seconds":9}}`, status: 400, code: "invalid_value", param: "expires_after.seconds"},
		"too long":           {key: testKey, body: `{"expires_after":{"seconds":7201}}`, status: 400, code: "invalid_value", param: "expires_after.seconds"},
		"anchor":             {key: testKey, body: `{"expires_after":{"anchor":"now"}}`, status: 400, code: "invalid_value", param: "expires_after.anchor"},
		"session":            {key: testKey, body: `{"session":[]}`, status: 400, code: "invalid_type", param: "session"},
		"model":              {key: testKey, body: `{"session":{"model":3}}`, status: 400, code: "invalid_type", param: "session.model"},
		"transcription":      {key: testKey, body: `{"session":{"type":"transcription"}}`, status: 400, code: "invalid_value", param: "session.type"},
		"speed":              {key: testKey, body: `{"session":{"audio":{"output":{"speed":9}}}}`, status: 400, code: "invalid_value", param: "session.audio.output.speed"},
		"another server":     {key: testKey, body: `{"session":{"tools":[{"type":"mcp","server_label":"x"}]}}`, status: 400, code: "invalid_value", param: "session.tools[0].server_label"},
		"size":               {key: testKey, body: `{"session":{"instructions":"` + strings.Repeat("x", maxSecretSession) + `"}}`, status: 400, code: "invalid_value", param: "session"},
		"tools":              {key: testKey, body: `{"voicegw":{"tools":"shut"}}`, status: 400, code: "invalid_value", param: "voicegw.tools"},
		"field of ours":      {key: testKey, body: `{"voicegw":{"usr":"ada"}}`, status: 400, code: "invalid_message", param: "voicegw"},
		"user":               {key: testKey, body: `{"voicegw":{"user":"10.0.0.1"}}`, status: 400, code: "invalid_message"},
		"header":             {key: testKey, body: `{}`, change: header(safetyIdentifier, "10.0.0.1"), status: 400, code: "invalid_message"},
		"model's agent":      {key: testKey, body: `{"session":{"model":"agent:bob"}}`, status: 404, code: "unknown_agent"},
		"agent":              {key: testKey, body: `{"voicegw":{"agent":"bob"}}`, status: 404, code: "unknown_agent"},
		"two keys":           {key: testKey, body: `{}`, change: header("Api-Key", "other"), status: 401, code: "key_missing"},
		"no JSON's type":     {key: testKey, body: `{}`, change: func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, status: 415, code: "invalid_message"},
		"a field many times": {key: testKey, body: `{"session":{},"session":{}}`, status: 400, code: "invalid_message", param: "session"},
	} {
		w := mint(s, tc.key, tc.body, tc.change)
		var got struct {
			Error struct {
				Type, Code, Message string
				Param               *string
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != tc.status || got.Error.Code != tc.code || got.Error.Type == "" || got.Error.Message == "" {
			t.Errorf("%s: %d %.300s, want %d %s", name, w.Code, w.Body, tc.status, tc.code)
		}
		if p := got.Error.Param; tc.param != "" && (p == nil || *p != tc.param) {
			t.Errorf("%s: %.300s, want the param %s", name, w.Body, tc.param)
		}
	}
}

// TestRealtimeAccess: the credentials that open the WebSocket, and their places.
func TestRealtimeAccess(t *testing.T) {
	callers := everyCaller(t)
	s := secretServer(t, callers.current, nil)
	ek := minted(t, s, callers.secrets["key:tickets"], `{"voicegw":{"user":"bob","origin":"https://app.example"}}`, nil).Value
	places := map[string]func(string) func(*http.Request){
		"Authorization": bearer, "Api-Key": func(key string) func(*http.Request) { return header("Api-Key", key) }, "subprotocol": offering,
	}
	for place, show := range places {
		for name, secret := range callers.secrets {
			if name == "anonymous" || place == "subprotocol" && len(secret) > 256 {
				continue
			}
			want := http.StatusForbidden
			switch {
			case strings.HasPrefix(name, "wrong"), place == "subprotocol":
				want = http.StatusUnauthorized
			case callers.scopes[name]&(auth.ScopeVoice|auth.ScopeAdmin) != 0:
				want = http.StatusSwitchingProtocols
			}
			c := realtimeCall(s, func(r *http.Request) { show(secret)(r); r.RemoteAddr = fmt.Sprintf("198.51.100.%d:1", len(name)) })
			if c.w.Code != want || c.secret != nil {
				t.Errorf("%s in %s: %d %s, want %d", name, place, c.w.Code, c.w.Body, want)
			}
			if want == http.StatusUnauthorized && place == "subprotocol" && !strings.Contains(c.w.Body.String(), "key_in_subprotocol") {
				t.Errorf("%s in a subprotocol: %s", name, c.w.Body)
			}
		}
		for origin, want := range map[string]int{"https://app.example": 101, "https://evil.example": 401, "": 401} {
			c := realtimeCall(s, func(r *http.Request) {
				show(ek)(r)
				if origin != "" {
					r.Header.Set("Origin", origin)
				}
			})
			if c.w.Code != want {
				t.Errorf("the client secret in %s from %q: %d %s, want %d", place, origin, c.w.Code, c.w.Body, want)
			}
		}
	}
	if c := realtimeCall(s, func(*http.Request) {}); c.w.Code != http.StatusUnauthorized || !strings.Contains(c.w.Body.String(), "key_missing") {
		t.Errorf("without credentials: %d %s", c.w.Code, c.w.Body)
	}
	if c := realtimeCall(s, header("Sec-Websocket-Protocol", "realtime, openai-insecure-api-key."+ek+", openai-insecure-api-key.x")); c.w.Code != http.StatusUnauthorized {
		t.Errorf("with two keys: %d %s", c.w.Code, c.w.Body)
	}
	// Other routes do not take a client secret.
	if w := operate(s, "GET", "/v1/tools", "", bearer(ek)); w.Code == http.StatusOK {
		t.Errorf("GET /v1/tools: %d", w.Code)
	}
	if w := operate(s, "POST", sessionsPath, `{}`, bearer(ek)); w.Code != http.StatusUnauthorized {
		t.Errorf("POST /v1/sessions: %d %s", w.Code, w.Body)
	}
}

// TestRealtimeWithoutKeys: a gateway without keys accepts clients with any key, but not with a wrong client secret, nor
// with the operators' key in a subprotocol.
func TestRealtimeWithoutKeys(t *testing.T) {
	s := secretServer(t, operators("key"), nil)
	for name, tc := range map[string]struct {
		change func(*http.Request)
		status int
		kind   auth.Kind
	}{
		"nothing":                  {func(*http.Request) {}, 101, auth.KindLocal},
		"any key":                  {bearer("sk-anything"), 101, auth.KindLocal},
		"any key in a subprotocol": {offering("sk-anything"), 101, auth.KindLocal},
		"the operators' key":       {bearer("key"), 101, auth.KindOperator},
		"there in a subprotocol":   {offering("key"), 401, ""},
		"a wrong client secret":    {bearer("ek_wrong"), 401, ""},
		"in a subprotocol":         {offering("ek_wrong"), 401, ""},
		"the key in both headers": {func(r *http.Request) {
			bearer("key")(r)
			header("Api-Key", "key")(r)
		}, 101, auth.KindOperator},
	} {
		if c := realtimeCall(s, tc.change); c.w.Code != tc.status || c.p.Kind != tc.kind {
			t.Errorf("%s: %d %s, %q", name, c.w.Code, c.w.Body, c.p.Kind)
		}
	}
}

// TestClientSecretEnds: a secret ends with its time, with its maker's credentials, and for a blocked user.
func TestClientSecretEnds(t *testing.T) {
	callers, blocked := everyCaller(t), map[string]bool{}
	s := secretServer(t, callers.current, func(o *Options) {
		o.Blocked = func(who user.User) (time.Time, bool) { return time.Now().Add(time.Hour), blocked[who.String()] }
	})
	opens := func(value string) int { return realtimeCall(s, bearer(value)).w.Code }
	kept := minted(t, s, testKey, `{"voicegw":{"user":"ada"}}`, nil).Value
	revoked := minted(t, s, callers.secrets["key:tickets"], `{"voicegw":{"user":"bob"}}`, nil).Value
	if opens(kept) != 101 || opens(revoked) != 101 {
		t.Fatal("the secrets do not open")
	}
	blocked["ada"] = true
	if c := realtimeCall(s, bearer(kept)); c.w.Code != http.StatusForbidden || !strings.Contains(c.w.Body.String(), "blocked") {
		t.Errorf("a blocked user: %d %s", c.w.Code, c.w.Body)
	}
	delete(blocked, "ada")
	callers.current.Swap(everyCaller(t).current.Get()) // the operators' key is the same, the others are new
	if got := []int{opens(kept), opens(revoked)}; got[0] != 101 || got[1] != 401 {
		t.Errorf("after the key was revoked: %v", got)
	}
}

// FuzzClientSecret: no body breaks the reader, and an accepted session can be applied again, as at a client's connect.
func FuzzClientSecret(f *testing.F) {
	for _, body := range []string{
		`{}`, `{"session":{"type":"realtime","model":"m","tools":[{"type":"mcp"}]},"voicegw":{"tools":"open"}}`, `{"session":null}`, `[`,
		`{"expires_after":{"seconds":10},"session":{"audio":{"input":{"turn_detection":{"type":"semantic_vad"}}}}}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		ours := json.RawMessage("{}")
		q, wrong := openaiwire.ReadSecretRequest(body, "voicegw", openaiwire.Raw(&ours))
		if wrong != nil {
			return
		}
		var more secretBody
		if json.Unmarshal(ours, &more) != nil {
			return
		}
		c, s, wrong := secretSession(q, &more)
		if wrong != nil {
			return
		}
		if q.Life < 10*time.Second || q.Life > 2*time.Hour || len(c.Session) > maxSecretSession {
			t.Errorf("%v, %d bytes", q.Life, len(c.Session))
		}
		if _, err := json.Marshal(s); err != nil {
			t.Error(err)
		}
		rules := openaiwire.Rules{TypeOptional: true, AnyTranscription: true}
		if again := openaiwire.NewSession("s", "m", &rules, time.Time{}); len(c.Session) > 0 {
			if _, wrong := again.Update(c.Session); wrong != nil {
				t.Errorf("%s: %v", c.Session, wrong)
			}
		}
	})
}

// lookup is a Voice with one client secret, or an error.
type lookup struct {
	desk
	found *handoff.Secret
	err   error
}

func (l *lookup) Secret(context.Context, string, string) (*handoff.Secret, error) {
	return l.found, l.err
}

// TestClientSecretIsRefused: an expired or unknown secret gets the answer for any wrong key; an unreachable store is not
// a client's error.
func TestClientSecretIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		lookup lookup
		status int
		code   string
	}{
		"expired":                 {lookup{err: store.ErrExpired}, 401, "wrong_key"},
		"unknown":                 {lookup{err: store.ErrUnknown}, 401, "wrong_key"},
		"another page's":          {lookup{err: store.ErrOrigin}, 401, "wrong_key"},
		"store away":              {lookup{err: store.ErrUnavailable}, 503, "store_unavailable"},
		"its maker's key expired": {lookup{found: &handoff.Secret{User: user.Must("ada"), Guarantor: registry.Guarantor{Expires: time.Unix(1, 0)}}}, 401, "wrong_key"},
		"its maker was removed":   {lookup{found: &handoff.Secret{User: user.Must("ada"), Guarantor: registry.Guarantor{ID: "key:gone"}}}, 401, "wrong_key"},
		"valid":                   {lookup{found: &handoff.Secret{User: user.Must("ada"), Guarantor: registry.Guarantor{ID: "operator"}}}, 101, ""},
	} {
		s := secretServer(t, operators("key"), func(o *Options) { o.Voice = &tc.lookup })
		c := realtimeCall(s, bearer("ek_x"))
		if c.w.Code != tc.status || !strings.Contains(c.w.Body.String(), tc.code) {
			t.Errorf("%s: %d %s", name, c.w.Code, c.w.Body)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s := deskServer(t, &desk{}, nil)
		for range failureBurst {
			realtimeCall(s, bearer("ek_wrong"))
		}
		if c := realtimeCall(s, bearer("ek_wrong")); c.w.Code != http.StatusTooManyRequests {
			t.Errorf("after many guesses: %d", c.w.Code)
		}
	})
}

// TestBetaClientsAreRefused: they would understand no event, whether they say so in a header or, in browsers, in a
// subprotocol.
func TestBetaClientsAreRefused(t *testing.T) {
	for value, beta := range map[string]func(*http.Request){
		"beta header": header("OpenAI-Beta", "assistants=v2, realtime=v1"), "subprotocol": header("Sec-Websocket-Protocol", "realtime, openai-beta.realtime-v1"),
		"": header("Sec-Websocket-Protocol", "realtime"),
	} {
		r := httptest.NewRequest(http.MethodGet, realtimePath, http.NoBody)
		beta(r)
		if no := realtimeRefusal(r); (no != nil) != (value != "") || no != nil && no.Code != "beta_api_shape_disabled" {
			t.Errorf("%q: %v", value, no)
		}
	}
}
