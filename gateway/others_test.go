package gateway

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"voicegw/internal/auth"
	"voicegw/internal/backends/image"
	"voicegw/internal/conversation"
	"voicegw/internal/user"
	"voicegw/orchestrator/execute"
	"voicegw/protocol"
	"voicegw/store"
	"voicegw/store/storetest"
)

// noPictures has no images.
type noPictures struct{}

func (noPictures) Open(string) (*image.Image, error) { return nil, image.ErrUnknown }

// TestOthersAreOutOfReach: eve tries to reach ada's data through every endpoint, with all scopes except admin, by name
// and by known ids. Each attempt fails with the answer for missing data. Ada reaches her own.
func TestOthersAreOutOfReach(t *testing.T) {
	callers := everyCaller(t)
	const all = "voice chat tickets inspect confirm metrics"
	ada, eve := bearer(tokenFor("ada", all, nil)), bearer(tokenFor("eve", all, nil))
	questions := &storetest.Confirmations{}
	const token = "cf_ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	if err := questions.Create(t.Context(), store.Confirmation{Token: token, Session: "voice-9", User: "ada", Tool: "pay", Mode: "voice", ExpiresAt: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	d := &desk{talks: map[string]*conversation.Conversation{"conv-ada": {ID: "conv-ada", User: "ada"}}}
	a := &fakeAgent{}
	opts := sessionOptions()
	opts.Executor = execute.New(execute.Options{Confirmations: questions})
	srv, m := startOf(t, opts, func(o *Options) {
		o.Auth, o.Voice, o.Chat, o.Blocks, o.Images = callers.current, d, a, &fakeBlocks{}, noPictures{}
	})
	s := srv.Config.Handler.(*Server)
	speak(t, srv, ada)

	for name, tc := range map[string]struct {
		method, path, body string
		eve, ada           int
		says               string // the answer to eve
	}{
		"a message by text":     {"POST", "/v1/chat", `{"user":"ada","message":"Hi"}`, 403, 200, userNotAllowed},
		"a message as a model":  {"POST", "/v1/chat/completions", `{"user":"ada","messages":[{"role":"user","content":"Hi"}]}`, 403, 200, userNotAllowed},
		"a name in other forms": {"POST", "/v1/chat", `{"user":" ａｄａ ","message":"Hi"}`, 403, 200, userNotAllowed},
		"a ticket":              {"POST", "/v1/sessions", `{"user":"ada"}`, 403, 201, userNotAllowed},
		"a guess at an image":   {"GET", "/v1/images/ada", "", 404, 404, "image_unknown"},
		"the conversations":     {"GET", "/v1/conversations?user=ada", "", 200, 200, `{"conversations":[]`},
		"a conversation":        {"GET", "/v1/conversations/conv-ada", "", 404, 200, "conversation_unknown"},
		"a question":            {"POST", "/v1/confirmations", `{"token":"` + token + `","approved":false}`, 404, 200, "confirmation_unknown"},
		"the session":           {"GET", "/v1/sessions/" + m.Sessions()[0].ID, "", 404, 200, "session_unknown"},
		"its model's prompt":    {"GET", "/v1/sessions/" + m.Sessions()[0].ID + "/prompt", "", 404, 200, "session_unknown"},
		"ending the session":    {"DELETE", "/v1/sessions/" + m.Sessions()[0].ID, "", 403, 403, "scope_missing"},
		"a block":               {"DELETE", "/v1/blocks/ada", "", 403, 403, "scope_missing"},
		"all blocks":            {"GET", "/v1/blocks", "", 403, 403, "scope_missing"},
	} {
		try := func(who func(*http.Request)) *httptest.ResponseRecorder {
			return operate(s, tc.method, tc.path, tc.body, func(r *http.Request) { r.Host = "localhost"; who(r) })
		}
		if w := try(eve); w.Code != tc.eve || !strings.Contains(w.Body.String(), tc.says) {
			t.Errorf("%s, by eve: %d %s", name, w.Code, w.Body)
		}
		if w := try(ada); w.Code != tc.ada {
			t.Errorf("%s, by ada: %d %s", name, w.Code, w.Body)
		}
	}
	for _, r := range a.requests() {
		if r.User.String() != "ada" || !r.Vouched || r.Key != "jwt:tests:ada" {
			t.Errorf("the agent was asked for %s (vouched %t) by %s", r.User, r.Vouched, r.Key)
		}
	}
	if n := len(a.requests()); n != 3 {
		t.Errorf("the agent was asked %d times", n)
	}
	for who, want := range map[string]int{"eve": 0, "ada": 1} {
		var list struct{ Sessions []runningLine }
		w := ask(s, "GET", "/v1/sessions", bearer(tokenFor(who, all, nil)))
		if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || len(list.Sessions) != want {
			t.Errorf("%s sees %s, %v", who, w.Body, err)
		}
	}
	// The ticket is for ada and the page of the request, without the rights that only a server may grant.
	if in := d.asked[0]; len(d.asked) != 1 || in.User.String() != "ada" || !in.Vouched || in.Guarantor.ID != "jwt:tests:ada" {
		t.Errorf("%+v", d.asked)
	}
}

// speak starts a session that names another user, and lets it run.
func speak(t *testing.T, srv *httptest.Server, who func(*http.Request)) {
	t.Helper()
	r := httptest.NewRequest("GET", "/", nil)
	who(r)
	c, err := protocol.Dial(t.Context(), srv.URL+"/v1/voice", protocol.DialOptions{Header: http.Header{"Authorization": r.Header["Authorization"]}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Abort)
	say(t, c, &protocol.Start{InputRate: 16000, OutputRate: 24000, Client: &protocol.ClientInfo{ID: "somebody else"}})
	hear(t, c)
}

// TestBlockedUser: a blocked user gets in under no other name, and no other caller is taken for a blocked user.
func TestBlockedUser(t *testing.T) {
	callers := everyCaller(t)
	a := &fakeAgent{}
	s := everyRoute(t, func(o *Options) {
		o.Auth, o.Chat, o.Voice = callers.current, a, &desk{}
		o.Blocked = func(who user.User) (time.Time, bool) { return time.Now().Add(time.Hour), who.String() == "eve" }
	})
	for body, path := range map[string]string{
		`{"message":"Hi"}`: "/v1/chat", `{"messages":[{"role":"user","content":"Hi"}]}`: "/v1/chat/completions", `{}`: "/v1/sessions",
	} {
		for who, want := range map[string]int{"eve": 403, "ada": 200} {
			w := send(s, path, body, bearer(tokenFor(who, "voice chat", nil)))
			if w.Code != want && (want == 403 || w.Code != http.StatusCreated) || want == 403 && !strings.Contains(w.Body.String(), "blocked") {
				t.Errorf("%s, %s: %d %s", path, who, w.Code, w.Body)
			}
		}
		named := strings.Replace(body, "{", `{"user":"bob",`, 1)
		if w := send(s, path, strings.Replace(named, ",}", "}", 1), bearer(tokenFor("eve", "voice chat", nil))); w.Code != 403 || !strings.Contains(w.Body.String(), userNotAllowed) {
			t.Errorf("%s, as bob: %d %s", path, w.Code, w.Body)
		}
	}
}

// TestOwnTickets: a user's token, or a key without the scope tickets, gets a ticket for itself and for the page of
// the request only, and grants nothing with it.
func TestOwnTickets(t *testing.T) {
	callers := everyCaller(t)
	const app = "https://app.example"
	token := bearer(tokenFor("ada", "voice", nil))
	page := func(r *http.Request) { token(r); r.Header.Set("Origin", app) }
	for name, tc := range map[string]struct {
		who                  func(*http.Request)
		body                 string
		status               int
		user, origin, reason string
		inspect              bool
	}{
		"a program":                  {token, `{}`, 201, "ada", "", "", false},
		"by its name":                {token, `{"user":"ada"}`, 201, "ada", "", "", false},
		"by another":                 {token, `{"user":"bob"}`, 403, "", "", userNotAllowed, false},
		"an invalid name":            {token, `{"user":"192.0.2.7"}`, 403, "", "", userNotAllowed, false},
		"a page":                     {page, `{}`, 201, "ada", app, "", false},
		"a page for another":         {page, `{"origin":"https://evil.example"}`, 201, "ada", app, "", false},
		"to look inside":             {token, `{"inspect":true}`, 201, "ada", "", "", false},
		"to look inside, as one may": {bearer(tokenFor("ada", "voice inspect", nil)), `{"inspect":true}`, 201, "ada", "", "", true},
		"with scopes":                {token, `{"scopes":["hr"]}`, 403, "", "", "scopes_not_allowed", false},
		"a key of ada":               {bearer(callers.secrets["key of ada"]), `{}`, 201, "ada", "", "", false},
		"a bare key":                 {bearer(callers.secrets["key:voice"]), `{}`, 201, "key:", "", "", false},
		"a bare key for another":     {bearer(callers.secrets["key:voice"]), `{"user":"ada"}`, 403, "", "", userNotAllowed, false},
		"a server":                   {bearer(callers.secrets["key:tickets"]), `{"user":"bob","scopes":["hr"]}`, 201, "bob", "", "", false},
		"a server without a user":    {bearer(callers.secrets["key:tickets"]), `{}`, 400, "", "", "user is missing", false},
		"a key for text only":        {bearer(tokenFor("ada", "chat", nil)), `{}`, 403, "", "", "scope_missing", false},
	} {
		d := &desk{}
		s := everyRoute(t, func(o *Options) { o.Auth, o.Voice, o.Origins = callers.current, d, allow(t, app) })
		w := send(s, "/v1/sessions", tc.body, tc.who)
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.reason) || (w.Code == 201) != (len(d.asked) == 1) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
			continue
		}
		if w.Code != 201 {
			continue
		}
		in := d.asked[0]
		if !strings.HasPrefix(in.User.String(), tc.user) || in.Origin != tc.origin || in.Inspect != tc.inspect || !in.Vouched || in.Guarantor.ID == "" {
			t.Errorf("%s: %+v", name, in)
		}
		if tc.origin != "" && w.Header().Get("Access-Control-Allow-Origin") != app {
			t.Errorf("%s: the page may not read it: %v", name, w.Header())
		}
	}
}

// TestServersNameUsers: a key with the scope tickets names users, grants scopes and instructs the model; one without
// it is a single user.
func TestServersNameUsers(t *testing.T) {
	callers := everyCaller(t)
	o := auth.Options{}
	add := func(scopes auth.Scopes) (secret, id string) {
		k := auth.NewAPIKey()
		o.Keys = append(o.Keys, auth.Key{ID: k.ID(), Name: "k", Hash: k.Hash(), Scopes: scopes})
		return k.Reveal(), "key:" + k.ID()
	}
	server, _ := add(auth.ScopeChat | auth.ScopeTickets)
	plain, self := add(auth.ScopeChat)
	both, err := auth.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer both.Close()
	callers.current.Swap(both)
	for path, body := range map[string]string{
		"/v1/chat": `{"message":"Hello"%s}`, "/v1/chat/completions": `{"messages":[{"role":"user","content":"Hello"}]%s}`,
	} {
		a := &fakeAgent{}
		s := everyRoute(t, func(o *Options) { o.Auth, o.Chat = callers.current, a })
		post := func(secret, more string) int {
			return send(s, path, strings.Replace(body, "%s", more, 1), bearer(secret)).Code
		}
		if post(server, `,"user":"ada","scopes":["hr"]`) != 200 || post(server, "") != 200 || post(plain, "") != 200 || post(plain, `,"user":"`+self+`"`) != 200 {
			t.Errorf("%s: %+v", path, a.requests())
		}
		if post(plain, `,"user":"ada"`) != 403 || post(plain, `,"scopes":["hr"]`) != 403 {
			t.Errorf("%s: a plain key names a user, or grants scopes", path)
		}
		got := a.requests()
		want := []string{"ada true hr", "192.0.2.7 false ", self + " true ", self + " true "}
		var said []string
		for _, r := range got {
			said = append(said, r.User.String()+" "+map[bool]string{true: "true", false: "false"}[r.Vouched]+" "+strings.Join(r.Scopes, " "))
		}
		if !slices.Equal(said, want) {
			t.Errorf("%s: %q, want %q", path, said, want)
		}
	}
}
